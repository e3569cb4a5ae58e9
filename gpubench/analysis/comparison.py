"""Two snapshots side by side: for each case, whether its own time changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.baseline import Compared, compare
from gpubench.analysis.changes import THRESHOLD
from gpubench.analysis.environment import FactChange, differences
from gpubench.analysis.setup_table import natural_order
from gpubench.analysis.speedup import Speedup, speedup
from gpubench.results import CaseName, Outcome, Snapshot, Status

Verdict = Literal[
    "slower", "failed", "faster", "mended", "not comparable", "unclear", "not compared", "same"
]

VERDICTS: tuple[Verdict, ...] = (
    "slower",
    "failed",
    "faster",
    "mended",
    "not comparable",
    "unclear",
    "not compared",
    "same",
)
"""In the order in which they are shown: what differs first."""

DIFFERING: tuple[Verdict, ...] = VERDICTS[:5]
"""Verdicts that a reader of a comparison should see one by one."""

FAILURES: tuple[Status, ...] = ("wrong", "failed", "timed_out", "killed")

SAME = THRESHOLD
"""Times are the same where the whole interval of their ratio is within this factor of 1x, 5 %.

It is the factor from which a lasting change is reported, so that a comparison and the history
call the same things equal; runs of one commit minutes apart often differ by a few percent.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One case on two sides; its own times are compared, not its speedups."""

    name: CaseName
    verdict: Verdict
    old: Compared | None
    """``None``: that side measured another version of the benchmark."""
    new: Compared | None
    ratio: Speedup | None
    """Old time over new time: above 1 it became faster. Present where both sides have a time of
    the same version."""
    baseline: Speedup | None
    """The same of its baseline's time; ``None`` for a baseline, or where a side has none."""
    note: str
    """What stands behind the verdict where no ratio does, and whether the baseline changed."""

    @property
    def size(self) -> float:
        """How many times faster or slower; at least 1."""
        return max(self.ratio.value, 1 / self.ratio.value) if self.ratio else 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
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
        found = Counter(difference.verdict for difference in self.differences)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    @property
    def differing(self) -> tuple[Difference, ...]:
        """Those that a reader should see one by one."""
        return tuple(item for item in self.differences if item.verdict in DIFFERING)


def compared_cases(snapshot: Snapshot) -> Mapping[CaseName, Compared]:
    """Each case of a snapshot beside its baseline."""
    return compare(snapshot.outcomes)


def compare_snapshots(
    old: Snapshot,
    new: Snapshot,
    cases: Callable[[Snapshot], Mapping[CaseName, Compared]] = compared_cases,
) -> Comparison:
    """Compare two snapshots, of commits, machines, environments or separate result folders.

    ``cases`` is for callers that compare a snapshot with several others.
    """
    before, after = cases(old), cases(new)
    found = [_difference(name, before[name], after[name]) for name in before.keys() & after.keys()]
    lone_old = sorted(before.keys() - after.keys(), key=natural_order)
    lone_new = sorted(after.keys() - before.keys(), key=natural_order)
    found += [_replaced(name, before[name], None) for name in lone_old if _left_out(name, new)]
    found += [_replaced(name, None, after[name]) for name in lone_new if _left_out(name, old)]
    return Comparison(
        old=old,
        new=new,
        differences=tuple(sorted(found, key=_order)),
        only_old=tuple(name for name in lone_old if not _left_out(name, new)),
        only_new=tuple(name for name in lone_new if not _left_out(name, old)),
        facts=differences(old, new),
    )


def verdict_of(ratio: Speedup) -> Verdict:
    """Verdict of two times by their ratio, old over new.

    ``same``: the interval lies within ``SAME`` of 1x. ``faster``, ``slower``: it excludes 1x, and
    the medians are apart by that factor. Everything else, and an unknown interval: ``unclear``.
    """
    if not ratio.has_interval:
        return "unclear"
    if ratio.low >= 1 / SAME and ratio.high <= SAME:
        return "same"
    if ratio.low > 1 and ratio.value >= SAME:
        return "faster"
    if ratio.high < 1 and ratio.value <= 1 / SAME:
        return "slower"
    return "unclear"


def _left_out(name: CaseName, snapshot: Snapshot) -> bool:
    return name.benchmark.asv_name in snapshot.superseded


def _replaced(name: CaseName, old: Compared | None, new: Compared | None) -> Difference:
    note = "what it measures has changed between the two"
    return Difference(name, "not comparable", old, new, None, None, note)


def _difference(name: CaseName, old: Compared, new: Compared) -> Difference:
    if _versions_differ(old.outcome, new.outcome):
        return _replaced(name, old, new)
    ratio, baseline = _ratio(old.outcome, new.outcome), _baseline_ratio(old, new)
    if ratio is None:
        verdict, note = _untimed(old.outcome, new.outcome)
        return Difference(name, verdict, old, new, None, baseline, note)
    verdict = verdict_of(ratio)
    note = "" if ratio.has_interval else "too few samples for an interval"
    return Difference(name, verdict, old, new, ratio, baseline, note)


def _versions_differ(old: Outcome, new: Outcome) -> bool:
    versions = {outcome.timing.version for outcome in (old, new) if outcome.timing}
    return len(versions - {None}) > 1


def _ratio(old: Outcome | None, new: Outcome | None) -> Speedup | None:
    if old is None or new is None or old.timing is None or new.timing is None:
        return None
    return None if _versions_differ(old, new) else speedup(old.timing, new.timing)


def _baseline_ratio(old: Compared, new: Compared) -> Speedup | None:
    names = {side.baseline.name for side in (old, new) if side.baseline}
    return _ratio(old.baseline, new.baseline) if len(names) == 1 else None


def _untimed(old: Outcome, new: Outcome) -> tuple[Verdict, str]:
    failed = [outcome.status in FAILURES for outcome in (old, new)]
    if failed == [False, True]:
        return "failed", new.reason or ""
    if failed == [True, False] and new.status == "ok":
        return "mended", f"{_words(old)} before: {old.reason}"
    if old.status == new.status:
        return "not compared", f"{_words(new)} on both sides"
    return "not compared", f"{_words(old)} before, {_words(new)} after"


def _words(outcome: Outcome) -> str:
    return "measured" if outcome.status == "ok" else outcome.status.replace("_", " ")


def _order(item: Difference) -> tuple[object, ...]:
    return VERDICTS.index(item.verdict), -item.size, natural_order(item.name)
