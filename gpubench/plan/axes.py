"""Axes of a kernel, which of them an implementation uses, and the product of several.

NumPy is not measured again for every block shape: an implementation multiplies over the axes that
its data, its call or its own launch, ``with`` and ``threads`` name, and over no others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.names import Value
from gpubench.suite.arrays import Zip, axis_default, axis_values
from gpubench.suite.formulas import formulas
from gpubench.suite.model import DeclaredAxis, Implementation, Kernel


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the expansion: a single name, or zipped ones that move together."""

    names: tuple[str, ...]
    points: tuple[dict[str, Value], ...]
    """Values of ``names``, one point after the other in the order of the file."""
    defaults: Mapping[str, Value]
    """Values at which a name is left out of an identity."""
    sizes: frozenset[str]
    """Those of ``names`` that are sizes; the others are parameters."""

    def first(self) -> dict[str, Value]:
        """Return the point taken where a case names none: that of the defaults, else the first."""
        at_defaults = (p for p in self.points if self.defaults.items() <= p.items())
        return next(at_defaults, self.points[0])


@dataclass(frozen=True, slots=True)
class UsedAxes:
    """The axes that one implementation multiplies over, with what follows from them."""

    axes: tuple[Axis, ...]
    """In the order of an identity."""
    data_names: frozenset[str]
    """Names that decide the inputs, the same for all implementations."""
    names: tuple[str, ...]
    """Names of ``axes`` as an identity has them: sizes, then parameters, each alphabetically."""
    size_names: tuple[str, ...]
    """Those of ``names`` that are sizes."""
    defaults: Mapping[str, Value]
    """Values at which a name is left out of an identity."""

    @classmethod
    def of(cls, axes: tuple[Axis, ...], of_data: frozenset[str]) -> UsedAxes:
        """Put together what follows from the axes that are used."""
        names = {name for axis in axes for name in axis.names}
        sizes = tuple(sorted(name for axis in axes for name in axis.sizes))
        defaults = {name: value for axis in axes for name, value in axis.defaults.items()}
        ordered = (*sizes, *sorted(names.difference(sizes)))
        return cls(axes, of_data, ordered, sizes, defaults)

    def count(self) -> int:
        """Count the points without making them."""
        return math.prod(len(axis.points) for axis in self.axes)

    def points(self) -> list[dict[str, Value]]:
        """Return every combination of the axes' values, the last axis moving fastest."""
        combined = itertools.product(*(axis.points for axis in self.axes))
        return [{name: v for part in parts for name, v in part.items()} for parts in combined]


def used_axes(kernel: Kernel) -> dict[str, UsedAxes]:
    """Return the axes of each implementation of a kernel: those of the data, and those that the
    implementation names itself."""
    axes = kernel_axes(kernel)
    of_data = data_names(kernel, axes)
    found = {}
    for name, implementation in kernel.implementations.items():
        used = of_data | _names_read_by(kernel, implementation)
        its = tuple(axis for axis in axes if not used.isdisjoint(axis.names))
        found[name] = UsedAxes.of(its, of_data)
    return found


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
    values = zip(*map(axis_values, members.values()), strict=True)
    points = tuple(dict(zip(members, point, strict=True)) for point in values)
    defaults = ((name, axis_default(axis)) for name, axis in members.items())
    known = {name: default for name, default in defaults if default is not None}
    return Axis(tuple(members), points, known, frozenset(sizes))


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
