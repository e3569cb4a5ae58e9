"""Linear algebra: kernels with more arithmetic than memory traffic, if they keep data close."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Matrix = NDArray[Any]
"""A contiguous two-dimensional array, rows one after another."""
Buffer = NDArray[Any]

_ROWS = 4  # of C that one step works on
_DEPTH = 256  # rows of B in a panel; a multiple of the four that one step takes
_WIDTH = 256  # columns of B in a panel: 256 KiB in float32, so that it stays in a core's L2 cache


def matmul_numpy(A: Matrix, B: Matrix, C: Matrix) -> None:
    """``C = A @ B`` for shapes ``[m, k]``, ``[k, n]``, ``[m, n]``: NumPy's BLAS, no temporary."""
    np.matmul(A, B, out=C)


@njit(cache=True)
def _pack(source: Matrix, top: int, left: int, packed: Buffer, pitch: int) -> None:
    """Copy what of ``source`` lies right of and below a corner into a zeroed buffer of rows."""
    for i in range(min(packed.size // pitch, source.shape[0] - top)):
        for j in range(min(pitch, source.shape[1] - left)):
            packed[i * pitch + j] = source[top + i, left + j]


# The distances inside ``sums`` and ``panel`` are constants so that LLVM sees two ranges of memory
# to keep apart, not eight, and turns the loop into vector instructions. Its length is one too: that
# is 1.4 times as fast on wide matrices as stopping at the last column, and wasted on narrow ones.
@njit(cache=True, fastmath={"contract"})
def _step(weights: Buffer, k: int, panel: Buffer, sums: Buffer) -> None:
    """Add four weighted rows of a panel of B to four rows of sums: 16 products for each column."""
    a00, a01, a02, a03 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
    k1, k2, k3 = k + _DEPTH, k + 2 * _DEPTH, k + 3 * _DEPTH
    a10, a11, a12, a13 = weights[k1], weights[k1 + 1], weights[k1 + 2], weights[k1 + 3]
    a20, a21, a22, a23 = weights[k2], weights[k2 + 1], weights[k2 + 2], weights[k2 + 3]
    a30, a31, a32, a33 = weights[k3], weights[k3 + 1], weights[k3 + 2], weights[k3 + 3]
    rows = panel[k * _WIDTH :]
    for j in range(_WIDTH):
        b0, b1 = rows[j], rows[j + _WIDTH]
        b2, b3 = rows[j + 2 * _WIDTH], rows[j + 3 * _WIDTH]
        j1, j2, j3 = j + _WIDTH, j + 2 * _WIDTH, j + 3 * _WIDTH
        sums[j] = sums[j] + a00 * b0 + a01 * b1 + a02 * b2 + a03 * b3
        sums[j1] = sums[j1] + a10 * b0 + a11 * b1 + a12 * b2 + a13 * b3
        sums[j2] = sums[j2] + a20 * b0 + a21 * b1 + a22 * b2 + a23 * b3
        sums[j3] = sums[j3] + a30 * b0 + a31 * b1 + a32 * b2 + a33 * b3


@njit(cache=True)
def _add_band(A: Matrix, panel: Buffer, C: Matrix, i: int, k: int, j: int) -> None:
    """Add to (up to) four rows of C from row ``i`` what the panel of B at ``k``, ``j`` gives."""
    weights = np.zeros(_ROWS * _DEPTH, A.dtype)
    sums = np.zeros(_ROWS * _WIDTH, C.dtype)
    _pack(A[i : i + _ROWS], 0, k, weights, _DEPTH)
    for step in range(0, min(_DEPTH, A.shape[1] - k), 4):
        _step(weights, step, panel, sums)
    for row in range(min(_ROWS, C.shape[0] - i)):
        for column in range(min(_WIDTH, C.shape[1] - j)):
            C[i + row, j + column] += sums[row * _WIDTH + column]


@njit(parallel=True, cache=True)
def matmul_parallel(A: Matrix, B: Matrix, C: Matrix) -> None:
    """``C = A @ B``: B in panels that stay in cache, the rows of C over the threads of the CPU."""
    C[:] = 0
    for k in range(0, A.shape[1], _DEPTH):
        for j in range(0, C.shape[1], _WIDTH):
            panel = np.zeros(_DEPTH * _WIDTH, B.dtype)
            _pack(B, k, j, panel, _WIDTH)
            for band in prange((C.shape[0] + _ROWS - 1) // _ROWS):
                _add_band(A, panel, C, band * _ROWS, k, j)


@cuda.jit
def matmul_cuda(A: Matrix, B: Matrix, C: Matrix) -> None:
    """``C = A @ B``, one thread for each element of C: a launch of ``[n, m]`` threads or more."""
    column, row = cuda.grid(2)
    if row < C.shape[0] and column < C.shape[1]:
        total = C.dtype.type(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, column]
        C[row, column] = total


def make_matmul_tiled(*, tile: int) -> Any:
    """Return a CUDA kernel for ``C = A @ B`` that keeps ``tile`` x ``tile`` parts in shared memory.

    Each element of A and B is read from memory once for each tile instead of once for each element
    of C. The launch is blocks of ``[tile, tile]`` and a grid of ``[cdiv(n, tile), cdiv(m, tile)]``;
    the matrices need not be multiples of the tile.
    """

    @cuda.jit
    def matmul_tiled(A: Matrix, B: Matrix, C: Matrix) -> None:
        tile_a = cuda.shared.array((tile, tile), dtype=A.dtype)
        tile_b = cuda.shared.array((tile, tile), dtype=B.dtype)
        column, row = cuda.grid(2)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        zero = C.dtype.type(0)
        total = zero
        for start in range(0, A.shape[1], tile):
            # Threads outside C load zeros and stay: every thread has to reach the barriers.
            inside_a = row < A.shape[0] and start + x < A.shape[1]
            inside_b = start + y < B.shape[0] and column < B.shape[1]
            tile_a[y, x] = A[row, start + x] if inside_a else zero
            tile_b[y, x] = B[start + y, column] if inside_b else zero
            cuda.syncthreads()
            for k in range(tile):
                total += tile_a[y, k] * tile_b[k, x]
            cuda.syncthreads()
        if row < C.shape[0] and column < C.shape[1]:
            C[row, column] = total

    return matmul_tiled
