"""Arithmetic of the formulas: exact for whole numbers, and bounded in size before it is done.

Every operand and every result lies within ``LIMIT``, so that a formula costs neither time nor
memory beyond a few words. What cannot be computed raises ``ValueError`` with the reason.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

Result = int | float | bool | str | Fraction
"""What a part of a formula gives; fractions stay inside a formula."""
Number = int | float | Fraction

LIMIT = 2**128
"""Largest magnitude of a number, and of a fraction's numerator and denominator."""
_LIMIT_BITS = LIMIT.bit_length()


def bounded(value: Number) -> Number:
    """``value`` in its simplest type; raises ``ValueError`` when it is too large or not finite."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ValueError("the result is not a finite number")
    numerator, denominator = value.numerator, value.denominator
    if -LIMIT <= numerator <= LIMIT and denominator <= LIMIT:
        return numerator if denominator == 1 else value
    raise ValueError("the result is larger than 2**128")


def number(value: Result) -> Number:
    """``value`` as an operand; raises ``ValueError`` for text."""
    if isinstance(value, str):
        raise ValueError(f"a number is needed here, found {value!r}")
    return value


def _guarded(operation: Callable[[Number, Number], Number]) -> Callable[[Result, Result], Number]:
    def apply(left: Result, right: Result) -> Number:
        if type(left) is int and type(right) is int:
            result = operation(left, right)
            if -LIMIT <= result <= LIMIT:
                return result
        return bounded(operation(number(left), number(right)))

    return apply


add = _guarded(operator.add)
subtract = _guarded(operator.sub)
multiply = _guarded(operator.mul)
modulo = _guarded(operator.mod)
floor_divide = _guarded(operator.floordiv)


def divide(left: Result, right: Result) -> Number:
    """Quotient; exact, and whole where it can be, when neither operand is a float."""
    dividend, divisor = number(left), number(right)
    if isinstance(dividend, float) or isinstance(divisor, float):
        return bounded(dividend / divisor)
    return bounded(Fraction(dividend) / Fraction(divisor))


def power(left: Result, right: Result) -> Number:
    """Power; the size of an exact result is bounded before it is computed."""
    base, exponent = number(left), number(right)
    if type(base) is int and type(exponent) is int and 0 <= exponent <= 8 and abs(base) < 2**16:
        return int(base**exponent)
    if isinstance(base, float) or not isinstance(exponent, int):
        return bounded(_float_power(float(base), float(exponent)))
    bits = max(abs(base.numerator), base.denominator).bit_length() - 1
    if bits * abs(exponent) > _LIMIT_BITS:
        raise ValueError("the result is larger than 2**128")
    return bounded(_exact_power(Fraction(base), exponent))


def _float_power(base: float, exponent: float) -> float:
    if base < 0 and not exponent.is_integer():
        raise ValueError(f"{base} to the power of {exponent} is not a real number")
    try:
        return math.pow(base, exponent)
    except OverflowError:
        raise ValueError("the result is larger than a number can be") from None


def _exact_power(base: Fraction, exponent: int) -> Fraction:
    if abs(base) == 1:  # only here, and at 0, is the exponent unbounded
        exponent %= 2
    if not base:
        exponent = max(-1, min(1, exponent))
    return Fraction(base**exponent)


def cdiv(left: Result, right: Result) -> Number:
    """Quotient rounded up: how many blocks of ``right`` hold ``left``."""
    return -floor_divide(-number(left), right)


def ceil(value: Result) -> int:
    return math.ceil(number(value))


def floor(value: Result) -> int:
    return math.floor(number(value))


def absolute(value: Result) -> Number:
    operand = number(value)
    return -operand if operand < 0 else operand


def smallest(*values: Result) -> Number:
    return min(map(number, values))


def largest(*values: Result) -> Number:
    return max(map(number, values))


def log2(value: Result) -> int | float:
    """Binary logarithm; a whole number for powers of two."""
    operand = number(value)
    if operand <= 0:
        raise ValueError(f"log2 needs a number above 0, found {operand}")
    if isinstance(operand, int) and operand & (operand - 1) == 0:
        return operand.bit_length() - 1
    return math.log2(operand)


def compare(operation: Callable[[Result, Result], bool], left: Result, right: Result) -> bool:
    """Ordering of two numbers or of two texts; raises ``ValueError`` for one of each."""
    if isinstance(left, str) != isinstance(right, str):
        raise ValueError(f"{left!r} and {right!r} have no order")
    return operation(left, right)
