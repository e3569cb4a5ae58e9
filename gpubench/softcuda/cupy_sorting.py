"""Sorting for CuPy on the device in software, by NumPy on the host.

CuPy sorts with Thrust, which is linked into a module of its own with NVIDIA's runtime: it does not
run on softcuda. These functions stand in its place. They wait for the current stream, sort a copy
on the host, and write it back on the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

DEVICE_TO_HOST, HOST_TO_DEVICE = 2, 1
"""Of ``cudaMemcpyKind``."""


def replace_thrust() -> None:
    """Have CuPy, which is loaded, sort by the functions of this module."""
    thrust = import_module("cupy.cuda.thrust")
    for function in (sort, argsort, lexsort):
        setattr(thrust, function.__name__, function)


def sort(dtype: Any, data: int, keys: int, shape: Sequence[int]) -> None:
    """Sort an array along its last axis where it lies; NaN comes last. ``keys`` is room of
    Thrust's."""
    _write(data, np.sort(_read(data, dtype, shape), axis=-1))


def argsort(dtype: Any, indices: int, data: int, keys: int, shape: Sequence[int]) -> None:
    """Write the indices that sort an array along its last axis, equal values in their order."""
    _write(indices, np.argsort(_read(data, dtype, shape), axis=-1, kind="stable"))


def lexsort(dtype: Any, indices: int, keys: int, count: int, length: int) -> None:
    """Write the indices that sort by several keys of one length, the last of them first."""
    _write(indices, np.lexsort(_read(keys, dtype, (count, length))))


def _read(address: int, dtype: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    cuda, array = import_module("cupy.cuda"), np.empty(tuple(shape), dtype)
    stream = cuda.get_current_stream().ptr
    cuda.runtime.memcpyAsync(array.ctypes.data, address, array.nbytes, DEVICE_TO_HOST, stream)
    cuda.runtime.streamSynchronize(stream)
    return array


def _write(address: int, array: np.ndarray[Any, Any]) -> None:
    # From memory that is not pinned: it is copied at the call.
    cuda, array = import_module("cupy.cuda"), np.ascontiguousarray(array)
    stream = cuda.get_current_stream().ptr
    cuda.runtime.memcpyAsync(address, array.ctypes.data, array.nbytes, HOST_TO_DEVICE, stream)
