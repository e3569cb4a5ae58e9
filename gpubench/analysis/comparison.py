"""Two snapshots side by side: for each case, whether its own time changed.

Times of different machines, processors or environments say nothing of the code. There, speedups
are compared, each against a baseline measured beside it, or nothing is judged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

from gpubench.analysis.between_runs import IN_TURN, SPEEDUPS, CaseRuns, Judged, judge
from gpubench.analysis.causes import FactChange, changed_facts
from gpubench.analysis.changes import THRESHOLD
from gpubench.analysis.differences import (
    CHANGED,
    COMPARISON_VERDICTS,
    DIFFERING,
    Basis,
    ComparisonSide,
    ComparisonVerdict,
    Difference,
    SetupDifference,
    SnapshotComparison,
)
from gpubench.analysis.renamed import find_renames
from gpubench.errors import ResultsError
from gpubench.names import is_gpu
from gpubench.results import CaseName, Ratio, Row, Snapshot, Table, natural_order
from gpubench.results.facts import concerns_case
from gpubench.results.kinds import kind_of
from gpubench.statuses import FAILURES, STATUSES, Status

SAME = THRESHOLD
"""Times are the same where the whole interval of their ratio is within this factor of 1x, 5 %, and
they have not changed.

It is the factor from which a lasting change is reported, so that a comparison and the history
call the same things equal.
"""

BASELINE_MOVED = 1.2
"""Factor from which a baseline of the same version became faster or slower, so that a speedup says
nothing of the case alone. Medians over memory scatter by 8 % from process to process: of ratios of
two, 2 of 100 are beyond a fifth by chance alone."""


PAIRED_NOTE = "by its speedup: both times it was measured in turn with its baseline"
REPLACED = "what it measures has changed between the two"
DISTURBED = "other work on the machine disturbed it: measure it again"
NO_SPEEDUP = "no speedup on both sides"
OTHER_BASELINE = "its baseline is another one"
OTHER_DEVICE = "its baseline ran on a processor of another kind"
OTHER_THREADS = "it may use all threads, and their number differs"


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


ProcessVariances = Mapping[CaseName, tuple[float, int]]
"""Sum of squared deviations of processes of a case from the mean of their run, and its degrees of
freedom (``Table.process_variances``)."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """How much processes of one run differ, by all other runs of a setup."""

    times: ProcessVariances = field(default_factory=dict)
    speedups: ProcessVariances = field(default_factory=dict)
    """Of samples that were taken in turn."""


NO_RUNS = EarlierRuns()

RECENT_RUNS = 40
"""Newest runs of a setup that count: older ones may be another machine in all but name."""


def read_earlier_runs(table: Table, pair: tuple[Snapshot, Snapshot]) -> EarlierRuns:
    """Read what the other runs of the newer side's setup, in its table, tell of its processes."""
    compared = {(one.commit.hash, one.measured_at) for one in pair}
    others = [
        one
        for one in table.snapshots(pair[1].setup.everywhere)[-RECENT_RUNS:]
        if (one.commit.hash, one.measured_at) not in compared
    ]
    if not others:
        return NO_RUNS
    return EarlierRuns(
        table.process_variances(others, "processes"),
        table.process_variances(others, "process_speedups"),
    )


@dataclass(slots=True)
class _Compared:
    """One case on both sides before it is judged."""

    name: CaseName
    old: Row | None
    new: Row | None
    basis: Basis | None = None
    unjudged: str = ""
    """Why there is no verdict."""
    moved: Ratio | None = None
    """Of its baseline's times."""
    runs: CaseRuns | None = None
    """What it is judged by; ``None`` where it is not."""
    judged: Judged | None = None
    is_one_measurement: bool = False
    """Whether both sides have the same to the last digit, as of one folder that was copied."""

    @property
    def ratio(self) -> Ratio | None:
        """Old over new, with its interval; ``None`` where it was not judged."""
        if self.is_one_measurement:
            return Ratio(1.0, 1.0, 1.0, least=1.0)
        if self.judged is None:
            return None
        log, half = self.judged.log, self.judged.half_width
        return Ratio(math.exp(-log), math.exp(-log - half), math.exp(half - log), least=1.0)


