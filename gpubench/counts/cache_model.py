"""A model of two caches: what happens in them when an address is read or written.

Caches are empty at first, and a line that is needed takes the place of the one that was used least
recently. Only pages that were registered count: those of arrays. They are numbered by first touch,
so that where the system puts them changes nothing.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

LINE_BYTES = 64
PAGE_BYTES = 4096
L1_BYTES, L1_WAYS = 32 * 1024, 8
L2_BYTES, L2_WAYS = 1024 * 1024, 16
"""Sizes of a core of Intel's Skylake-SP and newer servers; L1 also that of most of AMD's cores."""

MODEL_WORDS = (
    f"a model, not this machine: L1 of {L1_BYTES // 1024} KiB in {L1_WAYS} ways, L2 of "
    f"{L2_BYTES // 1024} KiB in {L2_WAYS} ways, lines of {LINE_BYTES} bytes. Both are empty at "
    "first, the line used least recently leaves, nothing is prefetched. Arrays begin at pages"
)

FIGURES = ("lines_touched", "l1_misses", "l2_misses")
"""Names of the first cells of the state, in their order."""

_L1_SETS = L1_BYTES // LINE_BYTES // L1_WAYS
_L2_SETS = L2_BYTES // LINE_BYTES // L2_WAYS
_LINES_IN_PAGE = PAGE_BYTES // LINE_BYTES
"""64: the lines of a page that were touched are the bits of one number."""
_PAGE_COUNT = len(FIGURES)
"""Cell with how many pages were touched."""
_USED_SLOTS, _TOO_MANY = _PAGE_COUNT + 1, _PAGE_COUNT + 2
"""Cells with how many slots are taken, and how many arrays found no room."""
_L1 = 16
_L2 = _L1 + _L1_SETS * L1_WAYS
_PAGES = _L2 + _L2_SETS * L2_WAYS
"""Where the caches and the table of pages begin. A way holds a line's number and 1; 0 is empty."""
_SLOTS = 1 << 21
MAX_PAGES = _SLOTS * 3 // 4
"""Pages of arrays that there may be, 6 GiB: a table that is fuller is searched for long."""
_SLOT_CELLS = 3
"""Of a page: its address in pages (0: a free slot), its number, a bit for each line touched."""
_UNTOUCHED, _NO_ARRAY = -1, -2
"""In place of a page's number."""


