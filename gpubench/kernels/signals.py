"""The fast Fourier transform of many signals at once.

Stockham's form ("autosort"; Cochran et al., "What is the fast Fourier transform?", Proceedings of
the IEEE, 1967) writes each stage to another array, in an order that needs no bits reversed at the
end. A stage takes neighbours that are ever farther apart and puts them ever closer together.

Arrays have the shape ``[batch, n]``, ``n`` a power of two, and one complex dtype; ``twiddles`` has
the shape ``[n]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Signals = NDArray[Any]
Twiddles = NDArray[Any]
"""``exp(-2j * pi * k / n)`` for every ``k < n``."""

_MOST_SHARES = 16  # of the signals; a share is worked off on one thread of the CPU


def roots_of_unity(values: dict[str, Any], generator: np.random.Generator) -> Twiddles:
    """Return the twiddle factors, rounded once."""
    turns = np.arange(values["n"]) / values["n"]
    return np.asarray(np.exp(-2j * np.pi * turns), values["dtype"])


def fft_numpy(x: Signals, twiddles: Twiddles, scratch: Signals, out: Signals) -> None:
    """Write the transform of every row of ``x`` into ``out``, by NumPy's pocketfft."""
    out[:] = np.fft.fft(x)


# A loop of its own for the first stage, whose transforms are one element apart: it runs in vectors.
@njit(cache=True)
def _first_by_four(x: Signals, y: Signals, twiddles: Twiddles) -> None:
    quarter, j = x.size // 4, x.dtype.type(1j)
    for p in range(quarter):
        a, b, c, d = x[p], x[p + quarter], x[p + 2 * quarter], x[p + 3 * quarter]
        even, odd, straight, turned = a + c, b + d, a - c, j * (b - d)
        y[4 * p], y[4 * p + 2] = even + odd, twiddles[2 * p] * (even - odd)
        y[4 * p + 1] = twiddles[p] * (straight - turned)
        y[4 * p + 3] = twiddles[3 * p] * (straight + turned)


@njit(cache=True)
def _by_four(x: Signals, y: Signals, length: int, stride: int, twiddles: Twiddles) -> None:
    """Do a stage of radix 4: ``stride`` transforms of ``length``, a quarter as long afterwards."""
    quarter, j = length // 4, x.dtype.type(1j)
    for p in range(quarter):
        one, two = twiddles[p * stride], twiddles[2 * p * stride]
        three = twiddles[3 * p * stride]
        a, b = x[stride * p :], x[stride * (p + quarter) :]
        c, d = x[stride * (p + 2 * quarter) :], x[stride * (p + 3 * quarter) :]
        to = y[4 * stride * p :]
        for q in range(stride):
            even, odd = a[q] + c[q], b[q] + d[q]
            straight, turned = a[q] - c[q], j * (b[q] - d[q])
            to[q], to[q + 2 * stride] = even + odd, two * (even - odd)
            to[q + stride] = one * (straight - turned)
            to[q + 3 * stride] = three * (straight + turned)


@njit(cache=True)
def _by_two(x: Signals, y: Signals) -> None:
    """Do the last stage where the length is an odd power of two: its twiddles are all 1."""
    half = x.size // 2
    for q in range(half):
        y[q], y[q + half] = x[q] + x[q + half], x[q] - x[q + half]


@njit(cache=True)
def _transform(signal: Signals, twiddles: Twiddles, scratch: Signals, out: Signals) -> None:
    """One signal; the stages write to ``out`` and ``scratch`` in turn, the last one to ``out``."""
    stages = 0
    while signal.size >> 2 * stages >= 2:
        stages += 1
    source, target, other = signal, scratch, out
    if stages % 2:
        target, other = out, scratch
    length, stride = signal.size, 1
    while length >= 4:
        if stride == 1:
            _first_by_four(source, target, twiddles)
        else:
            _by_four(source, target, length, stride, twiddles)
        length, stride = length // 4, stride * 4
        source, target, other = target, other, target
    if length == 2:
        _by_two(source, target)
    elif stages == 0:
        out[0] = signal[0]


@njit(parallel=True, cache=True)
def fft_parallel(x: Signals, twiddles: Twiddles, scratch: Signals, out: Signals) -> None:
    """Take a signal at a time over the threads of the CPU, in stages of radix 4 in a core's
    cache."""
    batch = x.shape[0]
    shares = min(_MOST_SHARES, batch)
    for share in prange(shares):  # one row of scratch for a share stays in its core's cache
        for row in range(share * batch // shares, (share + 1) * batch // shares):
            _transform(x[row], twiddles, scratch[share], out[row])


@cuda.jit
def _stage(x: Signals, y: Signals, stride: int, twiddles: Twiddles) -> None:
    """Do a stage of radix 2 of all signals: a thread for each pair, striding over the grid."""
    batch, n = x.shape
    half = n // 2
    for index in range(cuda.grid(1), batch * half, cuda.gridsize(1)):
        row, pair = index // half, index % half
        p, q = pair // stride, pair % stride
        a, b = x[row, pair], x[row, pair + half]
        y[row, q + 2 * stride * p] = a + b
        y[row, q + 2 * stride * p + stride] = (a - b) * twiddles[p * stride]


@cuda.jit
def _copy(x: Signals, y: Signals) -> None:
    for row in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        y[row, 0] = x[row, 0]


def fft_cuda(launch: Any, x: Any, twiddles: Any, scratch: Any, out: Any) -> None:
    """Queue a launch for each stage; the stages write to ``out`` and ``scratch`` in turn, so that
    the last one writes to ``out``."""
    stages = x.shape[1].bit_length() - 1
    if stages == 0:
        _copy[launch.grid, launch.block, launch.stream](x, out)
    source = x
    for stage in range(stages):
        target = out if (stages - stage) % 2 else scratch
        _stage[launch.grid, launch.block, launch.stream](source, target, 1 << stage, twiddles)
        source = target
