"""Two layers of neural networks that work on rows by themselves: softmax and layer normalisation.

Both need a sum over a row before any of its numbers can be written, so that a row is gone through
two or three times: what counts is whether it stays in a cache in between. On a GPU a row belongs to
a thread, which is easy and reads from 32 places at once, or to a block, which reads neighbours and
has to bring its parts together.

``x`` and ``out`` have the shape ``[rows, columns]``, at least one of each, and the dtype float32,
as such layers are computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.reductions import MAX_THREADS_PER_BLOCK, sum_of_block
from gpubench.kernels.vector_math import exp_single

Rows = NDArray[np.float32]
Row = NDArray[np.float32]

EPSILON = np.float32(1e-5)
"""Added to a variance, so that a row of equal numbers is not divided by zero."""

_TOGETHER = 16  # rows that a CPU thread takes at once
_LANES = 32  # largest numbers that are kept side by side, as vector instructions do
_ZERO, _ONE = np.float32(0), np.float32(1)
_NOTHING = np.float32(-math.inf)
_WARP = 32  # threads of a warp, on every CUDA device
_ALL_LANES = 0xFFFFFFFF


@njit(cache=True)
def largest_of(row: Row, lanes: Row) -> Any:
    """Return the largest number of ``row``; ``lanes`` (shape ``[32]``) is room to look at many at
    once."""
    lanes[:] = row[0]
    whole = row.size // _LANES * _LANES
    for start in range(0, whole, _LANES):
        for lane in range(_LANES):
            number = row[start + lane]
            lanes[lane] = number if number > lanes[lane] else lanes[lane]
    largest = lanes[0]
    for lane in range(1, _LANES):
        largest = max(largest, lanes[lane])
    for i in range(whole, row.size):
        largest = max(largest, row[i])
    return largest


# Leave to reassociate lets the sums run in vectors; all of fastmath would lose NaN and infinity.
@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def exp_and_sum(row: Row, largest: Any, out: Row) -> Any:
    """``out = exp(row - largest)``; returns its sum."""
    total = _ZERO
    for i in range(row.size):
        weight = exp_single(row[i] - largest)
        out[i] = weight
        total += weight
    return total


def softmax_numpy(x: Rows, out: Rows) -> None:
    """``exp(x)`` over its sum, for each row; less the largest number, so that nothing overflows."""
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


@njit(cache=True)
def _softmax_rows(x: Rows, out: Rows) -> None:
    lanes = np.empty(_LANES, np.float32)
    for i in range(out.shape[0]):
        total = exp_and_sum(x[i], largest_of(x[i], lanes), out[i])
        for j in range(out.shape[1]):
            out[i, j] /= total


@njit(parallel=True, cache=True)
def softmax_parallel(x: Rows, out: Rows) -> None:
    """Take a row at a time, in cache, over the threads of the CPU."""
    for some in prange((out.shape[0] + _TOGETHER - 1) // _TOGETHER):
        first, end = some * _TOGETHER, some * _TOGETHER + _TOGETHER
        _softmax_rows(x[first:end], out[first:end])


@cuda.jit
def softmax_cuda_thread(x: Rows, out: Rows) -> None:
    """Use a thread for each row, three times through it; any one-dimensional launch is right."""
    columns = out.shape[1]
    for i in range(cuda.grid(1), out.shape[0], cuda.gridsize(1)):
        largest, total = x[i, 0], _ZERO
        for j in range(columns):
            largest = x[i, j] if x[i, j] > largest else largest
        for j in range(columns):
            total += math.exp(x[i, j] - largest)
        for j in range(columns):
            out[i, j] = math.exp(x[i, j] - largest) / total


# The largest number and the sum can be found in one pass, if the sum so far is made smaller
# whenever a larger number comes (Milakov and Gimelshein, "Online normalizer calculation for
# softmax", 2018).
@cuda.jit(device=True)
def _joined(largest: Any, total: Any, other: Any, more: Any) -> Any:
    """Largest number and sum of two parts, the second of which may be empty."""
    if more == _ZERO:
        return largest, total
    top = other if other > largest else largest
    return top, total * math.exp(largest - top) + more * math.exp(other - top)


@cuda.jit(device=True)
def _join_block(largest: Any, total: Any, tops: Row, totals: Row) -> Any:
    """Largest number and sum of all threads of a block, to every thread."""
    thread, active = cuda.threadIdx.x, cuda.blockDim.x
    tops[thread], totals[thread] = largest, total
    cuda.syncthreads()
    while active > 1:
        half = (active + 1) // 2
        if thread + half < active:
            largest, total = _joined(largest, total, tops[thread + half], totals[thread + half])
            tops[thread], totals[thread] = largest, total
        cuda.syncthreads()
        active = half
    largest, total = tops[0], totals[0]
    cuda.syncthreads()
    return largest, total


@cuda.jit
def softmax_cuda_block(x: Rows, out: Rows) -> None:
    """Use a block for each row, twice through it; any one-dimensional launch is right."""
    tops = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=np.float32)
    totals = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=np.float32)
    thread, threads, columns = cuda.threadIdx.x, cuda.blockDim.x, out.shape[1]
    for i in range(cuda.blockIdx.x, out.shape[0], cuda.gridDim.x):
        largest, total = _NOTHING, _ZERO
        for j in range(thread, columns, threads):
            largest, total = _joined(largest, total, x[i, j], _ONE)
        largest, total = _join_block(largest, total, tops, totals)
        for j in range(thread, columns, threads):
            out[i, j] = math.exp(x[i, j] - largest) / total


@cuda.jit(device=True)
def _join_warp(largest: Any, total: Any) -> Any:
    """Largest number and sum of all lanes of a warp, to every lane; no barrier, no memory."""
    distance = _WARP // 2
    while distance > 0:
        other = cuda.shfl_xor_sync(_ALL_LANES, largest, distance)
        more = cuda.shfl_xor_sync(_ALL_LANES, total, distance)
        largest, total = _joined(largest, total, other, more)
        distance //= 2
    return largest, total


@cuda.jit
def softmax_cuda_warp(x: Rows, out: Rows) -> None:
    """Use a warp for each row, twice through it; blocks have the shape ``[32, warps]``."""
    lane, warps, columns = cuda.threadIdx.x, cuda.blockDim.y, out.shape[1]
    first = cuda.blockIdx.x * warps + cuda.threadIdx.y
    for i in range(first, out.shape[0], cuda.gridDim.x * warps):
        largest, total = _NOTHING, _ZERO
        for j in range(lane, columns, _WARP):
            largest, total = _joined(largest, total, x[i, j], _ONE)
        largest, total = _join_warp(largest, total)
        for j in range(lane, columns, _WARP):
            out[i, j] = math.exp(x[i, j] - largest) / total


def layer_norm_numpy(x: Rows, gain: Row, shift: Row, out: Rows) -> None:
    """Each row with mean 0 and variance 1, times ``gain``, plus ``shift`` (both ``[columns]``)."""
    np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
    variance = np.einsum("ij,ij->i", out, out)
    variance /= out.shape[1]
    out /= np.sqrt(variance + EPSILON)[:, np.newaxis]
    out *= gain
    out += shift


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _sum_of(row: Row) -> Any:
    total = _ZERO
    for i in range(row.size):
        total += row[i]
    return total


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _squares_around(row: Row, mean: Any) -> Any:
    total = _ZERO
    for i in range(row.size):
        apart = row[i] - mean
        total += apart * apart
    return total


@njit(cache=True)
def _layer_norm_row(row: Row, gain: Row, shift: Row, out: Row) -> None:
    size = np.float32(row.size)
    mean = _sum_of(row) / size
    scale = _ONE / np.sqrt(_squares_around(row, mean) / size + EPSILON)
    for j in range(row.size):
        out[j] = (row[j] - mean) * scale * gain[j] + shift[j]


@njit(parallel=True, cache=True)
def layer_norm_parallel(x: Rows, gain: Row, shift: Row, out: Rows) -> None:
    """Take a row at a time, three times through it in cache, over the threads of the CPU."""
    for i in prange(out.shape[0]):
        _layer_norm_row(x[i], gain, shift, out[i])


@cuda.jit
def layer_norm_cuda_thread(x: Rows, gain: Row, shift: Row, out: Rows) -> None:
    """Use a thread for each row; any one-dimensional launch is right."""
    columns = out.shape[1]
    size = np.float32(columns)
    for i in range(cuda.grid(1), out.shape[0], cuda.gridsize(1)):
        total, squares = _ZERO, _ZERO
        for j in range(columns):
            total += x[i, j]
        mean = total / size
        for j in range(columns):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = _ONE / math.sqrt(squares / size + EPSILON)
        for j in range(columns):
            out[i, j] = (x[i, j] - mean) * scale * gain[j] + shift[j]


@cuda.jit
def layer_norm_cuda_block(x: Rows, gain: Row, shift: Row, out: Rows) -> None:
    """Use a block for each row; any one-dimensional launch is right."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=np.float32)
    thread, threads, columns = cuda.threadIdx.x, cuda.blockDim.x, out.shape[1]
    size = np.float32(columns)
    for i in range(cuda.blockIdx.x, out.shape[0], cuda.gridDim.x):
        total, squares = _ZERO, _ZERO
        for j in range(thread, columns, threads):
            total += x[i, j]
        mean = sum_of_block(total, room) / size
        for j in range(thread, columns, threads):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = _ONE / math.sqrt(sum_of_block(squares, room) / size + EPSILON)
        for j in range(thread, columns, threads):
            out[i, j] = (x[i, j] - mean) * scale * gain[j] + shift[j]
