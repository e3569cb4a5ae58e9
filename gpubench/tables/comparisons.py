"""What `gpubench compare` shows, as rich tables and plain rows. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpubench.report import text
from gpubench.report.comparison_columns import (
    TERMINAL_COLUMNS,
    counted_words,
    look_of,
    reason_words,
    values_of,
)
from gpubench.report.comparison_view import ComparisonView, factor_in_words
from gpubench.report.exports import plain
from gpubench.report.findings import case_words
from gpubench.results import CaseName
from gpubench.tables.table import table


def comparison_report(view: ComparisonView) -> Iterator[RenderableType]:
    """Title, what differs, the cases, and the line of counts."""
    yield Text(view.title, style="bold")
    for fact in view.facts:
        yield Text(f"{fact.label}: {fact.old} → {fact.new}")
    yield from map(Text, view.remarks)
    if view.rows:
        yield differences_table(view)
    elif view.counts:
        yield Text("No case was found slower or faster.")
    else:
        yield Text("Nothing was compared: no case is on both sides.")
    for row in view.rows:
        if words := counted_words(row):
            yield Text(f"{case_words(row.name)}: {words}")
    reasons = Counter((row.verdict, note) for row in view.rows if (note := reason_words(row)))
    for (verdict, note), count in reasons.items():
        yield Text(f"{verdict}, {text.plural(count, 'case')}: {note}")
    for where, cases in (("before", view.only_old), ("after", view.only_new)):
        if cases.count:
            examples = "; ".join(cases.examples)
            yield Text(f"only {where}: {text.plural(cases.count, 'case')}, such as {examples}")
    yield from map(Text, filter(None, (view.method, factor_in_words(view.factor))))
    yield from map(Text, (*view.next_steps, *view.unfinished))
    yield Text(view.counts_line, style="bold")


def differences_table(view: ComparisonView) -> Table:
    """Return one row for each case, in the order of the view."""
    cells = [
        [
            Text((column.terminal_words or column.words)(row), look_of(row.verdict).style)
            for column in TERMINAL_COLUMNS
        ]
        for row in view.rows
    ]
    used = [place for place in range(len(TERMINAL_COLUMNS)) if any(row[place] for row in cells)]
    columns = [TERMINAL_COLUMNS[place] for place in used]
    shown = ([row[place] for place in used] for row in cells)
    right = [column.terminal or "" for column in columns if column.is_number]
    names = [column.terminal or "" for column in columns]
    made = table(names, shown, right, folded=True, pad_edge=False)
    made.columns[0].no_wrap = True
    return made


def comparison_row(view: ComparisonView, asv_name: Callable[[CaseName], str]) -> dict[str, Any]:
    """Return a comparison as JSON shows it; what is not known is ``null``. ``asv_name`` tells what
    asv calls the benchmark of a case."""
    cases = [{"benchmark": asv_name(row.name), **values_of(row)} for row in view.rows]
    row: dict[str, Any] = plain(
        {
            "title": view.title,
            "old": view.old,
            "new": view.new,
            "counts": view.counts,
            "setups": view.setups or None,
            "uncommitted": view.uncommitted,
            "shared": view.shared or None,
            "next": view.next_steps,
            "suspects": view.suspects or None,
            "sure": view.sure,
            "method": view.method or None,
            "factor": view.factor,
            "cases": cases,
            "only_old": view.only_old.count,
            "only_new": view.only_new.count,
            "facts": view.facts,
            "unfinished": view.unfinished,
        }
    )
    return row
