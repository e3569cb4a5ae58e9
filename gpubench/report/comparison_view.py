"""Two snapshots in words: what the page, the command and a pull request's comment show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpubench.analysis.causes import FactChange
from gpubench.analysis.comparison import (
    APART,
    APART_IN_TURN,
    LEAST_CASES,
    SAME,
    ComparisonVerdict,
    Difference,
    SnapshotComparison,
    apart_from,
)
from gpubench.report import text
from gpubench.report.findings import case_words, counts_in_words, unfinished
from gpubench.report.lists import listed
from gpubench.report.machines import fact_words
from gpubench.report.site import CommitLabel, snapshot_label
from gpubench.results import Row

_APART, _FEW, _IN_TURN = (f"{(least - 1) * 100:.0f} %" for least in (APART, SAME, APART_IN_TURN))

RULE = (
    "An implementation's own time is compared, old over new. Faster and slower: its interval "
    f"excludes 1{text.TIMES} and the medians are at least {_APART} apart, or more where unchanged "
    f"cases scatter, and {_FEW} where fewer than {LEAST_CASES} cases tell of that. What was "
    "measured in turn with its baseline both times is compared by its speedups, and of fewer cases "
    f"counts from {_IN_TURN} on. Same: else, where the whole interval is within {_FEW}, as much as "
    "repeated runs of one commit often differ. Unclear: neither, or other work disturbed it; "
    "measure with more samples on a quiet machine."
)

SIGNS: dict[ComparisonVerdict, str] = {"slower": "▼", "faster": "▲", "failed": "!", "mended": "✓"}

SCATTER = (
    "Between these two commits unchanged cases scatter by {scatter} %, so a change counts from "
    "{apart} %."
)

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
    machine: str
    environment: str
    commit: CommitLabel


@dataclass(frozen=True, slots=True)
class LoneCases:
    """Cases that one side alone has."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactRow:
    label: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    title: str
    old: SideView
    new: SideView
    counts: dict[str, int]
    counts_line: str
    scatter: str
    """How much unchanged cases scatter, a sentence; empty where it is not known."""
    rows: tuple[Difference, ...]
    more: int
    only_old: LoneCases
    only_new: LoneCases
    facts: tuple[FactRow, ...]
    unfinished: tuple[str, ...]
    """Of each side that has some: times of a run that was not finished."""


def comparison_view(
    comparison: SnapshotComparison, *, everything: bool = False, most: int | None = None
) -> ComparisonView:
    """Put a comparison into words: the cases that differ, or with ``everything`` all.

    ``most`` limits the rows.
    """
    shown = comparison.differences if everything else comparison.differing
    old, new = (
        SideView(side.setup.machine, side.setup.environment, snapshot_label(side))
        for side in (comparison.old, comparison.new)
    )
    only_old, only_new = (
        LoneCases(len(names), tuple(map(case_words, names[:_NAMED])))
        for names in (comparison.only_old, comparison.only_new)
    )
    before, after = (f"{side.machine}, {side.environment}" for side in (old, new))
    title = f"{new.commit.short} on {after} against {old.commit.short} on {before}"
    if before == after:
        title = f"{new.commit.short} against {old.commit.short} on {after}"
    lone = {"only before": only_old.count, "only after": only_new.count}
    counts = comparison.counts | {side: count for side, count in lone.items() if count}
    scatter = ""
    if comparison.scatter is not None:
        apart = apart_from(comparison.scatter) - 1
        scatter = SCATTER.format(
            scatter=f"{100 * comparison.scatter:.1f}", apart=f"{100 * apart:.1f}"
        )
    stopped = (
        (old, unfinished(row.old for row in comparison.differences)),
        (new, unfinished(row.new for row in comparison.differences)),
    )
    return ComparisonView(
        title=title,
        old=old,
        new=new,
        counts=comparison.counts,
        counts_line=counts_in_words(counts) or "nothing to compare",
        scatter=scatter,
        rows=shown[:most],
        more=len(shown) - len(shown[:most]),
        only_old=only_old,
        only_new=only_new,
        facts=tuple(map(fact_row, comparison.facts)),
        unfinished=tuple(
            f"{side.commit.short} has {words}; if it was stopped, `asv run --skip-existing` "
            "measures the rest"
            for side, words in stopped
            if words
        ),
    )


def fact_row(change: FactChange) -> FactRow:
    label, old = fact_words(change.name, change.old)
    return FactRow(label, old, fact_words(change.name, change.new)[1])


def side_words(row: Row | None) -> str:
    """The time of a case on one side, or why there is none."""
    if row is None:
        return OTHER_VERSION
    return text.status_label(row.status) if row.seconds is None else text.seconds(row.seconds)


def baseline_words(row: Difference) -> str:
    """How its baseline's time changed; empty where it did not, or is not known."""
    return f"its baseline became {text.factor(row.baseline)}" if row.baseline else ""


def difference_listed(row: Difference) -> dict[str, Any]:
    """For a long list, as ``compare.js`` makes it."""
    return listed(
        suite=[row.name.suite],
        implementation=[row.name.implementation],
        only=[row.verdict],
        change=row.ratio.factor if row.ratio else None,
        speedup=row.new.speedup if row.new else None,
    )


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
    rule = " ".join(filter(None, (RULE, view.scatter)))
    return "\n".join([*lines, f"<sub>{rule}</sub>", ""])


def _markdown_row(row: Difference) -> str:
    speedups = [text.speedup(side.speedup) if side else "" for side in (row.old, row.new)]
    factor = text.factor(row.ratio)
    if row.ratio and row.ratio.has_interval:
        factor += f" ({text.factor_interval(row.ratio)})"
    cells = (
        f"{SIGNS.get(row.verdict, '')} {row.verdict}".strip(),
        escaped(case_words(row.name)),
        factor,
        side_words(row.old),
        side_words(row.new),
        " → ".join(speedups) if all(speedups) else "",
        escaped("; ".join(filter(None, (row.note, baseline_words(row))))),
    )
    return f"| {' | '.join(cells)} |"


def escaped(value: str) -> str:
    """Text that Markdown takes as it is, mentions and table cells included."""
    return value.translate(_MARKUP)
