"""What ``gpubench count --order`` shows: which launches to measure first. Nothing here prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.measure.verify_cases import Verified
from gpubench.plan.case import Case
from gpubench.plan.rules import value_text
from gpubench.plan.trying import group_alternatives
from gpubench.report import text
from gpubench.tables.table import table
from gpubench.work.gpus import Gpu
from gpubench.work.ordering import (
    SHARE_TO_MEASURE,
    WEIGHED_RESOURCES,
    Weight,
    weigh,
    why_not_ordered,
)

_NUMBERS = ("place", "warps", "waves")


@dataclass(frozen=True, slots=True)
class Order:
    """Cases that differ in some axes alone, by their weights on one GPU."""

    gpu: str
    axes: tuple[str, ...]
    ordered: tuple[tuple[Case, Weight], ...]
    """The least weight first."""
    refused: tuple[tuple[Case, str], ...]
    """Each with the reason."""

    @property
    def to_measure(self) -> int:
        """How many of the first are to be measured."""
        return math.ceil(SHARE_TO_MEASURE * len(self.ordered))


def order_cases(
    rows: Sequence[tuple[Case, Verified]], axes: Sequence[str], gpus: Sequence[Gpu]
) -> list[Order]:
    """Order counted cases by their counts, for each GPU and each group that differs in ``axes``.

    Raises ``GpubenchError`` where no two cases differ in them alone.
    """
    outcomes = {(case.group.title, case.identity): outcome for case, outcome in rows}
    groups = group_alternatives([case for case, _ in rows], axes)
    return [_order(group, axes, gpu, outcomes) for group in groups for gpu in gpus]


def _order(
    cases: Sequence[Case],
    axes: Sequence[str],
    gpu: Gpu,
    outcomes: Mapping[tuple[str, str], Verified],
) -> Order:
    ordered: list[tuple[Case, Weight]] = []
    refused: list[tuple[Case, str]] = []
    for case in cases:
        outcome = outcomes[case.group.title, case.identity]
        counts = outcome.counts
        if outcome.status != "right" or counts is None or counts.missing is not None:
            missing = (counts and counts.missing) or outcome.reason or "it has no counts"
            refused.append((case, f"{outcome.status}: {missing}"))
        elif reason := why_not_ordered(counts.launches, gpu):
            refused.append((case, reason))
        else:
            ordered.append((case, weigh(counts.launches, gpu)))
    ordered.sort(key=lambda one: (one[1].value, one[0].identity))
    return Order(gpu.name, tuple(axes), tuple(ordered), tuple(refused))


def report(orders: Sequence[Order]) -> Iterator[RenderableType]:
    """Show each order: values of the axes, the least weight first, and what is left out."""
    for one in orders:
        title = (one.ordered or one.refused)[0][0].group.title
        yield Text(f"\n{title}: order by counts on {one.gpu}")
        if one.ordered:
            rows = [
                (
                    str(place),
                    *(value_text(case, name) or "" for name in one.axes),
                    WEIGHED_RESOURCES[weight.by],
                    str(weight.warps),
                    str(weight.waves),
                    "measure" if place <= one.to_measure else "",
                )
                for place, (case, weight) in enumerate(one.ordered, 1)
            ]
            headings = ("place", *one.axes, "by", "warps", "waves", "")
            yield table(headings, rows, _NUMBERS)
            several = text.plural(len(one.ordered), "launch", "launches")
            yield Text(
                f"  the best is likely among the first {one.to_measure} of {several}; a GPU "
                "decides, since no time follows from counts"
            )
        for case, reason in one.refused:
            yield Text(f"  not ordered: {case.identity}: {reason}")


def order_rows(orders: Sequence[Order]) -> list[dict[str, Any]]:
    """Return orders as JSON shows them."""
    return [
        {
            "gpu": one.gpu,
            "axes": list(one.axes),
            "implementation": (one.ordered or one.refused)[0][0].group.title,
            "order": [
                {
                    "case": case.identity,
                    "by": weight.by,
                    "resident_warps": weight.warps,
                    "waves": weight.waves,
                    "measure": place < one.to_measure,
                }
                for place, (case, weight) in enumerate(one.ordered)
            ],
            "not_ordered": [
                {"case": case.identity, "reason": reason} for case, reason in one.refused
            ],
        }
        for one in orders
    ]
