"""What ``gpubench count --cpu`` shows, as data and as a table. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.measure.instructions import Instructions
from gpubench.measure.verify_cases import Verified
from gpubench.plan.case import Case
from gpubench.report import text
from gpubench.tables import verdicts
from gpubench.tables.table import several, table

Counted = tuple[Case, Verified, Instructions | None]
"""A case, what became of it, and its instructions; ``None`` where it is not right."""


def report(rows: Sequence[Counted]) -> Iterator[RenderableType]:
    """Show a row for each case, why others have no number, and how was counted."""
    numbers = ("instructions",)
    yield table(("kernel", "implementation", "case", "verdict", *numbers), map(_row, rows), numbers)
    yield from verdicts.reasons([(case, outcome) for case, outcome, _ in rows])
    missing: dict[str, list[str]] = {}
    ways: dict[str, None] = {}
    for case, _, counted in rows:
        if counted is None:
            continue
        if counted.missing is not None:
            name = f"{case.group.title} {case.identity}".strip()
            missing.setdefault(counted.missing, []).append(name)
        else:
            way = f"{counted.counter}, one thread, compiled for {counted.processor}"
            ways[f"instructions of one call by {way}; an empty call is taken off"] = None
    for reason, names in missing.items():
        yield Text(f"  not counted: {several(names)}: {reason}")
    yield from map(Text, ways)


def case_row(case: Case, outcome: Verified, counted: Instructions | None) -> dict[str, Any]:
    """Return one case as JSON shows it."""
    row = verdicts.case_row(case, outcome)
    return {**row, "instructions": None if counted is None else asdict(counted)}


def _row(row: Counted) -> tuple[str | Text, ...]:
    case, outcome, counted = row
    count = "" if counted is None or counted.count is None else f"{counted.count:,}"
    verdict = text.status_label(outcome.status)
    title = case.group.title.rpartition(" ")[0]
    return title, case.implementation_name, case.identity, verdict, count
