"""Writes the record beside asv's results, line by whole line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gpubench.measure.asv_record import record_path
from gpubench.names import Value
from gpubench.record import CaseRecord, RunRecord, parse_line, to_line


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
        told = self.path.read_bytes()  # every case asks: only the line that counts is looked at
        at = told.rfind(b'"kind": "run"')
        if at < 0:
            return None
        line = told[told.rfind(b"\n", 0, at) + 1 :].partition(b"\n")[0]
        last = parse_line(line.decode())
        return last.facts if isinstance(last, RunRecord) else None


def recorder_of_asv() -> Recorder:
    """Recorder for the asv run that this process belongs to; one that keeps nothing where there is
    none, or asv keeps no results of it."""
    return Recorder(record_path())


def now() -> str:
    """The time in UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")
