"""The game of life (Conway; Gardner, "Mathematical Games", Scientific American, October 1970).

A cell that lives is 1, a dead one 0, in arrays ``[n, n]`` of uint8 whose opposite edges meet. A
cell lives on with two or three living neighbours of its eight, and comes to life with three. With
``around`` for the number of living neighbours, that is ``(around | cell) == 3``, in bytes all
through, so that a vector register holds many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Cells = NDArray[np.uint8]
"""A contiguous array ``[n, n]``, each cell 0 or 1."""


def soup(values: dict[str, Any], generator: np.random.Generator) -> Cells:
    """Cells of which three in ten live."""
    return (generator.random((values["n"], values["n"])) < 0.3).astype(np.uint8)


def game_of_life_numpy(cells: Cells, padded: Cells, sums: Cells, out: Cells) -> None:
    """Make a step: sums of three along rows, then along columns, in bytes throughout.

    ``padded`` (shape ``[n + 2, n + 2]``) takes the cells with the opposite edges around them, and
    ``sums`` has the shape ``[n + 2, n]``.
    """
    padded[1:-1, 1:-1] = cells
    padded[0, 1:-1], padded[-1, 1:-1] = cells[-1], cells[0]
    padded[:, 0], padded[:, -1] = padded[:, -2], padded[:, 1]
    np.add(padded[:, :-2], padded[:, 1:-1], out=sums)
    np.add(sums, padded[:, 2:], out=sums)
    np.add(sums[:-2], sums[1:-1], out=out)
    np.add(out, sums[2:], out=out)
    np.subtract(out, cells, out=out)
    np.bitwise_or(out, cells, out=out)
    np.equal(out, 3, out=out.view(np.bool_))


@njit(cache=True)
def _life_row(above: Cells, row: Cells, below: Cells, out: Cells) -> None:
    """All cells of a row but the first and the last."""
    for x in range(1, row.size - 1):
        around = above[x - 1] + above[x] + above[x + 1] + row[x - 1] + row[x + 1]
        around += below[x - 1] + below[x] + below[x + 1]
        out[x] = np.uint8(around | row[x]) == 3


@njit(cache=True)
def _life_at(above: Cells, row: Cells, below: Cells, x: int) -> Any:
    """Return a cell whose neighbours may be at the other edge."""
    left, right = x - 1, x + 1 if x + 1 < row.size else 0
    around = above[left] + above[x] + above[right] + row[left] + row[right]
    around += below[left] + below[x] + below[right]
    return (around | row[x]) == 3


@njit(parallel=True, cache=True)
def game_of_life_parallel(cells: Cells, padded: Cells, sums: Cells, out: Cells) -> None:
    """Make a step in one pass, the rows over the threads of the CPU; the rest is NumPy's."""
    n = cells.shape[0]
    for y in prange(n):
        above, row, below = cells[y - 1], cells[y], cells[y + 1 if y + 1 < n else 0]
        _life_row(above, row, below, out[y])
        out[y, 0] = _life_at(above, row, below, 0)
        out[y, n - 1] = _life_at(above, row, below, n - 1)


@cuda.jit
def game_of_life_cuda(cells: Cells, padded: Cells, sums: Cells, out: Cells) -> None:
    """Use a thread for each cell, nine reads from memory or cache; the launch covers the cells."""
    x, y = cuda.grid(2)
    n = cells.shape[0]
    if x < n and y < n:
        left, right = x - 1 if x > 0 else n - 1, x + 1 if x + 1 < n else 0
        above, below = y - 1 if y > 0 else n - 1, y + 1 if y + 1 < n else 0
        around = cells[above, left] + cells[above, x] + cells[above, right]
        around += cells[y, left] + cells[y, right]
        around += cells[below, left] + cells[below, x] + cells[below, right]
        out[y, x] = np.uint8(around | cells[y, x]) == 3


def make_game_of_life_tiled(*, width: int, height: int) -> Any:
    """Return a CUDA kernel that reads a tile and a rim of one cell into shared memory once.

    The launch is blocks of ``[width, height]`` threads and a grid that covers the cells.
    """
    columns, rows = width + 2, height + 2

    @cuda.jit
    def game_of_life_tiled(cells: Cells, padded: Cells, sums: Cells, out: Cells) -> None:
        room = cuda.shared.array((rows, columns), dtype=cells.dtype)
        n = cells.shape[0]
        x, y = cuda.grid(2)
        top, left = cuda.blockIdx.y * height - 1 + n, cuda.blockIdx.x * width - 1 + n
        for i in range(cuda.threadIdx.y, rows, height):
            for j in range(cuda.threadIdx.x, columns, width):
                room[i, j] = cells[(top + i) % n, (left + j) % n]
        cuda.syncthreads()
        if x < n and y < n:
            i, j = cuda.threadIdx.y, cuda.threadIdx.x
            around = room[i, j] + room[i, j + 1] + room[i, j + 2]
            around += room[i + 1, j] + room[i + 1, j + 2]
            around += room[i + 2, j] + room[i + 2, j + 1] + room[i + 2, j + 2]
            out[y, x] = np.uint8(around | room[i + 1, j + 1]) == 3

    return game_of_life_tiled
