"""Where the record of this process's case belongs: beside the result file that asv will write."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from gpubench.measure.asv_command import AsvCommand, asv_command, started_by_asv
from gpubench.record import record_name

KEEPING = ("run", "continuous", "find")
"""Commands of asv that write result files."""

CONFIGURATIONS = ("asv.conf.json", "asv.conf.jsonc")
"""Names that asv looks for where it is given none."""

DEFAULT_TIMEOUT = 60.0
"""Seconds for one case, asv's own default."""

FULL_HASH = re.compile(r"[0-9a-f]{40}")
GIT_SECONDS = 60.0


def record_path() -> Path | None:
    """File for what becomes of this process's case; ``None`` where asv keeps no results.

    Where asv keeps results under a commit that cannot be found here, a line on standard error says
    so, and what to do: asv shows it with ``--show-stderr``.
    """
    environment, command = os.environ, asv_command()
    if command is not None and (command.discards or command.name not in KEEPING):
        return None
    folder = _folder(environment, command)
    if folder is None:
        return None
    commit = _commit(environment, command, folder)
    if commit is None:
        return None
    results = folder / (_setting(folder, command, "results_dir") or "results")
    name = environment.get("ASV_ENV_NAME") or _existing_environment()
    return results / _machine(results) / record_name(commit, name)


def asv_timeout(attributes: Mapping[str, object]) -> float:
    """Seconds after which asv ends a case whose suite does not say: those of ``-a timeout=``, of
    asv's configuration, or asv's own."""
    given = attributes.get("timeout")
    if isinstance(given, int | float):
        return float(given)
    command = asv_command()
    folder = _folder(os.environ, command)
    written = _setting(folder, command, "default_benchmark_timeout") if folder else None
    return float(written) if written else DEFAULT_TIMEOUT


def _folder(environment: Mapping[str, str], command: AsvCommand | None) -> Path | None:
    """That of asv's configuration."""
    if "ASV_CONF_DIR" in environment:
        return Path(environment["ASV_CONF_DIR"])
    return command.folder if command is not None else None


def _commit(environment: Mapping[str, str], command: AsvCommand | None, folder: Path) -> str | None:
    """Commit under which asv keeps results; an existing Python has none unless one is set."""
    if command is None or command.commit is None:
        return environment.get("ASV_COMMIT")
    if FULL_HASH.fullmatch(command.commit):
        return command.commit
    places = [_setting(folder, command, name) or "" for name in ("repo", "project")]
    found = next(filter(None, (_revision(folder / p, command.commit) for p in places if p)), None)
    if found is None and started_by_asv():
        print(
            f"gpubench: no record is kept: git knows no commit {command.commit!r} in "
            f"{' or '.join(filter(None, places))}; give --set-commit-hash all 40 digits",
            file=sys.stderr,
        )
    return found


def _revision(repository: Path, name: str) -> str | None:
    """Hash of a commit, tag or branch; ``None`` where there is no such repository or name."""
    import subprocess  # for such runs alone

    command = ["git", "-C", str(repository), "rev-parse", "--verify", "--quiet"]
    try:
        done = subprocess.run(
            [*command, f"{name}^{{commit}}"],
            capture_output=True,
            check=True,
            text=True,
            timeout=GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _existing_environment() -> str:
    """asv's name for the Python that runs this process, where asv did not make it."""
    return re.sub(r'[<>:"/\\^|?*\x00-\x1f]', "_", f"existing-py{sys.executable}")


def _setting(folder: Path, command: AsvCommand | None, name: str) -> str | None:
    """A text or number of asv's configuration, which is JSON with comments; ``None`` without."""
    chosen = (command.config,) if command is not None and command.config else CONFIGURATIONS
    path = next((folder / each for each in chosen if (folder / each).exists()), None)
    if path is None:
        return None
    text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = re.search(rf"""["']?\b{name}["']?\s*:\s*(?:"([^"]*)"|'([^']*)'|([\d.]+))""", text)
    return next(filter(None, found.groups()), None) if found else None


def _machine(results: Path) -> str:
    """Name of the machine under which asv stores this run.

    asv tells it to nobody, but writes ``machine.json`` into that folder when a run begins: the
    newest is this run's.
    """
    files = sorted(results.glob("*/machine.json"), key=lambda path: path.stat().st_mtime)
    return files[-1].parent.name if files else platform.node()
