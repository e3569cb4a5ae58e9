"""Sorting in place of Thrust, which is linked into a module of CuPy's with NVIDIA's runtime."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.softcuda.on_host.work import current_stream, queue, view


def replace_thrust() -> None:
    """Have CuPy, which is loaded, sort by the functions of this module."""
    thrust = import_module("cupy.cuda.thrust")
    for function in (sort, argsort, lexsort):
        setattr(thrust, function.__name__, function)


def sort(dtype: Any, data: int, keys: int, shape: Sequence[int]) -> None:
    """Sort an array along its last axis where it lies; NaN comes last. ``keys`` is room of
    Thrust's."""
    array = view(data, dtype, shape)
    queue("thrust::sort", current_stream(), lambda: array.sort(axis=-1), array)


def argsort(dtype: Any, indices: int, data: int, keys: int, shape: Sequence[int]) -> None:
    """Write the indices that sort an array along its last axis, equal values in their order."""
    array, order = view(data, dtype, shape), view(indices, np.intp, shape)

    def write() -> None:
        order[...] = np.argsort(array, axis=-1, kind="stable")

    queue("thrust::stable_sort_by_key", current_stream(), write, order)


def lexsort(dtype: Any, indices: int, keys: int, count: int, length: int) -> None:
    """Write the indices that sort by several keys of one length, the last of them first."""
    arrays, order = view(keys, dtype, (count, length)), view(indices, np.intp, (length,))

    def write() -> None:
        order[...] = np.lexsort(arrays)

    queue("thrust::stable_sort", current_stream(), write, order)


def replace_cub() -> None:
    """Have CuPy compute by kernels of its own where a program asks for CUB, whose module has
    NVIDIA's runtime in it: ``None`` tells CuPy that CUB cannot do it."""
    cub = import_module("cupy.cuda.cub")
    for name in ("cub_reduction", "cub_scan", "cub_histogram"):
        setattr(cub, name, lambda *_, **__: None)
