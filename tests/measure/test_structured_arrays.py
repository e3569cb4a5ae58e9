"""Structured arrays are compared field by field; bytes that are no part of a value do not count."""

import numpy as np
import pytest
from builders import case_of

from gpubench.errors import GpubenchError
from gpubench.measure.bound_case import opened
from gpubench.measure.check import compare, difference, same_bits
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.vacuous import why_vacuous
from gpubench.measure.verification import expected_outputs, verify
from gpubench.suite.model import Check

PADDED = np.dtype([("a", np.int64), ("w", np.float32), ("d", np.uint8)], align=True)
RECORDS = {
    "padded": PADDED,
    "nested": np.dtype([("inner", PADDED), ("x", np.int8)], align=True),
    "sub-array of records": np.dtype([("rows", PADDED, (2, 3)), ("x", np.int8)], align=True),
    "sub-array of numbers": np.dtype([("v", np.float64, 3), ("x", np.int8)], align=True),
    "gap in front": np.dtype({"names": ["a"], "formats": ["f4"], "offsets": [12], "itemsize": 24}),
    "fields out of order": np.dtype(
        {"names": ["b", "a"], "formats": ["f4", "i2"], "offsets": [8, 0], "itemsize": 16}
    ),
    "union": np.dtype({"names": ["i", "f"], "formats": ["i4", "f4"], "offsets": [0, 0]}),
    "dates": np.dtype([("t", "M8[s]"), ("x", np.int8)], align=True),
    "raw bytes": np.dtype([("raw", "V3"), ("x", np.int32)], align=True),
    "longdouble": np.dtype([("g", np.longdouble), ("x", np.int8)], align=True),
}


def filled(dtype, padding, shape=(5,)):
    """Return an array whose fields hold the same values whatever bytes lie between them."""
    array = np.full((*shape, dtype.itemsize), padding, np.uint8).view(dtype)[..., 0]
    count = 0
    for part in numbers_of(array):
        values = np.arange(count, count + part.size).reshape(part.shape)
        part[...] = [value.tobytes() for value in values.flat] if part.dtype.kind == "V" else values
        count += part.size
    return array


def numbers_of(array):
    if array.dtype.names is None:
        return [array]
    return [part for name in array.dtype.names for part in numbers_of(array[name])]


@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS)
def test_padding_is_no_difference(dtype):
    one, other = filled(dtype, 0), filled(dtype, 255)
    assert same_bits(one, other)
    assert difference({"r": one}, {"r": other}) is None
    assert compare({"r": one}, {"r": other}, Check()).fault is None


@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS)
def test_a_changed_field_is_a_difference_and_is_wrong(dtype):
    one = filled(dtype, 0)
    for at in range(len(numbers_of(one))):
        other = filled(dtype, 0)
        numbers_of(other)[at][-1] = numbers_of(other)[at][0]
        assert not same_bits(one, other)
        assert difference({"r": other}, {"r": one}) is not None
        assert compare({"r": other}, {"r": one}, Check()).fault is not None


def test_where_a_field_lies_is_no_difference():
    packed = np.dtype([(name, PADDED[name]) for name in PADDED.names])
    one, other = filled(PADDED, 0), filled(packed, 0)
    assert compare({"r": one}, {"r": other}, Check()).fault is None
    renamed = other.astype([("a", np.int64), ("w", np.float32), ("e", np.uint8)])
    assert "dtype" in compare({"r": renamed}, {"r": one}, Check()).fault


def test_arrays_that_step_over_memory_are_compared_by_their_fields():
    one, other = filled(PADDED, 0, (6, 4)), filled(PADDED, 255, (6, 4))
    assert same_bits(one[::2, ::-1], other[::2, ::-1])
    assert same_bits(np.asfortranarray(one), other)
    assert same_bits(one[1, 1], other[1, 1])


def test_the_bytes_of_a_longdouble_that_hold_nothing_do_not_count():
    one = np.arange(5, dtype=np.longdouble) / 3
    other = one.copy()
    other.view(np.uint8).reshape(5, -1)[:, 10:] = 255
    assert same_bits(one, other)
    assert not same_bits(np.zeros(2, np.longdouble), -np.zeros(2, np.longdouble))


