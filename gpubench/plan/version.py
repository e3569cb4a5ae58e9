"""Version of a benchmark: a hash of its meaning, so that no history joins two different benchmarks.

Axes, block, grid, device, names and the code of the kernel are not part of the version: a history
is drawn over them. So an axis at its default counts as the default's value, and a renamed thing
counts under its first name.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from gpubench.names import Value
from gpubench.suite.arrays import (
    FormulaFill,
    FunctionFill,
    Init,
    axis_default,
    axis_values,
    first_name,
)
from gpubench.suite.expressions import Expression, parse
from gpubench.suite.folding import Folding, Kind, kind_of
from gpubench.suite.model import DeclaredLaunch, Implementation, Kernel
from gpubench.suite.types import Model

PROTOCOL = 1
"""Raised when the way in which times are taken changes what they mean."""

_OF_KERNEL = {"let", "arrays", "tables", "init", "scalars", "call", "returns", "memory_limit"}
_OF_IMPLEMENTATION = {
    *("function", "factory", "launcher", "source", "entry"),
    *("with_", "returns", "options", "parts", "split", "cast"),
}
_OF_LAUNCH = {"over", "shared_bytes", "cooperative"}
_HASHED: Mapping[type[Model], set[str]] = {
    Kernel: _OF_KERNEL,
    Implementation: {*_OF_IMPLEMENTATION, "launch"},
    DeclaredLaunch: _OF_LAUNCH,
}


def benchmark_version(kernel: Kernel, implementation_name: str, time: str) -> str:
    """Sixteen hexadecimal digits that change when one labelled time measures something else."""
    settled = _Settled(kernel)
    implementation = settled.put_into(kernel.implementations[implementation_name])
    content = {
        "protocol": PROTOCOL,
        "time": time,
        "kernel": _fields(settled.put_into(kernel), _OF_KERNEL),
        "implementation": _fields(implementation, _OF_IMPLEMENTATION),
        "launch": _fields(implementation.launch or DeclaredLaunch(), _OF_LAUNCH),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=_formula)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fields(model: BaseModel, names: Iterable[str]) -> dict[str, Any]:
    """Fields that are not at their default: a field that the format gains later changes nothing."""
    # By ``model_dump`` pydantic would make validators of each model in each process of asv's.
    fields = type(model).model_fields
    values = {name: getattr(model, name) for name in names}
    return {
        name: _plain(value)
        for name, value in values.items()
        if value != fields[name].get_default(call_default_factory=True)
    }


def _plain(part: Any) -> Any:
    """Return the part with models as mappings of their fields."""
    if isinstance(part, BaseModel):
        return _fields(part, type(part).model_fields)
    if isinstance(part, Mapping):
        return {name: _plain(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return tuple(map(_plain, part))
    return part


def _formula(value: Expression) -> str:
    """Return a formula as Python writes it: blanks and redundant parentheses mean nothing."""
    return ast.unparse(ast.parse(value.text.strip(), mode="eval"))


class _Settled:
    """Puts the defaults of a kernel's axes, and the first names of all that was renamed, into what
    the suite says of it.

    A part of the suite that nothing of these stands in is left as it is written.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._let = kernel.let
        self._axes = kernel.axes()
        defaults = {name: axis_default(axis) for name, axis in self._axes.items()}
        self._values: dict[str, Value] = {
            name: default for name, default in defaults.items() if default is not None
        }
        self._first_names = {name: old[-1] for name, old in kernel.old_axes().items()}
        self._implementations = {
            name: (name, *one.old_names())[-1] for name, one in kernel.implementations.items()
        }
        self._names = frozenset((*self._values, *self._first_names))
        self._folding = Folding(self._values, self._first_names, self._kind_of)

    def put_into(self, part: Any) -> Any:
        """Return the part with values and first names in all its formulas, and for its names."""
        if isinstance(part, Expression):
            return part if part.names.isdisjoint(self._names) else self._folding.fold(part)
        if isinstance(part, Model):
            return self._put_into_model(part)
        if isinstance(part, Mapping):
            return {name: self.put_into(value) for name, value in part.items()}
        if isinstance(part, list | tuple):
            return tuple(map(self.put_into, part))
        return part

    def _put_into_model(self, part: Model) -> Any:
        hashed = _HASHED.get(type(part), type(part).model_fields)
        changed = {name: self.put_into(getattr(part, name)) for name in hashed}
        if isinstance(dtype := changed.get("dtype"), str):
            changed["dtype"] = self._values.get(dtype, self._first_names.get(dtype, dtype))
        if isinstance(part, Kernel):
            # There a value cannot stand, so that before the axis there was no such argument.
            call = (name for name in part.call if name not in self._values)
            changed["call"] = tuple(self._first_names.get(name, name) for name in call)
        if isinstance(part, Implementation):
            changed["parts"] = part.parts and tuple(map(self._implementations.get, part.parts))
            # A factory's argument is mostly called like the axis, and renamed with it.
            given = changed["with_"].items()
            changed["with_"] = {self._first_names.get(name, name): value for name, value in given}
            changed["split"] = part.split and self._first_names.get(part.split, part.split)
            for field in ("function", "factory", "launcher", "source"):
                target = changed[field]
                changed[field] = target and part.first_target(target)
        if isinstance(part, FunctionFill | Init):
            changed["function"] = first_name(part.function, part.was)
        if "was" in changed:
            changed["was"] = None
        if isinstance(part, FormulaFill) and isinstance(changed["formula"], int | float):
            return changed["formula"]  # as `fill: 2.5` says it
        return part.model_copy(update=changed)

    def _kind_of(self, name: str) -> Kind:
        """Return what the values of a name are; of no axis and no constant are the indices of a
        fill."""
        if name in self._axes:
            return _kind(axis_values(self._axes[name]))
        value = self._let.get(name, 0)
        if isinstance(value, Expression):
            return kind_of(parse(value.text), self._kind_of)
        return _kind([value])


def _kind(values: Any) -> Kind:
    types = {*map(type, values)}
    if types == {int}:
        return "whole"
    return "number" if types <= {int, float} else "any"