def compare_rows(
    old: Snapshot,
    new: Snapshot,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
    factor: float = 1.0,
    earlier: EarlierRuns = NO_RUNS,
) -> SnapshotComparison:
    """Compare two snapshots, of commits, machines, environments or separate result folders.

    Ratios within ``factor`` are neither faster nor slower, whatever else holds. ``earlier`` is what
    other runs of the setup tell of its scatter.
    """
    facts = changed_facts(old, new)
    setups = SetupDifference.between(old, new, facts)
    listed = [*old.concerns.items(), *new.concerns.items()]
    compared = []
    for name in sorted(old_rows.keys() | new_rows.keys(), key=natural_order):
        if name.is_time:
            item = _Compared(name, old_rows.get(name), new_rows.get(name))
            item.moved = _baseline_ratio(item.old, item.new, old_rows, new_rows)
            _prepare(item, old_rows, new_rows, setups, (facts, listed), earlier)
            compared.append(item)
    tested = [(item, item.runs) for item in compared if item.runs]
    judgement = judge([runs for _, runs in tested])
    for (item, _), judged in zip(tested, judgement.cases, strict=True):
        item.judged = judged
    verdicts = {item.name: _verdict(item, factor) for item in compared}
    differences: list[Difference] = []
    only_old, only_new = [], []
    for item in compared:
        if item.old is None and item.name.benchmark.asv_name not in old.superseded:
            only_new.append(item.name)
        elif item.new is None and item.name.benchmark.asv_name not in new.superseded:
            only_old.append(item.name)
        else:
            differences.append(_difference(item, verdicts))
    differences.sort(key=order_of_difference)
    return SnapshotComparison(
        old,
        new,
        tuple(differences),
        tuple(only_old),
        tuple(only_new),
        facts,
        setups,
        factor=factor,
        shared=judgement.shared,
        renames=tuple(find_renames(old_rows, new_rows)),
    )


def order_of_difference(item: Difference) -> tuple[int, float]:
    """Sort by verdict, then the largest first; of equals the natural order stays."""
    size = item.ratio.factor if item.ratio else 1.0
    return COMPARISON_VERDICTS.index(item.verdict), -size


def _prepare(
    item: _Compared,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
    setups: SetupDifference,
    facts: tuple[Iterable[FactChange], Collection[tuple[str, Collection[str]]]],
    earlier: EarlierRuns,
) -> None:
    """Settle what a case is judged by: its times, its speedups, or nothing."""
    old, new = item.old, item.new
    if not (old and new and old.seconds and new.seconds) or _versions_differ(old, new):
        return
    changed, listed = facts
    concerned = any(concerns_case(f.name, new.backend, new.conditions, listed) for f in changed)
    kind = kind_of(new)
    squares, freedom = 0.0, 0
    if setups.affects_times(is_gpu(old.device) or is_gpu(new.device)):
        item.basis = "speedups"
        item.unjudged = why_not_judged(old, new, old_rows, new_rows, setups)
        item.moved = None  # with the setup, which is said of all
        if item.unjudged:
            return
        sides = [_log_speedups(row, rows) for row, rows in ((old, old_rows), (new, new_rows))]
        group = IN_TURN if old.pairs and new.pairs else f"{kind}{SPEEDUPS}"
    elif not concerned and _is_in_turn(old, new, item.moved):
        item.basis = "pairs"
        sides = [_log_speedups(row, {}) for row in (old, new)]
        group = IN_TURN
        squares, freedom = earlier.speedups.get(item.name, (0.0, 0))
    else:
        item.basis = "times"
        sides = [
            [math.log(s) for s in row.processes or (row.seconds or 0.0,)] for row in (old, new)
        ]
        group = kind
        squares, freedom = earlier.times.get(item.name, (0.0, 0))
    if sides[0] == sides[1]:
        item.is_one_measurement = True
        return
    is_disturbed = old.is_disturbed or new.is_disturbed
    item.runs = CaseRuns(group, sides[0], sides[1], squares, freedom, is_disturbed)


