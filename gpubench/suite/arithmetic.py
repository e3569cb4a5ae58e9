"""What operators and functions of formulas give: of numbers exactly, of arrays element by element.

Whole numbers and fractions are exact, and bounded before they are computed. Arrays, which only the
indices of an array bring into a formula, are int64, refused beyond its range, float64 or bool.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from gpubench.names import MAX_NUMBER

Number = int | float | Fraction
Elements = np.ndarray[Any, Any]


# --- numbers


def _number(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"a number is needed here, found {value!r}")
    return value


def _bounded(value: Number) -> Number:
    """``value`` in its simplest type; raises ``ValueError`` when it is too large or not finite."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ValueError("the result is not a finite number")
    if abs(value.numerator) > MAX_NUMBER or value.denominator > MAX_NUMBER:
        raise ValueError("the result is larger than 2**128")
    is_whole = isinstance(value, Fraction) and value.denominator == 1
    return value.numerator if is_whole else value


def _divide(dividend: Number, divisor: Number) -> Number:
    """Quotient; exact, and whole where it can be, when neither operand is a float."""
    if not isinstance(dividend, float) and not isinstance(divisor, float):
        dividend = Fraction(dividend)
    return dividend / divisor


def _power(base: Number, exponent: Number) -> Number:
    """Power; the size of an exact result is bounded before it is computed."""
    if isinstance(base, float) or not isinstance(exponent, int):
        base, exponent = float(base), float(exponent)
        if base < 0 and not exponent.is_integer():
            raise ValueError(f"{base} to the power of {exponent} is not a real number")
        try:
            return math.pow(base, exponent)
        except OverflowError:
            raise ValueError("the result is larger than a number can be") from None
    bits = max(abs(base.numerator), base.denominator).bit_length() - 1
    if bits * abs(exponent) > MAX_NUMBER.bit_length():
        raise ValueError("the result is larger than 2**128")
    return Fraction(base) ** exponent


def _log2(operand: Number) -> int | float:
    """Binary logarithm; a whole number for powers of two."""
    if operand <= 0:
        raise ValueError(f"log2 needs a number above 0, found {operand}")
    if isinstance(operand, int) and operand & (operand - 1) == 0:
        return operand.bit_length() - 1
    return math.log2(operand)


# --- arrays


def as_array(value: Any) -> Elements:
    """Return a number, or an array of numbers, as int64, float64 or bool."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(_number(value), bool):
        return np.array(value)
    is_whole = isinstance(value, int) and -(2**63) <= value < 2**63
    return np.array(value if is_whole else float(value))


def _operand(value: Any) -> Elements:
    array = as_array(value)
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _in_64_bits(operation: Callable[[Any, Any], Any]) -> Callable[[Elements, Elements], Elements]:
    """``+ - * **``; whole numbers must not leave int64, which would wrap around."""

    def apply(left: Elements, right: Elements) -> Elements:
        result: Elements = operation(left.astype(np.float64), right.astype(np.float64))
        if not left.dtype.kind == right.dtype.kind == "i":
            return result
        if operation is operator.pow and right.min() < 0:  # of whole numbers no whole one
            return result
        if not (abs(result) < 2**63).all():
            raise ValueError("whole numbers of indices stay below 2**63; write 1.0 * for float64")
        return operation(left, right)  # type: ignore[no-any-return]  # of two arrays one

    return apply


def _by_nonzero(operation: Callable[[Any, Any], Any]) -> Callable[[Elements, Elements], Elements]:
    """``//`` or ``%``; by zero there is no number, where NumPy's int64 has 0."""

    def apply(left: Elements, right: Elements) -> Elements:
        if not right.all():
            right = np.where(right == 0, np.nan, right)
        return operation(left, right)  # type: ignore[no-any-return]  # of two arrays one

    return apply


# --- both


def _either(exact: Callable[..., Any], of_arrays: Callable[..., Any]) -> Callable[..., Any]:
    """Return the one where all operands are numbers, the other where any is an array."""

    def apply(*operands: Any) -> Any:
        if np.ndarray in map(type, operands):
            return of_arrays(*map(_operand, operands))
        return _bounded(exact(*map(_number, operands)))

    return apply


def _compared(holds: Callable[[Any, Any], Any], ordered: bool) -> Callable[[Any, Any], Any]:
    """Return whether one operand is to the other as ``holds`` says; texts are compared with
    texts."""

    def apply(left: Any, right: Any) -> Any:
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            return holds(_operand(left), _operand(right))
        if ordered and isinstance(left, str) != isinstance(right, str):
            raise ValueError(f"{left!r} and {right!r} have no order")
        return holds(left, right)

    return apply


def _not(value: Any) -> Any:
    return np.logical_not(value) if isinstance(value, np.ndarray) else not value


_floor_divide = _by_nonzero(operator.floordiv)

OPERATIONS: Mapping[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: _either(operator.add, _in_64_bits(operator.add)),
    ast.Sub: _either(operator.sub, _in_64_bits(operator.sub)),
    ast.Mult: _either(operator.mul, _in_64_bits(operator.mul)),
    ast.Div: _either(_divide, np.true_divide),
    ast.FloorDiv: _either(operator.floordiv, _floor_divide),
    ast.Mod: _either(operator.mod, _by_nonzero(operator.mod)),
    ast.Pow: _either(_power, _in_64_bits(operator.pow)),
    ast.UAdd: _either(operator.pos, operator.pos),
    ast.USub: _either(operator.neg, operator.neg),
    ast.Not: _not,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: _compared(operator.eq, ordered=False),
    ast.NotEq: _compared(operator.ne, ordered=False),
    ast.Lt: _compared(operator.lt, ordered=True),
    ast.LtE: _compared(operator.le, ordered=True),
    ast.Gt: _compared(operator.gt, ordered=True),
    ast.GtE: _compared(operator.ge, ordered=True),
}
FUNCTIONS: Mapping[str, tuple[Callable[..., Any], int, bool]] = {
    # ceil(a / b) in whole numbers: how many blocks of b hold a
    "cdiv": (_either(lambda a, b: -(-a // b), lambda a, b: -_floor_divide(-a, b)), 2, False),
    "ceil": (_either(math.ceil, np.ceil), 1, False),
    "floor": (_either(math.floor, np.floor), 1, False),
    "min": (_either(min, lambda *values: reduce(np.minimum, values)), 2, True),
    "max": (_either(max, lambda *values: reduce(np.maximum, values)), 2, True),
    # not Python's abs(), which makes a number of a boolean
    "abs": (_either(lambda value: max(value, -value), np.abs), 1, False),
    "log2": (_either(_log2, np.log2), 1, False),
}
"""Functions of values: what computes them, how many arguments they take, and whether more."""
