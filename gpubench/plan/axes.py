"""Axes of a kernel, and which of them an implementation uses.

NumPy is not measured again for every block shape: an implementation multiplies over the axes that
its data, its call or its own launch, ``with`` and ``threads`` name, and over no others.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from gpubench.plan.axis import Axis
from gpubench.suite.expressions import Expression
from gpubench.suite.model import Axis as DeclaredAxis
from gpubench.suite.model import (
    FunctionFill,
    Implementation,
    Kernel,
    Zip,
    axis_default,
    axis_values,
)


def kernel_axes(kernel: Kernel) -> tuple[Axis, ...]:
    """Every axis of a kernel, sizes before parameters, each alphabetically."""
    sizes = sorted(kernel.sizes.items())
    parameters = sorted(kernel.parameters.items())
    return (
        *(_size_axis(name, declared) for name, declared in sizes),
        *(_axis({name: declared}, is_size=False) for name, declared in parameters),
    )


def used_axes(kernel: Kernel, implementation: Implementation) -> tuple[Axis, ...]:
    """Axes that an implementation multiplies over: those of the data and those of its own."""
    used = data_names(kernel) | _own_names(implementation)
    return tuple(axis for axis in kernel_axes(kernel) if not used.isdisjoint(axis.names))


def data_names(kernel: Kernel) -> frozenset[str]:
    """Names of axes that decide what a kernel works on, whichever implementation runs.

    A function that draws data is given all values of a case and does not say which it reads: it is
    taken to read those axes that nothing else names.
    """
    declared = _declared_names(kernel)
    used = _shared_names(kernel) & declared
    if _draws_by_function(kernel):
        own = frozenset[str]().union(*map(_own_names, kernel.implementations.values()))
        used |= declared - own
    return used


def expression_names(part: Any) -> frozenset[str]:
    """Names that the expressions anywhere inside a part of a suite read."""
    if isinstance(part, Expression):
        return part.names
    if isinstance(part, BaseModel):
        return expression_names([getattr(part, name) for name in type(part).model_fields])
    if isinstance(part, Mapping):
        return expression_names(list(part.values()))
    if isinstance(part, list | tuple):
        return frozenset[str]().union(*map(expression_names, part))
    return frozenset()


def _size_axis(name: str, declared: DeclaredAxis | Zip) -> Axis:
    members = declared.zip if isinstance(declared, Zip) else {name: declared}
    return _axis(dict(sorted(members.items())), is_size=True)


def _axis(members: Mapping[str, DeclaredAxis], is_size: bool) -> Axis:
    defaults = {name: axis_default(declared) for name, declared in members.items()}
    return Axis(
        names=tuple(members),
        rows=tuple(zip(*map(axis_values, members.values()), strict=True)),
        defaults={name: value for name, value in defaults.items() if value is not None},
        is_size=is_size,
    )


def _declared_names(kernel: Kernel) -> frozenset[str]:
    sizes = (
        tuple(declared.zip) if isinstance(declared, Zip) else (name,)
        for name, declared in kernel.sizes.items()
    )
    return frozenset(itertools.chain(*sizes, kernel.parameters))


def _shared_names(kernel: Kernel) -> frozenset[str]:
    dtypes = (array.dtype for array in kernel.arrays.values())
    scalar_dtypes = (scalar.dtype for scalar in kernel.scalars.values() if scalar.dtype)
    named = frozenset((*dtypes, *scalar_dtypes, *kernel.call))
    return named | expression_names([kernel.arrays, kernel.scalars])


def _own_names(implementation: Implementation) -> frozenset[str]:
    return expression_names([implementation.launch, implementation.with_, implementation.threads])


def _draws_by_function(kernel: Kernel) -> bool:
    fills = (array.fill for array in kernel.arrays.values())
    return kernel.init is not None or any(isinstance(fill, FunctionFill) for fill in fills)
