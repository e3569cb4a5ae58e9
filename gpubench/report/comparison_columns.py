"""The columns of a comparison, declared once: the terminal, Markdown, JSON and pages show these.

The script of the page *Compare* shows two stored times and their ratio, and no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpubench.analysis.counted_change import CountedChange
from gpubench.analysis.differences import CHANGED, ComparisonVerdict, Difference
from gpubench.report import text
from gpubench.report.findings import case_words
from gpubench.results import Ratio, Row

SURE = ", sure"
"""After the verdict of an alarm."""

OTHER_VERSION = "another version"
"""Instead of a time, where a side measured another version of the benchmark."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a verdict that tells of a difference is shown."""

    sign: str = ""
    """What stands before its words, for those who do not see its colour."""
    style: str = ""
    """Of the terminal, in rich's words."""
    css_class: str = ""
    """Of pages."""


WORSE = Look("▼", "yellow", "worse")
BROKEN = Look("!", "red", "broken")
BETTER = Look("▲", "cyan", "better")
NO_LOOK = Look()

VERDICT_LOOKS: Mapping[ComparisonVerdict, Look] = {
    "slower": WORSE,
    "failed": BROKEN,
    "faster": BETTER,
    "mended": Look("✓", "green", "better"),
    "suspect": Look("?", "magenta"),
}
"""Verdicts that are not here tell of no difference."""


def look_of(verdict: ComparisonVerdict) -> Look:
    return VERDICT_LOOKS.get(verdict, NO_LOOK)


def verdict_words(row: Difference) -> str:
    """Return the verdict with its sign, and whether it is sure."""
    return f"{look_of(row.verdict).sign} {row.verdict}{SURE if row.is_sure else ''}".strip()


def terminal_verdict(row: Difference) -> str:
    """Return the verdict in a column, where those without a sign stand below those with one."""
    return verdict_words(row) if row.verdict in VERDICT_LOOKS else f"  {row.verdict}"


def factor_words(row: Difference) -> str:
    """Return how many times faster or slower it became, and the interval; empty without a ratio."""
    interval = interval_words(row)
    return f"{text.factor(row.ratio)} ({interval})" if interval else text.factor(row.ratio)


def interval_words(row: Difference) -> str:
    """Return the interval of the factor; empty without one."""
    return text.factor_interval(row.ratio) if row.ratio and row.ratio.has_interval else ""


def side_words(row: Row | None) -> str:
    """Return the time of a case on one side, or why there is none."""
    if row is None:
        return OTHER_VERSION
    return text.status_label(row.status) if row.seconds is None else text.seconds(row.seconds)


def speedups_words(row: Difference) -> str:
    """Return its speedups before and after; empty where a side has none."""
    speedups = [side.speedup if side else None for side in (row.old, row.new)]
    return " → ".join(map(text.speedup, speedups)) if all(speedups) else ""


def baseline_words(row: Difference) -> str:
    """Return how its baseline's time changed; empty where it did not, or is not known."""
    return f"its baseline became {text.factor(row.baseline)}" if row.baseline else ""


def reason_words(row: Difference) -> str:
    """Say what a verdict rests on, and what stands behind it."""
    rests_on = row.rests_on if row.verdict in CHANGED else ""
    return "; ".join(filter(None, (rests_on, row.note)))


def counted_words(row: Difference) -> str:
    """Say what counts tell of a case that times leave open: ``times unclear; counted: 2.00x the
    LLVM instructions (line 14)``; empty where they tell nothing."""
    if row.counted is None:
        return ""
    times = "times unclear" if row.verdict == "unclear" else f"by times a {row.verdict}"
    return f"{times}; counted: {counted_change_words(row.counted)}"


def counted_change_words(change: CountedChange) -> str:
    """Say by how much counts of a case changed, and at which line most of it is."""
    words = [
        f"{text.ratio(pair.new / pair.old)} the {pair.words}"
        if pair.old and pair.new
        else f"{pair.new:,} {pair.words}, before {pair.old:,}"
        for pair in change.pairs
    ]
    if change.line:
        file = "" if change.is_only_file else f" of {change.file}"
        words[-1] += f" (line {change.line}{file})"
    return text.join(words)


def note_words(row: Difference) -> str:
    """Say what a verdict rests on, what was not shown, what counts tell, and how the baseline's
    time changed."""
    doubt = ""
    if row.detectable:
        doubt = f"a change of {detectable_words(row)} would have shown"
    if row.seconds_to_decide:
        doubt = text.join(filter(None, (doubt, f"{more_time_words(row)} more would decide")))
    said = (counted_words(row), reason_words(row), doubt, baseline_words(row))
    return "; ".join(filter(None, said))


def detectable_words(row: Difference) -> str:
    """Return the least change that would have shown; empty where it is not known."""
    return text.ratio(row.detectable) if row.detectable else ""


def more_time_words(row: Difference) -> str:
    """Return how much more time would decide the case; empty where it is not known."""
    return text.duration(row.seconds_to_decide) if row.seconds_to_decide else ""


