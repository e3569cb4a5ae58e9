"""Prices of options: formulas with logarithms and exponentials, and means of random ends.

All prices are of European options on a share without dividends. Random numbers come from a counter
(``random_numbers``), so that every form draws the same, and sums of many are kept in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.random_numbers import bits_numpy, bits_on_cpu, bits_on_device
from gpubench.kernels.reductions import (
    MAX_THREADS_PER_BLOCK,
    blocks_with_parts,
    sum_of_block,
)
from gpubench.kernels.vector_math import exp_of, log_of

Vector = NDArray[Any]
Count = NDArray[np.int64]
"""Shape ``[1]``."""
Mean = NDArray[Any]
"""Shape ``[1]``, in the dtype that is computed in."""

_PIECE = 16384  # random numbers that are made at once, so that they stay in a core's cache

# Coordinates of 31 bits, so that the sum of their squares is an exact whole number of 64.
_31, _33, _RADIUS = np.uint64(31), np.uint64(33), np.uint64(1 << 62)
_MASK = np.uint64((1 << 31) - 1)
# Uniform numbers of 23 bits and a half: none is 0 or 1, and all are exact in single precision.
_41, _UNIT = np.uint64(41), 2.0**-23


def prices(values: dict[str, Any], generator: np.random.Generator) -> Vector:
    """Of shares, and agreed on in options: 50 to 150."""
    return np.asarray(generator.uniform(50, 150, values["n"]), values["dtype"])


def terms(values: dict[str, Any], generator: np.random.Generator) -> Vector:
    """Years until an option ends: a quarter to ten."""
    return np.asarray(generator.uniform(0.25, 10, values["n"]), values["dtype"])


def black_scholes_numpy(
    share: Vector, strike: Vector, years: Vector, rate: Any, spread: Any, call: Vector, put: Vector
) -> None:
    """Prices of calls and puts into ``call`` and ``put`` (all arrays ``[n]``, one dtype), by the
    formula of Black and Scholes ("The pricing of options and corporate liabilities", 1973).
    ``rate`` and ``spread`` (volatility) are of a year."""
    number = share.dtype.type
    root = np.sqrt(years)
    root *= spread
    high = np.log(share / strike)
    high += (rate + spread * spread * number(0.5)) * years
    high /= root
    low = high - root
    paid = np.exp(-rate * years)
    paid *= strike
    np.multiply(share, _below(high), out=call)
    call -= paid * _below(low)
    np.subtract(call, share, out=put)
    put += paid


# Abramowitz and Stegun, "Handbook of mathematical functions", 26.2.17: wrong by at most 7.5e-8.
_P, _ROOT = 0.2316419, 0.3989422804014327
_B1, _B2, _B3, _B4, _B5 = 0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429


def _below(x: Vector) -> Vector:
    """Return the share of a normal distribution that lies below ``x``."""
    size = np.abs(x)
    k = 1 / (1 + x.dtype.type(_P) * size)
    tail = k * (_B1 + k * (_B2 + k * (_B3 + k * (_B4 + k * _B5))))
    size *= size
    size *= -0.5
    tail *= _ROOT * np.exp(size)
    below: Vector = np.where(x > 0, 1 - tail, tail)
    return below


def _ends(log_ratio: Any, years: Any, rate: Any, spread: Any, half: Any) -> Any:
    """Return the places of a normal distribution below which shares are counted, from the logarithm
    of share over strike."""
    width = spread * math.sqrt(years)
    high = (log_ratio + (rate + half * spread * spread) * years) / width
    return high, high - width


def _share_below(x: Any, bell: Any, numbers: Any) -> Any:
    """Return the share of a normal distribution below ``x``, from ``bell = exp(-x * x / 2)``.
    ``numbers`` are the constants in the dtype of the rest: literals would be doubles."""
    half, one, p, root, b1, b2, b3, b4, b5 = numbers
    k = one / (one + p * abs(x))
    tail = root * bell * k * (b1 + k * (b2 + k * (b3 + k * (b4 + k * b5))))
    return half + math.copysign(half - tail, x)  # no branch: it would be taken by chance


_ends_on_cpu, _ends_on_device = njit(cache=True)(_ends), cuda.jit(device=True)(_ends)
_below_on_cpu = njit(cache=True)(_share_below)
_below_on_device = cuda.jit(device=True)(_share_below)


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _prices(
    share: Vector, strike: Vector, years: Vector, rate: Any, spread: Any, call: Vector, put: Vector
) -> None:
    number = share.dtype.type
    half = number(0.5)
    numbers = (
        half, number(1), number(_P), number(_ROOT),
        number(_B1), number(_B2), number(_B3), number(_B4), number(_B5),
    )  # fmt: skip
    for i in range(call.size):
        ratio = log_of(share[i] / strike[i], number)
        high, low = _ends_on_cpu(ratio, years[i], rate, spread, half)
        bell_high, bell_low = exp_of(-half * high * high, number), exp_of(-half * low * low, number)
        paid = strike[i] * exp_of(-rate * years[i], number)
        worth = share[i] * _below_on_cpu(high, bell_high, numbers)
        worth -= paid * _below_on_cpu(low, bell_low, numbers)
        call[i] = worth
        put[i] = worth - share[i] + paid


@njit(parallel=True, cache=True)
def black_scholes_parallel(
    share: Vector, strike: Vector, years: Vector, rate: Any, spread: Any, call: Vector, put: Vector
) -> None:
    """Do the same in one pass of vector instructions, over the threads of the CPU."""
    for piece in prange((call.size + _PIECE - 1) // _PIECE):
        own = slice(piece * _PIECE, min(call.size, piece * _PIECE + _PIECE))
        _prices(share[own], strike[own], years[own], rate, spread, call[own], put[own])


@cuda.jit
def black_scholes_cuda(
    share: Vector, strike: Vector, years: Vector, rate: Any, spread: Any, call: Vector, put: Vector
) -> None:
    """Use a thread for each option; any one-dimensional launch is right."""
    number = share.dtype.type
    half = number(0.5)
    numbers = (
        half, number(1), number(_P), number(_ROOT),
        number(_B1), number(_B2), number(_B3), number(_B4), number(_B5),
    )  # fmt: skip
    for i in range(cuda.grid(1), call.size, cuda.gridsize(1)):
        ratio = math.log(share[i] / strike[i])
        high, low = _ends_on_device(ratio, years[i], rate, spread, half)
        paid = strike[i] * math.exp(-rate * years[i])
        worth = share[i] * _below_on_device(high, math.exp(-half * high * high), numbers)
        worth -= paid * _below_on_device(low, math.exp(-half * low * low), numbers)
        call[i] = worth
        put[i] = worth - share[i] + paid


def pi_numpy(n: int, seed: Any, inside: Count) -> None:
    """How many of ``n`` random points of a square lie in the quarter of a circle: pi/4 of them
    (Metropolis and Ulam, "The Monte Carlo method", 1949)."""
    found = 0
    for start in range(0, n, _PIECE):
        bits = bits_numpy(np.arange(start, min(n, start + _PIECE), dtype=np.uint64), seed)
        x, y = bits >> _33, bits & _MASK
        x *= x
        y *= y
        x += y
        found += int(np.count_nonzero(x < _RADIUS))
    inside[0] = found


@njit(parallel=True, cache=True)
def pi_parallel(n: int, seed: Any, inside: Count) -> None:
    """Do the same in one pass, over the threads of the CPU."""
    found = 0
    for piece in prange((n + _PIECE - 1) // _PIECE):
        own = 0
        for i in range(piece * _PIECE, min(n, piece * _PIECE + _PIECE)):
            bits = bits_on_cpu(i, seed)
            x, y = bits >> _33, bits & _MASK
            own += x * x + y * y < _RADIUS
        found += own
    inside[0] = found


@cuda.jit
def _clear(inside: Count) -> None:
    inside[0] = 0


@cuda.jit
def _count_inside(n: int, seed: Any, inside: Count) -> None:
    """Each block adds what its threads have found."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=inside.dtype)
    found = 0
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        bits = bits_on_device(i, seed)
        x, y = bits >> _33, bits & _MASK
        if x * x + y * y < _RADIUS:
            found += 1
    found = sum_of_block(found, room)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(inside, 0, found)


