"""A copy of an array lies in memory as the array does, at another place."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from gpubench.layouts import (
    ALL_LAYOUTS,
    array_in,
    cast_with_layout,
    copy_with_layout,
    describe_layout,
    has_overlap,
    laid_out_like,
    overwrite,
    refused_layout,
    span_bytes,
)

B = np.arange(48.0).reshape(6, 8)

LAYOUTS = {
    "C": B,
    "F": B.T,
    "every second column": B[:, ::2],
    "one column": B[:, 3:4],
    "backwards": B[::-1],
    "backwards with gaps": B[::-2, ::-3],
    "axes in another order": B.reshape(2, 3, 8).transpose(1, 0, 2),
    "repeated": np.broadcast_to(B[0], (3, 8)),
    "windows": sliding_window_view(B[0], 3),
    "a field of records": np.zeros(4, "u1,f8")["f1"],
    "nothing": B[:0, ::2],
    "no dimension": np.array(3.0),
    "complex": (B + 1j)[:, ::-2],
    "crossing": as_strided(np.arange(12.0), (2, 3), (24, 16)),
}
every_layout = pytest.mark.parametrize("array", LAYOUTS.values(), ids=LAYOUTS)


@every_layout
def test_a_copy_lies_as_the_array_does_at_another_place(array):
    copy = copy_with_layout(array)
    np.testing.assert_array_equal(copy, array, strict=True)
    assert describe_layout(copy) == describe_layout(array)
    assert array.flags.forc or copy.strides == array.strides
    assert span_bytes(copy) == span_bytes(array)
    assert copy.flags.writeable == array.flags.writeable
    assert not np.shares_memory(copy, array)


@every_layout
def test_memory_from_elsewhere_is_filled_from_its_beginning(array):
    memory = bytearray(span_bytes(array))
    array_in(memory, array)[...] = array
    np.testing.assert_array_equal(array_in(memory, array), array)


@pytest.mark.parametrize(
    ("layout", "nbytes"),
    [("C", 384), ("F", 384), ("every second column", 376), ("repeated", 64), ("nothing", 0)],
)
def test_a_span_has_the_gaps_between_elements_and_no_element_twice(layout, nbytes):
    assert span_bytes(LAYOUTS[layout]) == nbytes


@every_layout
def test_elements_at_one_place_are_seen(array):
    places = {}
    for index in np.ndindex(array.shape):
        first = sum(i * stride for i, stride in zip(index, array.strides, strict=True))
        places |= dict.fromkeys(range(first, first + array.itemsize))
    assert has_overlap(array) == (len(places) < array.nbytes)


def test_a_copy_of_python_s_objects_has_no_gaps():
    array = np.array(["a", None, 1.5, "b"], object)[::2]

    copy = copy_with_layout(array)

    assert copy.tolist() == ["a", 1.5]
    assert copy.flags.forc and not np.shares_memory(copy, array)


def test_an_array_that_is_read_only_is_overwritten_and_stays_so():
    array = copy_with_layout(np.broadcast_to(B[0], (3, 8)))
    overwrite(array, np.zeros((3, 8)))
    assert not array.any()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@every_layout
def test_another_dtype_keeps_the_layout_in_elements(array):
    dtype = np.result_type(np.float32, np.complex64 if array.dtype.kind == "c" else np.float32)
    found = cast_with_layout(array, dtype)
    np.testing.assert_array_equal(found, array.astype(dtype), strict=True)
    steps = [stride // array.itemsize for stride in array.strides]
    if not array.flags.forc and array.strides != (9,):  # no whole elements apart
        assert [stride // found.itemsize for stride in found.strides] == steps
    assert cast_with_layout(array, array.dtype) is array


def test_values_are_laid_out_by_strides():
    array = laid_out_like(B, (8, 48))
    assert array.flags.f_contiguous
    np.testing.assert_array_equal(array, B)


@pytest.mark.parametrize(
    ("array", "taken", "what"),
    [
        ("C", (), None),
        ("F", ("C",), "Fortran order"),
        ("F", ("C", "F"), None),
        ("every second column", ("C", "F"), "strides (64, 16), which are neither C nor Fortran"),
        ("every second column", ("C", "strided"), None),
        ("backwards", ("C", "F", "strided"), "negative strides (-64, 8)"),
        ("repeated", ("C", "F", "strided"), "several elements at one place, strides (0, 8)"),
        ("a field of records", ("C", "strided"), "strides (9,), which are no multiples of its 8"),
        ("crossing", ("C", "strided"), None),
        *((name, ALL_LAYOUTS, None) for name in LAYOUTS),
    ],
)
def test_what_a_backend_does_not_take_is_named(array, taken, what):
    found = refused_layout(LAYOUTS[array], taken)
    assert found is None if what is None else str(found).startswith(what)
