"""How the elements of an array lie in memory, and copies that lie alike.

NumPy gives an array a stride for each dimension: the bytes from one element to the next. Strides
may leave gaps (every second column), be negative (``a[::-1]``), or be 0 (``broadcast_to``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, cast

import numpy as np

from gpubench.arrow import AnyArray

Order = Literal["C", "F"]
"""Of an array without gaps: the last index changes fastest, or the first."""

Layout = Literal["C", "F", "strided", "backwards", "overlapping", "unaligned"]
"""What a backend may take. ``C``, ``F``: without gaps. ``strided``: anything else that steps
forwards. ``backwards``: negative strides. ``overlapping``: several elements at one place, as with a
stride of 0. ``unaligned``: strides that are no multiples of an element's bytes, as in a field of
records."""

ALL_LAYOUTS: tuple[Layout, ...] = (
    "C", "F", "strided", "backwards", "overlapping", "unaligned",
)  # fmt: skip


def copy_with_layout(array: AnyArray) -> AnyArray:
    """Return a copy at another place in memory, of the same shape, dtype and strides.

    The copy takes as much memory as lies between the array's first and last byte, gaps included. A
    copy of a read-only array is read only; ``overwrite`` writes it all the same. Python's objects
    cannot lie in memory that is given: their copy has no gaps.
    """
    if array.flags.forc or array.dtype.hasobject:
        copy = array.copy(order="K")
    else:
        copy = array_in(np.empty(span_bytes(array), np.uint8), array)
        copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


def cast_with_layout(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return the array in another dtype, with its elements as many elements apart; where the dtype
    is its own, the array."""
    if array.dtype == dtype:
        return array
    whole_steps = all(stride % array.itemsize == 0 for _, stride in _steps(array))
    if array.flags.forc or not whole_steps:
        return array.astype(dtype, order="K")
    old, new = array.itemsize, dtype.itemsize
    memory = np.empty(span_bytes(array) // old * new, np.uint8)
    strides = tuple(stride // old * new for stride in array.strides)
    start = _bytes_before(array) // old * new
    cast_array: AnyArray = np.ndarray(array.shape, dtype, cast(Any, memory), start, strides)
    cast_array[...] = array
    cast_array.flags.writeable = array.flags.writeable
    return cast_array


def array_in(memory: Any, array: AnyArray) -> AnyArray:
    """Return an array over the beginning of ``memory``, a buffer of ``span_bytes(array)`` or more,
    that lies there as ``array`` does where it is."""
    strides = array.strides
    if array.flags.forc:  # of extents of 0 and 1 strides may be anything
        order: Order = "C" if array.flags.c_contiguous else "F"
        return np.ndarray(array.shape, array.dtype, memory, order=order)
    return np.ndarray(array.shape, array.dtype, memory, _bytes_before(array), strides)


def overwrite(target: AnyArray, values: AnyArray) -> None:
    """Copy values into an array of one's own, one that is read only too."""
    if target.flags.writeable:
        np.copyto(target, values)
        return
    target.flags.writeable = True
    try:
        np.copyto(target, values)
    finally:
        target.flags.writeable = False


def span_bytes(array: AnyArray) -> int:
    """Return the bytes from an array's first one in memory to its last one, gaps included."""
    if array.size == 0:
        return 0
    return array.itemsize + sum((n - 1) * abs(stride) for n, stride in _steps(array))


def describe_layout(array: AnyArray) -> str | None:
    """Return ``F`` or ``strides (1024, 16)``; ``None`` for an array in C order."""
    if array.flags.c_contiguous:
        return None
    return "F" if array.flags.f_contiguous else f"strides {array.strides}"


def refused_layout(array: AnyArray, taken: Collection[Layout]) -> str | None:
    """Return what of an array's layout is not taken, ``negative strides (-8,)``; ``None`` where
    all is taken. Every backend takes C order."""
    if array.flags.c_contiguous or ("F" in taken and array.flags.f_contiguous):
        return None
    if array.flags.f_contiguous:
        return "Fortran order"
    if "backwards" not in taken and any(stride < 0 for _, stride in _steps(array)):
        return f"negative strides {array.strides}"
    if "overlapping" not in taken and has_overlap(array):
        return f"several elements at one place, strides {array.strides}"
    if "unaligned" not in taken and any(stride % array.itemsize for _, stride in _steps(array)):
        return f"strides {array.strides}, which are no multiples of its {array.itemsize} bytes"
    if "strided" not in taken:
        return f"strides {array.strides}, which are neither C nor Fortran order"
    return None


def has_overlap(array: AnyArray) -> bool:
    """Return whether writing one element of an array may change another one."""
    if array.flags.forc:
        return False
    steps = sorted((abs(stride), n) for n, stride in _steps(array))
    below = array.itemsize
    for stride, n in steps:
        if stride < below:
            break
        below += (n - 1) * stride
    else:
        return False  # each dimension steps over all that lies in those before
    if array.size * array.itemsize > span_bytes(array) or not steps[0][0]:
        return True
    # Few arrays come here, and none with more bytes than lie between its first and its last.
    marks = np.zeros(span_bytes(array), np.bool_)
    shape, strides = (*array.shape, array.itemsize), (*array.strides, 1)
    np.ndarray(shape, np.bool_, cast(Any, marks), _bytes_before(array), strides)[...] = True
    return int(np.count_nonzero(marks)) < array.size * array.itemsize


def in_order(array: AnyArray, order: Order) -> AnyArray:
    """Return the array, or where it lies in another order a copy in this one."""
    return np.asarray(array, order=order)


def is_in_order(array: AnyArray, order: Order) -> bool:
    """Return whether an array has no gaps and lies in this order."""
    return bool(array.flags.c_contiguous if order == "C" else array.flags.f_contiguous)


def laid_out_like(array: AnyArray, strides: tuple[int, ...]) -> AnyArray:
    """Return a copy of the array with these strides, none of which is negative."""
    last = sum((n - 1) * stride for n, stride in zip(array.shape, strides, strict=True) if n > 1)
    memory = np.empty(last + array.itemsize if array.size else 0, np.uint8)
    copy: AnyArray = np.ndarray(array.shape, array.dtype, cast(Any, memory), 0, strides)
    copy[...] = array
    return copy


def _steps(array: AnyArray) -> list[tuple[int, int]]:
    """Extent and stride of the dimensions that are stepped along."""
    pairs = zip(array.shape, array.strides, strict=True)
    return [(n, stride) for n, stride in pairs if n > 1]


def _bytes_before(array: AnyArray) -> int:
    """Bytes of memory before its first element, which are those of elements that come later."""
    return -sum((n - 1) * stride for n, stride in _steps(array) if stride < 0)
