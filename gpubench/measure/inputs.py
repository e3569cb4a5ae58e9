"""Inputs of a case: random, seeded by suite, kernel, array and the axes it depends on, never zeros
unless the suite asks for them. The same seed gives the same inputs to every implementation.

What a function of the suite gives keeps its layout in memory, and whether it may be written. All
else lies in C order, or in the ``order`` that the suite declares."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpubench.arrow import AnyArray, pyarrow
from gpubench.errors import KernelError
from gpubench.layouts import (
    cast_with_layout,
    copy_with_layout,
    describe_layout,
    has_overlap,
    in_order,
    is_in_order,
    span_bytes,
)
from gpubench.measure.tables import arrow_column
from gpubench.measure.targets import called, load_object
from gpubench.names import kernel_title
from gpubench.plan.case import Case, cast_dtype
from gpubench.plan.group import ArraySpec
from gpubench.suite.arrays import FormulaFill, FunctionFill, LikeFill
from gpubench.suite.fills import FILLERS


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a case starts from, by name: scalars with the values of ``let``, and arrays of which
    those without input are poisoned."""

    arrays: Mapping[str, AnyArray]
    scalars: Mapping[str, Any]
    tables: Mapping[str, Any] = field(default_factory=dict)
    """Tables that are read, each a ``pyarrow.Table``."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays and tables together, gaps between elements included."""
        tables = sum(table.nbytes for table in self.tables.values())
        return sum(map(span_bytes, self.arrays.values())) + int(tables)

    @property
    def layouts(self) -> dict[str, str]:
        """Layouts of the arrays that are not in C order, by name: ``F``, ``strides (1024, 16)``."""
        described = {name: describe_layout(array) for name, array in self.arrays.items()}
        return {name: layout for name, layout in described.items() if layout is not None}


def cast_inputs(case: Case, inputs: Inputs) -> Inputs:
    """Return what the implementation is given: the inputs in the precision of its ``cast``. Numbers
    that this does not hold become infinite."""
    precision = case.implementation.cast
    if precision is None:
        return inputs
    with np.errstate(over="ignore", under="ignore"):
        arrays = {
            name: cast_with_layout(array, cast_dtype(array.dtype, precision))
            for name, array in inputs.arrays.items()
        }
        scalars = {
            name: value.astype(cast_dtype(value.dtype, precision))
            if isinstance(value, np.generic)
            else value
            for name, value in inputs.scalars.items()
        }
    return replace(inputs, arrays=arrays, scalars=scalars)


def draw_inputs(case: Case) -> Inputs:
    """Draw every array, table and scalar of a case; raises ``KernelError`` where a function that
    fills arrays fails, or returns another shape, dtype or order than the suite declares, or one
    array to be written of which several elements lie at one place."""
    return Inputs(
        draw_arrays(case),
        {**case.constants(), **case.scalars()},
        {name: _table(case, name) for name in case.table_specs},
    )


def draw_arrays(case: Case, draw: str = "") -> dict[str, AnyArray]:
    """Its arrays, by name; another ``draw`` has other random numbers. Raises as ``draw_inputs``."""
    arrays: dict[str, AnyArray] = {}
    if init := case.kernel.init:
        made = _called(init.function, case, f"{draw}init")
        made = made if isinstance(made, tuple | list) else (made,)
        if len(made) != len(init.returns):
            raise KernelError(
                f"{init.function} returned {len(made)} arrays; the suite's `init` names "
                f"{len(init.returns)}: {', '.join(init.returns)}"
            )
        arrays = dict(zip(init.returns, map(_as_array, made), strict=True))
        arrays |= {name: _writable(_title(case, name), arrays[name]) for name in init.inout}
    specs = case.array_specs
    for name, spec in specs.items():
        if name not in arrays and spec.intent in ("out", "scratch"):
            arrays[name] = poisoned(np.empty(spec.shape, spec.dtype, spec.order or "C"))
        elif name not in arrays and isinstance(spec.fill, FunctionFill):
            arrays[name] = _as_array(_called(spec.fill.function, case, f"{draw}{name}"))
        elif name not in arrays and not isinstance(spec.fill, LikeFill):
            arrays[name] = in_order(_filled(case, name, spec, draw), spec.order or "C")
        if name in arrays:
            arrays[name] = _accepted(case, name, arrays[name])
    for name, spec in specs.items():  # what is like another, once all others are there
        if name not in arrays and isinstance(spec.fill, LikeFill):
            arrays[name] = _accepted(case, name, _alike(arrays[spec.fill.like], spec))
    return {**{name: arrays[name] for name in specs}, **arrays}


