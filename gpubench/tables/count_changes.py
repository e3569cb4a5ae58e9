"""What `gpubench compare` shows of counted work, as rich tables. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from gpubench.analysis.count_changes import CountComparison
from gpubench.report import text
from gpubench.report.count_view import TITLE, count_rows, counts_line, has_counts, look_of_count
from gpubench.tables.table import table


def count_report(comparison: CountComparison) -> Iterator[RenderableType]:
    """Show every difference of counts; nothing where nothing was counted."""
    if not has_counts(comparison):
        return
    yield Text(TITLE, style="bold")
    rows = count_rows(comparison)
    if shown := [row for row in rows if row.count]:
        cells = (
            [
                Text(cell, look_of_count(row.difference.verdict).style)
                for cell in (
                    row.verdict, row.case, row.count, row.before, row.after, row.change,
                )
            ]
            for row in shown
        )  # fmt: skip
        columns = ("", "case", "count", "before", "after", "change")
        yield table(columns, cells, columns[3:], folded=True, pad_edge=False)
    notes = Counter((row.verdict, row.note) for row in rows if row.note)
    for (verdict, note), number in notes.items():
        yield Text(f"{verdict}, {text.plural(number, 'count')}: {note}")
    yield Text(counts_line(comparison), style="bold")