def pi_cuda(launch: Any, n: Any, seed: Any, inside: Any) -> None:
    """Queue the count: clear, then one addition for each block of any one-dimensional grid."""
    _clear[1, 1, launch.stream](inside)
    _count_inside[launch.grid, launch.block, launch.stream](n, seed, inside)


# Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics,
# 1988, to seven digits; numbers of 23 bits do not reach its outermost part. In this order: a half,
# the unit, where the middle part ends, what it and the outer part are about, one, the numerator and
# denominator of the middle part, those of the outer part.
_WICHURA = (
    0.5, _UNIT, 0.425, 0.180625, 1.6, 1.0,
    3.3871327179, 50.434271938, 159.29113202, 59.109374720,
    17.895169469, 78.757757664, 67.187563600,
    1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103,
    0.73700164250, 0.12021132975,
)  # fmt: skip
CONSTANTS = len(_WICHURA)


def wichura(values: dict[str, Any], generator: np.random.Generator) -> Vector:
    """Return the constants in the case's dtype: as literals they would be doubles."""
    return np.array(_WICHURA, values["dtype"])


def option_numpy(
    n: int, seed: Any, share: Any, strike: Any, drift: Any, spread: Any,
    constants: Vector, parts: Vector, out: Mean,
) -> None:  # fmt: skip
    """Write the mean gain of a call over ``n`` random ends of the share's price, into ``out``.

    ``drift`` is ``(rate - volatility**2 / 2) * years`` and ``spread`` ``volatility * sqrt(years)``;
    the ends have the dtype of ``constants`` (Boyle, "Options: a Monte Carlo approach", 1977).
    ``parts`` is the GPU's.
    """
    total = 0.0
    for start in range(0, n, _PIECE):
        counters = np.arange(start, min(n, start + _PIECE), dtype=np.uint64)
        ends = normal_numpy(bits_numpy(counters, seed), constants)
        ends *= spread
        ends += drift
        np.exp(ends, out=ends)
        ends *= share
        ends -= strike
        total += float(np.sum(np.maximum(ends, 0, out=ends), dtype=np.float64))
    out[0] = total / n


