"""From many numbers to one: reductions, where threads have to bring their parts together.

A CUDA form reduces in two steps. Every thread strides over the grid and keeps its part in
registers; the parts of a block are then brought together in shared memory, pair by pair (Harris,
"Optimizing parallel reduction in CUDA", 2007). What is left, one part for each block, is added to
the result atomically, or written to ``parts`` and reduced by one block of a second launch. The
second way gives the same digits every time, and works for what has no atomic operation.

Vectors have one dimension, one dtype and at least one element; results have the shape ``[1]``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""

MAX_THREADS_PER_BLOCK = 1024
"""Of every CUDA architecture since compute capability 2.0 (CUDA C++ Programming Guide)."""
MAX_PARTS = 1024
"""Most blocks that write a part; more blocks of a larger grid have nothing to do."""
_PIECE = 4096  # numbers that are summed before they are added to the rest


@cuda.jit(device=True)
def sum_of_block(value: Any, room: Vector) -> Any:
    """Sum of the values of all threads of a block, to every thread; ``room`` has one for each."""
    thread = cuda.threadIdx.x
    room[thread] = value
    cuda.syncthreads()
    active = cuda.blockDim.x
    while active > 1:
        half = (active + 1) // 2  # rounded up: any number of threads is summed
        if thread + half < active:
            room[thread] += room[thread + half]
        cuda.syncthreads()
        active = half
    total = room[0]
    cuda.syncthreads()
    return total


@cuda.jit
def _clear(out: Vector) -> None:
    out[0] = 0


def blocks_with_parts(launch: Any) -> int:
    """Blocks of a one-dimensional launch that write a part."""
    return min(int(launch.grid[0]), MAX_PARTS)


def norm_numpy(x: Vector, out: Vector) -> None:
    """Euclidean norm of ``x`` (shape ``[n]``) into ``out`` (shape ``[1]``, same dtype).

    ``numpy.linalg.norm`` computes the same dot product and so is as accurate; calling ``dot``
    leaves out what it does before and after, which counts for short vectors.
    """
    out[0] = math.sqrt(np.dot(x, x))


# Without leave to reassociate, a sum is a chain of additions that no vector unit can run; with the
# whole of fastmath NaN and infinity would be lost. Each piece is an array of its own, since its
# indices begin at 0: Numba looks whether an index is negative, and for AVX-512 the compiler then
# gave the loop no vector instructions where it began at another number (7 to 12 times slower).
@njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def norm_parallel(x: Vector, out: Vector) -> None:
    """Euclidean norm of ``x`` into ``out[0]``, over the threads of the CPU.

    Pieces are summed in the dtype of ``x`` and their sums in float64, so that the error does not
    grow with the length.
    """
    total = 0.0
    for piece in prange((x.size + _PIECE - 1) // _PIECE):
        start, part = piece * _PIECE, x.dtype.type(0)
        some = x[start : start + _PIECE]
        for i in range(some.size):
            part += some[i] * some[i]
        total += part
    out[0] = math.sqrt(total)


@cuda.jit
def _add_squares(x: Vector, out: Vector) -> None:
    """Add the sum of squares of ``x`` to ``out[0]``: one tree in shared memory for each block."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    total = x.dtype.type(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        total += x[i] * x[i]
        i += stride
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, total)


@cuda.jit
def _take_root(out: Vector) -> None:
    out[0] = math.sqrt(out[0])


def norm_cuda(launch: Any, x: Any, out: Any) -> None:
    """Queue the Euclidean norm of ``x`` into ``out[0]``: clear, add the squares, take the root.

    ``launch`` gives ``stream``, ``grid``, ``block`` (at most 1,024 threads, one-dimensional) and
    ``shared_bytes`` of the summing kernel. Any grid is right, and so is a second run, because the
    sum is cleared on the same stream. Blocks add to one number in the order in which they finish,
    so that the last digits may differ between runs.
    """
    _clear[1, 1, launch.stream](out)
    _add_squares[launch.grid, launch.block, launch.stream, launch.shared_bytes](x, out)
    _take_root[1, 1, launch.stream](out)


