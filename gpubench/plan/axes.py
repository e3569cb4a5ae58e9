"""Axes of a kernel, which of them an implementation uses, and the product of several.

NumPy is not measured again for every block shape: an implementation multiplies over the axes that
its data, its call or its own launch, ``with`` and ``threads`` name, and over no others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpubench.names import Value
from gpubench.suite.model import (
    DeclaredAxis,
    Implementation,
    Kernel,
    Zip,
    axis_default,
    axis_values,
    formulas,
)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the expansion: a single name, or zipped ones that move together."""

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    """Values of ``names``, one row after the other in the order of the file."""
    defaults: Mapping[str, Value]
    """Values at which a name is left out of an identity."""
    sizes: frozenset[str]
    """Those of ``names`` that are sizes; the others are parameters."""

    def first(self) -> dict[str, Value]:
        """Return the row taken where a case names none: the one at the defaults, else the first."""
        rows = [dict(zip(self.names, row, strict=True)) for row in self.rows]
        return next((row for row in rows if self.defaults.items() <= row.items()), rows[0])


def points(axes: Sequence[Axis]) -> Iterator[dict[str, Value]]:
    """Yield every combination of the axes' values, the last axis moving fastest."""
    names = [name for axis in axes for name in axis.names]
    for rows in itertools.product(*(axis.rows for axis in axes)):
        yield dict(zip(names, itertools.chain.from_iterable(rows), strict=True))


def kernel_axes(kernel: Kernel) -> tuple[Axis, ...]:
    """Return every axis of a kernel, sizes before parameters, each alphabetically."""
    axes = []
    for name, declared in sorted(kernel.sizes.items()):
        if isinstance(declared, Zip):
            members = dict(sorted(declared.zip.items()))
            sizes = {
                member
                for member, axis in members.items()
                if all(type(value) is int and value >= 0 for value in axis_values(axis))
            }
            axes.append(_axis(members, sizes))
        else:
            axes.append(_axis({name: declared}, {name}))
    parameters = sorted(kernel.parameters.items())
    return (*axes, *(_axis({name: declared}, set()) for name, declared in parameters))


def _axis(members: Mapping[str, DeclaredAxis], sizes: set[str]) -> Axis:
    rows = zip(*map(axis_values, members.values()), strict=True)
    defaults = ((name, axis_default(axis)) for name, axis in members.items())
    known = {name: default for name, default in defaults if default is not None}
    return Axis(tuple(members), tuple(rows), known, frozenset(sizes))


def used_axes(
    kernel: Kernel,
    implementation: Implementation,
    axes: Sequence[Axis],
    of_data: frozenset[str],
) -> tuple[Axis, ...]:
    """Return those axes of a kernel that an implementation multiplies over: the axes of the data,
    and those that the implementation names itself."""
    used = of_data | _names_read_by(kernel, implementation)
    return tuple(axis for axis in axes if not used.isdisjoint(axis.names))


def data_names(kernel: Kernel, axes: Sequence[Axis]) -> frozenset[str]:
    """Return the names of those axes of a kernel that decide what it works on, whichever
    implementation runs.

    A function that draws data is given all values of a case and does not say which it reads: it is
    taken to read those axes that nothing else names.
    """
    declared = {name for axis in axes for name in axis.names}
    formulas_of_data = _names_in(kernel.arrays, kernel.tables, kernel.scalars)
    used = declared & kernel.axes_behind({*kernel.dtypes(), *kernel.call, *formulas_of_data})
    if kernel.drawing_functions():
        implementations = kernel.implementations.values()
        used |= declared.difference(*(_names_read_by(kernel, one) for one in implementations))
    return frozenset(used)


def _names_read_by(kernel: Kernel, implementation: Implementation) -> frozenset[str]:
    own = implementation
    fields = own.launch, own.with_, own.options, own.threads, kernel.memory_limit
    names = kernel.axes_behind(_names_in(*fields))
    parts = (kernel.implementations[name] for name in own.parts or ())
    return names.union(*(_names_read_by(kernel, part) for part in parts))


def _names_in(*parts: object) -> frozenset[str]:
    """Return the names that the formulas of parts of a suite use."""
    return frozenset[str]().union(*(formula.names for _, formula in formulas(parts)))