def _side(side: Row | None) -> dict[str, Any]:
    return {
        "status": side.status if side else None,
        "reason": (side.reason if side else OTHER_VERSION) or None,
        "median": side.seconds if side else None,
        "low": side.low if side else None,
        "high": side.high if side else None,
        "speedup": _ratio(side.speedup) if side else None,
    }


def _ratio(ratio: Ratio | None) -> dict[str, float | None] | None:
    if ratio is None:
        return None
    return {"value": ratio.value, "low": ratio.low or None, "high": ratio.high}


def counted_change_values(change: CountedChange | None) -> dict[str, Any] | None:
    """Return what counts of a case say as JSON has it; ``None`` where they say nothing."""
    if change is None:
        return None
    costs = [{"count": pair.cost.name, "old": pair.old, "new": pair.new} for pair in change.pairs]
    return {"costs": costs, "file": change.file or None, "line": change.line or None}


Words = Callable[[Difference], str]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a comparison. Where its heading is ``None``, it is not shown."""

    name: str
    words: Words
    terminal: str | None = None
    """Its heading there; a column without any word is left out."""
    markdown: str | None = None
    page: str | None = None
    is_number: bool = False
    has_foreign_words: bool = False
    """Whether results give its words, so that Markdown has to escape them."""
    terminal_words: Words | None = None
    """Where the terminal has fewer words than Markdown."""
    values: Mapping[str, Callable[[Difference], Any]] = field(default_factory=dict)
    """What JSON has of it, by key."""


COMPARISON_COLUMNS: tuple[Column, ...] = (
    Column(
        "verdict",
        verdict_words,
        terminal="",
        markdown="",
        terminal_words=terminal_verdict,
        values={"verdict": lambda row: row.verdict, "sure": lambda row: row.is_sure},
    ),
    Column(
        "case",
        lambda row: case_words(row.name),
        terminal="case",
        markdown="case",
        page="Case",
        has_foreign_words=True,
        values={"case": lambda row: row.name.case},
    ),
    Column("change", factor_words, page="Change"),
    Column(
        "factor",
        factor_words,
        terminal="factor",
        markdown="factor",
        is_number=True,
        terminal_words=lambda row: "" if row.verdict == "same" else text.factor(row.ratio),
        values={
            "ratio": lambda row: _ratio(row.ratio),
            "compared": lambda row: row.basis,
            "rests_on": lambda row: row.rests_on or None,
            "processes": lambda row: row.processes,
        },
    ),
    Column("interval", interval_words, terminal="interval", is_number=True),
    Column(
        "before",
        lambda row: side_words(row.old),
        terminal="before",
        markdown="before",
        page="Before",
        is_number=True,
        values={"old": lambda row: _side(row.old)},
    ),
    Column(
        "after",
        lambda row: side_words(row.new),
        terminal="after",
        markdown="after",
        page="After",
        is_number=True,
        values={"new": lambda row: _side(row.new)},
    ),
    Column(
        "pairs",
        lambda row: "" if row.pairs is None else str(row.pairs),
        terminal="pairs",
        is_number=True,
        values={"pairs": lambda row: row.pairs},
    ),
    Column(
        "detectable",
        detectable_words,
        terminal="would show",
        is_number=True,
        values={"detectable": lambda row: row.detectable},
    ),
    Column(
        "seconds_to_decide",
        more_time_words,
        terminal="needs",
        is_number=True,
        values={"seconds_to_decide": lambda row: row.seconds_to_decide},
    ),
    Column(
        "speedup",
        speedups_words,
        terminal="speedup",
        markdown="speedup",
        page="Speedup",
        is_number=True,
        terminal_words=lambda row: speedups_words(row) if row.basis == "speedups" else "",
    ),
    Column(
        "baseline",
        baseline_words,
        terminal="baseline",
        terminal_words=lambda row: text.factor(row.baseline),
        values={"baseline": baseline_words},
    ),
    # The terminal has lines below the table for these: each reason once, and what was counted.
    Column(
        "counted", counted_words, values={"counted": lambda row: counted_change_values(row.counted)}
    ),
    Column(
        "note",
        note_words,
        markdown="note",
        page="Note",
        has_foreign_words=True,
        values={"note": lambda row: row.note},
    ),
)

TERMINAL_COLUMNS = tuple(column for column in COMPARISON_COLUMNS if column.terminal is not None)
MARKDOWN_COLUMNS = tuple(column for column in COMPARISON_COLUMNS if column.markdown is not None)
PAGE_COLUMNS = tuple(column for column in COMPARISON_COLUMNS if column.page is not None)

MARKDOWN_HEAD = (
    "".join(f"| {column.markdown} " if column.markdown else "| " for column in MARKDOWN_COLUMNS)
    + "|",
    "".join("|--:" if column.is_number else "|---" for column in MARKDOWN_COLUMNS) + "|",
)
"""The first two lines of the table in Markdown."""


def values_of(row: Difference) -> dict[str, Any]:
    """Return a case of a comparison as JSON has it, before dates and numbers are made plain."""
    return {
        key: value(row) for column in COMPARISON_COLUMNS for key, value in column.values.items()
    }