def sum_numpy(x: Vector, parts: Vector, out: Vector) -> None:
    """``out[0] = sum(x)``, by NumPy's pairwise summation; ``parts`` is the GPU's."""
    out[0] = x.sum()


@njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def sum_parallel(x: Vector, parts: Vector, out: Vector) -> None:
    """``out[0] = sum(x)`` over the threads of the CPU, pieces in the dtype of ``x``."""
    total = 0.0
    for piece in prange((x.size + _PIECE - 1) // _PIECE):
        start, part = piece * _PIECE, x.dtype.type(0)
        some = x[start : start + _PIECE]
        for i in range(some.size):
            part += some[i]
        total += part
    out[0] = total


@cuda.jit
def _add_sum(x: Vector, out: Vector) -> None:
    """Add the sum of ``x`` to ``out[0]``, a block at a time."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    total = x.dtype.type(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        total += x[i]
        i += stride
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, total)


@cuda.jit
def _sum_parts(x: Vector, parts: Vector) -> None:
    """Write the sum of each block's share of ``x`` into ``parts``, one for each block."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    total = x.dtype.type(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        total += x[i]
        i += stride
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        parts[cuda.blockIdx.x] = total


@cuda.jit
def _finish_sum(parts: Vector, count: int, out: Vector) -> None:
    """One block: ``out[0]`` is the sum of the first ``count`` parts."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=parts.dtype)
    total = parts.dtype.type(0)
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        total += parts[i]
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        out[0] = total


def sum_cuda_atomic(launch: Any, x: Any, parts: Any, out: Any) -> None:
    """Queue ``out[0] = sum(x)``: clear, then one atomic addition for each block of any grid."""
    _clear[1, 1, launch.stream](out)
    _add_sum[launch.grid, launch.block, launch.stream](x, out)


def sum_cuda_tree(launch: Any, x: Any, parts: Any, out: Any) -> None:
    """Queue ``out[0] = sum(x)``: a part for each block, then one block; the same digits always."""
    blocks = blocks_with_parts(launch)
    _sum_parts[blocks, launch.block, launch.stream](x, parts)
    _finish_sum[1, launch.block, launch.stream](parts, blocks, out)


def dot_numpy(x: Vector, y: Vector, parts: Vector, out: Vector) -> None:
    """``out[0] = dot(x, y)``: NumPy's BLAS; ``parts`` is the GPU's."""
    out[0] = np.dot(x, y)


@njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def dot_parallel(x: Vector, y: Vector, parts: Vector, out: Vector) -> None:
    """``out[0] = dot(x, y)`` over the threads of the CPU, pieces in the dtype of ``x``."""
    total = 0.0
    for piece in prange((x.size + _PIECE - 1) // _PIECE):
        start, part = piece * _PIECE, x.dtype.type(0)
        some, others = x[start : start + _PIECE], y[start : start + _PIECE]
        for i in range(some.size):
            part += some[i] * others[i]
        total += part
    out[0] = total


@cuda.jit
def _add_dot(x: Vector, y: Vector, out: Vector) -> None:
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    total = x.dtype.type(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        total += x[i] * y[i]
        i += stride
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, total)


@cuda.jit
def _dot_parts(x: Vector, y: Vector, parts: Vector) -> None:
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    total = x.dtype.type(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        total += x[i] * y[i]
        i += stride
    total = sum_of_block(total, room)
    if cuda.threadIdx.x == 0:
        parts[cuda.blockIdx.x] = total


def dot_cuda_atomic(launch: Any, x: Any, y: Any, parts: Any, out: Any) -> None:
    """Queue ``out[0] = dot(x, y)``: clear, then one atomic addition for each block."""
    _clear[1, 1, launch.stream](out)
    _add_dot[launch.grid, launch.block, launch.stream](x, y, out)


def dot_cuda_tree(launch: Any, x: Any, y: Any, parts: Any, out: Any) -> None:
    """Queue ``out[0] = dot(x, y)``: a part for each block, then one block."""
    blocks = blocks_with_parts(launch)
    _dot_parts[blocks, launch.block, launch.stream](x, y, parts)
    _finish_sum[1, launch.block, launch.stream](parts, blocks, out)
