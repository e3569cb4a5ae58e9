"""What two snapshots differ in: verdicts of cases, setups, and the comparison as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, get_args

from gpubench.analysis.between_runs import Shared
from gpubench.analysis.causes import FactChange
from gpubench.analysis.counted_change import CountedChange
from gpubench.analysis.renamed import Rename
from gpubench.names import BenchmarkName
from gpubench.results import CaseName, Ratio, Row, Snapshot, Table

ComparisonVerdict = Literal[
    "slower",
    "failed",
    "faster",
    "mended",
    "suspect",
    "not comparable",
    "unclear",
    "not judged",
    "not compared",
    "same",
]

COMPARISON_VERDICTS: tuple[ComparisonVerdict, ...] = get_args(ComparisonVerdict)
"""In the order in which they are shown: what differs first."""

DIFFERING: tuple[ComparisonVerdict, ...] = COMPARISON_VERDICTS[:6]
"""Verdicts that a reader of a comparison should see one by one."""

OPEN: tuple[ComparisonVerdict, ...] = ("unclear", "suspect")
"""Verdicts by which times do not decide."""

CHANGED: tuple[ComparisonVerdict, ...] = ("slower", "faster")
"""Verdicts that a time has changed: of these it is said what they rest on."""

Basis = Literal["times", "pairs", "speedups", "in turn"]
"""What a ratio was made of. ``in turn``: processes of both sides that took turns. ``pairs``: two
speedups, each measured in turn with the baseline on the same setup. ``speedups``: two speedups of
setups that differ."""

RESTS_ON: Mapping[Basis, str] = {
    "pairs": "same run",
    "times": "between runs",
    "speedups": "same run",
    "in turn": "in turn",
}
"""What a verdict rests on: times of two runs, speedups, each against a baseline of the same run, or
processes of both sides that took turns."""

PROCESSOR_FACTS: Mapping[str, str] = {
    "cpu": "processor",
    "arch": "architecture",
    "cpu_threads": "threads available",
    "num_cpu": "number of processors",
    "NUMBA_NUM_THREADS": "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS": "OMP_NUM_THREADS",
}
"""Facts of a snapshot that set the speed of every case, with their names in a sentence."""

CORE_FACTS = tuple(name for name in PROCESSOR_FACTS if name not in ("cpu", "arch"))
"""Facts that set how many threads a case uses."""

GPU_FACTS: Mapping[str, str] = {"gpu": "GPU", "sm_count": "multiprocessors", "driver": "GPU driver"}
"""Facts that set the speed of cases on a GPU."""

DRIVER = "driver"
"""The one fact of a GPU that is software: a processor as baseline does not depend on it."""


@dataclass(frozen=True, slots=True)
class SetupDifference:
    """What differs between two snapshots beside the code, and sets how fast cases run."""

    machines: tuple[str, str] | None
    """Names before and after; ``None`` where they are the same."""
    environments: tuple[str, str] | None
    processor: tuple[FactChange, ...]
    """Those of ``PROCESSOR_FACTS`` that differ."""
    gpu: tuple[FactChange, ...]
    """Those of ``GPU_FACTS`` that differ."""

    @classmethod
    def between(cls, old: Snapshot, new: Snapshot, facts: Iterable[FactChange]) -> SetupDifference:
        """Find it by the names of the setups and by the facts that differ."""
        by_name = {fact.name: fact for fact in facts}
        names = [
            (getattr(old.setup, name), getattr(new.setup, name))
            for name in ("machine", "environment")
        ]
        machines, environments = (pair if pair[0] != pair[1] else None for pair in names)
        processor, gpu = (
            tuple(by_name[name] for name in known if name in by_name)
            for known in (PROCESSOR_FACTS, GPU_FACTS)
        )
        return cls(machines, environments, processor, gpu)

    def affects_times(self, on_gpu: bool) -> bool:
        """Return whether times of such cases differ for another reason than the code."""
        affects_all = self.machines or self.environments or self.processor
        return bool(affects_all or (on_gpu and self.gpu))

    def affects_hardware(self, on_gpu: bool) -> bool:
        """Return whether such cases ran on other hardware, as far as it is known."""
        of_gpu = on_gpu and any(fact.name != DRIVER for fact in self.gpu)
        return bool(self.machines or self.processor or of_gpu)

    @property
    def affects_threads(self) -> bool:
        """Whether a case may have used another number of threads."""
        return any(fact.name in CORE_FACTS for fact in self.processor)


@dataclass(frozen=True, slots=True)
class Difference:
    """One case on two sides."""

    name: CaseName
    verdict: ComparisonVerdict
    is_sure: bool
    """Whether ``slower`` or ``faster`` is an alarm (``between_runs.SURE_RATE``)."""
    old: Row | None
    """``None``: that side measured another version of the benchmark."""
    new: Row | None
    ratio: Ratio | None
    """Old time over new time, without what the two runs share, or new speedup over old speedup:
    above 1 it became faster. With the 99 % interval that the verdict rests on. ``None`` where a
    side has no time of the same version, and where the case is not judged."""
    baseline: Ratio | None
    """Old time over new time of its baseline; ``None`` for a baseline, where a side has none, where
    that did not become faster or slower, and between setups that differ."""
    note: str
    """What stands behind the verdict where no ratio of two times does."""
    basis: Basis | None
    """What ``ratio`` was made of; ``None`` without one."""
    pairs: int | None = None
    """Pairs of processes that took turns; ``None`` of stored results."""
    detectable: float | None = None
    """Least factor of a change that an unclear case would have shown; ``None`` where that is not
    known, or above all that is looked for."""
    seconds_to_decide: float | None = None
    """Time that an unclear case needs about, measured alone; ``None`` where that is not known."""
    processes: tuple[int, int] | None = None
    """Processes of each side that it was judged by; ``None`` of what was not, or in turn."""
    counted: CountedChange | None = None
    """What counts say of a case that times leave open (``OPEN``); ``None`` where both sides do the
    same work, or one has no counts."""

    @property
    def rests_on(self) -> str:
        """What the verdict rests on, of ``RESTS_ON``; empty where no ratio was judged."""
        return RESTS_ON[self.basis] if self.basis else ""


@dataclass(frozen=True, slots=True)
class SnapshotComparison:
    """Two snapshots side by side."""

    old: Snapshot
    new: Snapshot
    differences: tuple[Difference, ...]
    """Cases on both sides: by verdict, then the largest first."""
    only_old: tuple[CaseName, ...]
    only_new: tuple[CaseName, ...]
    facts: tuple[FactChange, ...]
    """What differs in hardware, software and settings."""
    setups: SetupDifference
    """What of that keeps times from being compared."""
    factor: float
    """Least factor for a change that the user asked for; 1 without."""
    shared: tuple[Shared, ...] = ()
    """What cases of a kind share between the two runs."""
    method: str = ""
    """How both were measured in turn, a sentence or two; empty for stored results."""
    options: tuple[str, ...] = ()
    """Options of the command line that chose the cases, where they were measured in turn."""
    renames: tuple[Rename, ...] = ()
    """Names that one side alone has, each with the like one of the other side."""
    busy: str = ""
    """What other work kept the machine busy as measuring in turn began; empty without any."""
    asv_names: Mapping[BenchmarkName, str] = field(default_factory=dict)
    """asv's names of benchmarks that have another name here."""

    def asv_name(self, name: CaseName) -> str:
        """Return asv's name of the benchmark of a case."""
        return self.asv_names.get(name.benchmark, name.benchmark.asv_name)

    @property
    def counts(self) -> dict[str, int]:
        """How many cases have which verdict; what does not occur is left out."""
        counts = Counter(difference.verdict for difference in self.differences)
        return {verdict: counts[verdict] for verdict in COMPARISON_VERDICTS if counts[verdict]}

    @property
    def sure(self) -> dict[str, int]:
        """How many of the slower and the faster cases are sure; what does not occur is left out."""
        return dict(Counter(item.verdict for item in self.differences if item.is_sure))

    @property
    def differing(self) -> tuple[Difference, ...]:
        """Differences that a reader should see one by one."""
        return tuple(
            item
            for item in self.differences
            if item.verdict in DIFFERING
            or item.counted
            or (item.basis == "in turn" and item.verdict == "unclear")
        )


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """One side of a comparison: a commit, or a results folder at its newest commits."""

    label: str
    """As the user named it."""
    table: Table
    snapshots: tuple[Snapshot, ...]
    """One for each machine and environment."""

    def on(self, machine: str | None, environment: str | None) -> ComparisonSide:
        """Return the same side without other machines and environments; ``None`` keeps all."""
        kept = tuple(one for one in self.snapshots if one.setup.fits(machine, environment))
        return ComparisonSide(self.label, self.table, kept)


def side_of(label: str, table: Table, commit: str | None = None) -> ComparisonSide:
    """Return the side of one commit, given by its full hash; without it, of each setup's newest."""
    of_setups = map(table.snapshots, table.measured)
    if commit is None:
        return ComparisonSide(label, table, tuple(snapshots[-1] for snapshots in of_setups))
    every = chain.from_iterable(of_setups)
    return ComparisonSide(label, table, tuple(s for s in every if s.commit.hash == commit))
