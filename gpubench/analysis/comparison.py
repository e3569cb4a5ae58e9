"""Two snapshots side by side: for each case, whether its own time changed.

Times of different machines, processors or environments say nothing of the code. There, speedups
are compared, each against a baseline measured beside it, or nothing is judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, compress, product
from typing import Literal, get_args

from gpubench.analysis.causes import FactChange, changed_facts
from gpubench.analysis.changes import THRESHOLD
from gpubench.analysis.scatter import (
    NORMAL_95,
    NOTHING_KNOWN,
    Limits,
    RunScatter,
    Shared,
    chance_of,
    find_changes,
    is_one_thread,
    learn_scatter,
    shared_difference,
)
from gpubench.errors import ResultsError
from gpubench.names import is_gpu
from gpubench.results import CaseName, Ratio, Row, Snapshot, Table, natural_order
from gpubench.results.ratio import independent_quotient
from gpubench.statuses import FAILURES, STATUSES, Status

ComparisonVerdict = Literal[
    "slower",
    "failed",
    "faster",
    "mended",
    "not comparable",
    "unclear",
    "not judged",
    "not compared",
    "same",
]

COMPARISON_VERDICTS: tuple[ComparisonVerdict, ...] = get_args(ComparisonVerdict)
"""In the order in which they are shown: what differs first."""

DIFFERING: tuple[ComparisonVerdict, ...] = COMPARISON_VERDICTS[:5]
"""Verdicts that a reader of a comparison should see one by one."""

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

SAME = THRESHOLD
"""Times are the same where the whole interval of their ratio is within this factor of 1x, 5 %, and
they have not changed.

It is the factor from which a lasting change is reported, so that a comparison and the history
call the same things equal.
"""

CHANGED_RATE = 0.1
"""Share of the cases called slower or faster that may be unchanged, on average. Where nothing has
changed, one comparison in ten calls any case so. With 0.01 half of the cases that were 1.5 times
slower were not seen between two runs of the machine in ``scatter.SEEN``, with 0.1 next to none that
was unchanged was called so (``docs/measurement.md``)."""

MAX_CHANCE = 0.02
"""Largest chance with which an unchanged case would differ as much as one called slower or faster:
of few cases ``CHANGED_RATE`` alone would ask for next to nothing."""

SURE_RATE = 0.01
"""The same of those that are sure, which ``--fail-on slower`` counts: of a hundred comparisons of
unchanged code one has any."""

BASELINE_MOVED = 1.2
"""Factor from which a baseline of the same version became faster or slower, so that a speedup says
nothing of the case alone. Medians over memory scatter by 8 % from process to process: of ratios of
two, 2 of 100 are beyond a fifth by chance alone."""

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

PAIRED_NOTE = "by its speedup: both times it was measured in turn with its baseline"
REPLACED = "what it measures has changed between the two"
NO_INTERVAL = "too few samples for an interval"
DISTURBED = "other work on the machine disturbed it"
NO_SPEEDUP = "no speedup on both sides"
OTHER_BASELINE = "its baseline is another one"
OTHER_DEVICE = "its baseline ran on a processor of another kind"
OTHER_THREADS = "it may use all threads, and their number differs"


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
    """Whether ``slower`` or ``faster`` is an alarm (``SURE_RATE``)."""
    old: Row | None
    """``None``: that side measured another version of the benchmark."""
    new: Row | None
    ratio: Ratio | None
    """Old time over new time, without what the two runs share, or new speedup over old speedup:
    above 1 it became faster. ``None`` where a side has no time of the same version, and where the
    case is not judged."""
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
    scatter: RunScatter | None
    """How much times of the newer side's setup differ between runs; ``None`` of sides that were
    measured in turn."""
    shared: Shared
    """What all one-thread times of the two runs share."""
    factor: float
    """Least factor for a change that the user asked for; 1 without."""
    method: str = ""
    """How both were measured in turn, a sentence or two; empty for stored results."""

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
        """Those that a reader should see one by one."""
        return tuple(
            item
            for item in self.differences
            if item.verdict in DIFFERING or (item.basis == "in turn" and item.verdict == "unclear")
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


def paired(old: ComparisonSide, new: ComparisonSide) -> tuple[tuple[Snapshot, Snapshot], ...]:
    """Pairs of snapshots of the same machine and environment; else the only one of each side.

    Raises ``ResultsError`` where neither is to be had.
    """
    at = {snapshot.setup: snapshot for snapshot in old.snapshots}
    pairs = tuple((at[s.setup], s) for s in new.snapshots if s.setup in at)
    if pairs:
        return pairs
    if len(old.snapshots) == len(new.snapshots) == 1:
        return ((old.snapshots[0], new.snapshots[0]),)
    places = []
    for side in (old, new):
        setups = sorted({f"{s.setup.machine} {s.setup.environment}" for s in side.snapshots})
        places.append(", ".join(setups) or "nothing measured")
    raise ResultsError(
        f"{old.label} and {new.label} have no machine and environment in common: "
        f"{' against '.join(places)}; narrow them to one each with --machine and --environment"
    )


def known_scatters(
    before: Table, after: Table, pair: tuple[Snapshot, Snapshot]
) -> tuple[RunScatter, RunScatter]:
    """Learn how much times differ between runs on the setups of two snapshots, of which one table
    or two tell."""
    places = (before, pair[0].setup), (after, pair[1].setup)
    if pair[0].setup == pair[1].setup:
        known = learn_scatter(dict.fromkeys(places))
        return known, known
    return learn_scatter(places[:1]), learn_scatter(places[1:])


@dataclass(slots=True)
class _Compared:
    """One case on both sides before it is judged."""

    name: CaseName
    old: Row | None
    new: Row | None
    ratio: Ratio | None = None
    basis: Basis | None = None
    unjudged: str = ""
    """Why there is no verdict."""
    moved: Ratio | None = None
    """Of its baseline's times."""
    limits: Limits = ()
    """Of ``ratio``."""


