"""What `gpubench compare` shows, as rich tables and plain rows. Nothing here prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpubench.analysis.speedup import Speedup
from gpubench.report import text
from gpubench.report.comparison_view import ComparisonView, DifferenceRow, LoneCases, SideCell

_STYLES = {"slower": "yellow", "failed": "red", "faster": "cyan", "mended": "green"}


def comparison_report(view: ComparisonView) -> Iterator[RenderableType]:
    """Title, what differs, the cases, and the line of counts."""
    yield Text(view.title, style="bold")
    for fact in view.facts:
        yield Text(f"{fact.label}: {fact.old} → {fact.new}")
    if view.rows:
        yield differences_table(view)
        yield from _reasons(view)
    else:
        yield Text("No case is known to differ.")
    for where, cases in (("before", view.only_old), ("after", view.only_new)):
        if cases.count:
            yield Text(_lone(where, cases))
    yield Text(view.counts_line, style="bold")


def differences_table(view: ComparisonView) -> Table:
    """One row for each case, in the order of the view."""
    columns = ("", "case", "factor", "interval", "before", "after", "baseline")
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for column in table.columns[2:6]:
        column.justify, column.no_wrap = "right", True
    table.columns[0].no_wrap = True
    for row in view.rows:
        table.add_row(*map(Text, _cells(row)), style=_STYLES.get(row.verdict, ""))
    return table


def comparison_row(view: ComparisonView) -> dict[str, Any]:
    """A comparison as JSON shows it; what is not known is ``null``."""
    return {
        "title": view.title,
        "old": asdict(view.old),
        "new": asdict(view.new),
        "counts": view.counts,
        "cases": [_difference_row(row) for row in view.rows],
        "only_old": view.only_old.count,
        "only_new": view.only_new.count,
        "facts": [asdict(fact) for fact in view.facts],
    }


def _cells(row: DifferenceRow) -> tuple[str, ...]:
    known = row.ratio is not None and row.ratio.has_interval
    return (
        f"{row.sign or ' '} {row.verdict}",
        row.label,
        "" if row.verdict == "same" else text.factor(row.ratio),
        text.factor_interval(row.ratio) if known else "",
        _side(row.old),
        _side(row.new),
        row.baseline.removeprefix("its baseline became "),
    )


def _reasons(view: ComparisonView) -> Iterator[Text]:
    """Why cases have no verdict by their times, each reason once."""
    groups: dict[tuple[str, str], int] = {}
    for row in view.rows:
        if row.note:
            groups[row.verdict, row.note] = groups.get((row.verdict, row.note), 0) + 1
    for (verdict, note), count in groups.items():
        yield Text(f"{verdict}, {text.plural(count, 'case')}: {note}")


def _side(side: SideCell) -> str:
    if side.timing:
        return text.seconds(side.timing.median)
    return text.status_label(side.status) if side.status else "another version"


def _lone(where: str, cases: LoneCases) -> str:
    return f"only {where}: {text.plural(cases.count, 'case')}, such as {'; '.join(cases.examples)}"


def _difference_row(row: DifferenceRow) -> dict[str, Any]:
    return {
        "benchmark": row.name.benchmark.asv_name,
        "case": row.name.case,
        "verdict": row.verdict,
        "ratio": _ratio(row.ratio),
        "old": _side_row(row.old),
        "new": _side_row(row.new),
        "note": row.note,
        "baseline": row.baseline,
    }


def _side_row(side: SideCell) -> dict[str, Any]:
    timing = side.timing
    return {
        "status": side.status,
        "reason": side.reason or None,
        "median": timing.median if timing else None,
        "low": _finite(timing.low) if timing else None,
        "high": _finite(timing.high) if timing else None,
        "speedup": _ratio(side.speedup),
    }


def _ratio(ratio: Speedup | None) -> dict[str, float | None] | None:
    if ratio is None:
        return None
    low = ratio.low if ratio.low > 0 else None
    return {"value": ratio.value, "low": low, "high": _finite(ratio.high)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
