"""Writes the record beside asv's results, line by whole line."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gpubench.names import Value
from gpubench.record import CaseRecord, RunRecord, parse_line, record_name, to_line


class Recorder:
    """Appends lines to one record file; without a file (no asv run) it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, record: RunRecord | CaseRecord) -> None:
        """Append one line in one system call, so that a killed run leaves no half line."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, to_line(record).encode())
        finally:
            os.close(handle)

    def write_facts(
        self, gather: Callable[[], Mapping[str, Value | None]], run: Value | None = None
    ) -> None:
        """Append the run's facts, unless the file's last facts are the same.

        They are not gathered again, which takes longer than many kernels, where the last ones are
        of the ``run`` that is given.
        """
        if self.path is None:
            return
        last = self._last_facts()
        if run is not None and last is not None and last.get("run") == run:
            return
        facts = gather()
        if facts != last:
            self.write(RunRecord(now(), facts))

    def _last_facts(self) -> Mapping[str, Value | None] | None:
        if self.path is None or not self.path.exists():
            return None
        lines = self.path.read_text(encoding="utf-8").splitlines()
        runs = [line for line in lines if '"kind": "run"' in line]
        last = parse_line(runs[-1]) if runs else None
        return last.facts if isinstance(last, RunRecord) else None


def recorder_of_asv() -> Recorder:
    """Recorder for the asv run that this process belongs to, by what asv puts into the
    environment; one that keeps nothing when there is none."""
    environment = os.environ
    if not {"ASV_CONF_DIR", "ASV_COMMIT", "ASV_ENV_NAME"} <= environment.keys():
        return Recorder(None)
    results = _results_dir(Path(environment["ASV_CONF_DIR"]))
    folder = results / _machine(results)
    return Recorder(folder / record_name(environment["ASV_COMMIT"], environment["ASV_ENV_NAME"]))


def now() -> str:
    """The time in UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _results_dir(project: Path) -> Path:
    """asv's ``results_dir``, from its configuration (JSON with comments)."""
    for name in ("asv.conf.json", "asv.conf.jsonc"):
        if (project / name).exists():
            text = (project / name).read_text(encoding="utf-8")
            uncommented = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
            found = re.search(r'"results_dir"\s*:\s*"([^"]*)"', uncommented)
            return project / (found[1] if found else "results")
    return project / "results"


def _machine(results: Path) -> str:
    """Name of the machine under which asv stores this run.

    asv tells it to nobody, but writes ``machine.json`` into that folder when a run begins: the
    newest is this run's.
    """
    files = sorted(results.glob("*/machine.json"), key=lambda path: path.stat().st_mtime)
    return files[-1].parent.name if files else platform.node()
