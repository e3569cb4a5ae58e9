"""Exponentials and logarithms without a call, so that loops over them become vector instructions.

A compiled loop that calls the C library for each number computes one number at a time, while
NumPy's own ``exp`` and ``log`` take a vector register at once. These take one too, wherever the
compiler makes vector instructions of the loop around them.

Both split a number into a power of two and a rest near 1 (Cody and Waite, "Software manual for the
elementary functions", 1980), and sum as many terms of Taylor's series as the dtype's digits need.
Logarithms are of normal numbers only: not of zero, of infinity or of what is no number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpubench.kernels.lazy_numba import njit

# exp(x) is 2**whole * exp(rest) with |rest| <= log(2) / 2. log(2) has two parts, so that
# whole * _HIGH is exact. Adding _ROUND leaves the nearest whole number in the lowest bits.
_HIGH, _LOW = np.float32(355 / 512), np.float32(math.log(2) - 355 / 512)
_PER_LOG2 = np.float32(1 / math.log(2))
_ROUND = np.float32(1.5 * 2**23)
_LEAST, _MOST = np.float32(-87), np.float32(88)  # beyond: denormal numbers, infinity
_ONE, _TWO = np.float32(1), np.float32(2)
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))
_BIAS, _MANTISSA = np.int32(127), np.int32(23)

# log(x) is whole * log(2) + log(rest) with rest from sqrt(1/2) to sqrt(2), and log(rest) is
# 2 * atanh(z) for z = (rest - 1) / (rest + 1).
_ROOT = np.float32(math.sqrt(0.5)).view(np.int32)
_LOG2 = np.float32(math.log(2))
_L3, _L5, _L7, _L9 = (np.float32(1 / k) for k in range(3, 10, 2))

# The same in double precision. What shifts and masks is unsigned: a vector register of 64-bit
# numbers has no other shift on many processors.
_HIGH_64, _LOW_64 = 0x162E42FEE / 2**33, 1.9082149292705877e-10
_PER_LOG2_64 = 1 / math.log(2)
_ROUND_64 = 1.5 * 2.0**52
_LEAST_64, _MOST_64 = -708.0, 709.0
_EXP_64 = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_BIAS_64, _MANTISSA_64 = np.uint64(1023), np.uint64(52)
_ROOT_64 = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
_ROUND_BITS = np.uint64(0x4338000000000000)
_LOG_64 = tuple(1 / k for k in range(21, 0, -2))


@njit(cache=True, fastmath={"contract"})
def exp_single(x: Any) -> Any:
    """``exp(x)`` of a float32, within two roundings; beyond -87 and 88 as of these, NaN of NaN."""
    x = min(max(x, _LEAST), _MOST)
    shifted = x * _PER_LOG2 + _ROUND
    whole = shifted - _ROUND
    rest = x - whole * _HIGH - whole * _LOW
    series = (((_E7 * rest + _E6) * rest + _E5) * rest + _E4) * rest + _E3
    series = ((series * rest + _E2) * rest + _ONE) * rest + _ONE
    exponent = np.int32(np.float32(shifted).view(np.int32) + _BIAS)
    return series * np.int32(exponent << _MANTISSA).view(np.float32)


@njit(cache=True, fastmath={"contract"})
def log_single(x: Any) -> Any:
    """``log(x)`` of a positive float32, within a few roundings."""
    bits = np.float32(x).view(np.int32)
    whole = np.int32(np.int32(bits - _ROOT) >> _MANTISSA)
    rest = np.int32(bits - np.int32(whole << _MANTISSA)).view(np.float32)
    z = (rest - _ONE) / (rest + _ONE)
    q = z * z
    series = (((_L9 * q + _L7) * q + _L5) * q + _L3) * q + _ONE
    return np.float32(whole) * _LOG2 + _TWO * z * series


@njit(cache=True, fastmath={"contract"})
def exp_double(x: Any) -> Any:
    """``exp(x)`` of a float64, within two roundings; as above, the ends are -708 and 709."""
    x = min(max(x, _LEAST_64), _MOST_64)
    shifted = x * _PER_LOG2_64 + _ROUND_64
    whole = shifted - _ROUND_64
    rest = x - whole * _HIGH_64 - whole * _LOW_64
    series = 0.0
    for term in _EXP_64:
        series = series * rest + term
    exponent = np.uint64(np.float64(shifted).view(np.uint64) + _BIAS_64)
    return series * np.uint64(exponent << _MANTISSA_64).view(np.float64)


@njit(cache=True, fastmath={"contract"})
def log_double(x: Any) -> Any:
    """``log(x)`` of a positive float64, within a few roundings."""
    bits = np.float64(x).view(np.uint64)
    biased = np.uint64(bits + _ROOT_64) >> _MANTISSA_64
    rest = np.uint64(bits - ((biased - _BIAS_64) << _MANTISSA_64)).view(np.float64)
    # The whole number in the lowest bits of a float, as above, in place of a conversion.
    whole = np.uint64(biased + _ROUND_BITS).view(np.float64) - (_ROUND_64 + 1023.0)
    z = (rest - 1.0) / (rest + 1.0)
    q = z * z
    series = 0.0
    for term in _LOG_64:
        series = series * q + term
    return whole * _HIGH_64 + (whole * _LOW_64 + 2.0 * z * series)


@njit(cache=True)
def _is_single(number: Any) -> bool:
    """Return whether ``number`` is ``numpy.float32``; the compiler knows the answer."""
    return bool(number(1) + number(2.0**-30) == number(1))


@njit(cache=True)
def exp_of(x: Any, number: Any) -> Any:
    """``exp(x)`` in the precision ``number``: ``numpy.float32`` or ``numpy.float64``."""
    return number(exp_single(np.float32(x)) if _is_single(number) else exp_double(np.float64(x)))


@njit(cache=True)
def log_of(x: Any, number: Any) -> Any:
    """``log(x)`` in the precision ``number``: ``numpy.float32`` or ``numpy.float64``."""
    return number(log_single(np.float32(x)) if _is_single(number) else log_double(np.float64(x)))
