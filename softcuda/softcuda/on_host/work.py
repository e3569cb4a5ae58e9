"""Work that NumPy does on the host in the memory of the device, in the order of a stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
"""Of any shape and dtype; here most often a view of the device's memory."""


class AddressError(Exception):
    """An address that a library was given is none of the device's memory."""


def queue(name: str, stream: int, function: Callable[[], object], *written: Array) -> None:
    """Have a stream call a function that writes these arrays, which are views of its memory.

    ``name`` is the call of the library whose place the function takes. Raises CuPy's
    ``CUDARuntimeError`` where the stream takes no work.
    """
    note(name)

    def run(_: int) -> None:
        with np.errstate(all="ignore"):  # a GPU says nothing of infinities
            function()
        for array in written:
            bytes_ = _span_bytes(array.shape, array.strides, array.itemsize)
            _driver().softcuda_written(array.ctypes.data, bytes_)

    import_module("cupy.cuda.runtime").launchHostFunc(stream, run, 0)


def note(name: str) -> None:
    """Note that the host takes the place of the device in this call, which has no counts then."""
    import_module("softcuda").start().note_work_on_host(name)


def synchronize(stream: int) -> None:
    """Wait for the work of a stream."""
    import_module("cupy.cuda.runtime").streamSynchronize(stream)


def current_stream() -> int:
    """Return the address of CuPy's current stream."""
    return int(import_module("cupy.cuda").get_current_stream().ptr)


def view(
    address: int, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """Return the device's memory at an address as an array. It is in C order, or has these strides,
    which count bytes and are not negative.

    Raises ``AddressError`` where not all of it lies in memory of the device.
    """
    array = _view_of_any(address, dtype, shape, strides)
    bytes_ = _span_bytes(array.shape, array.strides, array.itemsize)
    if array.size and not _driver().softcuda_holds(address, bytes_):
        raise AddressError(f"the {bytes_:,} bytes from {address:#x} on are not the device's memory")
    return array


def host_number(address: int, dtype: Any) -> Array:
    """Return a number in memory of the host, as an array without dimensions."""
    return _view_of_any(address, dtype, ())


def _view_of_any(
    address: int, dtype: Any, shape: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    dtype, shape = np.dtype(dtype), tuple(shape)
    if strides is None:
        strides = [dtype.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]
    memory = (ctypes.c_char * _span_bytes(shape, strides, dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memoryview(memory).cast("B"), strides=strides)


def _span_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Return the bytes from the first element of an array to behind the last."""
    if 0 in shape:
        return 0
    steps = zip(shape, strides, strict=True)
    return sum((length - 1) * stride for length, stride in steps) + itemsize


@cache
def _driver() -> Any:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.softcuda_holds.argtypes = driver.softcuda_written.argtypes = [ctypes.c_uint64] * 2
    return driver