class CacheModel:
    """Two caches and the pages of arrays; compiled by Numba, which must not count yet."""

    def __init__(self) -> None:
        self._state = np.zeros(_PAGES + _SLOTS * _SLOT_CELLS, np.int64)
        self._touch, self._register, self._release = _compile()

    @property
    def state_address(self) -> int:
        """Return the address that each function takes as ``state``."""
        return int(self._state.ctypes.data)

    @property
    def touch_address(self) -> int:
        """Return the address of ``touch(address, bytes, state)``: a read or a write."""
        return int(self._touch.address)

    @property
    def register_address(self) -> int:
        """Return the address of ``register(address, bytes, state)``: a new array lies there."""
        return int(self._register.address)

    @property
    def release_address(self) -> int:
        """Return the address of ``release(state, address, bytes)``, which frees an array's memory.
        Machine code: the last arrays are freed when Python is gone."""
        return int(self._release.address)

    def touch(self, address: int, size: int) -> None:
        """Read or write these bytes."""
        self._touch.ctypes(address, size, self._pointer)

    def register(self, address: int, size: int) -> None:
        """Say that a new array lies there."""
        self._register.ctypes(address, size, self._pointer)

    def release(self, address: int, size: int) -> None:
        """Free an array's memory."""
        self._release.ctypes(self._pointer, address, size)

    @property
    def _pointer(self) -> Any:
        return ctypes.cast(self.state_address, ctypes.POINTER(ctypes.c_int64))

    def reset(self) -> None:
        """Empty the caches and forget what was touched; arrays stay."""
        self._state[: _PAGE_COUNT + 1] = 0
        self._state[_L1:_PAGES] = 0
        slots = self._state[_PAGES:].reshape(_SLOTS, _SLOT_CELLS)
        used = np.flatnonzero(slots[:, 0])
        slots[used[slots[used, 1] >= 0], 1] = _UNTOUCHED
        slots[used, 2] = 0

    def figures(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the numbers of ``FIGURES`` since the last reset, and how many arrays found no
        room."""
        return self._state[[*range(len(FIGURES)), _TOO_MANY]]


def _compile() -> tuple[Any, Any, Any]:
    """Return ``touch``, ``register`` and ``release``."""
    numba = import_module("numba")
    slots, slot_cells, pages_begin = _SLOTS, _SLOT_CELLS, _PAGES

    @numba.njit  # type: ignore[untyped-decorator, unused-ignore]
    def slot_of(page: Any, state: Any) -> Any:
        """Return where a page's cells begin, or those of the free slot that it would get."""
        slot = (page * 0x9E3779B1) & (slots - 1)
        while True:
            cell = pages_begin + slot * slot_cells
            if state[cell] == page or state[cell] == 0:
                return cell
            slot = (slot + 1) & (slots - 1)

    @numba.njit  # type: ignore[untyped-decorator, unused-ignore]
    def is_hit(line: Any, begin: Any, ways: Any, state: Any) -> Any:
        """Make a line the most recently used of its set; return whether it was in the cache."""
        last = ways - 1
        for way in range(ways):
            if state[begin + way] == line + 1:
                last = way
                break
        hit = state[begin + last] == line + 1
        for way in range(last, 0, -1):
            state[begin + way] = state[begin + way - 1]
        state[begin] = line + 1
        return hit

    def touch(address: Any, size: Any, state: Any) -> None:
        if size <= 0:
            return
        for at in range(address // LINE_BYTES, (address + size - 1) // LINE_BYTES + 1):
            cell = slot_of(at // _LINES_IN_PAGE, state)
            if state[cell] == 0 or state[cell + 1] == _NO_ARRAY:
                continue
            if state[cell + 1] == _UNTOUCHED:
                state[cell + 1] = state[_PAGE_COUNT]
                state[_PAGE_COUNT] += 1
            bit = 1 << (at % _LINES_IN_PAGE)
            if not state[cell + 2] & bit:
                state[cell + 2] |= bit
                state[0] += 1
            line = state[cell + 1] * _LINES_IN_PAGE + at % _LINES_IN_PAGE
            if not is_hit(line, _L1 + line % _L1_SETS * L1_WAYS, L1_WAYS, state):
                state[1] += 1
                if not is_hit(line, _L2 + line % _L2_SETS * L2_WAYS, L2_WAYS, state):
                    state[2] += 1

    def register(address: Any, size: Any, state: Any) -> None:
        for page in range(address // PAGE_BYTES, (address + size - 1) // PAGE_BYTES + 1):
            cell = slot_of(page, state)
            if state[cell] == 0:
                if state[_USED_SLOTS] == MAX_PAGES:
                    state[_TOO_MANY] += 1
                    return
                state[_USED_SLOTS] += 1
            state[cell] = page
            state[cell + 1] = _UNTOUCHED
            state[cell + 2] = 0

    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = (ctypes.c_size_t,), None

    def release(state: Any, address: Any, size: Any) -> None:
        for page in range(address // PAGE_BYTES, (address + size - 1) // PAGE_BYTES + 1):
            cell = slot_of(page, state)
            if state[cell]:
                state[cell + 1] = _NO_ARRAY
        free(address)

    signature = "void(int64, int64, CPointer(int64))"
    return (
        numba.cfunc(signature)(touch),
        numba.cfunc(signature)(register),
        numba.cfunc("void(CPointer(int64), int64, int64)")(release),
    )
