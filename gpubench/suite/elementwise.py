"""Formulas over the indices of an array: `i * j % 7 / n` for every element, a piece at a time.

Values that no index is part of are computed as in every other formula, exactly. Whole numbers of
indices are 64 bits wide and refused beyond that, all others are NumPy's float64.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, ClassVar

import numpy as np

from gpubench.suite.expressions import (
    COMPARISONS,
    FUNCTIONS,
    OPERATIONS,
    Arrays,
    Comparisons,
    Compiler,
    Expression,
    ExpressionError,
    Run,
    Scope,
)

Array = np.ndarray[Any, Any]

PIECE = 2**16
"""Elements that are computed at a time: 512 KiB for each operation that is under way, of which
there are at most ``MAX_DEPTH``, however large the array is."""


def elements(
    formula: Expression,
    scope: Scope,
    arrays: Arrays,
    indices: Sequence[str],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    piece: int = PIECE,
) -> Iterator[tuple[int, Array]]:
    """Elements of an array in C order, in flat pieces of ``dtype`` with the index of their first.

    ``indices`` are the names of the array's indices, one for each dimension of ``shape``. Raises
    ``ExpressionError`` for an element without a value, or with one that ``dtype`` does not hold.
    """
    run = _compiled(formula.text)
    uses_index = not formula.names.isdisjoint(indices)
    for start in range(0, math.prod(shape), piece):
        flat = np.arange(start, min(start + piece, math.prod(shape)))
        places = np.unravel_index(flat, shape) if uses_index else ()
        with np.errstate(all="ignore"):  # what is not finite is refused below
            try:
                value = run({**scope, **dict(zip(indices, places, strict=False))}, arrays)
                values = np.broadcast_to(_array(value), flat.shape)
            except ValueError as error:
                raise ExpressionError(str(error), formula.text, 0) from None
            converted = values.astype(dtype)
            wrong = _beyond(values, converted)
        if wrong.any():
            first = int(wrong.argmax())
            at = ", ".join(str(int(index)) for index in np.unravel_index(start + first, shape))
            problem = f"is {values[first].item()!r} at [{at}]; {_allowed(dtype)}"
            raise ExpressionError(problem, formula.text, 0)
        yield start, converted


def _beyond(values: Array, converted: Array) -> Array:
    """Where a value is not one of the dtype that it was converted to."""
    beyond: Array = ~np.isfinite(converted)
    if converted.dtype.kind in "biu":
        beyond = (converted != values) | ~np.isfinite(values)
    return beyond


def why_not_held(value: Any, dtype: np.dtype[Any]) -> str | None:
    """What is wrong with a number that ``dtype`` does not hold; ``None`` where it does."""
    if not isinstance(value, str):
        number = _array(value)
        with np.errstate(all="ignore"):  # what is not finite is refused
            if not _beyond(number, number.astype(dtype)).any():
                return None
    return f"is {value!r}; {_allowed(dtype)}"


def _allowed(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "a bool array takes true and false: write a comparison"
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return f"{dtype} takes whole numbers from {bounds.min} to {bounds.max}: write // or floor()"
    return f"{dtype} takes finite numbers up to {np.finfo(dtype).max}: change the formula"


# --- arithmetic of arrays of int64 or float64; what is no array stays exact


def _array(value: Any) -> Array:
    """A number, or an array of numbers, as int64, float64 or bool."""
    if isinstance(value, str):
        raise ValueError(f"a number is needed here, found {value!r}")
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bool):
        return np.array(value)
    is_whole = isinstance(value, int) and -(2**63) <= value < 2**63
    return np.array(value if is_whole else float(value))


def _number(value: Any) -> Array:
    array = _array(value)
    return np.asarray(array, np.int64) if array.dtype.kind == "b" else array


def _largest(array: Array) -> int:
    """Largest magnitude of whole numbers, which int64 may not hold."""
    return max(abs(int(array.max())), abs(int(array.min())))


def _either(exact: Callable[..., Any], of_arrays: Callable[..., Any]) -> Callable[..., Any]:
    """The one where all operands are single values, the other where any is an array."""

    def apply(*operands: Any) -> Any:
        if any(isinstance(operand, np.ndarray) for operand in operands):
            return of_arrays(*map(_number, operands))
        return exact(*operands)

    return apply


def _in_64_bits(operation: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """Sum, difference or product; whole numbers must not leave int64, which would wrap around."""
    bound = operator.mul if operation is operator.mul else operator.add

    def apply(left: Array, right: Array) -> Array:
        if left.dtype.kind == right.dtype.kind == "i":
            _bounded(bound(_largest(left), _largest(right)))
        return operation(left, right)  # type: ignore[no-any-return]  # of two arrays one

    return apply


def _bounded(largest: float) -> None:
    if not largest < 2**63:
        raise ValueError("whole numbers of indices stay below 2**63; write 1.0 * for float64")


def _by_nonzero(operation: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """``//`` or ``%``; by zero there is no number, where NumPy's int64 has 0."""

    def apply(left: Array, right: Array) -> Array:
        if not right.all():
            right = np.where(right == 0, np.nan, right)
        return operation(left, right)  # type: ignore[no-any-return]  # of two arrays one

    return apply


