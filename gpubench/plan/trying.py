"""Cases to try: each counted case with another value of an axis, as a hint proposes."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.plan.case import Case
from gpubench.plan.rules import SHAPES, value_text
from gpubench.suite.expressions import Expression

WARP = 32
"""Threads of a warp (CUDA C++ Programming Guide, "SIMT Architecture")."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case, and what it becomes."""

    before: Case
    after: Case
    name: str
    """Of the axis: a size, a parameter, ``block`` or ``grid``."""

    @property
    def words(self) -> str:
        """What is tried: ``block=16x16 becomes block=32x8``."""
        old, new = (value_text(case, self.name) for case in (self.before, self.after))
        return f"{self.name}={old} becomes {self.name}={new}"


def axis_of(text: str) -> str:
    """Return the name in ``NAME=VALUES``."""
    return text.partition("=")[0].strip()


def pair_up(cases: Iterable[Case], tried: Iterable[Case], text: str) -> list[Trial]:
    """Return a trial for each case of ``tried`` that is one of ``cases`` but for the axis of
    ``text``, ``NAME=VALUES``.

    All other sizes and parameters are the same. Of several launches that with the same block, and
    then the same grid, is the one before: blocks and grids may follow from the axis. Raises
    ``GpubenchError`` where there is none.
    """
    name, every = axis_of(text), [*cases]
    trials = []
    for after in tried:
        alike = [case for case in every if _differ_in(case, after, name)]
        if alike:
            before = max(
                alike, key=lambda case: (case.block == after.block, case.grid == after.grid)
            )
            trials.append(Trial(before, after, name))
    if not trials:
        raise GpubenchError(
            f"--try {text!r}: no case that is counted has another value of {name!r}; `gpubench "
            "plan NAME` shows axes and launches, and -a names the values to begin from"
        )
    return trials


def _differ_in(before: Case, after: Case, name: str) -> bool:
    old, new = value_text(before, name), value_text(after, name)
    is_same = before.group.title == after.group.title and before.device == after.device
    return (
        is_same
        and None not in (old, new)
        and old != new
        and _others(before, [name]) == _others(after, [name])
    )


def _others(case: Case, names: Sequence[str]) -> dict[str, Value]:
    return {each: value for each, value in case.values.items() if each not in (*names, *SHAPES)}


def every_value(cases: Iterable[Case], names: Iterable[str]) -> list[str]:
    """Return ``NAME=VALUES`` for each of these axes of which cases have several values; sizes are
    left out, which make another problem."""
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for case in cases:
        for name, values in found.items():
            value = value_text(case, name)
            if value is not None and name not in case.group.axes.size_names:
                values[value] = None
    return [f"{name}={','.join(values)}" for name, values in found.items() if len(values) > 1]


def manner_of(case: Case) -> Hashable:
    """Return how a case computes, whatever its sizes: implementation, parameters and block."""
    sizes = case.group.axes.size_names
    values = sorted((name, value) for name, value in case.values.items() if name not in sizes)
    return case.group.title, case.block, tuple(each for each in values if each[0] not in SHAPES)


def group_alternatives(cases: Iterable[Case], names: Sequence[str]) -> list[list[Case]]:
    """Return cases of one implementation and device that are the same but for some axes, in groups
    of two or more.

    Blocks and grids may follow from an axis, so that they may differ too. Raises ``GpubenchError``
    where there is no such group.
    """
    groups: dict[object, list[Case]] = {}
    for case in cases:
        if None not in [value_text(case, name) for name in names]:
            others = tuple(sorted(_others(case, names).items()))
            groups.setdefault((case.group.title, case.device, others), []).append(case)
    found = [group for group in groups.values() if len(group) > 1]
    if not found:
        raise GpubenchError(
            f"--order {', '.join(names)}: no two cases that are counted differ in that alone; "
            "`gpubench plan NAME` shows axes and launches, and -a names more values"
        )
    return found


def without_axis(axes: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the texts ``NAME=VALUES`` of other axes."""
    return tuple(text for text in axes if axis_of(text) != name)


def proposed_value(case: Case, change: str) -> str | None:
    """Return what a hint's change is for this case, as ``NAME=VALUE``: the axis ``pad...`` that
    makes rows longer, a block of whole warps, or the axis that the block follows from. ``None``
    where the change is another."""
    return _padded(case, change) or _widened(case, change)


def _padded(case: Case, change: str) -> str | None:
    lengths = re.fullmatch(r"pad rows of (\d+) elements to (\d+)", change)
    axes = {name: value for name, value in case.values.items() if name.startswith("pad")}
    if lengths is None or len(axes) != 1:
        return None
    ((name, value),) = axes.items()
    more = int(lengths[2]) - int(lengths[1])
    return f"{name}={value + more}" if isinstance(value, int) else None


def _widened(case: Case, change: str) -> str | None:
    launch = case.implementation.launch
    if "blockDim.x" not in change or case.block is None or launch is None:
        return None
    extents = [extent for block in launch.blocks() for extent in block]
    formulas = (extent for extent in extents if isinstance(extent, Expression))
    axes = {name for formula in formulas for name in formula.names if name in case.values}
    rows = max(1, math.prod(case.block) // WARP)
    return f"{axes.pop()}={WARP}" if len(axes) == 1 else f"block={WARP}x{rows}"