def normal_numpy(bits: Any, k: Vector) -> Vector:
    """Return a normal number for each of some random bits, in the dtype of the constants ``k``."""
    uniform = (bits >> _41).astype(k.dtype)
    uniform += k[0]
    uniform *= k[1]
    q = uniform - k[0]
    r = k[3] - q * q
    found: Vector = q * (((k[9] * r + k[8]) * r + k[7]) * r + k[6])
    found /= ((k[12] * r + k[11]) * r + k[10]) * r + k[5]
    (outside,) = np.nonzero(np.abs(q) > k[2])
    rare = uniform[outside]
    r = np.sqrt(-np.log(np.minimum(rare, k[5] - rare))) - k[4]
    size = (((k[16] * r + k[15]) * r + k[14]) * r + k[13]) / ((k[18] * r + k[17]) * r + k[5])
    found[outside] = np.copysign(size, q[outside])
    return found


@cuda.jit(device=True)
def _normal_on_device(bits: Any, k: Any) -> Any:
    """Return the same for one number."""
    uniform = (k.dtype.type(np.int64(bits >> _41)) + k[0]) * k[1]
    q = uniform - k[0]
    if abs(q) <= k[2]:
        r = k[3] - q * q
        above = q * (((k[9] * r + k[8]) * r + k[7]) * r + k[6])
        return above / (((k[12] * r + k[11]) * r + k[10]) * r + k[5])
    near = uniform if q < 0 else k[5] - uniform
    r = math.sqrt(-math.log(near)) - k[4]
    size = (((k[16] * r + k[15]) * r + k[14]) * r + k[13]) / ((k[18] * r + k[17]) * r + k[5])
    return -size if q < 0 else size


