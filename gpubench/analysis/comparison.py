"""Two snapshots side by side: for each case, whether its own time changed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, product
from statistics import median
from typing import Literal, get_args

from gpubench.analysis.causes import FactChange, changed_facts
from gpubench.analysis.changes import THRESHOLD
from gpubench.errors import ResultsError
from gpubench.results import (
    STATUSES,
    CaseName,
    Ratio,
    Row,
    Snapshot,
    Status,
    Table,
    natural_order,
)
from gpubench.results.ratio import independent_quotient

ComparisonVerdict = Literal[
    "slower", "failed", "faster", "mended", "not comparable", "unclear", "not compared", "same"
]

COMPARISON_VERDICTS: tuple[ComparisonVerdict, ...] = get_args(ComparisonVerdict)
"""In the order in which they are shown: what differs first."""

DIFFERING: tuple[ComparisonVerdict, ...] = COMPARISON_VERDICTS[:5]
"""Verdicts that a reader of a comparison should see one by one."""

FAILURES: tuple[Status, ...] = ("wrong", "failed", "timed_out", "killed")

SAME = THRESHOLD
"""Times are the same where the whole interval of their ratio is within this factor of 1x, 5 %, and
they are not clearly apart.

It is the factor from which a lasting change is reported, so that a comparison and the history
call the same things equal; runs of one commit minutes apart often differ by a few percent.
"""

APART = 1.02
"""Least factor between two medians, whose intervals are apart, for ``faster`` or ``slower``.

With 1.05 a true 5 % would be seen in half of the comparisons, as often as chance makes it look
smaller; without any, the moment in which a process ran would count. Of 40,000 simulated comparisons
with 1.02 a true 5 % was seen in 99 % and nothing but noise in 0.17 % (docs/measurement.md).
"""

APART_IN_TURN = 1.03
"""The same of few cases whose samples were taken in turn with their baseline's: ratios of processes
that follow each other scatter by 0.4 % (arithmetic) and 0.9 % (memory, ``docs/measurements.md``).
Of two that do not differ 98 % to 100 % are within it, and of two that differ by 5 % 94 % to 100 %
beyond (normal distribution)."""

BASELINE_MOVED = 1.2
"""Factor from which a baseline of the same version became faster or slower, so that a speedup says
nothing of the case alone. Medians over memory scatter by 8 % from process to process: of ratios of
two, 2 of 100 are beyond a fifth by chance alone."""

LEAST_CASES = 10
"""Compared cases from which their scatter is estimated; of ten, by chance, to about a quarter."""

LARGEST_SCATTER = 0.1
"""What is more is taken for changes: memory-bound kernels in processes that follow each other
scatter by 10 % on a virtual machine, arithmetic by 1.5 %."""

NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

NORMAL_99 = 2.58
"""Standard deviations that hold 99 % of a normal distribution."""

IN_TURN = "by its speedup: both times it was measured in turn with its baseline"
REPLACED = "what it measures has changed between the two"
NO_INTERVAL = "too few samples for an interval"
DISTURBED = "other work on the machine disturbed it"


@dataclass(frozen=True, slots=True)
class Difference:
    """One case on two sides; its own times are compared, not its speedups."""

    name: CaseName
    verdict: ComparisonVerdict
    old: Row | None
    """``None``: that side measured another version of the benchmark."""
    new: Row | None
    ratio: Ratio | None
    """Old time over new time: above 1 it became faster. Present where both sides have a time of
    the same version."""
    baseline: Ratio | None
    """The same of its baseline's time; ``None`` for a baseline, where a side has none, and where
    that did not become faster or slower."""
    note: str
    """What stands behind the verdict where no ratio of two times does."""


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
    scatter: float | None
    """Of unchanged cases, relative (``scatter_of``), of those in turn where they tell; ``None``:
    not known."""

    @property
    def counts(self) -> dict[str, int]:
        """How many cases have which verdict; what does not occur is left out."""
        counts = Counter(difference.verdict for difference in self.differences)
        return {verdict: counts[verdict] for verdict in COMPARISON_VERDICTS if counts[verdict]}

    @property
    def differing(self) -> tuple[Difference, ...]:
        """Those that a reader should see one by one."""
        return tuple(item for item in self.differences if item.verdict in DIFFERING)


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """One side of a comparison: a commit, or a results folder at its newest commits."""

    label: str
    """As the user named it."""
    table: Table
    snapshots: tuple[Snapshot, ...]
    """One for each machine and environment."""

    def on(self, machine: str | None, environment: str | None) -> ComparisonSide:
        """The same side without other machines and environments; ``None`` keeps all."""
        kept = tuple(one for one in self.snapshots if one.setup.fits(machine, environment))
        return ComparisonSide(self.label, self.table, kept)


def side_of(label: str, table: Table, commit: str | None = None) -> ComparisonSide:
    """The side of one commit, given by its full hash; without it, of each setup's newest."""
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