def _power(base: Array, exponent: Array) -> Array:
    if base.dtype.kind == exponent.dtype.kind == "i" and exponent.min() >= 0:
        _bounded(2.0 ** min(math.log2(max(_largest(base), 1)) * _largest(exponent), 64))
        return np.power(base, exponent)
    return np.power(base.astype(np.float64), exponent)


_floor_divide = _by_nonzero(operator.floordiv)

_OPERATIONS: Mapping[type, Callable[..., Any]] = {
    ast.Add: _in_64_bits(operator.add),
    ast.Sub: _in_64_bits(operator.sub),
    ast.Mult: _in_64_bits(operator.mul),
    ast.Div: np.true_divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _by_nonzero(operator.mod),
    ast.Pow: _power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: np.logical_not,
}
_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "cdiv": lambda left, right: -_floor_divide(-left, right),
    "ceil": np.ceil,
    "floor": np.floor,
    "min": lambda *values: reduce(np.minimum, values),
    "max": lambda *values: reduce(np.maximum, values),
    "abs": np.abs,
    "log2": np.log2,
}


class _Elementwise(Compiler):
    """A formula some of whose names are arrays of indices; both sides of a choice are computed."""

    operations: ClassVar = {
        kind: _either(exact, _OPERATIONS[kind]) for kind, exact in OPERATIONS.items()
    }
    comparisons: ClassVar = {kind: _either(holds, holds) for kind, holds in COMPARISONS.items()}
    functions: ClassVar = {
        name: (_either(exact, _FUNCTIONS[name]), fewest, most)
        for name, (exact, fewest, most) in FUNCTIONS.items()
    }

    def compared(self, first: Run, rest: Comparisons) -> Run:
        def run(scope: Scope, arrays: Arrays) -> Any:
            left, held = first(scope, arrays), True
            for holds, operand in rest:
                right = operand(scope, arrays)
                held = np.logical_and(held, holds(left, right))
                left = right
            return held if isinstance(held, np.ndarray) else bool(held)

        return run

    def chosen(self, condition: Run, yes: Run, no: Run) -> Run:
        def run(scope: Scope, arrays: Arrays) -> Any:
            holds = condition(scope, arrays)
            if isinstance(holds, np.ndarray):
                return np.where(holds, _array(yes(scope, arrays)), _array(no(scope, arrays)))
            return yes(scope, arrays) if holds else no(scope, arrays)

        return run

    def and_or(self, parts: list[Run], stops_at: bool) -> Run:
        def run(scope: Scope, arrays: Arrays) -> Any:
            result: Any = parts[0](scope, arrays)
            for part in parts[1:]:
                if isinstance(result, np.ndarray):
                    decided = result.astype(bool) == stops_at
                    result = np.where(decided, result, _array(part(scope, arrays)))
                elif bool(result) is stops_at:
                    break
                else:
                    result = part(scope, arrays)
            return result

        return run


@lru_cache(maxsize=256)
def _compiled(text: str) -> Run:
    return _Elementwise(text).compiled()