def test_objects_are_the_same_where_they_are_equal_or_one():
    one = np.array([(np.nan, 1), ("text", 2)], [("o", object), ("x", np.int8)])
    assert same_bits(one, one.copy())
    other = one.copy()
    other["o"][1] = "words"
    assert not same_bits(one, other)


def test_a_date_that_is_missing_is_where_it_is_missing():
    one = np.array(["NaT", "2026-01-01"], "M8[s]")
    assert compare({"t": one}, {"t": one.copy()}, Check()).fault is None
    assert compare({"t": one}, {"t": one[::-1]}, Check()).fault.startswith("t: 2 of 2")


@pytest.mark.parametrize("dtype", RECORDS.values(), ids=RECORDS)
def test_a_record_of_zeros_does_not_pass_for_the_result(dtype):
    expected = filled(dtype, 255)
    assert why_vacuous({"r": expected}, {"r": np.zeros_like(expected)}, Check()) is None
    nothing = np.zeros_like(expected)
    assert "does nothing" in why_vacuous({"r": nothing}, {}, Check())


def test_half_of_a_record_does_not_pass_by_a_tolerance():
    expected = np.zeros(5, [("x", np.float32), ("y", np.float64)])
    expected["x"] = expected["y"] = 1
    assert "half of it" in why_vacuous({"r": expected}, {}, Check(rtol=0.3))
    assert why_vacuous({"r": expected}, {}, Check(rtol=0.1)) is None


IN_PLACE = """
sizes: {n: [64]}
init: {function: record_kernels:particles, returns: [particles], inout: [particles]}
call: [particles]
implementations:
  numpy: {function: record_kernels:push}
  candidate: {function: record_kernels:CANDIDATE, backend: BACKEND}
"""


def verified(tmp_path, candidate, backend="numpy", kernel=IN_PLACE):
    kernel = kernel.replace("CANDIDATE", candidate).replace("BACKEND", backend)
    case = case_of(tmp_path, kernel, "candidate")
    inputs = draw_inputs(case)
    with opened(case, inputs) as bound:
        return verify(bound, expected_outputs(case, inputs)).fault


@pytest.mark.parametrize("candidate", ["push_and_spill", "push"])
def test_records_that_are_changed_in_place_are_compared_field_by_field(tmp_path, candidate):
    assert verified(tmp_path, candidate) is None


@pytest.mark.slow
def test_numba_changes_records_in_place(tmp_path):
    assert verified(tmp_path, "push_by_njit", "numba") is None


def test_a_wrong_field_of_a_record_in_place_is_named(tmp_path):
    assert "particles.in.v: " in verified(tmp_path, "push_the_wrong_one")
    assert verified(tmp_path, "push_too_much").startswith("particles.d: 64 of 64 elements differ")


def test_what_init_makes_read_only_can_be_changed_in_place(tmp_path):
    kernel = IN_PLACE.replace(":particles", ":read_only_particles")
    assert verified(tmp_path, "push_and_spill", kernel=kernel) is None


def test_records_that_a_run_changes_unasked_are_told_with_what_to_write(tmp_path):
    kernel = IN_PLACE.replace(", inout: [particles]", "").replace("call:", "returns: [x]\ncall:")
    kernel = kernel.replace("record_kernels:push}", "record_kernels:total}")
    fault = verified(tmp_path, "total_and_push", kernel=kernel)
    assert fault.startswith("the run changed particles, which the suite declares to be read only")
    assert "`init: {inout: [particles]}`" in fault


def test_what_init_says_is_changed_is_returned_by_it_and_declared_nowhere_else(tmp_path):
    with pytest.raises(GpubenchError, match="unknown array of init 'particle'; did you mean"):
        verified(tmp_path, "push", kernel=IN_PLACE.replace("inout: [particles", "inout: [particle"))
    declared = "arrays: {particles: {shape: [n], dtype: float32}}\ninit:"
    with pytest.raises(GpubenchError, match="is declared under arrays: write `intent: inout`"):
        verified(tmp_path, "push", kernel=IN_PLACE.replace("init:", declared))