def compare_rows(
    old: Snapshot,
    new: Snapshot,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
) -> SnapshotComparison:
    """Compare two snapshots, of commits, machines, environments or separate result folders."""
    facts, of_one_setup = changed_facts(old, new), old.setup == new.setup
    compared, unchanged = [], defaultdict[bool, list[Ratio | None]](list)
    for name in sorted(old_rows.keys() | new_rows.keys(), key=natural_order):
        old_row, new_row = old_rows.get(name), new_rows.get(name)
        moved = _baseline_ratio(old_row, new_row, old_rows, new_rows)
        steady = of_one_setup and not facts
        in_turn = ratio_in_turn(old_row, new_row, moved) if steady else None
        ratio, is_in_turn = in_turn or time_ratio(old_row, new_row), in_turn is not None
        compared.append((name, old_row, new_row, ratio, is_in_turn, moved))
        if of_one_setup and not _versions_differ(old_row, new_row):
            unchanged[is_in_turn].append(ratio)
    scatters = {kind: scatter_of(unchanged[kind]) for kind in (True, False)}
    aparts = {kind: apart_from(scatters[kind], in_turn=kind) for kind in (True, False)}
    differences: list[Difference] = []
    only_old, only_new = [], []
    for name, old_row, new_row, ratio, is_in_turn, baseline in compared:
        verdict: ComparisonVerdict
        if old_row is None and name.benchmark.asv_name not in old.superseded:
            only_new.append(name)
            continue
        if new_row is None and name.benchmark.asv_name not in new.superseded:
            only_old.append(name)
            continue
        if old_row is None or new_row is None or _versions_differ(old_row, new_row):
            verdict, note, ratio, baseline = "not comparable", REPLACED, None, None
        elif ratio is None:
            verdict, note = UNTIMED[old_row.status, new_row.status]
            note = note.format(old=old_row.reason or "", new=new_row.reason or "")
        else:
            verdict = verdict_of(ratio, aparts[is_in_turn])
            note = IN_TURN if is_in_turn and verdict in DIFFERING else ""
            if not ratio.has_interval:
                disturbed = old_row.is_disturbed or new_row.is_disturbed
                note = DISTURBED if disturbed else NO_INTERVAL
        if baseline and verdict_of(baseline, aparts[False]) not in ("faster", "slower"):
            baseline = None
        differences.append(Difference(name, verdict, old_row, new_row, ratio, baseline, note))

    def order(item: Difference) -> tuple[int, float]:  # of equals the natural order stays
        factor = item.ratio.factor if item.ratio else 1.0
        return COMPARISON_VERDICTS.index(item.verdict), -factor

    differences.sort(key=order)
    scatter = scatters[True] or scatters[False]
    return SnapshotComparison(
        old, new, tuple(differences), tuple(only_old), tuple(only_new), facts, scatter
    )


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
    if verdict_of(moved, BASELINE_MOVED) in ("faster", "slower"):
        return None
    return independent_quotient(new.speedup, old.speedup)


def scatter_of(ratios: Iterable[Ratio | None]) -> float | None:
    """How much the times of unchanged cases scatter from one run to another, relative: 0.015 is
    1.5 %; ``None`` of fewer than ``LEAST_CASES``.

    Rounds of a process do not show this. It is the median absolute deviation of the logarithms of
    the ratios, as a standard deviation (Rousseeuw and Croux, JASA 88, 1993). Changed cases matter
    little while they are fewer than half, and ``LARGEST_SCATTER`` bounds what more of them can do.
    """
    logs = [math.log(ratio.value) for ratio in ratios if ratio and ratio.has_interval]
    if len(logs) < LEAST_CASES:
        return None
    middle = median(logs)
    return min(NORMAL_MAD * median(abs(log - middle) for log in logs), LARGEST_SCATTER)


def apart_from(scatter: float | None, *, in_turn: bool = False) -> float:
    """Least factor between two medians where unchanged ones scatter so much: 99 % of these are
    within ``NORMAL_99`` of it.

    Too few cases do not tell. Then it is ``APART_IN_TURN``, or else ``SAME``: where processes
    scatter by 1.5 %, and their rounds by 0.9 %, two unchanged cases of one process each are 2 %
    apart, with intervals that are, in 36 of 100 comparisons, and 5 % in 2 (of two processes each in
    18, and in 0.2; 20,000 simulated).
    """
    if scatter is None:
        return APART_IN_TURN if in_turn else SAME
    return max(APART, math.exp(NORMAL_99 * scatter))


def time_ratio(old: Row | None, new: Row | None) -> Ratio | None:
    """Old time over new time, as ``quotient`` has it of many; ``None`` without two times."""
    if not (old and new and old.seconds and new.seconds):
        return None
    low = max(old.low or 0.0, 0.0) / (math.inf if new.high is None else new.high)
    high = math.inf
    if old.high is not None and new.low is not None and new.low > 0:
        high = old.high / new.low
    return Ratio(old.seconds / new.seconds, low, high)


def verdict_of(ratio: Ratio, apart: float = APART) -> ComparisonVerdict:
    """Verdict of two times by their ratio, old over new.

    ``faster``, ``slower``: the interval excludes 1x, and the medians are ``apart`` by that factor.
    ``same``: else, where it lies within ``SAME`` of 1x. Everything else, and an unknown interval:
    ``unclear``.
    """
    if not ratio.has_interval:
        return "unclear"
    if ratio.low > 1 and ratio.value >= apart:
        return "faster"
    if ratio.high < 1 and ratio.value <= 1 / apart:
        return "slower"
    return "same" if ratio.low >= 1 / SAME and ratio.high <= SAME else "unclear"


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
    """Whether their times are of two versions of the benchmark; an unknown version fits any."""
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
