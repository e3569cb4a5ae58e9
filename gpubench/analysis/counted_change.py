"""What counts say of a case where times do not: which cost changed, by how much, at which line.

Counts repeat, so that one run of each side decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpubench.analysis.costs import CostPair, costs_of_line

INSTRUCTIONS = ("ir_instructions", "ptx_instructions")
"""Costs that are told first where they changed: every other count is a part of them."""

TELLING_FACTOR = 1.05
"""A second cost is told where it changed by so much more than the instructions did."""


class CountedLine(Protocol):
    """One line of code with its counts."""

    @property
    def file(self) -> str:
        """The file as results name it."""

    @property
    def line(self) -> int:
        """Its number, from 1 on."""

    @property
    def counts(self) -> Mapping[str, int]:
        """By name; those that are 0 may be absent."""


@dataclass(frozen=True, slots=True)
class CountedChange:
    """Costs of one case that differ between two sides, the most telling first."""

    pairs: tuple[CostPair, ...]
    """One or two."""
    file: str = ""
    """Of the line where most of the growth is; empty where that is not known."""
    line: int = 0
    is_only_file: bool = True
    """Whether all counted lines are of that file, so that its number names the line."""


def find_counted_change(
    pairs: Sequence[CostPair], before: Sequence[CountedLine], after: Sequence[CountedLine]
) -> CountedChange | None:
    """Return what tells most of these costs of one case; ``None`` where none of them changed.

    The instructions come first, then the cost that changed by the largest factor. ``before`` and
    ``after`` are the lines of both sides.
    """
    changed = sorted((pair for pair in pairs if pair.is_change), key=lambda pair: -pair.factor)
    first = next((pair for pair in changed if pair.cost.name in INSTRUCTIONS), None)
    if first is None:
        told = changed[:1]
    else:
        more = (pair for pair in changed if pair.factor > TELLING_FACTOR * first.factor)
        told = [first, *[*more][:1]]
    if not told:
        return None
    places = (line_of_growth(pair, before, after) for pair in told)
    line = next(filter(None, places), None)
    if line is None:
        return CountedChange(tuple(told))
    is_only = len({one.file for one in after}) == 1
    return CountedChange(tuple(told), line.file, line.line, is_only)


def line_of_growth(
    pair: CostPair, before: Sequence[CountedLine], after: Sequence[CountedLine]
) -> CountedLine | None:
    """Return the line that has most of what grew; ``None`` where nothing did, or no line has it.

    An edit moves lines, so that their numbers do not say which line was which. Lines that did as
    much before are left out; where none remains, the line with most of the cost is returned.
    """
    if pair.new <= pair.old:
        return None
    name = pair.cost.name
    old = Counter(costs_of_line(one.counts).get(name, 0) for one in before)
    new = [(costs_of_line(one.counts).get(name, 0), one) for one in after]
    grown = []
    for cost, one in new:
        if old[cost]:
            old[cost] -= 1
        else:
            grown.append((cost, one))
    cost, line = max(grown or new, key=lambda each: each[0], default=(0, None))
    return line if cost else None
