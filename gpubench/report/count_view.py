"""Counted work of two sides in words: what the command and a pull request's comment show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpubench.analysis.costs import CostPair
from gpubench.analysis.count_changes import (
    CaseLines,
    CountComparison,
    CountDifference,
    CountVerdict,
)
from gpubench.record import HintRecord
from gpubench.report import text
from gpubench.report.comparison_columns import BETTER, BROKEN, NO_LOOK, WORSE, Look
from gpubench.report.findings import case_words
from gpubench.results import CaseName, LineCounts

if TYPE_CHECKING:  # reports without counted work start without it
    from gpubench.work.occupancy import Occupancy

COUNT_LOOKS: Mapping[CountVerdict, Look] = {"grew": WORSE, "lost": BROKEN, "improved": BETTER}
"""Verdicts that are not here tell of no difference."""

MAX_HINTS_IN_MARKDOWN = 5
"""Of all cases whose counts grew: a comment shows where to begin."""

TITLE = "Counted work: exact figures, and no times"


@dataclass(frozen=True, slots=True)
class CountRow:
    """One difference in words."""

    difference: CountDifference
    verdict: str
    case: str
    count: str
    """What is counted; empty where the case as a whole is not judged."""
    before: str
    after: str
    change: str

    @property
    def note(self) -> str:
        """Why it is not judged, or why it has no counts."""
        return self.difference.note


@dataclass(frozen=True, slots=True)
class ShownCount:
    """One difference of counts as a page shows it."""

    verdict: CountVerdict
    look: Look
    case: str
    count: str
    """What is counted; empty where the case as a whole is not judged."""
    before: str
    after: str
    change: str
    note: str


@dataclass(frozen=True, slots=True)
class CountsView:
    """The counted work of two snapshots as a page shows it."""

    line: str
    rows: tuple[ShownCount, ...]
    more: int
    """Differences that are left out."""


def look_of_count(verdict: CountVerdict) -> Look:
    return COUNT_LOOKS.get(verdict, NO_LOOK)


def counts_view(comparison: CountComparison, most: int) -> CountsView | None:
    """Put counts into words, so many rows at most; ``None`` where nothing was counted."""
    if not has_counts(comparison):
        return None
    rows = count_rows(comparison)
    shown = tuple(
        ShownCount(
            row.difference.verdict, look_of_count(row.difference.verdict), row.case, row.count,
            row.before, row.after, row.change, row.note,
        )
        for row in rows[:most]
    )  # fmt: skip
    return CountsView(counts_line(comparison), shown, len(rows[most:]))


def occupancy_words(occupancy: Occupancy) -> str:
    """State a theoretical occupancy and what limits it: ``occupancy 75 %, by registers``."""
    limits = text.join(name.replace("_", " ") for name in occupancy.limited_by)
    return f"occupancy {100 * occupancy.share:.0f} %, by {limits}"


def hint_words(hint: HintRecord) -> str:
    """State a hint in one sentence: its rule and share, two counts, the cause and one change."""
    share = f"{100 * hint.share:.0f} % of the {hint.of}"
    words = f"{hint.rule}, {share}: {hint.evidence}. Cause: {hint.cause}. Change: {hint.change}"
    if hint.predicted is not None:
        words += f" ({hint.predicted['now']:,} {hint.of} become {hint.predicted['then']:,})"
    return f"{words}."


def change_words(pair: CostPair) -> str:
    """State a difference and a ratio: ``+28,672 (8.00x)``, or ``+32 (from 0)``."""
    difference = f"{pair.new - pair.old:+,}"
    return f"{difference} ({text.ratio(pair.new / pair.old) if pair.old else 'from 0'})"


def count_rows(comparison: CountComparison) -> list[CountRow]:
    """Put every difference into words."""
    rows = []
    for item in comparison.differences:
        verdict = f"{look_of_count(item.verdict).sign} {item.verdict}".strip()
        cells = ("", "", "", "")
        if pair := item.pair:
            cells = pair.words, f"{pair.old:,}", f"{pair.new:,}", change_words(pair)
        rows.append(CountRow(item, verdict, case_words(item.name), *cells))
    return rows


def counts_line(comparison: CountComparison) -> str:
    """Say how many counts have which verdict, and how many cases have equal counts."""
    verdicts = [f"{number:,} {verdict}" for verdict, number in comparison.verdicts.items()]
    same = f"equal counts in {comparison.same:,} of {text.plural(comparison.compared, 'case')}"
    return "; ".join(filter(None, (text.join(verdicts), same if comparison.compared else "")))


def has_counts(comparison: CountComparison) -> bool:
    """Return whether any case was counted on both sides."""
    return bool(comparison.differences or comparison.compared)


def lines_where_counts_grew(
    comparison: CountComparison, lines_of: Callable[[CaseName], CaseLines]
) -> dict[CaseName, CaseLines]:
    """Return the lines of cases of which a count grew."""
    grown = dict.fromkeys(one.name for one in comparison.differences if one.verdict == "grew")
    return {name: lines_of(name) for name in grown}


def hints_of_lines(lines: Iterable[LineCounts]) -> list[str]:
    """State the hints of lines, each once, so many at most as a comment has."""
    words = (
        f"{line.file}:{line.line}: {hint_words(hint)}" for line in lines for hint in line.hints
    )
    return [*dict.fromkeys(words)][:MAX_HINTS_IN_MARKDOWN]


def counts_json(comparison: CountComparison) -> dict[str, Any]:
    """Return a comparison of counts as JSON shows it; a ratio from 0 is ``null``."""
    return {
        "verdicts": comparison.verdicts,
        "compared": comparison.compared,
        "same": comparison.same,
        "rows": [
            {
                "benchmark": item.name.benchmark.asv_name,
                "case": item.name.case,
                "verdict": item.verdict,
                "count": pair.cost.name if pair else None,
                "kernel": pair.kernel if pair else None,
                "old_count": pair.old if pair else None,
                "new_count": pair.new if pair else None,
                "ratio_of_counts": pair.new / pair.old if pair and pair.old else None,
                "note": item.note,
            }
            for item in comparison.differences
            for pair in [item.pair]
        ],
    }
