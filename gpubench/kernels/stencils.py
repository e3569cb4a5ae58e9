"""Stencils: every number becomes a sum of its neighbours', as in a step of a difference scheme.

The grids have one, two or three dimensions of ``n`` points and a rim that stays as it is. A step
reads ``a`` and writes ``out``. There is little arithmetic, and every number is read three to seven
times: what counts is that it comes from memory once.

Where CUDA forms keep a tile and the rim around it in shared memory, or a column of numbers in a
thread's registers, they follow Micikevicius ("3D finite difference computation on GPUs using
CUDA", 2009). How to split work for the caches of a CPU: Datta et al., "Stencil computation
optimization and auto-tuning on state-of-the-art multicore architectures", 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Grid = NDArray[Any]
"""A contiguous array with the same number of points in each dimension, of one dtype."""

MAX_THREADS_PER_BLOCK = 1024
"""Of every CUDA architecture since compute capability 2.0 (CUDA C++ Programming Guide)."""
_ROOM = MAX_THREADS_PER_BLOCK + 2  # a number for each thread and one at each end
_PIECE = 16384  # points of a line that a CPU thread takes at once


def stencil_1d_numpy(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """``out[i] = side * (a[i - 1] + a[i + 1]) + middle * a[i]`` in four passes."""
    out[0], out[-1] = a[0], a[-1]
    inner, product = out[1:-1], scratch[1:-1]
    np.add(a[:-2], a[2:], out=inner)
    np.multiply(inner, side, out=inner)
    np.multiply(a[1:-1], middle, out=product)
    np.add(inner, product, out=inner)


@njit(cache=True, fastmath={"contract"})
def _line(a: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Compute the inner points of a piece of a line."""
    left, here, right = a[: a.size - 2], a[1 : a.size - 1], a[2:]
    for i in range(here.size):
        out[i] = side * (left[i] + right[i]) + middle * here[i]


