"""Exact arithmetic, by which tests judge instructions.

Integers are Python's, floating point numbers exact fractions that are rounded here, so that nothing
is shared with the C text that is tested.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Value = int | float

FORMS = {
    "u8": "B",
    "s8": "b",
    "u16": "H",
    "s16": "h",
    "u32": "I",
    "s32": "i",
    "u64": "Q",
    "s64": "q",
    "b8": "B",
    "b16": "H",
    "b32": "I",
    "b64": "Q",
    "f16": "e",
    "bf16": "H",
    "f32": "f",
    "f64": "d",
    "f16x2": "I",
    "bf16x2": "I",
    "pred": "I",
}
"""How ``struct`` packs a value of each type."""

# ---- numbers that are likely to show a fault ---------------------------------------------------


def corners(kind: str) -> list[Value]:
    if kind in ("f16", "f32", "f64"):
        return list(_FLOAT_CORNERS[kind])
    if kind == "pred":
        return [0, 1]
    bits = int(kind[1:])
    patterns = {0, 1, 2, 3, 7, bits - 1, bits, bits + 1, 1 << bits - 1, (1 << bits - 1) - 1}
    patterns |= {(1 << bits) - 1, (1 << bits) - 2, 0x9E3779B97F4A7C15 & ((1 << bits) - 1)}
    return [wrap(one, kind) for one in sorted(patterns)]


def numbers(kind: str, *values: float) -> tuple[float, ...]:
    """Return the numbers of a type that lie next to the given ones."""
    form = FORMS[kind]
    return tuple(struct.unpack(form, struct.pack(form, one))[0] for one in values)


_SPECIALS = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.5, 1 / 3, 0.7, 1001.5)
_FLOAT_CORNERS = {
    "f16": numbers("f16", *_SPECIALS, 65504.0, -65504.0, 2.0**-24, 2.0**-14),
    "f32": numbers("f32", *_SPECIALS, 3.4028234e38, -3.4e38, 1e-45, 1.2e-38, 16777217),
    "f64": numbers("f64", *_SPECIALS, 1.7e308, -1.7e308, 5e-324, 2.3e-308, 9007199254740993.0),
}


def wrap(value: int, kind: str) -> int:
    """Return the number of a type that has the lower bits of another."""
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> bits - 1 else value


def clamp(value: int, kind: str) -> int:
    bits = int(kind[1:])
    least = -(1 << bits - 1) if kind[0] == "s" else 0
    return max(least, min(value, least + (1 << bits) - 1))


# ---- exact rounding ----------------------------------------------------------------------------

DIGITS = {
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "f32": (24, -126, 127),
    "f64": (53, -1022, 1023),
}
"""Binary digits, and the least and greatest exponent of normal numbers."""


def rounded(exact: Fraction, kind: str, mode: str = "rn", zero: float = 0.0) -> float:
    """Return the number of a type that a mode of rounding gives; ``zero`` for an exact 0."""
    if exact == 0:
        return zero
    digits, least, most = DIGITS[kind]
    magnitude = abs(exact)
    exponent = max(_exponent(magnitude), least)
    step = Fraction(2) ** (exponent - digits + 1)
    whole = to_integer(exact / step, mode)
    value: Fraction | float = whole * step
    greatest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** most
    if abs(value) > greatest:
        inwards = mode == "rz" or mode == ("rp" if exact < 0 else "rm")
        value = greatest if inwards else math.inf
    return math.copysign(float(abs(value)), 1 if exact > 0 else -1)


def to_integer(exact: Fraction, mode: str) -> int:
    match mode[:2]:
        case "rz":
            return math.trunc(exact)
        case "rm":
            return math.floor(exact)
        case "rp":
            return math.ceil(exact)
        case _:
            return round(exact)  # ties to even


def _exponent(magnitude: Fraction) -> int:
    """Return the largest power of two that is not above it."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= magnitude else exponent - 1


def exactly(
    operation: Callable[..., Fraction],
    kind: str,
    mode: str,
    ieee: Callable[..., Any],
    *values: float,
) -> float:
    """Round an operation once. What has no exact result (NaN, infinity, 0) is left to NumPy."""
    with np.errstate(all="ignore"):
        natural = float(ieee(*(np.float64(one) for one in values)))
    if not all(map(math.isfinite, values)):
        return natural
    try:
        exact = operation(*map(Fraction, values))
    except ZeroDivisionError:
        return natural
    if exact == 0:
        return -0.0 if mode == "rm" and _cancels(operation, values) else natural
    return rounded(exact, kind, mode)


def _cancels(operation: Callable[..., Fraction], values: Sequence[float]) -> bool:
    """Return whether a zero is the sum of x and -x: -0 if rounded down (IEEE 754, 6.3)."""
    terms = _TERMS.get(operation)
    if not terms:
        return False
    first, second = terms(*values)
    return math.copysign(1, first) != math.copysign(1, second)


def plus(a: Fraction, b: Fraction) -> Fraction:
    return a + b


def minus(a: Fraction, b: Fraction) -> Fraction:
    return a - b


def times(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def over(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def times_plus(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


def _sign_of_product(a: float, b: float) -> float:
    return math.copysign(1, a) * math.copysign(1, b)


_TERMS: dict[Any, Callable[..., tuple[float, float]]] = {
    plus: lambda a, b: (a, b),
    minus: lambda a, b: (a, -b),
    times_plus: lambda a, b, c: (_sign_of_product(a, b), c),
}
IEEE: dict[Any, Callable[..., Any]] = {
    plus: lambda a, b: a + b,
    minus: lambda a, b: a - b,
    times: lambda a, b: a * b,
    over: lambda a, b: a / b,
    # A product that is finite does not matter beside an infinite addend.
    times_plus: lambda a, b, c: (
        c if np.isfinite(a) and np.isfinite(b) and np.isinf(c) else a * b + c
    ),
}


def square_root(kind: str, mode: str, a: float) -> float:
    if a <= 0 or not math.isfinite(a):
        return math.nan if a < 0 else a
    digits = DIGITS[kind][0]
    exact = Fraction(a)
    # A root to twice as many digits; one bit more tells whether something is left over.
    scale = 4 ** (2 * digits + 1100)
    whole = math.isqrt(int(exact * scale))
    root = Fraction(whole, math.isqrt(scale))
    if root * root != exact:
        root += Fraction(1, 2 * math.isqrt(scale))
    return rounded(root, kind, mode)


def least(a: float, b: float, *, nan: bool = False, sign: int = 1) -> float:
    """min, and with the sign -1 max: -0 before +0, a number before NaN."""
    if math.isnan(a) or math.isnan(b):
        return math.nan if nan or (math.isnan(a) and math.isnan(b)) else b if math.isnan(a) else a
    return sign * min(sign * a, sign * b, key=lambda one: (one, math.copysign(1, one)))


def saturated(value: float) -> float:
    return 0.0 if math.isnan(value) or value <= 0 else min(value, 1.0)


def bits_of(value: float, kind: str) -> int:
    form = {"f16": "<e", "f32": "<f", "f64": "<d"}[kind]
    return int.from_bytes(struct.pack(form, value), "little")


def float_of(bits: int, kind: str) -> float:
    form = {"f16": "<e", "f32": "<f", "f64": "<d"}[kind]
    return float(struct.unpack(form, bits.to_bytes(int(kind[1:]) // 8, "little"))[0])


def bfloat(bits: int) -> float:
    return float_of(bits << 16, "f32")


def bfloat_bits(value: float) -> int:
    return 0x7FFF if math.isnan(value) else bits_of(value, "f32") >> 16
