"""Long lists: the groups in which their rows fold, and what rows are filtered and sorted by.

``lists.js`` does that in the browser; without it every row is there, in its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from gpubench.results import Ratio

FIRST = 40
"""Rows that a page shows at first; as many in ``lists.js``. With up to 30 elements in a row and all
that stands around them, a page has under 2,000 at first sight."""

WORTH_A_GROUP = 4
"""Rows of a group on average from which groups help: a suite for each kernel does not."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows that fold together."""

    title: str
    """Empty where all rows are one group, which does not fold."""
    rows: Sequence[Any]
    is_open: bool
    """At first."""


def grouped(rows: Sequence[Any], common: str, label: str) -> list[Fold]:
    """Rows of a long list by what neighbours have in common, else by their labels, which are in
    order; a short list is one group. Both are names of attributes, with dots."""
    if len(rows) <= FIRST:
        return [Fold("", rows, True)]
    common_of, label_of = attrgetter(common), attrgetter(label)
    groups = [(str(title), list(members)) for title, members in groupby(rows, common_of)]
    if not 1 < len(groups) <= len(rows) / WORTH_A_GROUP:
        pieces = [[*rows[start : start + FIRST]] for start in range(0, len(rows), FIRST)]
        groups = [(f"{label_of(piece[0])} to {label_of(piece[-1])}", piece) for piece in pieces]
    are_open = open_at_first(len(members) for _, members in groups)
    return [Fold(*group, is_open) for group, is_open in zip(groups, are_open, strict=True)]


def open_at_first(counts: Iterable[int]) -> Iterator[bool]:
    """Return which of groups with so many rows are open: those with the first rows, and the
    first."""
    before = 0
    for count in counts:
        yield not before or before + count <= FIRST
        before += count


def listed(**fields: Iterable[str] | Ratio | float | None) -> dict[str, Any]:
    """Return what a row is filtered by, words, and sorted by, numbers, for ``lists.js``; what is
    not known is left out."""
    shown: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Ratio):
            shown[name] = value.value
        elif isinstance(value, int | float):
            shown[name] = value
        elif value is not None and (words := {word for word in value if word}):
            shown[name] = sorted(words)
    return shown
