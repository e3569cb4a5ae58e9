"""Matrices times a vector, ``y = A x``: dense, and sparse in compressed rows (CSR).

Every number of the matrix is used once, so that memory decides. A thread for each row walks along
its row while its neighbour walks along the next, so that a warp reads from 32 places at once; a
group of threads that share a row reads neighbours, and has to bring its parts together in the end.
These are the scalar and the vector kernel of Bell and Garland ("Implementing sparse matrix-vector
multiplication on throughput-oriented processors", 2009), for dense rows too.

A sparse matrix of ``n`` rows has ``starts`` (shape ``[n + 1]``, int32), and row ``i`` has the
``columns`` and ``values`` from ``starts[i]`` up to ``starts[i + 1]``. A row may be empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Matrix = NDArray[Any]
"""A contiguous array ``[m, n]``, rows one after another."""
Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""
Indices = NDArray[Any]

MAX_THREADS_PER_BLOCK = 1024
"""Of every CUDA architecture since compute capability 2.0 (CUDA C++ Programming Guide)."""
_ROWS = 256  # sparse rows that a CPU thread takes at once


def matvec_numpy(A: Matrix, x: Vector, y: Vector) -> None:
    """``y = A @ x`` for shapes ``[m, n]``, ``[n]``, ``[m]``: NumPy's BLAS, no temporary."""
    np.dot(A, x, out=y)


# Leave to reassociate lets the sums run in vectors; all of fastmath would lose NaN and infinity.
# Four rows at once load the numbers of ``x`` once for four products.
@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _four_rows(A: Matrix, x: Vector, y: Vector) -> None:
    """``y = A @ x`` for a matrix of four rows."""
    a = b = c = d = x.dtype.type(0)
    for j in range(x.size):
        a += A[0, j] * x[j]
        b += A[1, j] * x[j]
        c += A[2, j] * x[j]
        d += A[3, j] * x[j]
    y[0], y[1], y[2], y[3] = a, b, c, d


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _row(row: Vector, x: Vector) -> Any:
    total = x.dtype.type(0)
    for j in range(x.size):
        total += row[j] * x[j]
    return total


@njit(parallel=True, cache=True)
def matvec_parallel(A: Matrix, x: Vector, y: Vector) -> None:
    """``y = A @ x``, four rows at once over the threads of the CPU."""
    fours = y.size // 4
    for four in prange(fours):
        _four_rows(A[4 * four : 4 * four + 4], x, y[4 * four : 4 * four + 4])
    for row in range(4 * fours, y.size):
        y[row] = _row(A[row], x)


@cuda.jit
def matvec_cuda_row(A: Matrix, x: Vector, y: Vector) -> None:
    """Use a thread for each row; any one-dimensional launch is right."""
    for row in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        total = y.dtype.type(0)
        for j in range(x.size):
            total += A[row, j] * x[j]
        y[row] = total


@cuda.jit(device=True)
def _sum_of_group(value: Any, room: Vector) -> Any:
    """Sum of the values of the threads of equal ``threadIdx.y``, to the first of them.

    ``room`` has a number for each thread. Every thread of the block has to come here: the barriers
    are the block's.
    """
    lane, lanes = cuda.threadIdx.x, cuda.blockDim.x
    place = cuda.threadIdx.y * lanes + lane
    room[place] = value
    cuda.syncthreads()
    while lanes > 1:
        half = (lanes + 1) // 2  # rounded up: any number of threads is summed
        if lane + half < lanes:
            room[place] += room[place + half]
        cuda.syncthreads()
        lanes = half
    return room[place]  # of this thread alone, so that no barrier is needed before the next