@njit(parallel=True, cache=True)
def stencil_1d_parallel(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Do the same in one pass, pieces over the threads of the CPU; ``scratch`` is NumPy's."""
    out[0], out[-1] = a[0], a[-1]
    for piece in prange((max(a.size - 2, 0) + _PIECE - 1) // _PIECE):
        first = piece * _PIECE
        last = min(first + _PIECE + 2, a.size)
        _line(a[first:last], out[first + 1 : last - 1], side, middle)


@cuda.jit
def stencil_1d_cuda(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Do the same, three reads for each point; any one-dimensional launch is right."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(a.size)
    one, stride = np.uint64(1), np.uint64(cuda.gridsize(1))
    while i < size:
        if i > 0 and i + one < size:
            out[i] = side * (a[i - one] + a[i + one]) + middle * a[i]
        else:
            out[i] = a[i]
        i += stride


@cuda.jit
def stencil_1d_cuda_shared(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Do the same with each block's points in shared memory; any one-dimensional launch is
    right."""
    room = cuda.shared.array(_ROOM, dtype=a.dtype)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    for first in range(cuda.blockIdx.x * threads, a.size, cuda.gridsize(1)):
        i = first + thread
        if i < a.size:
            room[thread + 1] = a[i]
        if thread == 0 and i > 0:
            room[0] = a[i - 1]
        if thread == threads - 1 and i + 1 < a.size:
            room[threads + 1] = a[i + 1]
        cuda.syncthreads()
        if 0 < i < a.size - 1:
            out[i] = side * (room[thread] + room[thread + 2]) + middle * room[thread + 1]
        elif i < a.size:
            out[i] = a[i]
        cuda.syncthreads()


def jacobi_2d_numpy(a: Grid, out: Grid) -> None:
    """Make a step of Jacobi's method for Laplace's equation: each point the mean of its
    neighbours."""
    out[0], out[-1], out[:, 0], out[:, -1] = a[0], a[-1], a[:, 0], a[:, -1]
    inner = out[1:-1, 1:-1]
    np.add(a[:-2, 1:-1], a[2:, 1:-1], out=inner)
    np.add(inner, a[1:-1, :-2], out=inner)
    np.add(inner, a[1:-1, 2:], out=inner)
    np.multiply(inner, a.dtype.type(0.25), out=inner)


@njit(cache=True)
def _copy(row: Grid, out: Grid) -> None:
    for x in range(row.size):
        out[x] = row[x]


@njit(cache=True, fastmath={"contract"})
def _means(above: Grid, row: Grid, below: Grid, out: Grid) -> None:
    quarter, last = row.dtype.type(0.25), row.size - 1
    for x in range(1, last):
        out[x] = quarter * (above[x] + below[x] + row[x - 1] + row[x + 1])
    out[0], out[last] = row[0], row[last]


# What parallel loops contain is compiled slowly: they only call.
@njit(parallel=True, cache=True)
def jacobi_2d_parallel(a: Grid, out: Grid) -> None:
    """Do the same in one pass, the rows over the threads of the CPU."""
    last = a.shape[0] - 1
    for y in prange(a.shape[0]):
        if 0 < y < last:
            _means(a[y - 1], a[y], a[y + 1], out[y])
        else:
            _copy(a[y], out[y])


@cuda.jit
def jacobi_2d_cuda(a: Grid, out: Grid) -> None:
    """Use a thread for each point, four reads from memory or cache; the launch covers the grid."""
    x, y = cuda.grid(2)
    n = a.shape[0]
    if 0 < x < n - 1 and 0 < y < n - 1:
        total = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
        out[y, x] = a.dtype.type(0.25) * total
    elif x < n and y < n:
        out[y, x] = a[y, x]


def make_jacobi_2d_tiled(*, width: int, height: int) -> Any:
    """Return a CUDA kernel that reads a tile and a rim of one point into shared memory once.

    The launch is blocks of ``[width, height]`` threads and a grid that covers the points.
    """
    columns, rows = width + 2, height + 2

    @cuda.jit
    def jacobi_2d_tiled(a: Grid, out: Grid) -> None:
        room = cuda.shared.array((rows, columns), dtype=a.dtype)
        n = a.shape[0]
        x, y = cuda.grid(2)
        top, left = cuda.blockIdx.y * height - 1, cuda.blockIdx.x * width - 1
        for i in range(cuda.threadIdx.y, rows, height):
            for j in range(cuda.threadIdx.x, columns, width):
                if 0 <= top + i < n and 0 <= left + j < n:
                    room[i, j] = a[top + i, left + j]
        cuda.syncthreads()
        i, j = cuda.threadIdx.y + 1, cuda.threadIdx.x + 1
        if 0 < x < n - 1 and 0 < y < n - 1:
            total = room[i - 1, j] + room[i + 1, j] + room[i, j - 1] + room[i, j + 1]
            out[y, x] = a.dtype.type(0.25) * total
        elif x < n and y < n:
            out[y, x] = room[i, j]

    return jacobi_2d_tiled


def heat_3d_numpy(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Make a step of the heat equation: ``side`` times six neighbours, ``middle`` times the
    point."""
    for face in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1], np.s_[..., 0], np.s_[..., -1]):
        out[face] = a[face]
    within = np.s_[1:-1, 1:-1, 1:-1]
    inner, product = out[within], scratch[within]
    np.add(a[:-2, 1:-1, 1:-1], a[2:, 1:-1, 1:-1], out=inner)
    for neighbours in (
        a[1:-1, :-2, 1:-1], a[1:-1, 2:, 1:-1], a[1:-1, 1:-1, :-2], a[1:-1, 1:-1, 2:],
    ):  # fmt: skip
        np.add(inner, neighbours, out=inner)
    np.multiply(inner, side, out=inner)
    np.multiply(a[within], middle, out=product)
    np.add(inner, product, out=inner)


@njit(cache=True, fastmath={"contract"})
def _heat_row(a: Grid, z: int, y: int, out: Grid, side: Any, middle: Any) -> None:
    row, north, south, up, down = a[z, y], a[z, y - 1], a[z, y + 1], a[z - 1, y], a[z + 1, y]
    last = row.size - 1
    for x in range(1, last):
        total = up[x] + down[x] + north[x] + south[x] + row[x - 1] + row[x + 1]
        out[x] = side * total + middle * row[x]
    out[0], out[last] = row[0], row[last]


@njit(parallel=True, cache=True)
def heat_3d_parallel(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Do the same in one pass, planes over the threads of the CPU; ``scratch`` is NumPy's."""
    last = a.shape[0] - 1
    for z in prange(a.shape[0]):
        for y in range(a.shape[1]):
            if 0 < z < last and 0 < y < last:
                _heat_row(a, z, y, out[z, y], side, middle)
            else:
                _copy(a[z, y], out[z, y])


@cuda.jit
def heat_3d_cuda(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Use a thread for each point, seven reads from memory or cache; the launch covers the grid."""
    x, y, z = cuda.grid(3)
    n = a.shape[0]
    if 0 < x < n - 1 and 0 < y < n - 1 and 0 < z < n - 1:
        total = a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x]
        total += a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
        out[z, y, x] = side * total + middle * a[z, y, x]
    elif x < n and y < n and z < n:
        out[z, y, x] = a[z, y, x]


@cuda.jit
def heat_3d_cuda_march(a: Grid, scratch: Grid, out: Grid, side: Any, middle: Any) -> None:
    """Use a thread for each column of points, which it goes down with three of them in registers.

    The launch covers a plane, ``[n, n]``.
    """
    x, y = cuda.grid(2)
    n = a.shape[0]
    if x < n and y < n:
        rim = x == 0 or y == 0 or x == n - 1 or y == n - 1
        here = a[0, y, x]
        above = here
        for z in range(n):
            below = a[z + 1, y, x] if z + 1 < n else here
            if rim or z == 0 or z == n - 1:
                out[z, y, x] = here
            else:
                total = above + below + a[z, y - 1, x]
                total += a[z, y + 1, x] + a[z, y, x - 1] + a[z, y, x + 1]
                out[z, y, x] = side * total + middle * here
            above, here = here, below
