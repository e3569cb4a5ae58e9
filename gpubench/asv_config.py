"""What commands need of ``asv.conf.json``: where results, pages and the repository are, whose
branches make a history, where a commit is shown, and which changes count."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.errors import Fault
from gpubench.files import TooLarge, read_regular
from gpubench.git import BareRepository, Repository, named_repository
from gpubench.links import LEADS_OUT, leads_out
from gpubench.names import pattern_fault

NAMES = ("asv.conf.json", "asv.conf.jsonc")

MACHINES = "~/.asv-machine.json"
"""What asv was told of machines, by their names."""

MAX_CONFIG_BYTES = 2**17
"""Of a configuration: with asv's own comments it has some 8 KB."""


@dataclass(frozen=True, slots=True)
class AsvConfig:
    """asv's configuration, as far as it decides what a history is."""

    folder: Path
    """In which it stands: the working folder where there is none."""
    repository: Repository
    """Where git is asked."""
    branches: tuple[str, ...] = ()
    """Names for git; empty where none is named."""
    path: Path | None = None
    """``None`` where there is none."""
    results_dir: Path = Path("results")
    """Where asv keeps results; relative to the working folder, as is ``html_dir``."""
    html_dir: Path | None = None
    """Where asv writes its site; ``None`` where that is not said."""
    show_commit_url: str = ""
    """What stands before a hash in the address of a commit's page; empty without one."""
    thresholds: tuple[tuple[str, float], ...] = ()
    """``regressions_thresholds``: regular expressions of benchmarks, each with the share by which
    a value changes at least."""
    higher_is_better: tuple[str, ...] = ()
    """Regular expressions of benchmarks of which more is better whatever their unit."""
    faults: tuple[Fault, ...] = ()


def find_config(results_dir: Path) -> AsvConfig:
    """Read the configuration that a results directory belongs to: the nearest in a folder above it.

    Where there is none above, one in the working folder counts, or the one in a folder of it whose
    ``results_dir`` is that directory. Nothing is raised: what is wrong is among ``faults``.
    """
    path = next(_candidates(results_dir), None)
    if path is None:
        return AsvConfig(Path(), repository_beside(results_dir) or Path())
    return read_config(path, repository_beside(results_dir))


def project_config() -> AsvConfig | None:
    """Read the configuration of the working folder; ``None`` where there is none."""
    path = next(filter(Path.is_file, map(Path, NAMES)), None)
    return read_config(path) if path else None


def repository_beside(results_dir: Path) -> Path | None:
    """Return the nearest folder above a results directory that is a git repository."""
    place = Path(os.path.normpath(Path.cwd() / results_dir))
    return next((folder for folder in place.parents if (folder / ".git").exists()), None)


def read_config(path: Path, beside: Path | None = None) -> AsvConfig:
    """Read a configuration; ``beside`` is a repository for where ``repo`` names none here."""
    folder = path.parent
    try:
        content = read_configuration(path)
        branches = content.get("branches", ())
        if not isinstance(branches, list | tuple) or not all(
            isinstance(name, str | None) for name in branches
        ):
            raise ValueError('`branches` is a list of names, such as ["main"]')
    except ValueError as error:
        words = f"it is not read, so that the history is that of HEAD: {error}"
        return AsvConfig(folder, folder, path=path, faults=(Fault(str(path), 0, 0, words),))
    thresholds, faults = _thresholds(content, path)
    higher, more_faults = _higher_is_better(content, path)
    return AsvConfig(
        folder,
        _repository(folder, content, beside or folder),
        tuple(filter(None, branches)),
        path,
        results_dir=folder / (_path(content.get("results_dir")) or "results"),
        html_dir=folder / html if (html := _path(content.get("html_dir"))) else None,
        show_commit_url=_web_address(content.get("show_commit_url")),
        thresholds=thresholds,
        higher_is_better=higher,
        faults=(*faults, *more_faults),
    )


def _path(value: Any) -> str:
    """Return the text of a path; empty for any other value."""
    return value if isinstance(value, str) and "\0" not in value else ""


def _web_address(value: Any) -> str:
    """Return an address that a page may link to; empty for any other value."""
    is_one = isinstance(value, str) and re.fullmatch(r"https?://[!-~]{1,500}", value)
    return value if is_one else ""


