"""What the check says of outputs that differ, and what it costs. ``tests/wrong`` has every way to
be wrong that is looked for.
"""

import itertools
import tracemalloc

import misbehaving_kernels
import numpy as np
import pytest
from builders import Recording, case_of

from gpubench.measure.check import compare, difference
from gpubench.measure.outcomes import WrongResult
from gpubench.suite.sampling import Check

SCALE = """
sizes: {n: [67]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
implementations:
  numpy: {function: misbehaving_kernels:scale}
  candidate: {function: misbehaving_kernels:FUNCTION}
"""

ADD = """
sizes: {n: [67]}
arrays:
  a: {shape: [n], dtype: float64}
  b: {shape: [n], dtype: float64, intent: inout}
call: [a, b]
returns: [sum]
implementations:
  numpy: {function: misbehaving_kernels:add_and_return}
  candidate: {function: misbehaving_kernels:FUNCTION}
"""

RETURNED = """
sizes: {n: [67]}
arrays: {a: {shape: [n], dtype: float64}}
call: [a]
returns: [result]
implementations:
  numpy: {function: misbehaving_kernels:BASELINE}
  candidate: {function: misbehaving_kernels:FUNCTION}
"""


@pytest.fixture(autouse=True)
def first_call(monkeypatch):
    monkeypatch.setattr(misbehaving_kernels, "calls", itertools.count())


def recording(folder, kernel, function, baseline=""):
    text = kernel.replace("FUNCTION", function).replace("BASELINE", baseline)
    return Recording(folder, case_of(folder, text, "candidate"))


def reason(folder, kernel, function, baseline=""):
    """Why an implementation is refused as wrong."""
    record = recording(folder, kernel, function, baseline).refusal(WrongResult)
    assert record.status == "wrong"
    assert record.runs_per_sample is None
    return record.reason.removeprefix("differs from the baseline 'numpy': ")


def test_runs_that_differ_within_the_tolerance_are_timed_with_a_warning(tmp_path):
    racing = recording(tmp_path, SCALE, "scale_with_a_race")
    racing.run.prepare()
    (warning,) = (w for w in racing.last.warnings if w.startswith("two runs differ"))
    assert warning.startswith("two runs differ: out: 2 of 67 elements, by at most ")
    assert warning.endswith(" (atomics or a race)")


def test_an_array_changed_in_place_and_returned_is_two_outputs(tmp_path):
    recording(tmp_path, ADD, "add_and_return").run.prepare()
    assert reason(tmp_path, ADD, "add_and_return_what_was").startswith("sum: 67 of 67 elements")
    assert reason(tmp_path, ADD, "return_sum_only").startswith("b: 67 of 67 elements")


def test_structured_results_are_compared_field_by_field(tmp_path):
    recording(tmp_path, RETURNED, "extremes", "extremes").run.prepare()
    swapped = reason(tmp_path, RETURNED, "extremes_swapped", "extremes")
    assert swapped.startswith("result.low: 1 of 1 elements are off by more than 3.08e-12 + 1e-12")
    assert "dtype" in reason(tmp_path, RETURNED, "extremes_in_other_fields", "extremes")


def test_structured_inputs_come_from_init(tmp_path):
    kernel = """
    sizes: {n: [67]}
    init: {function: misbehaving_kernels:particles, returns: [particles]}
    call: [particles]
    returns: [mass]
    implementations:
      numpy: {function: misbehaving_kernels:total_mass}
      candidate: {function: misbehaving_kernels:FUNCTION}
    """
    recording(tmp_path, kernel, "total_mass").run.prepare()
    wrong = reason(tmp_path, kernel, "total_mass_of_all_but_one")
    assert wrong.startswith("mass: 1 of 1 elements are off by more than ")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_differ_in_both_parts(tmp_path, dtype):
    kernel = SCALE.replace("float32", dtype).replace(":scale}", ":conjugate}")
    recording(tmp_path, kernel, "conjugate").run.prepare()
    assert "of 67 elements are off by more than" in reason(tmp_path, kernel, "forget_to_conjugate")