def compare_rows(
    old: Snapshot,
    new: Snapshot,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
    factor: float = 1.0,
    scatters: tuple[RunScatter, RunScatter] = (NOTHING_KNOWN, NOTHING_KNOWN),
) -> SnapshotComparison:
    """Compare two snapshots, of commits, machines, environments or separate result folders.

    Ratios within ``factor`` are neither faster nor slower, whatever else holds. ``scatters`` is
    what is known of either setup; of the same setup it is the same.
    """
    facts = changed_facts(old, new)
    setups = SetupDifference.between(old, new, facts)
    compared = []
    for name in sorted(old_rows.keys() | new_rows.keys(), key=natural_order):
        if not name.is_time:
            continue
        old_row, new_row = old_rows.get(name), new_rows.get(name)
        item = _Compared(name, old_row, new_row)
        item.moved = _baseline_ratio(old_row, new_row, old_rows, new_rows)
        if old_row and new_row and old_row.seconds and new_row.seconds:
            if setups.affects_times(is_gpu(old_row.device) or is_gpu(new_row.device)):
                item.basis = "speedups"
                item.unjudged = why_not_judged(old_row, new_row, old_rows, new_rows, setups)
                item.ratio = None if item.unjudged else speedup_ratio(old_row, new_row)
                item.moved = None  # with the setup, which is said of all
            else:
                in_turn = None if facts else ratio_in_turn(old_row, new_row, item.moved)
                item.ratio = in_turn or time_ratio(old_row, new_row)
                item.basis = "pairs" if in_turn else "times"
            sides = zip(scatters, (old_row, new_row), strict=True)
            item.limits = joined_limits(
                *(scatter.limits_of(row, item.basis != "times") for scatter, row in sides)
            )
        compared.append(item)
    shared = shared_difference([*_shared_logs(compared)])
    judged = [item for item in compared if _is_judged(item)]
    # The same to the last digit is one measurement, which both sides have: nothing was compared.
    tested = [item for item in judged if item.ratio and item.ratio.value != 1]
    for item in judged:
        if item.basis == "times" and item.ratio:
            item.ratio = without_shared(item.ratio, shared)
    chances = [chance_unchanged(item.ratio, item.limits, shared, item.basis) for item in tested]
    names = [item.name for item in tested]
    changed, sure = (
        {*compress(names, find_changes(chances, rate, MAX_CHANCE))}
        for rate in (CHANGED_RATE, SURE_RATE)
    )
    verdicts = {
        item.name: verdict_of(item.ratio, item.name in changed, factor)
        for item in judged
        if item.ratio
    }
    differences: list[Difference] = []
    only_old, only_new = [], []
    for item in compared:
        name, old_row, new_row = item.name, item.old, item.new
        verdict: ComparisonVerdict
        if old_row is None and name.benchmark.asv_name not in old.superseded:
            only_new.append(name)
            continue
        if new_row is None and name.benchmark.asv_name not in new.superseded:
            only_old.append(name)
            continue
        ratio, basis, baseline, note = item.ratio, item.basis, item.moved, ""
        if old_row is None or new_row is None or _versions_differ(old_row, new_row):
            verdict, note, ratio, baseline = "not comparable", REPLACED, None, None
        elif item.unjudged:
            verdict, note = "not judged", item.unjudged
        elif ratio is None or basis is None:
            verdict, note = UNTIMED[old_row.status, new_row.status]
            note = note.format(old=old_row.reason or "", new=new_row.reason or "")
        elif name in verdicts:
            verdict = verdicts[name]
            note = PAIRED_NOTE if basis == "pairs" and verdict in DIFFERING else ""
        else:
            disturbed = old_row.is_disturbed or new_row.is_disturbed
            verdict, note = "unclear", DISTURBED if disturbed else NO_INTERVAL
        is_against = old_row.baseline if old_row else None
        if is_against is None or verdicts.get(is_against) not in ("faster", "slower"):
            baseline = None
        is_sure = verdict in ("faster", "slower") and name in sure
        basis = basis if ratio else None
        differences.append(
            Difference(name, verdict, is_sure, old_row, new_row, ratio, baseline, note, basis)
        )

    def order(item: Difference) -> tuple[int, float]:  # of equals the natural order stays
        size = item.ratio.factor if item.ratio else 1.0
        return COMPARISON_VERDICTS.index(item.verdict), -size

    differences.sort(key=order)
    return SnapshotComparison(
        old,
        new,
        tuple(differences),
        tuple(only_old),
        tuple(only_new),
        facts,
        setups,
        scatter=scatters[1],
        shared=shared,
        factor=factor,
    )


