"""Writes result files as asv does, through asv's own class, and the record beside them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from asv.results import Results
from asv.runner import BenchmarkResult

from gpubench.record import (
    CaseRecord,
    CountsRecord,
    CountTarget,
    Disturbance,
    LaunchRecord,
    Line,
    LineRecord,
    RoundsRecord,
    RunRecord,
    record_name,
    to_line,
)

AT = "2026-03-01T10:00:00+00:00"


def samples(median: float, spread: float = 0.01, count: int = 10) -> list[float]:
    """So many samples around a median, evenly over +- ``spread``."""
    half = (count - 1) / 2 or 1
    return [median * (1 + spread * (i - (count - 1) / 2) / half) for i in range(count)]


@dataclass
class CommitFiles:
    """What one commit leaves on one machine in one environment."""

    directory: Path
    commit: str
    date: int
    """Seconds since 1970."""
    machine: str = "runner"
    environment: str = "virtualenv-py3.11"
    values: dict[str, dict[str, list[float] | float | None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    lines: list[Line] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    started_at: float | None = None
    record_samples: bool = False
    """Whether asv keeps the samples too."""
    number: int = 1
    """Calls in one of asv's samples."""

    def time(self, benchmark: str, case: str, median: float, **how: float) -> CommitFiles:
        self.values[benchmark][case] = samples(median, **how)  # type: ignore[arg-type]
        return self

    def missing(self, benchmark: str, case: str) -> CommitFiles:
        self.values[benchmark][case] = None
        return self

    def not_applicable(self, benchmark: str, case: str) -> CommitFiles:
        self.values[benchmark][case] = math.nan
        return self

    def record(
        self, benchmark: str, case: str, status: str = "ok", **fields: object
    ) -> CommitFiles:
        at = str(fields.pop("at", AT))
        self.lines.append(CaseRecord(benchmark, case, status, at, **fields))  # type: ignore[arg-type]
        return self

    def rounds(
        self, benchmark: str, case: str, *medians: float, disturbance: Disturbance | None = None
    ) -> CommitFiles:
        self.lines.append(RoundsRecord(benchmark, case, AT, medians, disturbance))
        return self

    def processes(self, benchmark: str, case: str, middle: float, count: int = 4) -> CommitFiles:
        """Time a case by so many processes, which differ by 0.1 %; each has five rounds."""
        runs = [line for line in self.lines if isinstance(line, RunRecord)]
        if not any("run" in line.facts for line in runs):  # it tells processes of one run
            self.facts(**(runs[-1].facts if runs else {}), run=f"7-{self.date}")
        for place in range(count):
            seconds = middle * (1 + 0.001 * (place - (count - 1) / 2))
            self.record(benchmark, case, device="cpu")
            self.rounds(benchmark, case, *samples(seconds, 0.002, 5))
        return self.time(benchmark, case, middle, count=5 * count)

    def counts(
        self, benchmark: str, case: str, *launches: LaunchRecord, model: int = 1,
        missing: str | None = None, target: CountTarget = "cuda", made_by: str | None = None,
    ) -> CommitFiles:  # fmt: skip
        self.lines.append(CountsRecord(benchmark, case, model, missing, launches, target, made_by))
        return self

    def facts(self, **facts: object) -> CommitFiles:
        self.lines.append(RunRecord(AT, facts))  # type: ignore[arg-type]
        return self

    @property
    def result_path(self) -> Path:
        return self.directory / self.machine / f"{self.commit[:8]}-{self.environment}.json"

    @property
    def record_path(self) -> Path:
        return self.directory / self.machine / record_name(self.commit, self.environment)

    def write(self) -> CommitFiles:
        write_machine(self.directory, self.machine)
        if self.values:
            self._results().save(str(self.directory))
        if self.lines:
            self.record_path.write_text("".join(map(to_line, self.lines)), encoding="utf-8")
        return self

    def _results(self) -> Results:
        results = Results(
            {"machine": self.machine},
            {},
            self.commit,
            self.date * 1000,
            "3.11",
            self.environment,
            {},
        )
        for benchmark, cases in self.values.items():
            description = {
                "name": benchmark,
                "version": self.versions.get(benchmark, "v1"),
                "params": [[repr(case) for case in cases]],
            }
            results.add_result(
                description,
                _benchmark_result(list(cases.values()), self.number),
                started_at=datetime.fromtimestamp(self.started_at or self.date, UTC),
                duration=1.0,
                record_samples=self.record_samples,
            )
        return results


def _benchmark_result(values: Sequence[list[float] | float | None], number: int) -> BenchmarkResult:
    timed = [isinstance(value, list) for value in values]
    return BenchmarkResult(
        result=[1.0 if is_list else value for value, is_list in zip(values, timed, strict=True)],
        samples=[value if is_list else None for value, is_list in zip(values, timed, strict=True)],
        number=[number if is_list else None for is_list in timed],
        errcode=0,
        stderr="",
        profile=None,
    )


def launch(
    kernel: str = "kernels.add", *, times: int = 1, grid: int = 4, block: int = 256,
    lines: Mapping[int, Mapping[str, int]] | None = None,
    resources: Mapping[str, int] | None = None, file: str = "kernels.py",
    architecture: tuple[int, int] = (8, 0), **counts: int,
) -> LaunchRecord:  # fmt: skip
    """A launch that was counted."""
    return LaunchRecord(
        kernel, (grid, 1, 1), (block, 1, 1), times, architecture=architecture, counts=counts,
        resources=resources,
        lines=tuple(LineRecord(file, line, of_line) for line, of_line in (lines or {}).items()),
    )  # fmt: skip


def write_machine(directory: Path, machine: str, **facts: str) -> None:
    """asv's ``machine.json``."""
    folder = directory / machine
    folder.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "cpu": "Example 9000", "num_cpu": "2", "version": 1, **facts}
    (folder / "machine.json").write_text(json.dumps(content), encoding="utf-8")