def test_integers_are_exact_however_large_they_are():
    reference = {"out": np.array([2**62, -(2**62)], np.int64)}
    found = compare({"out": reference["out"] + np.array([1, 0])}, reference, Check(rtol=1.0))
    assert found.max_abs_error == 1
    assert found.fault == (
        "out: 1 of 2 elements differ; first at [0]: 4611686018427387905 instead of "
        "4611686018427387904"
    )


def test_the_distance_of_integers_does_not_overflow():
    low, high = np.iinfo(np.int8).min, np.iinfo(np.int8).max
    found = compare({"out": np.int8([high])}, {"out": np.int8([low])}, Check())
    assert (found.max_abs_error, found.max_rel_error) == (255, 255 / 128)


@pytest.mark.parametrize(
    ("found", "reference", "fault"),
    [
        (np.bool_([1, 0]), np.bool_([1, 1]), "1 of 2 elements differ; first at [1]: False instead"),
        (np.array("2026-01-02", "M8[D]"), np.array("2026-01-01", "M8[D]"), "1 of 1 elements diff"),
        (np.float64(2.0), np.float64(1.0), "1 of 1 elements are off by more than 1e-12 + 1e-12"),
        (np.float16([1.1]), np.float16([1.0]), "1 of 1 elements are off by more than 0.01 + 0.01"),
        (np.longdouble([1.1]), np.longdouble([1.0]), "1 of 1 elements are off by more than 1e-12"),
        (np.complex64([1j * np.inf]), np.complex64([1j]), "1 of 1 elements are NaN or infinite"),
        (np.ones((2, 0)), np.ones((0, 2)), "shape (2, 0), the baseline gives (0, 2)"),
    ],
)
def test_other_dtypes_are_compared_too(found, reference, fault):
    compared = compare({"out": np.asarray(found)}, {"out": np.asarray(reference)}, Check())
    assert compared.fault is not None
    assert compared.fault.startswith(f"out: {fault}")


def test_what_is_not_finite_in_both_is_equal():
    values = {"out": np.array([np.nan, np.inf, -np.inf, 1.0])}
    assert compare(values, values, Check()).fault is None
    nothing = {"out": np.ones((3, 0))}
    assert compare(nothing, nothing, Check()).fault is None


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("place", [(0, 0), (99, 4999), (53, 1234)])
def test_large_arrays_are_compared_in_pieces_that_miss_nothing(order, place):
    reference = np.asarray(np.random.default_rng(1).random((100, 5000)), order=order)
    found = reference.copy(order="K")
    found[place] += 1
    compared = compare({"out": found}, {"out": reference}, Check())
    assert compared.max_abs_error == pytest.approx(1)
    at = ", ".join(map(str, place))
    assert "out: 1 of 500000 elements are off by more than" in compared.fault
    assert f"; worst at [{at}]: " in compared.fault
    by_norm = compare({"out": found}, {"out": reference}, Check(norm="l2", rtol=1e-4, atol=0.0))
    error = 1 / np.linalg.norm(reference)
    assert by_norm.fault.startswith(f"out: relative error {error:.3g} (l2 norm) is above 0.0001")


def test_runs_are_told_apart_by_their_bits():
    one = {"out": np.array([1.0, np.nan, 0.0])}
    assert difference(one, {"out": one["out"].copy()}) is None
    other = {"out": np.array([1.0, np.nan, 0.5])}
    assert difference(one, other) == "out: 1 of 3 elements, by at most 0.5"


@pytest.mark.slow
@pytest.mark.parametrize(("implementation", "most"), [("candidate", 4.2), ("numpy", 3.2)])
def test_checking_takes_little_more_memory_than_the_arrays_and_gives_it_back(
    tmp_path, implementation, most
):
    n = 2**22
    text = SCALE.replace("[67]", f"[{n}]").replace("FUNCTION", "scale")
    checked = Recording(tmp_path, case_of(tmp_path, text, implementation))
    arrays = 2 * 4 * n
    tracemalloc.start()
    try:
        sampling = checked.run.prepare()
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sampling.runs >= 1
    assert 2.9 * arrays < peak < most * arrays
    # The inputs, their native copies, and what `out` has to be, which is half as much.
    assert 2.4 * arrays < left < 2.6 * arrays
