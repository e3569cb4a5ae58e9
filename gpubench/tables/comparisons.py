"""What `gpubench compare` shows, as rich tables and plain rows. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpubench.report import text
from gpubench.report.comparison_view import (
    OTHER_VERSION,
    SIGNS,
    ComparisonView,
    baseline_words,
    factor_in_words,
    reason_words,
    side_words,
    speedups_words,
    verdict_words,
)
from gpubench.report.exports import plain
from gpubench.report.findings import case_words
from gpubench.results import Ratio, Row
from gpubench.tables.table import table

_STYLES = {"slower": "yellow", "failed": "red", "faster": "cyan", "mended": "green"}


def comparison_report(view: ComparisonView) -> Iterator[RenderableType]:
    """Title, what differs, the cases, and the line of counts."""
    yield Text(view.title, style="bold")
    for fact in view.facts:
        yield Text(f"{fact.label}: {fact.old} → {fact.new}")
    yield from map(Text, view.remarks)
    if view.rows:
        yield differences_table(view)
    elif view.counts:
        yield Text("No case is known to differ.")
    else:
        yield Text("Nothing was compared: no case is on both sides.")
    reasons = Counter((row.verdict, note) for row in view.rows if (note := reason_words(row)))
    for (verdict, note), count in reasons.items():
        yield Text(f"{verdict}, {text.plural(count, 'case')}: {note}")
    for where, cases in (("before", view.only_old), ("after", view.only_new)):
        if cases.count:
            examples = "; ".join(cases.examples)
            yield Text(f"only {where}: {text.plural(cases.count, 'case')}, such as {examples}")
    yield from map(Text, filter(None, (view.method, view.scatter, factor_in_words(view.factor))))
    yield from map(Text, view.unfinished)
    yield Text(view.counts_line, style="bold")


def differences_table(view: ComparisonView) -> Table:
    """Return one row for each case, in the order of the view."""
    rows = []
    for row in view.rows:
        has_interval = row.ratio is not None and row.ratio.has_interval
        cells = (
            verdict_words(row) if row.verdict in SIGNS else f"  {row.verdict}",
            case_words(row.name),
            "" if row.verdict == "same" else text.factor(row.ratio),
            text.factor_interval(row.ratio) if has_interval else "",
            side_words(row.old),
            side_words(row.new),
            "" if row.pairs is None else str(row.pairs),
            speedups_words(row) if row.basis == "speedups" else "",
            baseline_words(row).removeprefix("its baseline became "),
        )
        rows.append([Text(cell, _STYLES.get(row.verdict, "")) for cell in cells])
    right = ("factor", "interval", "before", "after", "pairs", "speedup")
    columns = ("", "case", *right, "baseline")
    used = [place for place in range(len(columns)) if any(cells[place] for cells in rows)]
    names = [columns[place] for place in used]
    shown = ([cells[place] for place in used] for cells in rows)
    made = table(names, shown, right, folded=True, pad_edge=False)
    made.columns[0].no_wrap = True
    return made


def comparison_row(view: ComparisonView) -> dict[str, Any]:
    """Return a comparison as JSON shows it; what is not known is ``null``."""
    row: dict[str, Any] = plain(
        {
            "title": view.title,
            "old": view.old,
            "new": view.new,
            "counts": view.counts,
            "setups": view.setups or None,
            "uncommitted": view.uncommitted,
            "scatter": view.scatter or None,
            "shared": view.shared or None,
            "sure": view.sure,
            "method": view.method or None,
            "factor": view.factor,
            "cases": [
                {
                    "benchmark": row.name.benchmark.asv_name,
                    "case": row.name.case,
                    "verdict": row.verdict,
                    "ratio": _ratio(row.ratio),
                    "sure": row.is_sure,
                    "compared": row.basis,
                    "rests_on": row.rests_on or None,
                    "pairs": row.pairs,
                    "old": _side(row.old),
                    "new": _side(row.new),
                    "note": row.note,
                    "baseline": baseline_words(row),
                }
                for row in view.rows
            ],
            "only_old": view.only_old.count,
            "only_new": view.only_new.count,
            "facts": view.facts,
            "unfinished": view.unfinished,
        }
    )
    return row


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