def _is_judged(item: _Compared) -> bool:
    versions = _versions_differ(item.old, item.new)
    return bool(item.ratio and item.ratio.has_interval and not versions)


def _shared_logs(compared: Iterable[_Compared]) -> Iterator[tuple[float, float]]:
    """Logarithm and limit of the one-thread cases whose times are compared."""
    for item in compared:
        ratio = time_ratio(item.old, item.new)
        if item.basis != "times" or not ratio or not _is_judged(item) or ratio.value == 1:
            continue  # the same to the last digit: one measurement, which both sides have
        if item.new and is_one_thread(item.new):
            yield math.log(ratio.value), item.limits[0]


def joined_limits(one: Limits, other: Limits) -> Limits:
    """Return the limits of the difference of two runs of different setups."""
    if one == other:
        return one
    return tuple(math.hypot(a, b) / math.sqrt(2) for a, b in zip(one, other, strict=True))


def without_shared(ratio: Ratio, shared: Shared) -> Ratio:
    """Return old time over new time without what the two runs share."""
    part = math.exp(-shared.taken)
    return Ratio(ratio.value * part, ratio.low * part, ratio.high * part, ratio.least)


def chance_unchanged(
    ratio: Ratio | None, limits: Limits, shared: Shared, basis: Basis | None
) -> float:
    """Return the chance of a ratio so far from 1x where nothing has changed; 1 where its interval
    has 1x in it. What the runs share may be wrong by its error."""
    if ratio is None or ratio.low <= 1 <= ratio.high:
        return 1.0
    doubt = NORMAL_95 * shared.error if basis == "times" else 0.0
    return chance_of(abs(math.log(ratio.value)) - doubt, limits)


def why_not_judged(
    old: Row,
    new: Row,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
    setups: SetupDifference,
) -> str:
    """Return why two times of setups that differ have no verdict; empty where speedups give one.

    A speedup tells of the code on any processor, as far as its baseline ran on one of the same kind
    with as many threads. Samples are taken in turn of cases that use one thread.
    """
    if old.speedup is None or new.speedup is None or old.baseline is None:
        return NO_SPEEDUP
    baselines = old_rows.get(old.baseline), new_rows.get(old.baseline)
    if old.baseline != new.baseline or _versions_differ(*baselines):
        return OTHER_BASELINE
    on_gpu = is_gpu(old.device) or is_gpu(new.device)
    baseline_on_gpu = any(row and is_gpu(row.device) for row in baselines)
    if on_gpu != baseline_on_gpu and setups.affects_hardware(on_gpu or baseline_on_gpu):
        return OTHER_DEVICE
    if setups.affects_threads and not (on_gpu or (old.pairs and new.pairs)):
        return OTHER_THREADS
    return ""


