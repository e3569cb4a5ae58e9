"""Where NumPy takes the memory of its arrays: at pages, or counted
(https://numpy.org/neps/nep-0049.html)."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.counts.cache_model import PAGE_BYTES, CacheModel

_SET_HANDLER, _GET_HANDLER = 304, 305
"""Places of ``PyDataMem_SetHandler`` and ``PyDataMem_GetHandler`` in NumPy's table of functions
(numpy/_core/code_generators/numpy_api.py)."""
_CAPSULE_NAME = b"mem_handler"
_NUMBER_BYTES = 16
"""The largest number of NumPy's that all processors have: complex128."""
_Size = ctypes.c_size_t
_Address = ctypes.c_void_p
# NumPy's own functions may let go of Python's lock, which has to be held when they are called.
_New = ctypes.PYFUNCTYPE(_Address, _Address, _Size)
_NewZeros = ctypes.PYFUNCTYPE(_Address, _Address, _Size, _Size)
_Grow = ctypes.PYFUNCTYPE(_Address, _Address, _Address, _Size)


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _Address),
        ("new", _New),
        ("new_zeros", _NewZeros),
        ("grow", _Grow),
        ("free", _Address),
    )


_KEPT: list[Any] = []
"""What arrays need until the process ends."""


def take_memory_at_pages(model: CacheModel) -> None:
    """Have NumPy take memory that begins at a page, and tell the model of it."""
    libc = ctypes.CDLL(None)
    libc.aligned_alloc.argtypes, libc.aligned_alloc.restype = (_Size, _Size), _Address
    sizes: dict[int, int] = {}

    def new(_context: Any, size: int) -> int | None:
        rounded = max(1, -(-size // PAGE_BYTES)) * PAGE_BYTES
        address: int | None = libc.aligned_alloc(PAGE_BYTES, rounded)
        if address:
            sizes[address] = size
            model.register(address, rounded)
        return address

    def new_zeros(context: Any, count: int, size: int) -> int | None:
        if address := new(context, count * size):
            ctypes.memset(address, 0, count * size)
        return address

    def grow(context: Any, address: int | None, size: int) -> int | None:
        larger = new(context, size)
        if larger and address:
            ctypes.memmove(larger, address, min(size, sizes[address]))
            model.release(address, sizes[address])
        return larger

    functions = _New(new), _NewZeros(new_zeros), _Grow(grow), model.release_address
    _KEPT.append(model)
    _set_handler(_Handler(b"gpubench_pages", 1, model.state_address, *functions))


class AllocationCounter:
    """Counts the arrays for which NumPy takes memory in this process, and their bytes."""

    def __init__(self) -> None:
        self.count = 0
        """A single number, as NumPy makes of Python's and of a sum, is no array here."""
        self.bytes = 0
        before = _get_handler()

        def new(context: Any, size: int) -> int | None:
            self._add(size)
            return before.new(context, size)  # type: ignore[no-any-return]

        def new_zeros(context: Any, count: int, size: int) -> int | None:
            self._add(count * size)
            return before.new_zeros(context, count, size)  # type: ignore[no-any-return]

        def grow(context: Any, address: int | None, size: int) -> int | None:
            self._add(size)
            return before.grow(context, address, size)  # type: ignore[no-any-return]

        functions = _New(new), _NewZeros(new_zeros), _Grow(grow), before.free
        _set_handler(_Handler(b"gpubench_counted", 1, before.context, *functions))

    def _add(self, size: int) -> None:
        if size > _NUMBER_BYTES:
            self.count += 1
            self.bytes += size


def _function(place: int, *parameters: Any) -> Any:
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    python.PyCapsule_GetPointer.restype = _Address
    core = import_module("numpy._core" if hasattr(np, "_core") else "numpy.core")
    table = python.PyCapsule_GetPointer(core._multiarray_umath._ARRAY_API, None)
    address = ctypes.cast(table, ctypes.POINTER(_Address))[place]
    return ctypes.PYFUNCTYPE(ctypes.py_object, *parameters)(address)


def _get_handler() -> _Handler:
    """Return a copy of the handler that NumPy asks now."""
    capsule = _function(_GET_HANDLER)()
    address = ctypes.pythonapi.PyCapsule_GetPointer(capsule, _CAPSULE_NAME)
    _KEPT.append(capsule)
    return _Handler.from_address(address)


def _set_handler(handler: _Handler) -> None:
    """Have NumPy ask this handler from now on."""
    python = ctypes.pythonapi
    python.PyCapsule_New.argtypes = (_Address, ctypes.c_char_p, _Address)
    python.PyCapsule_New.restype = ctypes.py_object
    capsule = python.PyCapsule_New(ctypes.addressof(handler), _CAPSULE_NAME, None)
    _KEPT.extend((handler, capsule, _function(_SET_HANDLER, ctypes.py_object)(capsule)))
