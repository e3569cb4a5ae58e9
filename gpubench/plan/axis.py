"""One axis of an expansion, and the product of several."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpubench.names import Value


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the expansion: a single name, or zipped sizes that move together."""

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    """Values of ``names`` at each step, in the order of the file."""
    defaults: Mapping[str, Value]
    """Values at which a name is left out of an identity."""
    is_size: bool

    def first(self) -> dict[str, Value]:
        """The step taken where a case names none: the one at the defaults, else the first."""
        steps = [dict(zip(self.names, row, strict=True)) for row in self.rows]
        return next((step for step in steps if self.defaults.items() <= step.items()), steps[0])


def points(axes: Sequence[Axis]) -> Iterator[dict[str, Value]]:
    """Every combination of the axes' values, the last axis moving fastest."""
    names = [name for axis in axes for name in axis.names]
    for rows in itertools.product(*(axis.rows for axis in axes)):
        yield dict(zip(names, itertools.chain.from_iterable(rows), strict=True))