def _log_speedups(row: Row, rows: Mapping[CaseName, Row]) -> list[float]:
    """Return minus the logarithm of the speedup of each process: it grows as a time does.

    Without pairs, processes of the case and of its baseline are taken in the order in which they
    ran; where these are not as many, there is one value.
    """
    if row.process_speedups:
        return [-math.log(speedup) for speedup in row.process_speedups]
    baseline = rows.get(row.baseline) if row.baseline else None
    if baseline and len(baseline.processes) == len(row.processes) > 1:
        both = zip(row.processes, baseline.processes, strict=True)
        return [math.log(own / others) for own, others in both]
    return [-math.log(row.speedup.value)] if row.speedup else []


def _verdict(item: _Compared, factor: float) -> ComparisonVerdict:
    """Return the verdict of a case with a time on both sides; of others ``unclear``."""
    judged, ratio = item.judged, item.ratio
    if item.is_one_measurement:
        return "same"
    if judged is None or ratio is None:
        return "unclear"
    if judged.call != "unchanged" and ratio.factor > factor:
        return judged.call
    same = max(SAME, factor)
    is_same = 1 / same <= ratio.low and ratio.high <= same
    return "same" if is_same and not (item.runs and item.runs.is_disturbed) else "unclear"


def _difference(item: _Compared, verdicts: Mapping[CaseName, ComparisonVerdict]) -> Difference:
    old, new, judged = item.old, item.new, item.judged
    verdict = verdicts[item.name]
    note = ""
    if old is None or new is None or _versions_differ(old, new):
        verdict, note = "not comparable", REPLACED
    elif item.unjudged:
        verdict, note = "not judged", item.unjudged
    elif item.ratio is None:
        verdict, note = UNTIMED[old.status, new.status]
        note = note.format(old=old.reason or "", new=new.reason or "")
    elif item.runs and item.runs.is_disturbed:
        note = DISTURBED
    elif item.basis == "pairs" and verdict in DIFFERING:
        note = PAIRED_NOTE
    is_against = old.baseline if old else None
    has_moved = is_against is not None and verdicts.get(is_against) in CHANGED
    return Difference(
        item.name,
        verdict,
        verdict in CHANGED and judged is not None and judged.is_sure,
        old,
        new,
        item.ratio,
        item.moved if has_moved and verdict != "not comparable" else None,
        note,
        item.basis if item.ratio else None,
        detectable=math.exp(judged.detectable) if judged and verdict == "unclear" else None,
        processes=(len(item.runs.old), len(item.runs.new)) if item.runs else None,
    )


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


def _is_in_turn(old: Row, new: Row, moved: Ratio | None) -> bool:
    """Return whether a case is compared by its two speedups, each measured in turn with the same
    baseline: what slows down a process, or the machine for a while, is in neither.

    Not where the baseline's own times (``moved`` is their ratio) became faster or slower, or may
    have: then a speedup says nothing of the case alone.
    """
    if not (old.process_speedups and new.process_speedups and moved):
        return False
    if old.is_disturbed or new.is_disturbed or not moved.has_interval:
        return False
    return moved.low <= 1 <= moved.high or moved.factor < BASELINE_MOVED


def time_ratio(old: Row | None, new: Row | None) -> Ratio | None:
    """Old time over new time, as ``quotient`` has it of many; ``None`` without two times."""
    if not (old and new and old.seconds and new.seconds):
        return None
    low = max(old.low or 0.0, 0.0) / (math.inf if new.high is None else new.high)
    high = math.inf
    if old.high is not None and new.low is not None and new.low > 0:
        high = old.high / new.low
    return Ratio(old.seconds / new.seconds, low, high)


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