def speedup_ratio(old: Row, new: Row) -> Ratio | None:
    """Return the new speedup over the old one; without an interval where other work disturbed the
    case."""
    if old.speedup is None or new.speedup is None:
        return None
    if old.is_disturbed or new.is_disturbed:
        return Ratio(new.speedup.value / old.speedup.value, 0.0, math.inf)
    return independent_quotient(new.speedup, old.speedup)


def ratio_in_turn(old: Row | None, new: Row | None, moved: Ratio | None) -> Ratio | None:
    """Old time over new time of a case that was measured in turn with the same baseline both times,
    from its two speedups: what slows down a process, or the machine for a while, is in neither.

    ``None`` without pairs, where other work disturbed them, and where the baseline's own times
    (``moved`` is their ratio) became faster or slower, or may have: then a speedup says nothing of
    the case alone.
    """
    if not (old and new and old.pairs and new.pairs and old.speedup and new.speedup and moved):
        return None
    if old.is_disturbed or new.is_disturbed or not moved.has_interval:
        return None
    if not moved.low <= 1 <= moved.high and moved.factor >= BASELINE_MOVED:
        return None
    return independent_quotient(new.speedup, old.speedup)


def time_ratio(old: Row | None, new: Row | None) -> Ratio | None:
    """Old time over new time, as ``quotient`` has it of many; ``None`` without two times."""
    if not (old and new and old.seconds and new.seconds):
        return None
    low = max(old.low or 0.0, 0.0) / (math.inf if new.high is None else new.high)
    high = math.inf
    if old.high is not None and new.low is not None and new.low > 0:
        high = old.high / new.low
    return Ratio(old.seconds / new.seconds, low, high)


def verdict_of(ratio: Ratio, is_changed: bool, factor: float = 1.0) -> ComparisonVerdict:
    """Verdict of two times by their ratio, old over new.

    ``faster``, ``slower``: it is a change (``find_changes``) by more than ``factor``. ``same``:
    else, where the interval lies within ``SAME`` of 1x, or within a larger ``factor``. Everything
    else, and an unknown interval: ``unclear``.
    """
    same = max(SAME, factor)
    if not ratio.has_interval:
        return "unclear"
    if is_changed and ratio.factor > factor:
        return "faster" if ratio.value > 1 else "slower"
    return "same" if ratio.low >= 1 / same and ratio.high <= same else "unclear"


def _untimed(old: Status, new: Status) -> tuple[ComparisonVerdict, str]:
    if old not in FAILURES and new in FAILURES:
        return "failed", "{new}"
    before, after = ("measured" if s == "ok" else s.replace("_", " ") for s in (old, new))
    if old in FAILURES and new == "ok":
        return "mended", f"{before} before: {{old}}"
    if old == new:
        return "not compared", f"{after} on both sides"
    return "not compared", f"{before} before, {after} after"


UNTIMED = {
    (old, new): _untimed(old, new)
    for old, new in product(STATUSES, STATUSES)
    if not old == new == "ok"
}
"""Verdict and note where the old side, the new side or both have no time, by the statuses.

In a note ``{old}`` and ``{new}`` stand for the reason on that side.
"""


def _versions_differ(old: Row | None, new: Row | None) -> bool:
    """Return whether their times are of two versions of the benchmark; an unknown version fits
    any."""
    versions = {row.version for row in (old, new) if row and row.seconds is not None}
    return len(versions - {None}) > 1


def _baseline_ratio(
    old: Row | None,
    new: Row | None,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
) -> Ratio | None:
    """Old time over new time of the baseline, where it is the same case of the same version."""
    if old is None or new is None or old.baseline is None or old.baseline != new.baseline:
        return None
    rows = old_rows.get(old.baseline), new_rows.get(old.baseline)
    return None if _versions_differ(*rows) else time_ratio(*rows)
