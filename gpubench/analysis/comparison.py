"""Two snapshots side by side: for each case, whether its own time changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

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
    Times,
    natural_order,
)
from gpubench.results.ratio import quotient

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

REPLACED = "what it measures has changed between the two"
NO_INTERVAL = "too few samples for an interval"


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
    """The same of its baseline's time; ``None`` for a baseline, or where a side has none."""
    note: str
    """What stands behind the verdict where no ratio does."""

    @property
    def size(self) -> float:
        """How many times faster or slower; at least 1."""
        return max(self.ratio.value, 1 / self.ratio.value) if self.ratio else 1.0


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
        kept = tuple(
            snapshot
            for snapshot in self.snapshots
            if machine in (None, snapshot.setup.machine)
            and environment in (None, snapshot.setup.environment)
        )
        return ComparisonSide(self.label, self.table, kept)


def commit_side(label: str, table: Table, commit: str) -> ComparisonSide:
    """The side of one commit, given by its full hash."""
    snapshots = (s for setup in sorted(table.setups) for s in table.snapshots(setup))
    return ComparisonSide(label, table, tuple(s for s in snapshots if s.commit.hash == commit))


def newest_side(label: str, table: Table) -> ComparisonSide:
    """The side of a results folder: each machine and environment at its newest commit."""
    newest = tuple(table.snapshots(setup)[-1] for setup in sorted(table.setups))
    return ComparisonSide(label, table, newest)


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
    raise ResultsError(
        f"{old.label} and {new.label} have no machine and environment in common: "
        f"{_places(old.snapshots)} against {_places(new.snapshots)}; "
        "narrow them to one each with --machine and --environment"
    )


def _places(snapshots: Iterable[Snapshot]) -> str:
    setups = sorted({f"{s.setup.machine} {s.setup.environment}" for s in snapshots})
    return ", ".join(setups) or "nothing measured"


def compare_rows(
    old: Snapshot,
    new: Snapshot,
    old_rows: Mapping[CaseName, Row],
    new_rows: Mapping[CaseName, Row],
) -> SnapshotComparison:
    """Compare two snapshots, of commits, machines, environments or separate result folders."""
    shared = list(old_rows.keys() & new_rows.keys())
    before, after = [old_rows[name] for name in shared], [new_rows[name] for name in shared]
    ratios = time_ratios(before, after)
    baselines = [
        _baselines(old_rows, new_rows, *sides) for sides in zip(before, after, strict=True)
    ]
    moved = time_ratios([pair[0] for pair in baselines], [pair[1] for pair in baselines])
    differences = [_difference(*sides) for sides in zip(before, after, ratios, moved, strict=True)]
    lone_old = sorted(old_rows.keys() - new_rows.keys(), key=natural_order)
    lone_new = sorted(new_rows.keys() - old_rows.keys(), key=natural_order)
    differences += [_replaced(n, old_rows[n], None) for n in lone_old if _left_out(n, new)]
    differences += [_replaced(n, None, new_rows[n]) for n in lone_new if _left_out(n, old)]
    return SnapshotComparison(
        old=old,
        new=new,
        differences=tuple(sorted(differences, key=_order)),
        only_old=tuple(name for name in lone_old if not _left_out(name, new)),
        only_new=tuple(name for name in lone_new if not _left_out(name, old)),
        facts=changed_facts(old, new),
    )


def time_ratios(old: Sequence[Row | None], new: Sequence[Row | None]) -> list[Ratio | None]:
    """Old time over new time of each pair of rows; ``None`` without two times."""
    ratios = quotient(_times(old), _times(new)).T.tolist()
    return [None if math.isnan(ratio[0]) else Ratio(*ratio) for ratio in ratios]


def verdict_of(ratio: Ratio) -> ComparisonVerdict:
    """Verdict of two times by their ratio, old over new.

    ``faster``, ``slower``: the interval excludes 1x, and the medians are apart by ``APART``.
    ``same``: else, where it lies within ``SAME`` of 1x. Everything else, and an unknown interval:
    ``unclear``.
    """
    if not ratio.has_interval:
        return "unclear"
    if ratio.low > 1 and ratio.value >= APART:
        return "faster"
    if ratio.high < 1 and ratio.value <= 1 / APART:
        return "slower"
    return "same" if ratio.low >= 1 / SAME and ratio.high <= SAME else "unclear"


def untimed_verdicts() -> dict[tuple[Status, Status], tuple[ComparisonVerdict, str]]:
    """Verdict and note where the old side, the new side or both have no time, by the statuses.

    In a note ``{old}`` and ``{new}`` stand for the reason on that side.
    """
    verdicts: dict[tuple[Status, Status], tuple[ComparisonVerdict, str]] = {}
    for old, new in product(STATUSES, STATUSES):
        before, after = ("measured" if s == "ok" else s.replace("_", " ") for s in (old, new))
        if old == new == "ok":
            continue
        if old not in FAILURES and new in FAILURES:
            verdicts[old, new] = "failed", "{new}"
        elif old in FAILURES and new == "ok":
            verdicts[old, new] = "mended", f"{before} before: {{old}}"
        elif old == new:
            verdicts[old, new] = "not compared", f"{after} on both sides"
        else:
            verdicts[old, new] = "not compared", f"{before} before, {after} after"
    return verdicts


_UNTIMED = untimed_verdicts()


def _difference(old: Row, new: Row, ratio: Ratio | None, baseline: Ratio | None) -> Difference:
    if _versions_differ(old, new):
        return _replaced(new.name, old, new)
    if ratio is None:
        verdict, note = _UNTIMED[old.status, new.status]
        note = note.format(old=old.reason or "", new=new.reason or "")
    else:
        verdict, note = verdict_of(ratio), "" if ratio.has_interval else NO_INTERVAL
    return Difference(new.name, verdict, old, new, ratio, baseline, note)


def _replaced(name: CaseName, old: Row | None, new: Row | None) -> Difference:
    return Difference(name, "not comparable", old, new, None, None, REPLACED)


def _left_out(name: CaseName, snapshot: Snapshot) -> bool:
    return name.benchmark.asv_name in snapshot.superseded


def _versions_differ(old: Row | None, new: Row | None) -> bool:
    """Whether their times are of two versions of the benchmark; an unknown version fits any."""
    versions = {row.version for row in (old, new) if row and row.seconds is not None}
    return len(versions - {None}) > 1


def _baselines(
    old_rows: Mapping[CaseName, Row], new_rows: Mapping[CaseName, Row], old: Row, new: Row
) -> tuple[Row | None, Row | None]:
    """Both sides' rows of the baseline, where it is the same case of the same version."""
    name = old.baseline
    if name is None or name != new.baseline:
        return None, None
    rows = old_rows.get(name), new_rows.get(name)
    return (None, None) if _versions_differ(*rows) else rows


def _times(rows: Sequence[Row | None]) -> Times:
    """Medians and ends of their intervals, shape (3, rows)."""
    nan = math.nan
    times = [
        (row.seconds, row.low or 0.0, math.inf if row.high is None else row.high)
        if row and row.seconds is not None
        else (nan, nan, nan)
        for row in rows
    ]
    return np.array(times, np.float64).reshape(-1, 3).T


def _order(item: Difference) -> tuple[object, ...]:
    return COMPARISON_VERDICTS.index(item.verdict), -item.size, natural_order(item.name)