@njit(cache=True)
def _draw(first: int, seed: Any, uniform: Vector, k: Vector) -> None:
    """Uniform random numbers between 0 and 1, of the counters from ``first`` on."""
    for i in range(uniform.size):
        whole = np.int32(bits_on_cpu(first + i, seed) >> _41)
        uniform[i] = (k.dtype.type(whole) + k[0]) * k[1]


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _gain(uniform: Vector, share: Any, strike: Any, drift: Any, spread: Any, k: Vector) -> Any:
    """Return the sum of the gains of some ends. The middle part and the outer one are both
    computed: a choice of two numbers is a vector instruction, a branch is none."""
    number, total, least = k.dtype.type, 0.0, k[0] * k[1]
    for i in range(uniform.size):
        q = uniform[i] - k[0]
        r = k[3] - q * q
        middle = abs(q) * (((k[9] * r + k[8]) * r + k[7]) * r + k[6])
        middle /= ((k[12] * r + k[11]) * r + k[10]) * r + k[5]
        r = math.sqrt(-log_of(max(k[0] - abs(q), least), number)) - k[4]
        outer = ((k[16] * r + k[15]) * r + k[14]) * r + k[13]
        outer /= (k[18] * r + k[17]) * r + k[5]
        z = math.copysign(middle if abs(q) <= k[2] else outer, q)
        total += max(share * exp_of(drift + spread * z, number), strike) - strike
    return total


@njit(parallel=True, cache=True)
def option_parallel(
    n: int, seed: Any, share: Any, strike: Any, drift: Any, spread: Any,
    constants: Vector, parts: Vector, out: Mean,
) -> None:  # fmt: skip
    """Do the same, a piece at a time in a core's cache, over the threads of the CPU."""
    total = 0.0
    for piece in prange((n + _PIECE - 1) // _PIECE):
        uniform = np.empty(min(_PIECE, n - piece * _PIECE), constants.dtype)
        _draw(piece * _PIECE, seed, uniform, constants)
        total += _gain(uniform, share, strike, drift, spread, constants)
    out[0] = total / n


@cuda.jit
def _gains(
    n: int, seed: Any, share: Any, strike: Any, drift: Any, spread: Any,
    constants: Vector, parts: Vector,
) -> None:  # fmt: skip
    """Write the sum of the gains that each block's threads have drawn into ``parts``."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=parts.dtype)
    total = parts.dtype.type(0)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        z = _normal_on_device(bits_on_device(i, seed), constants)
        gain = share * math.exp(drift + spread * z) - strike
        if gain > 0:
            total += gain
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        parts[cuda.blockIdx.x] = total


@cuda.jit
def _mean(parts: Vector, blocks: int, n: int, out: Mean) -> None:
    """One block: ``out[0]`` is the sum of the first parts over ``n``."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=parts.dtype)
    total = parts.dtype.type(0)
    for i in range(cuda.threadIdx.x, blocks, cuda.blockDim.x):
        total += parts[i]
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        out[0] = total / n


def option_cuda(
    launch: Any, n: Any, seed: Any, share: Any, strike: Any, drift: Any, spread: Any,
    constants: Any, parts: Any, out: Any,
) -> None:  # fmt: skip
    """Queue the mean: a part for each block, of which at most ``MAX_PARTS`` have work, then one
    block; the same digits every time."""
    blocks = blocks_with_parts(launch)
    numbers = (n, seed, share, strike, drift, spread, constants, parts)
    _gains[blocks, launch.block, launch.stream](*numbers)
    _mean[1, launch.block, launch.stream](parts, blocks, n, out)