def _thresholds(
    content: Mapping[str, Any], path: Path
) -> tuple[tuple[tuple[str, float], ...], tuple[Fault, ...]]:
    """Return the thresholds of changes, and what is wrong with the others."""
    given = content.get("regressions_thresholds") or {}
    if not isinstance(given, dict):
        words = '`regressions_thresholds` is a mapping such as {"time_sum": 0.1}; it is not used'
        return (), (Fault(str(path), 0, 0, words),)
    thresholds, faults = [], []
    for pattern, share in given.items():
        fault = pattern_fault(pattern, "")
        if not (isinstance(share, int | float) and 0 <= share < math.inf):
            fault = f"{share!r} is no share; write one such as 0.1"
        if fault:
            words = f"`regressions_thresholds` of {pattern!r} is not used: {fault}"
            faults.append(Fault(str(path), 0, 0, words))
        else:
            thresholds.append((pattern, float(share)))
    return tuple(thresholds), tuple(faults)


def _higher_is_better(
    content: Mapping[str, Any], path: Path
) -> tuple[tuple[str, ...], tuple[Fault, ...]]:
    """Return the expressions of benchmarks of which more is better, and what is wrong with the
    others."""
    given = content.get("higher_is_better") or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        words = '`higher_is_better` is a list such as ["track_score"]; it is not used'
        return (), (Fault(str(path), 0, 0, words),)
    wrong = {one: fault for one in given if (fault := pattern_fault(one, ""))}
    faults = (
        Fault(str(path), 0, 0, f"`higher_is_better` of {one!r} is not used: {fault}")
        for one, fault in wrong.items()
    )
    return tuple(one for one in given if one not in wrong), tuple(faults)


def _candidates(results_dir: Path) -> Iterator[Path]:
    here = Path.cwd()
    place = Path(os.path.normpath(here / results_dir))
    for folder in (*place.parents, here):
        # As the user would name it: relative to where he stands.
        shown = Path(os.path.relpath(folder)) if folder.is_relative_to(here) else folder
        yield from filter(Path.is_file, (shown / name for name in NAMES))
    for path in sorted(Path().glob(f"*/{NAMES[0]}*")):
        try:
            results = read_configuration(path).get("results_dir", "results")
            if path.name in NAMES and place == Path(os.path.normpath(here / path.parent / results)):
                yield path
        except (TypeError, ValueError):
            continue


def read_configuration(path: Path) -> Mapping[str, Any]:
    """Return what a configuration of asv holds, comments left out; raises ``ValueError`` for what
    is none."""
    if leads_out(path, path.parent):
        raise ValueError(LEADS_OUT)
    try:
        text = read_regular(path, MAX_CONFIG_BYTES).decode()
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except TooLarge as error:
        raise ValueError(str(error)) from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # asv's own reader, of JSON with comments; it takes a hundred times as long.
        import json5

        try:
            content = json5.loads(text)
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error
    if not isinstance(content, dict):
        raise ValueError("it holds no mapping")
    return content


def _repository(folder: Path, content: Mapping[str, Any], beside: Path) -> Repository:
    """Return the folder that ``repo`` names, or the one to which asv has cloned it from elsewhere;
    else the repository ``beside``."""
    repo, project = content.get("repo"), content.get("project", "project")
    if isinstance(repo, str) and "\0" not in repo and (folder / repo).is_dir():
        return named_repository(folder / repo)
    # asv clones into a folder of the project's name, beside its configuration.
    if isinstance(project, str) and "\0" not in project:
        clone = named_repository(folder / project)
        return clone if isinstance(clone, BareRepository) else beside
    return beside


def machine_name() -> str:
    """Return asv's name for this machine; its host's name where asv has none yet.

    As asv does, takes the one machine of `~/.asv-machine.json` whatever it is called (asv's manual,
    *Machine information*).
    """
    host = platform.node()
    with suppress(OSError, TooLarge, ValueError, TypeError, KeyError):
        machines = json.loads(read_regular(Path(MACHINES).expanduser(), MAX_CONFIG_BYTES))
        machines.pop("version", None)
        only = next(iter(machines)) if len(machines) == 1 else host
        return str(machines[host if host in machines else only]["machine"])
    return host
