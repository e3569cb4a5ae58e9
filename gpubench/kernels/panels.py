"""Products of small matrices inside a CPU thread, for kernels that go on with them at once.

Rows are packed 64 at a time into panels, turned round, so that a panel stays in a core's L1 cache
and 64 neighbours are one coordinate of 64 rows (Goto and van de Geijn, "Anatomy of high-performance
matrix multiplication", 2008). Everything is float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import njit

Row = NDArray[np.float32]
Matrix = NDArray[np.float32]
Panels = NDArray[np.float32]
"""Shape ``[panels, depth * 64]``, the depth a multiple of 4."""

WIDTH = 64
"""Rows of a panel, which become its columns."""


@njit(cache=True)
def panel_count(size: int) -> int:
    """Panels that have room for ``size`` rows."""
    return (size + WIDTH - 1) // WIDTH


@njit(cache=True)
def packed(rows: Matrix) -> Any:
    """Panels of 64 of the rows ``[n, d]`` each, filled up with zeros to whole panels and to a depth
    that is a multiple of 4."""
    depth = (rows.shape[1] + 3) // 4 * 4
    panels = np.zeros((panel_count(rows.shape[0]), depth * WIDTH), np.float32)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            panels[i // WIDTH, k * WIDTH + i % WIDTH] = rows[i, k]
    return panels


# Two rows by four weights: with the numbers they meet, as many as fit in the 16 registers of AVX2.
# All distances inside ``panel`` are constants, for LLVM to see what does not overlap.
@njit(cache=True, fastmath={"contract"})
def _add_two_rows(first: Row, second: Row, panel: Row, one: Row, other: Row) -> None:
    for k in range(0, first.size, 4):
        a0, a1, a2, a3 = first[k], first[k + 1], first[k + 2], first[k + 3]
        b0, b1, b2, b3 = second[k], second[k + 1], second[k + 2], second[k + 3]
        rows = panel[k * WIDTH :]
        for j in range(WIDTH):
            v0, v1 = rows[j], rows[j + WIDTH]
            v2, v3 = rows[j + 2 * WIDTH], rows[j + 3 * WIDTH]
            one[j] = one[j] + a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3
            other[j] = other[j] + b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3


@njit(cache=True)
def add_product(weights: Matrix, panel: Row, sums: Matrix) -> None:
    """Add the product of ``weights`` ``[r, depth]`` and a panel ``[depth * 64]`` to ``sums``
    ``[r, 64]``; there is an even number of rows."""
    for row in range(0, weights.shape[0], 2):
        _add_two_rows(weights[row], weights[row + 1], panel, sums[row], sums[row + 1])
