"""Mean and variance in one pass over the data, without the cancellation of the textbook formula.

``mean(x**2) - mean(x)**2`` loses the digits that both terms share: all of single precision where
the mean is a few thousand times the deviation. The forms here keep counts, means and sums of
squared deviations, and join those of two parts by the formula of Chan, Golub and LeVeque
("Algorithms for computing the sample variance", The American Statistician, 1983); a GPU's thread
takes one number after another by Welford's (Technometrics, 1962).

``x`` has the shape ``[n]``, ``n`` at least 1; ``out`` has the mean and the variance (of the whole
population: divided by ``n``); ``parts`` has the shape ``[3, MAX_PARTS]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.reductions import MAX_THREADS_PER_BLOCK, blocks_with_parts

Vector = NDArray[Any]
Parts = NDArray[Any]
"""Counts, means and sums of squared deviations, a row of each."""

_PIECE = 4096  # numbers that are gone through twice, while they are in a core's L1 cache
_OFFSET = 100.0


def numbers_far_from_zero(values: dict[str, Any], generator: np.random.Generator) -> Vector:
    """``n`` normal numbers of variance 1 around 100, in the case's ``dtype``."""
    numbers: Vector = generator.standard_normal(values["n"]) + _OFFSET
    return numbers.astype(values["dtype"])


def mean_variance_numpy(x: Vector, parts: Parts, out: Vector) -> None:
    """Mean, then the mean square of what is left without it; ``parts`` is the GPU's."""
    mean = x.mean()
    rest = x - mean
    np.multiply(rest, rest, out=rest)  # a BLAS would sum the squares with less care than mean does
    out[0], out[1] = mean, rest.mean()


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _sum_of(x: Vector) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
    return total


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _squares_around(x: Vector, mean: Any) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        apart = x[i] - mean
        total += apart * apart
    return total


@njit(parallel=True, cache=True)
def mean_variance_parallel(x: Vector, parts: Parts, out: Vector) -> None:
    """Two passes over each piece, in cache, and the pieces joined in float64."""
    pieces = (x.size + _PIECE - 1) // _PIECE
    means, squares = np.empty(pieces), np.empty(pieces)
    for piece in prange(pieces):
        numbers = x[piece * _PIECE : piece * _PIECE + _PIECE]
        centre = _sum_of(numbers) / x.dtype.type(numbers.size)
        means[piece], squares[piece] = centre, _squares_around(numbers, centre)
    mean, square = 0.0, 0.0
    for piece in range(pieces):
        before = piece * _PIECE
        count = min(_PIECE, x.size - before)
        apart = means[piece] - mean
        mean += apart * count / (before + count)
        square += squares[piece] + apart * apart * before * count / (before + count)
    out[0], out[1] = mean, square / x.size


@cuda.jit(device=True)
def _joined(count: Any, mean: Any, square: Any, parts: Parts, part: int) -> Any:
    """Count, mean and squares of what was given and of one more part.

    Counts are numbers of the data's dtype: rounding them does no harm, as only their ratio counts.
    """
    more = parts[0, part]
    if more == 0:
        return count, mean, square
    total = count + more
    share, apart = more / total, parts[1, part] - mean
    return total, mean + apart * share, square + parts[2, part] + apart * apart * count * share


@cuda.jit(device=True)
def _join_block(count: Any, mean: Any, square: Any, room: Parts) -> None:
    """Join the parts of all threads of a block into the first column of ``room``."""
    thread = cuda.threadIdx.x
    room[0, thread], room[1, thread], room[2, thread] = count, mean, square
    cuda.syncthreads()
    active = cuda.blockDim.x
    while active > 1:
        half = (active + 1) // 2
        if thread + half < active:
            count, mean, square = _joined(count, mean, square, room, thread + half)
            room[0, thread], room[1, thread], room[2, thread] = count, mean, square
        cuda.syncthreads()
        active = half


@cuda.jit
def _moment_parts(x: Vector, parts: Parts) -> None:
    """Count, mean and sum of squared deviations of each block's share of ``x``."""
    room = cuda.shared.array((3, MAX_THREADS_PER_BLOCK), dtype=x.dtype)
    one = x.dtype.type(1)
    count = mean = square = x.dtype.type(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        count += one
        apart = x[i] - mean
        mean += apart / count
        square += apart * (x[i] - mean)
        i += stride
    _join_block(count, mean, square, room)
    if cuda.threadIdx.x == 0:
        for row in range(3):
            parts[row, cuda.blockIdx.x] = room[row, 0]


@cuda.jit
def _finish_moments(parts: Parts, blocks: int, size: int, out: Vector) -> None:
    """One block: mean and variance of the ``size`` numbers that the first parts are of."""
    room = cuda.shared.array((3, MAX_THREADS_PER_BLOCK), dtype=parts.dtype)
    count = mean = square = parts.dtype.type(0)
    for part in range(cuda.threadIdx.x, blocks, cuda.blockDim.x):
        count, mean, square = _joined(count, mean, square, parts, part)
    _join_block(count, mean, square, room)
    if cuda.threadIdx.x == 0:
        out[0], out[1] = room[1, 0], room[2, 0] / parts.dtype.type(size)


def mean_variance_cuda(launch: Any, x: Any, parts: Any, out: Any) -> None:
    """Queue mean and variance of ``x`` into ``out``: a part for each block, then one block."""
    blocks = blocks_with_parts(launch)
    _moment_parts[blocks, launch.block, launch.stream](x, parts)
    _finish_moments[1, launch.block, launch.stream](parts, blocks, x.size, out)
