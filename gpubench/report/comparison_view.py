"""Two sides in words: what the page, the command and the Markdown of a pull request show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.comparison import SAME, Comparison, Difference, Verdict, verdict_of
from gpubench.analysis.environment import FactChange
from gpubench.analysis.speedup import Speedup
from gpubench.report import text
from gpubench.report.findings import case_words, counts_in_words
from gpubench.report.machine import fact_words
from gpubench.report.site import CommitLabel, commit_label
from gpubench.results import CaseName, Commit, Snapshot, Status, Timing

RULE = (
    "An implementation's own time is compared, old over new. Faster and slower: the interval "
    f"excludes 1{text.TIMES} and the medians are at least {(SAME - 1) * 100:.0f} % apart. Same: "
    f"the whole interval is within {(SAME - 1) * 100:.0f} %, as much as repeated runs of one "
    "commit often differ. Unclear: neither; measure with more samples."
)
"""What the verdicts mean."""

_SIGNS: dict[Verdict, str] = {"slower": "▼", "faster": "▲", "failed": "!", "mended": "✓"}
_NAMED = 4
"""Cases of one side only that are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class SideView:
    """One side in words."""

    machine: str
    environment: str
    commit: CommitLabel


@dataclass(frozen=True, slots=True)
class SideCell:
    """One case on one side."""

    status: Status | None
    """``None``: that side measured another version."""
    timing: Timing | None
    speedup: Speedup | None
    reason: str


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One case."""

    name: CaseName
    label: str
    verdict: Verdict
    sign: str
    ratio: Speedup | None
    """Old time over new time."""
    old: SideCell
    new: SideCell
    baseline: str
    """How its baseline's time changed; empty where it did not, or is not known."""
    note: str


@dataclass(frozen=True, slots=True)
class LoneCases:
    """Cases that one side alone has."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact that differs."""

    label: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Two sides in words."""

    title: str
    """One sentence: what was compared with what."""
    old: SideView
    new: SideView
    counts: dict[str, int]
    counts_line: str
    rows: tuple[DifferenceRow, ...]
    more: int
    """Rows left out because there are too many to show."""
    only_old: LoneCases
    only_new: LoneCases
    facts: tuple[FactRow, ...]


def comparison_view(
    comparison: Comparison,
    commits: Mapping[str, Commit],
    *,
    everything: bool = False,
    most: int | None = None,
) -> ComparisonView:
    """Put a comparison into words: the cases that differ, or with ``everything`` all.

    ``commits`` gives dates and subjects by hash; ``most`` limits the rows.
    """
    shown = comparison.differences if everything else comparison.differing
    rows = shown if most is None else shown[:most]
    old, new = (_side(side, commits) for side in (comparison.old, comparison.new))
    return ComparisonView(
        title=_title(old, new),
        old=old,
        new=new,
        counts=comparison.counts,
        counts_line=_counts_line(comparison),
        rows=tuple(map(_row, rows)),
        more=len(shown) - len(rows),
        only_old=_lone(comparison.only_old),
        only_new=_lone(comparison.only_new),
        facts=tuple(map(fact_row, comparison.facts)),
    )


def fact_row(change: FactChange) -> FactRow:
    """One fact that differs, in words."""
    label, old = fact_words(change.name, change.old)
    return FactRow(label, old, fact_words(change.name, change.new)[1])


def _side(snapshot: Snapshot, commits: Mapping[str, Commit]) -> SideView:
    commit = commits.get(snapshot.commit, Commit(snapshot.commit, snapshot.date))
    return SideView(snapshot.machine, snapshot.environment, commit_label(commit))


def _title(old: SideView, new: SideView) -> str:
    places = [f"{side.machine}, {side.environment}" for side in (old, new)]
    if places[0] == places[1]:
        return f"{new.commit.short} against {old.commit.short} on {places[1]}"
    return f"{new.commit.short} on {places[1]} against {old.commit.short} on {places[0]}"


def _counts_line(comparison: Comparison) -> str:
    lone = {"only before": len(comparison.only_old), "only after": len(comparison.only_new)}
    counts = comparison.counts | {side: count for side, count in lone.items() if count}
    return counts_in_words(counts) or "nothing to compare"


def _row(item: Difference) -> DifferenceRow:
    return DifferenceRow(
        name=item.name,
        label=case_words(item.name),
        verdict=item.verdict,
        sign=_SIGNS.get(item.verdict, ""),
        ratio=item.ratio,
        old=_cell(item.old),
        new=_cell(item.new),
        baseline=_baseline_words(item),
        note=item.note,
    )


def _cell(side: Compared | None) -> SideCell:
    if side is None:
        return SideCell(None, None, None, "another version")
    outcome = side.outcome
    return SideCell(outcome.status, outcome.timing, side.speedup, outcome.reason or "")


def _baseline_words(item: Difference) -> str:
    if item.baseline is None or verdict_of(item.baseline) not in ("faster", "slower"):
        return ""
    return f"its baseline became {text.factor(item.baseline)}"


def _lone(names: tuple[CaseName, ...]) -> LoneCases:
    return LoneCases(len(names), tuple(map(case_words, names[:_NAMED])))
