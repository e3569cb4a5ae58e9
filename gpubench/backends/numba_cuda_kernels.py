"""The kernels that a facade brings, as Numba compiles them. Imported only where they run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda


def empty() -> None:
    """Nothing: what a launch costs the device."""


def copy(target: Any, source: Any) -> None:
    """``target[i] = source[i]``, one element for each thread."""
    i = np.uint64(cuda.grid(1))
    if i < np.uint64(target.size):
        target[i] = source[i]


def triad(target: Any, one: Any, other: Any) -> None:
    """``target[i] = one[i] + 3 * other[i]``, one element for each thread."""
    i = np.uint64(cuda.grid(1))
    if i < np.uint64(target.size):
        target[i] = one[i] + 3.0 * other[i]


KERNELS = {"empty": cuda.jit(empty), "copy": cuda.jit(copy), "triad": cuda.jit(triad)}
