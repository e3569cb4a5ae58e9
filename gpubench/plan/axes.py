"""Axes of a kernel, which of them an implementation uses, and the product of several.

NumPy is not measured again for every block shape: an implementation multiplies over the axes that
its data, its call or its own launch, ``with`` and ``threads`` name, and over no others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpubench.names import Value
from gpubench.suite.model import Axis as DeclaredAxis
from gpubench.suite.model import (
    FunctionFill,
    Implementation,
    Kernel,
    Zip,
    axis_default,
    axis_values,
    formulas,
)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the expansion: a single name, or zipped sizes that move together."""

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    """Values of ``names``, one row after the other in the order of the file."""
    defaults: Mapping[str, Value]
    """Values at which a name is left out of an identity."""
    is_size: bool

    def first(self) -> dict[str, Value]:
        """The row taken where a case names none: the one at the defaults, else the first."""
        rows = [dict(zip(self.names, row, strict=True)) for row in self.rows]
        return next((row for row in rows if self.defaults.items() <= row.items()), rows[0])


def points(axes: Sequence[Axis]) -> Iterator[dict[str, Value]]:
    """Every combination of the axes' values, the last axis moving fastest."""
    names = [name for axis in axes for name in axis.names]
    for rows in itertools.product(*(axis.rows for axis in axes)):
        yield dict(zip(names, itertools.chain.from_iterable(rows), strict=True))


def kernel_axes(kernel: Kernel) -> tuple[Axis, ...]:
    """Every axis of a kernel, sizes before parameters, each alphabetically."""
    axes = []
    for name, size in sorted(kernel.sizes.items()):
        members = size.zip if isinstance(size, Zip) else {name: size}
        axes.append(_axis(dict(sorted(members.items())), is_size=True))
    for name, parameter in sorted(kernel.parameters.items()):
        axes.append(_axis({name: parameter}, is_size=False))
    return tuple(axes)


def used_axes(kernel: Kernel, implementation: Implementation) -> tuple[Axis, ...]:
    """Axes that an implementation multiplies over: those of the data and those of its own."""
    used = data_names(kernel) | _names_read_by(implementation)
    return tuple(axis for axis in kernel_axes(kernel) if not used.isdisjoint(axis.names))


def data_names(kernel: Kernel) -> frozenset[str]:
    """Names of axes that decide what a kernel works on, whichever implementation runs.

    A function that draws data is given all values of a case and does not say which it reads: it is
    taken to read those axes that nothing else names.
    """
    declared = {name for axis in kernel_axes(kernel) for name in axis.names}
    dtypes = {array.dtype for array in kernel.arrays.values()}
    dtypes |= {scalar.dtype for scalar in kernel.scalars.values() if scalar.dtype}
    used = declared & {*dtypes, *kernel.call, *_formula_names([kernel.arrays, kernel.scalars])}
    fills = (array.fill for array in kernel.arrays.values())
    if kernel.init is not None or any(isinstance(fill, FunctionFill) for fill in fills):
        used |= declared.difference(*map(_names_read_by, kernel.implementations.values()))
    return frozenset(used)


def _axis(members: Mapping[str, DeclaredAxis], is_size: bool) -> Axis:
    defaults = {name: axis_default(declared) for name, declared in members.items()}
    return Axis(
        names=tuple(members),
        rows=tuple(zip(*map(axis_values, members.values()), strict=True)),
        defaults={name: value for name, value in defaults.items() if value is not None},
        is_size=is_size,
    )


def _names_read_by(implementation: Implementation) -> frozenset[str]:
    return _formula_names([implementation.launch, implementation.with_, implementation.threads])


def _formula_names(part: object) -> frozenset[str]:
    return frozenset[str]().union(*(formula.names for _, formula in formulas(part)))
