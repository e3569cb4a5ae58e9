"""Two snapshots in words: what the page, the command and a pull request's comment show."""

from __future__ import annotations

from dataclasses import dataclass

from gpubench.analysis.causes import FactChange
from gpubench.analysis.comparison import (
    APART,
    SAME,
    ComparisonVerdict,
    Difference,
    SnapshotComparison,
    verdict_of,
)
from gpubench.report import text
from gpubench.report.findings import Timing, case_words, counts_in_words, timing
from gpubench.report.machines import fact_words
from gpubench.report.site import CommitLabel, commit_label
from gpubench.results import CaseName, Ratio, Row, Snapshot, Status

RULE = (
    "An implementation's own time is compared, old over new. Faster and slower: the interval "
    f"excludes 1{text.TIMES} and the medians are at least {(APART - 1) * 100:.0f} % apart. Same: "
    f"else, where the whole interval is within {(SAME - 1) * 100:.0f} %, as much as repeated runs "
    "of one commit often differ. Unclear: neither; measure with more samples."
)
"""What the verdicts mean."""

SIGNS: dict[ComparisonVerdict, str] = {"slower": "▼", "faster": "▲", "failed": "!", "mended": "✓"}

OTHER_VERSION = "another version"
"""Instead of a time, where a side measured another version of the benchmark."""

MARKER = "<!-- gpubench compare -->"
"""First line of the Markdown: invisible, and lets a script find its own comment."""

MOST_IN_MARKDOWN = 50
"""Rows; longer comments are refused by some hosts and read by nobody."""

_NAMED = 4
"""Cases of one side only that are named; the rest is counted."""

_MARKUP = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|~#@!"} | {"\n": " ", "\r": " "})


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
    speedup: Ratio | None
    reason: str


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One case."""

    name: CaseName
    label: str
    verdict: ComparisonVerdict
    sign: str
    ratio: Ratio | None
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
    comparison: SnapshotComparison, *, everything: bool = False, most: int | None = None
) -> ComparisonView:
    """Put a comparison into words: the cases that differ, or with ``everything`` all.

    ``most`` limits the rows.
    """
    shown = comparison.differences if everything else comparison.differing
    old, new = _side(comparison.old), _side(comparison.new)
    places = [f"{side.machine}, {side.environment}" for side in (old, new)]
    title = f"{new.commit.short} on {places[1]} against {old.commit.short} on {places[0]}"
    if places[0] == places[1]:
        title = f"{new.commit.short} against {old.commit.short} on {places[1]}"
    lone = {"only before": len(comparison.only_old), "only after": len(comparison.only_new)}
    counts = comparison.counts | {side: count for side, count in lone.items() if count}
    return ComparisonView(
        title=title,
        old=old,
        new=new,
        counts=comparison.counts,
        counts_line=counts_in_words(counts) or "nothing to compare",
        rows=tuple(map(_row, shown[:most])),
        more=len(shown[most:]) if most is not None else 0,
        only_old=_lone(comparison.only_old),
        only_new=_lone(comparison.only_new),
        facts=tuple(map(fact_row, comparison.facts)),
    )


def fact_row(change: FactChange) -> FactRow:
    """One fact that differs, in words."""
    label, old = fact_words(change.name, change.old)
    return FactRow(label, old, fact_words(change.name, change.new)[1])


def side_words(side: SideCell) -> str:
    """The time of a case on one side, or why there is none."""
    if side.timing:
        return text.seconds(side.timing.median)
    return text.status_label(side.status) if side.status else OTHER_VERSION


def _side(snapshot: Snapshot) -> SideView:
    setup = snapshot.setup
    return SideView(setup.machine, setup.environment, commit_label(snapshot.commit))


def _row(item: Difference) -> DifferenceRow:
    moved = item.baseline is not None and verdict_of(item.baseline) in ("faster", "slower")
    return DifferenceRow(
        name=item.name,
        label=case_words(item.name),
        verdict=item.verdict,
        sign=SIGNS.get(item.verdict, ""),
        ratio=item.ratio,
        old=_cell(item.old),
        new=_cell(item.new),
        baseline=f"its baseline became {text.factor(item.baseline)}" if moved else "",
        note=item.note,
    )


def _cell(row: Row | None) -> SideCell:
    if row is None:
        return SideCell(None, None, None, OTHER_VERSION)
    return SideCell(row.status, timing(row), row.speedup, row.reason or "")


def _lone(names: tuple[CaseName, ...]) -> LoneCases:
    return LoneCases(len(names), tuple(map(case_words, names[:_NAMED])))


def markdown(view: ComparisonView) -> str:
    """A comparison as a Markdown document; what results say is escaped."""
    lines = [MARKER, f"### {escaped(view.title)}", "", f"**{view.counts_line}**", ""]
    if view.rows:
        lines += [
            "| | case | factor | before | after | speedup | note |",
            "|---|---|--:|--:|--:|--:|---|",
            *map(_markdown_row, view.rows[:MOST_IN_MARKDOWN]),
            "",
        ]
        left_out = view.more + len(view.rows[MOST_IN_MARKDOWN:])
        lines += [f"and {left_out:,} more", ""] if left_out else []
    for where, cases in (("before", view.only_old), ("after", view.only_new)):
        if cases.count:
            examples = escaped(text.join(cases.examples))
            lines.append(f"- only {where}: {cases.count:,}, such as {examples}")
    lines += [f"- {escaped(f.label)}: {escaped(f.old)} → {escaped(f.new)}" for f in view.facts]
    lines += [""] if view.facts else []
    return "\n".join([*lines, f"<sub>{RULE}</sub>", ""])


def _markdown_row(row: DifferenceRow) -> str:
    speedups = [text.speedup(side.speedup) for side in (row.old, row.new)]
    factor = text.factor(row.ratio)
    if row.ratio and row.ratio.has_interval:
        factor += f" ({text.factor_interval(row.ratio)})"
    cells = (
        f"{row.sign} {row.verdict}".strip(),
        escaped(row.label),
        factor,
        side_words(row.old),
        side_words(row.new),
        " → ".join(speedups) if all(speedups) else "",
        escaped("; ".join(filter(None, (row.note, row.baseline)))),
    )
    return f"| {' | '.join(cells)} |"


def escaped(value: str) -> str:
    """Text that Markdown takes as it is, mentions and table cells included."""
    return value.translate(_MARKUP)