def _title(case: Case, name: str) -> str:
    return f"{kernel_title(case.suite.suite, case.kernel_name)}: array {name!r}"


def _as_array(made: Any) -> AnyArray:
    """Return what a function gave, as an array of one dimension at least."""
    array = np.asarray(made)
    return array if array.ndim else array.reshape(1)


def _alike(other: AnyArray, spec: ArraySpec) -> AnyArray:
    """Return a copy of another array: of its layout too, unless the suite declares another one."""
    if spec.order is None and (other.shape, other.dtype) == (spec.shape, spec.dtype):
        return copy_with_layout(other)
    array = other.astype(spec.dtype).reshape(spec.shape)
    return array if spec.order is None else in_order(array, spec.order)


def _accepted(case: Case, name: str, array: AnyArray) -> AnyArray:
    """Return a declared array that was drawn; one that is written can be written."""
    spec, what = case.array_specs[name], _title(case, name)
    if array.shape != spec.shape or array.dtype != spec.dtype:
        raise KernelError(
            f"{what} came as {array.dtype} {array.shape}; the suite declares {spec.dtype} "
            f"{spec.shape}"
        )
    if spec.order is not None and not is_in_order(array, spec.order):
        raise KernelError(
            f"{what} came with the layout {describe_layout(array) or 'C'}; the suite declares "
            f"`order: {spec.order}`: return np.asarray(..., order={spec.order!r}), or leave "
            "`order` out to measure it as it comes"
        )
    return array if spec.intent == "in" else _writable(what, array)


def _writable(what: str, array: AnyArray) -> AnyArray:
    """Return an array that a run may write, a copy of it where it is read only."""
    if has_overlap(array):
        raise KernelError(
            f"{what} is written, and some of its elements lie at one place (strides "
            f"{array.strides}): return a copy, np.array(...) of it"
        )
    if not array.flags.writeable:
        array = copy_with_layout(array)
        array.flags.writeable = True
    return array


def _table(case: Case, name: str) -> Any:
    """Return a table that is read, as a ``pyarrow.Table``."""
    columns = {}
    for column, spec in case.table_specs[name].items():
        what, fill = f"{name}.{column}", spec.values.fill
        if isinstance(fill, FunctionFill):
            values = _called(fill.function, case, what)
        else:
            values = _filled(case, what, spec.values)
        missing = generator(case, f"{what} nulls")
        columns[column] = arrow_column(what, spec, values, missing)
    return pyarrow().Table.from_arrays(list(columns.values()), names=list(columns))


def poisoned(array: AnyArray, expected: AnyArray | None = None) -> AnyArray:
    """Return a copy of ``array`` in which every element is wrong, so that unwritten ones show.

    NaN for floating point; for integers a sentinel; for booleans the opposite of ``expected``.
    Where the right answer happens to be the poison itself, another value is taken.
    """
    if array.dtype.kind == "b":
        return np.zeros_like(array) if expected is None else ~expected
    if array.dtype.kind in "fc":
        poison = np.full_like(array, np.nan)
        if expected is not None and np.isnan(expected.max(initial=-np.inf)):
            np.copyto(poison, 0, where=np.isnan(expected))
        return poison
    sentinel = np.iinfo(array.dtype).max - 41
    poison = np.full_like(array, sentinel)
    if expected is not None:
        np.copyto(poison, sentinel - 1, where=expected == sentinel)
    return poison


def generator(case: Case, name: str) -> np.random.Generator:
    """Random numbers for one array of one case (PCG64), the same in every process and machine."""
    key = f"{case.data_title}/{name} {case.data_identity}"
    return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16]))


def _filled(case: Case, name: str, spec: ArraySpec, draw: str = "") -> AnyArray:
    """Return an array by its ``fill``, in C order: a distribution's name, a number, or a
    formula."""
    fill, shape, dtype = spec.fill, spec.shape, spec.dtype
    if isinstance(fill, FormulaFill):
        return case.filled(spec)
    if isinstance(fill, bool | int | float):
        return np.full(shape, fill, dtype)
    word = str(fill or ("normal" if dtype.kind in "fc" else "uniform"))
    return FILLERS[word](shape, dtype, generator(case, f"{draw}{name}"))


def _called(reference: str, case: Case, name: str) -> Any:
    """Return what a function that the suite names makes of the case's values and random numbers."""
    function = load_object(reference)
    with called(f"{reference}(values, generator)", reference):
        return function({**case.values, **case.constants()}, generator(case, name))
