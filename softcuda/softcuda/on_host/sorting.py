"""Sorting in place of Thrust, which is linked into a module of CuPy's with NVIDIA's runtime."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from softcuda.on_host.work import current_stream, queue, view


def replace_thrust() -> None:
    """Have CuPy, which is loaded, sort by the functions of this module."""
    thrust = import_module("cupy.cuda.thrust")
    for function in (sort, argsort, lexsort):
        setattr(thrust, function.__name__, function)


# Arguments have CuPy's names, by which programs may give them. ``keys_start`` is room of Thrust's
# in the first two.


def sort(dtype: Any, data_start: int, keys_start: int, shape: Sequence[int]) -> None:
    """Sort an array along its last axis where it lies; NaN comes last."""
    array = view(data_start, dtype, shape)
    queue("thrust::sort", current_stream(), lambda: array.sort(axis=-1), array)


def argsort(
    dtype: Any, idx_start: int, data_start: int, keys_start: int, shape: Sequence[int]
) -> None:
    """Write the indices that sort an array along its last axis, equal values in their order, and
    sort it too, as Thrust does by keys."""
    array, order = view(data_start, dtype, shape), view(idx_start, np.intp, shape)

    def write() -> None:
        order[...] = np.argsort(array, axis=-1, kind="stable")
        array[...] = np.take_along_axis(array, order, axis=-1)

    queue("thrust::stable_sort_by_key", current_stream(), write, order, array)


def lexsort(dtype: Any, idx_start: int, keys_start: int, k: int, n: int) -> None:
    """Write the indices that sort by ``k`` keys of the length ``n``, the last of them first."""
    arrays, order = view(keys_start, dtype, (k, n)), view(idx_start, np.intp, (n,))

    def write() -> None:
        order[...] = np.lexsort(arrays)

    queue("thrust::stable_sort", current_stream(), write, order)


def replace_cub() -> None:
    """Have CuPy compute by kernels of its own where a program asks for CUB, whose module has
    NVIDIA's runtime in it: ``None`` tells CuPy that CUB cannot do it."""
    cub = import_module("cupy.cuda.cub")
    for name in ("cub_reduction", "cub_scan", "cub_histogram"):
        setattr(cub, name, lambda *_, **__: None)
