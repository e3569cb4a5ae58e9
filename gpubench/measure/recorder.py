"""Writes the record beside asv's results, line by whole line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from gpubench.errors import GpubenchError
from gpubench.measure.facts import backend_concerns, run_facts
from gpubench.record import Line, RunRecord, parse_line, to_line


class Recorder:
    """Appends lines to one record file; without a file (no asv run) it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, record: Line) -> None:
        """Append one line in one system call, so that a killed run leaves no half line."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, to_line(record).encode())
        finally:
            os.close(handle)

    def write_facts(self, run: str) -> None:
        """Append the facts of a run, unless the file's last ones are its or the same.

        They are not gathered again where they are of this ``run``: that takes longer than many
        kernels, and every case asks.
        """
        if self.path is None:
            return
        runs = (one for one in self.backwards('"kind": "run"') if isinstance(one, RunRecord))
        last = next((one.facts for one in runs), None)
        if last is not None and run and last.get("run") == run:
            return
        facts = {"run": run, **run_facts()}
        if facts != last:
            self.write(RunRecord(now(), facts, backend_concerns()))

    def backwards(self, *words: str) -> Iterator[Line]:
        """Lines that have one of these words in them, from the last to the first.

        The others are not parsed: every case looks back over thousands of lines.
        """
        if self.path is None or not self.path.exists():
            return
        for line in reversed(self.path.read_text(encoding="utf-8").splitlines()):
            if any(word in line for word in words):
                with suppress(GpubenchError):  # damaged, or of a later release
                    yield parse_line(line)


def now() -> str:
    """The time in UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")
