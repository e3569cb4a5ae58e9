"""A comparison as Markdown, for the comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from gpubench.report import text
from gpubench.report.comparison_view import RULE, ComparisonView, DifferenceRow, LoneCases, SideCell

MARKER = "<!-- gpubench compare -->"
"""First line: invisible where Markdown is rendered, and lets a script find its own comment."""

MOST_ROWS = 50
"""Longer comments are refused by some hosts and read by nobody."""

_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|~#@!"} | {"\n": " ", "\r": " "})


def markdown(view: ComparisonView) -> str:
    """The comparison as a Markdown document; what results say is escaped."""
    lines = [MARKER, f"### {escaped(view.title)}", "", f"**{view.counts_line}**", ""]
    if view.rows:
        lines += [
            "| | case | factor | before | after | speedup | note |",
            "|---|---|--:|--:|--:|--:|---|",
            *map(_row, view.rows[:MOST_ROWS]),
            "",
        ]
        left_out = view.more + len(view.rows[MOST_ROWS:])
        lines += [f"and {left_out:,} more", ""] if left_out else []
    lines += _lone("before", view.only_old) + _lone("after", view.only_new)
    lines += [f"- {escaped(f.label)}: {escaped(f.old)} → {escaped(f.new)}" for f in view.facts]
    lines += [""] if view.facts else []
    return "\n".join([*lines, f"<sub>{RULE}</sub>", ""])


def escaped(value: str) -> str:
    """Text that Markdown takes as it is, mentions and table cells included."""
    return value.translate(_SPECIAL)


def _row(row: DifferenceRow) -> str:
    speedups = [text.speedup(side.speedup) for side in (row.old, row.new)]
    factor = text.factor(row.ratio)
    if row.ratio and row.ratio.has_interval:
        factor += f" ({text.factor_interval(row.ratio)})"
    cells = (
        f"{row.sign} {row.verdict}".strip(),
        escaped(row.label),
        factor,
        _cell(row.old),
        _cell(row.new),
        " → ".join(speedups) if all(speedups) else "",
        escaped("; ".join(filter(None, (row.note, row.baseline)))),
    )
    return f"| {' | '.join(cells)} |"


def _cell(side: SideCell) -> str:
    if side.timing:
        return text.seconds(side.timing.median)
    return text.status_label(side.status) if side.status else "another version"


def _lone(where: str, cases: LoneCases) -> list[str]:
    if not cases.count:
        return []
    return [f"- only {where}: {cases.count:,}, such as {_examples(cases.examples)}"]


def _examples(examples: Iterable[str]) -> str:
    return escaped(text.join(examples))
