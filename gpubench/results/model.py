"""What was measured, free of asv's formats: outcomes of cases at commits, on machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpubench.names import BenchmarkName, Value
from gpubench.record import CaseRecord

Status = Literal["ok", "skipped", "failed", "wrong", "timed_out", "killed", "verified"]
"""``killed``: started, and neither finished nor stopped by asv's timeout. ``verified``: right on a
device in software, which has no times."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One measured time of one case; seconds."""

    median: float
    low: float
    """Lower end of asv's 99 % interval of the median; ``-inf`` with too few samples."""
    high: float
    """Upper end of the interval; ``inf`` with too few samples."""
    q25: float | None = None
    q75: float | None = None
    number: int | None = None
    """Calls in one sample."""
    repeat: int | None = None
    """Samples."""
    version: str | None = None
    """asv's version of the benchmark: what is measured, as a hash."""

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True, order=True, slots=True)
class CaseName:
    """Names one case across commits, machines and environments."""

    suite: str
    kernel: str
    implementation: str
    time: str
    """One of ``gpubench.names.TIMES``."""
    case: str
    """Identity, ``n=1048576 block=256``."""

    @property
    def benchmark(self) -> BenchmarkName:
        return BenchmarkName(self.suite, self.kernel, self.implementation, self.time)

    @classmethod
    def of(cls, benchmark: BenchmarkName, case: str) -> CaseName:
        """The case of that identity in a benchmark."""
        return cls(
            benchmark.suite, benchmark.kernel, benchmark.implementation, benchmark.time, case
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case in one snapshot."""

    name: CaseName
    status: Status
    reason: str | None = None
    """Why there is no time, with the next step; ``None`` when there is one."""
    timing: Timing | None = None
    """Present exactly when the status is ``ok``."""
    record: CaseRecord | None = None
    """Conditions; ``None`` when only asv's number is left."""
    bench: str | None = None
    """What ``asv run --bench`` takes for it; ``None`` where its name says it (``class_name``)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit measured on one machine in one environment: one of asv's result files."""

    machine: str
    environment: str
    commit: str
    date: float
    """Date of the commit, seconds since 1970."""
    outcomes: Mapping[CaseName, Outcome] = field(default_factory=dict)
    facts: Mapping[str, Value | None] = field(default_factory=dict)
    """Of the last process that measured: ``cpu``, ``numba``, ``gpu``, ``driver`` ..."""
    params: Mapping[str, Value | None] = field(default_factory=dict)
    """What asv's result file says of machine and environment: ``cpu``, ``python``, requirements."""
    measured_at: str | None = None
    """When those facts were taken, UTC, ISO 8601."""
    superseded: tuple[str, ...] = ()
    """asv benchmarks left out because what they measure has changed since (their version)."""
    stamp: tuple[int, ...] = ()
    """Changes with its files; empty where it is of none."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two benchmarks that an asv project runs, reported as one kernel."""

    suite: str
    name: str
    """Of the kernel that the report shows."""
    baseline: str
    """asv's name of the benchmark that speedup is measured against."""
    candidate: str
    """asv's name of the benchmark whose speedup is reported."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with results."""

    hash: str
    date: float
    """Seconds since 1970."""
    subject: str | None = None
    """First line of its message; ``None`` without the repository."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A file, or a part of one, that was left out."""

    path: str
    """Relative to the results directory."""
    message: str


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a report is made from."""

    snapshots: tuple[Snapshot, ...] = ()
    """In the order of ``commits``, then by machine and environment."""
    commits: tuple[Commit, ...] = ()
    """Oldest first."""
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """asv's ``machine.json`` by the machine's name: ``cpu``, ``num_cpu``, ``os``, ``ram`` ..."""
    problems: tuple[Problem, ...] = ()
    sources: Mapping[BenchmarkName, str] = field(default_factory=dict)
    """What asv shows as the code of a benchmark, of the newest run."""
    kept: Path | None = None
    """File beside which is kept, for the next time, what takes long to find out from results."""
