"""Writes the record beside asv's results, line by whole line; it begins with facts of the run."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from pathlib import Path

from gpubench.backends import registry
from gpubench.backends.host import cpu
from gpubench.backends.numpy import blas_facts, blas_libraries
from gpubench.distribution import DISTRIBUTION
from gpubench.entry_points import OBSERVERS, declared
from gpubench.errors import GpubenchError
from gpubench.files import MAX_BYTES, TooLarge, append_lines, read_regular
from gpubench.measure.asv_settings import asv_settings
from gpubench.names import Value
from gpubench.record import APPENDED, CaseRecord, CountsRecord, Line, RunRecord, parse_line, to_line

SOFTWARE = (DISTRIBUTION, "numpy", "asv-runner")
"""Distributions whose versions explain a change of any time; backends name theirs."""


class Recorder:
    """Appends lines to one record file; without a file (no asv run) it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, record: Line) -> None:
        """Append one line, whole; raises ``GpubenchError`` where it cannot be."""
        if self.path is None:
            return
        if self.path.exists() and not self.path.is_file():
            raise GpubenchError(f"the record {self.path} is no regular file; move it away")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            append_lines(self.path, to_line(record).encode())
        except OSError as error:
            raise GpubenchError(
                f"a case is not on record: {error}; mend that, or make room, and measure it again"
            ) from error

    def write_facts(self, run: str, of_code: Mapping[str, Value | None] | None = None) -> None:
        """Append the facts of a run and of the code that the run measures, unless the file's last
        facts are of this run or equal."""
        if self.path is None:
            return
        # Gathering them takes longer than many kernels, and every case asks.
        runs = (one for one in self.backwards('"kind": "run"') if isinstance(one, RunRecord))
        last = next((one.facts for one in runs), None)
        if last is not None and run and last.get("run") == run:
            return
        settings = asv_settings()
        asked: dict[str, Value | None] = {APPENDED: True} if settings.append_samples else {}
        facts = {"run": run, **asked, **run_facts(), **(of_code or {})}
        if facts != last:
            backends = registry.usable()
            concerns = {one.name: tuple(one.concerns) for one in backends if one.concerns}
            self.write(RunRecord(now(), facts, concerns))

    def lines(self) -> list[Line]:
        """Return all lines that can be read, in their order."""
        return [*self.backwards('"format"')][::-1]

    def cases_of_run(self, word: str) -> Iterator[CaseRecord]:
        """Lines of cases since the last facts of a run, from the last to the first, of those that
        have this word in them."""
        for line in self.backwards(word, '"kind": "run"'):
            if isinstance(line, RunRecord):
                return
            if isinstance(line, CaseRecord):
                yield line

    def outcome_of_run(self, benchmark: str, case: str) -> CaseRecord | None:
        """Return what became of a case in the present run; ``None`` where that is not known yet."""
        line = self.last_of_run(benchmark, case)
        return None if line is None or line.status == "started" else line

    def last_of_run(self, benchmark: str, case: str) -> CaseRecord | None:
        """Return the last line of a case in the present run, also that it was begun."""
        for line in self._of_case(benchmark, case, '"kind": "run"'):
            if isinstance(line, RunRecord):
                return None
            if isinstance(line, CaseRecord):
                return line
        return None

    def counts_of_run(self, benchmark: str, case: str) -> CountsRecord | None:
        """Return what the present run counted of a case."""
        for line in self._of_case(benchmark, case, '"kind": "run"'):
            if isinstance(line, RunRecord):
                return None
            if isinstance(line, CountsRecord):
                return line
        return None

    def last_counts(self, benchmark: str, case: str) -> CountsRecord | None:
        """Return what any run counted of a case last."""
        lines = self._of_case(benchmark, case)
        return next((line for line in lines if isinstance(line, CountsRecord)), None)

    def _of_case(self, benchmark: str, case: str, *words: str) -> Iterator[Line]:
        """Yield the lines of a case and the lines with one of these words, the last line first."""
        # As ``to_line`` writes them: a record has thousands of lines, and each is looked for often.
        return self.backwards(f'"benchmark": "{benchmark}", "case": {json.dumps(case)}', *words)

    def backwards(self, *words: str) -> Iterator[Line]:
        """Yield the lines that have one of these words in them, from the last to the first. The
        others are neither split nor parsed: every case looks back over thousands of lines."""
        try:
            content = read_regular(self.path, MAX_BYTES) if self.path else b""
        except (OSError, TooLarge):  # none yet, or none that can be looked at
            return
        last = {word: content.rfind(word) for word in map(str.encode, words)}
        while (place := max(last.values())) >= 0:
            begin, end = content.rfind(b"\n", 0, place) + 1, content.find(b"\n", place)
            line = content[begin:end] if end >= 0 else content[begin:]
            with suppress(GpubenchError):  # damaged, or of a later release
                yield parse_line(line.decode(errors="replace"))
            last = {
                word: at if at < begin else content.rfind(word, 0, begin)
                for word, at in last.items()
            }


def run_facts() -> dict[str, Value | None]:
    """Flat facts about machine, GPU, software and threads, gathered without starting a device.
    ``None``: not to be had here."""
    processor = cpu()
    facts: dict[str, Value | None] = {
        "host": platform.node(),
        "os": platform.platform(),
        "cpu": processor.name,
        "cpu_threads": processor.threads,
        "memory_bytes": processor.memory_bytes,
        "python": platform.python_version(),
    }
    software = dict.fromkeys(SOFTWARE)
    for backend in registry.usable():
        facts.update(backend.machine_facts())
        software.update(dict.fromkeys(backend.software))
    for name in software:
        # Records had this name before the distribution was renamed.
        fact = "gpubench" if name == DISTRIBUTION else name.replace("-", "_")
        facts[fact] = None
        with suppress(PackageNotFoundError):
            facts[fact] = version(name)
    if observers := sorted({f"{one.name} of {_release(one)}" for one in declared(OBSERVERS)}):
        facts["observers"] = ", ".join(observers)  # they may move a time
    return {
        **facts,
        **blas_facts(blas_libraries().info()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _release(entry: EntryPoint) -> str:
    distribution = entry.dist
    return f"{distribution.name} {distribution.version}" if distribution else "no distribution"


def now() -> str:
    """Return the time in UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")