@cuda.jit
def matvec_cuda_group(A: Matrix, x: Vector, y: Vector) -> None:
    """``blockDim.x`` threads for each row, ``blockDim.y`` rows for each block of any 1-D grid."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=y.dtype)
    stride = cuda.gridDim.x * cuda.blockDim.y
    for first in range(cuda.blockIdx.x * cuda.blockDim.y, y.size, stride):
        row = first + cuda.threadIdx.y
        total = y.dtype.type(0)
        if row < y.size:
            for j in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
                total += A[row, j] * x[j]
        total = _sum_of_group(total, room)
        if row < y.size and cuda.threadIdx.x == 0:
            y[row] = total


def sparse_matrix(
    values: dict[str, Any], generator: np.random.Generator
) -> tuple[Indices, Indices, Vector]:
    """Return ``starts``, ``columns`` and ``values`` of ``n`` rows with ``per_row`` numbers in the
    mean.

    With ``rows=even`` every row has as many. With ``rows=skewed`` rows are as long as a Pareto
    distribution of shape 1.5 has it, many of them empty and few very long, like the degrees of a
    network's nodes. Columns are drawn evenly and are in order; one may occur twice in a row.
    """
    n, count = values["n"], values["n"] * values["per_row"]
    lengths = np.full(n, values["per_row"])
    if values["rows"] == "skewed":
        weights = generator.pareto(1.5, n) + 1e-9
        lengths = generator.multinomial(count, weights / weights.sum())
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    places = np.repeat(np.arange(n) * n, lengths) + generator.integers(n, size=count)
    places.sort()
    numbers = generator.standard_normal(count).astype(values["dtype"])
    return starts, (places % n).astype(np.int32), numbers


def spmv_numpy(
    starts: Indices, columns: Indices, values: Vector, x: Vector, products: Vector, y: Vector
) -> None:
    """``y = A @ x``: all products, then the sums of runs of them; ``products`` is as ``values``."""
    np.take(x, columns, out=products, mode="clip")  # the default mode would make a copy of ``out``
    np.multiply(products, values, out=products)
    filled = np.flatnonzero(starts[:-1] < starts[1:])  # reduceat has no sums of nothing
    y[:] = 0
    y[filled] = np.add.reduceat(products, starts[filled])


# Rows are too short for vector instructions to be worth their start, and gathering from ``x`` is no
# faster with them. An unsigned index is not tested for being negative.
@njit(parallel=True, cache=True)
def spmv_parallel(
    starts: Indices, columns: Indices, values: Vector, x: Vector, products: Vector, y: Vector
) -> None:
    """``y = A @ x``, pieces of rows over the threads of the CPU; ``products`` is NumPy's."""
    for piece in prange((y.size + _ROWS - 1) // _ROWS):
        for row in range(piece * _ROWS, min(piece * _ROWS + _ROWS, y.size)):
            total = x.dtype.type(0)
            for i in range(np.uint32(starts[row]), np.uint32(starts[row + 1])):
                total += values[i] * x[np.uint32(columns[i])]
            y[row] = total


@cuda.jit
def spmv_cuda_row(
    starts: Indices, columns: Indices, values: Vector, x: Vector, products: Vector, y: Vector
) -> None:
    """Use a thread for each row; any one-dimensional launch is right; ``products`` is NumPy's."""
    for row in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        total = y.dtype.type(0)
        for i in range(starts[row], starts[row + 1]):
            total += values[i] * x[columns[i]]
        y[row] = total


@cuda.jit
def spmv_cuda_group(
    starts: Indices, columns: Indices, values: Vector, x: Vector, products: Vector, y: Vector
) -> None:
    """``blockDim.x`` threads for each row, ``blockDim.y`` rows for each block of any 1-D grid."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=y.dtype)
    stride = cuda.gridDim.x * cuda.blockDim.y
    for first in range(cuda.blockIdx.x * cuda.blockDim.y, y.size, stride):
        row = first + cuda.threadIdx.y
        total = y.dtype.type(0)
        if row < y.size:
            for i in range(starts[row] + cuda.threadIdx.x, starts[row + 1], cuda.blockDim.x):
                total += values[i] * x[columns[i]]
        total = _sum_of_group(total, room)
        if row < y.size and cuda.threadIdx.x == 0:
            y[row] = total
