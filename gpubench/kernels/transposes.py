"""The transpose of a matrix: nothing is computed, and reads or writes are out of order.

A matrix is read along its rows and written along its columns, or the other way round: one of the
two touches a new piece of memory for every number. Tiles put that right, because a tile fits in a
cache or in shared memory, where the order costs little (Ruetsch and Micikevicius, "Optimizing
matrix transpose in CUDA", NVIDIA, 2009). Rows of a tile that lie a power of two apart get into each
other's way in both, in the sets of a cache and in the banks of shared memory, and one number more
between them puts that right too.

Shapes are ``[m, n]`` for ``a`` and ``[n, m]`` for ``out``, with one dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Matrix = NDArray[Any]
"""A contiguous two-dimensional array, rows one after another."""

ROWS_PER_BLOCK = 8
"""Rows of threads of a tiled CUDA form: each thread moves several numbers of a tile's column."""
_SIDE = 64  # of a tile of the CPU: 16 KiB in float32, in a core's L1 cache, whole lines each way
_PADDING = 1  # numbers of a column a power of two apart would share few sets of the cache


def transpose_numpy(a: Matrix, out: Matrix) -> None:
    """``out = a.T``, copied into an array that exists already."""
    np.copyto(out, a.T)


# Rows are cut, not the matrix: what is left and right of a part of a row does not lie within it, so
# that the compiler still knows its numbers to be neighbours.
@njit(cache=True)
def _read_tile(a: Matrix, left: int, tile: Matrix) -> None:
    for i in range(a.shape[0]):
        row = a[i][left : left + _SIDE]
        for j in range(row.size):
            tile[i, j] = row[j]


@njit(cache=True)
def _write_tile(tile: Matrix, out: Matrix, left: int) -> None:
    for j in range(out.shape[0]):
        row = out[j][left : left + _SIDE]
        for i in range(row.size):
            row[i] = tile[i, j]


@njit(cache=True)
def _transpose_band(a: Matrix, top: int, out: Matrix) -> None:
    """Rows of ``out``, the first of which is column ``top`` of ``a``, tile by tile."""
    tile = np.empty((_SIDE, _SIDE + _PADDING), a.dtype)
    for left in range(0, out.shape[1], _SIDE):
        _read_tile(a[left : left + _SIDE], top, tile)
        _write_tile(tile, out, left)


@njit(parallel=True, cache=True)
def transpose_parallel(a: Matrix, out: Matrix) -> None:
    """``out = a.T`` by way of a small tile, bands of its rows over the threads of the CPU."""
    for band in prange((out.shape[0] + _SIDE - 1) // _SIDE):
        top = band * _SIDE
        _transpose_band(a, top, out[top : top + _SIDE])


@cuda.jit
def transpose_cuda(a: Matrix, out: Matrix) -> None:
    """Use a thread for each number of ``a``: neighbours are read, and written ``m`` numbers
    apart."""
    j, i = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        out[j, i] = a[i, j]


def make_transpose_tiled(*, tile: int, padding: int) -> Any:
    """Return a CUDA kernel that turns tiles in shared memory, so that neighbours are read and
    written.

    With ``padding=0`` and a tile of 32, the threads of a warp read a column of the tile from one
    bank of shared memory, one after another; one number of padding a row spreads it over all banks.
    The launch is blocks of ``[tile, ROWS_PER_BLOCK]`` threads, or any number of rows, and a grid of
    ``[cdiv(n, tile), cdiv(m, tile)]``.
    """
    pitch = tile + padding

    @cuda.jit
    def transpose_tiled(a: Matrix, out: Matrix) -> None:
        room = cuda.shared.array((tile, pitch), dtype=a.dtype)
        x, y, rows = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockDim.y
        left, top = cuda.blockIdx.x * tile, cuda.blockIdx.y * tile
        for k in range(y, tile, rows):
            if top + k < a.shape[0] and left + x < a.shape[1]:
                room[k, x] = a[top + k, left + x]
        cuda.syncthreads()
        for k in range(y, tile, rows):
            if left + k < a.shape[1] and top + x < a.shape[0]:
                out[left + k, top + x] = room[x, k]

    return transpose_tiled
