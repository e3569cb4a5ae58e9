"""A wrong kernel gets no time."""

import numpy as np
import pytest
from builders import SCALE, Recording, case_of, scale_with

from gpubench.errors import KernelError
from gpubench.measure.check import compare
from gpubench.measure.inputs import draw_inputs, poisoned
from gpubench.measure.outcomes import WrongResult
from gpubench.measure.verification import VacuousCheckError
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.plan.case import cast_dtype
from gpubench.suite.sampling import Check


def test_a_right_implementation_is_ready_and_its_error_is_on_record(tmp_path):
    recording = Recording(tmp_path, scale_with(tmp_path, "scale_in_two_steps"))
    assert recording.run.prepare().runs >= 1
    assert (recording.last.status, recording.last.max_abs_error) == ("ok", 0.0)
    assert recording.last.baseline_benchmark == "suites.sample__numpy.time_kernel"
    assert recording.last.baseline_case == "n=64"


@pytest.mark.parametrize(
    ("implementation", "reason"),
    [
        (
            "write_nothing",
            "differs from the baseline 'numpy': out: 64 of 64 elements are NaN or infinite on one "
            "side only; first at [0]: nan instead of ",
        ),
        (
            "write_half",
            "differs from the baseline 'numpy': a run leaves 32 of the 64 elements of 'out' "
            "unwritten: what is written has the shape [32], and the suite declares [64]; declare "
            "the shape that is written, let the loop or the launch reach all elements, or declare "
            "`intent: inout` (out: 32 of 64 elements are NaN or infinite on one side only; first "
            "at [32]: nan instead of ",
        ),
        (
            "write_slightly_off",
            "|baseline| (rtol: the default of float32; atol: rtol times the baseline's root mean",
        ),
        ("write_nan", "1 of 64 elements are NaN or infinite on one side only; first at [0]: nan"),
    ],
)
def test_a_wrong_implementation_is_refused_with_what_is_wrong(tmp_path, implementation, reason):
    recording = Recording(tmp_path, scale_with(tmp_path, implementation))
    record = recording.refusal(WrongResult)
    assert record.status == "wrong"
    assert reason in record.reason


def test_integers_that_were_never_written_show(tmp_path):
    kernel = SCALE.replace("float32", "int32") + (
        "  candidate: {function: measured_kernels:write_nothing, backend: numpy}\n"
    )
    recording = Recording(tmp_path, case_of(tmp_path, kernel, "candidate"))
    assert "64 of 64 elements differ" in recording.refusal(WrongResult).reason


def test_poison_is_wrong_everywhere_even_where_it_happens_to_be_right():
    expected = np.array([np.iinfo(np.int8).max - 41, 3], np.int8)
    assert not np.any(poisoned(expected, expected) == expected)
    flags = np.array([True, False])
    assert not np.any(poisoned(flags, flags) == flags)
    numbers = np.array([np.nan, 1.0])
    assert not np.isnan(poisoned(numbers, numbers)[0])


def test_a_check_that_cannot_fail_is_an_error_of_the_suite(tmp_path):
    kernel = SCALE.replace("measured_kernels:scale", "measured_kernels:write_nothing")
    record = Recording(tmp_path, case_of(tmp_path, kernel, "numpy")).refusal(VacuousCheckError)
    assert record.status == "failed"
    assert record.reason.startswith("vacuous check: the baseline leaves every output as it found")


@pytest.mark.slow
def test_what_a_function_returns_is_checked_like_an_output(tmp_path):
    kernel = """
    sizes: {n: [100]}
    arrays: {a: {shape: [n], dtype: float64}}
    call: [a]
    returns: [sum]
    implementations:
      numpy: {function: measured_kernels:total}
      compiled: {function: measured_kernels:total_compiled, backend: numba}
      transposed: {function: measured_kernels:total_transposed}
      integer: {function: measured_kernels:total_as_integer}
    check: {rtol: 1.0e-9, atol: 1.0e-9}
    """
    right = Recording(tmp_path, case_of(tmp_path, kernel, "compiled"))
    right.run.prepare()
    assert right.last.status == "ok"
    shape = Recording(tmp_path, case_of(tmp_path, kernel, "transposed")).refusal(WrongResult)
    assert "sum: shape (1,), the baseline gives ()" in shape.reason
    dtype = Recording(tmp_path, case_of(tmp_path, kernel, "integer")).refusal(WrongResult)
    assert "sum: dtype int64, the baseline gives float64" in dtype.reason


def test_several_returned_values_are_named_in_order(tmp_path):
    kernel = """
    sizes: {n: [100]}
    arrays: {a: {shape: [n], dtype: float64}}
    call: [a]
    returns: [low, high]
    implementations:
      numpy: {function: measured_kernels:smallest_and_largest}
      short: {function: measured_kernels:one_result_too_few}
    """
    Recording(tmp_path, case_of(tmp_path, kernel, "numpy")).run.prepare()
    record = Recording(tmp_path, case_of(tmp_path, kernel, "short")).refusal(KernelError)
    assert record.reason == "short returned float64; the suite declares `returns: [low, high]`"


def test_a_checker_of_ones_own_replaces_the_tolerance(tmp_path):
    check = "check: {function: measured_kernels:same_sign}\n"
    case = scale_with(tmp_path, "write_slightly_off", check)
    Recording(tmp_path, case).run.prepare()
    record = Recording(tmp_path, scale_with(tmp_path, "write_nan", check)).refusal(WrongResult)
    assert "NaN or infinite on one side only" in record.reason


def test_a_kernel_that_raises_fails_with_its_cause(tmp_path):
    record = Recording(tmp_path, scale_with(tmp_path, "fail")).refusal(MemoryError)
    assert record.status == "failed"
    assert record.reason.startswith("MemoryError: no room for another array in fail (")


def test_a_function_that_is_not_there_fails_with_its_name(tmp_path):
    recording = Recording(tmp_path, scale_with(tmp_path, "scale_in_two_stepz"))
    assert "did you mean 'scale_in_two_steps'?" in recording.refusal(KernelError).reason


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ([1.0, np.inf], None),
        ([1.0, -np.inf], "out: 1 of 2 elements are NaN or infinite on one side only"),
        ([1.0 + 1e-4, np.inf], "out: 1 of 2 elements are off by more than 1e-05 + 1e-05"),
    ],
)
def test_infinities_are_equal_only_with_the_same_sign(found, fault):
    reference = {"out": np.array([1.0, np.inf], np.float32)}
    compared = compare({"out": np.array(found, np.float32)}, reference, Check())
    assert compared.fault is None if fault is None else compared.fault.startswith(fault)


def test_the_l2_norm_forgives_one_element_that_the_largest_error_does_not():
    reference = {"out": np.ones(10_000)}
    found = {"out": np.ones(10_000)}
    found["out"][7] += 1e-3
    assert compare(found, reference, Check(rtol=1e-4, atol=0.0)).fault is not None
    assert compare(found, reference, Check(rtol=1e-4, atol=0.0, norm="l2")).fault is None


def test_tolerances_may_differ_by_dtype():
    check = Check(rtol={"float32": 1e-2, "float64": 1e-9}, atol=0.0)
    for dtype, right in ((np.float32, True), (np.float64, False)):
        reference = {"out": np.ones(3, dtype)}
        found = {"out": np.full(3, 1.001, dtype)}
        assert (compare(found, reference, check).fault is None) is right


def test_inputs_are_the_same_for_every_implementation_and_differ_between_arrays(tmp_path):
    two = SCALE.replace("out: {", "b: {shape: [n], dtype: float32}\n  out: {")
    kernel = two.replace("call: [a, out]", "call: [a, b, out]") + (
        "  candidate: {function: measured_kernels:scale_in_two_steps}\n"
    )
    one = draw_inputs(case_of(tmp_path, kernel, "numpy")).arrays
    other = draw_inputs(case_of(tmp_path, kernel, "candidate")).arrays
    assert np.array_equal(one["a"], other["a"])
    assert not np.array_equal(one["a"], one["b"])
    assert np.isnan(one["out"]).all()
    assert np.count_nonzero(one["a"]) == one["a"].size


MIXED = """
sizes: {n: [100]}
arrays: {a: {shape: [n], dtype: float64}}
call: [a]
returns: [b]
check: {dtype: any}
implementations:
  numpy: {function: measured_kernels:%s}
  single: {function: measured_kernels:%s}
"""


@pytest.mark.parametrize(
    ("baseline", "candidate", "status"),
    [
        ("doubled", "doubled_in_float32", "right"),
        ("doubled_in_float32", "doubled", "right"),
        ("doubled", "tripled_in_float32", "wrong"),
    ],
)
def test_a_float32_result_is_held_against_a_float64_baseline(tmp_path, baseline, candidate, status):
    case = case_of(tmp_path, MIXED % (baseline, candidate), "single")
    assert Verifier(Manner())((0, case)).status == status


def test_a_check_has_to_prove_something_at_the_coarser_precision_too(tmp_path):
    """Of a float64 baseline that changes its array by less than float32 tells, a float32 copy of
    what was there before would pass."""
    kernel = MIXED.replace("dtype: float64", "dtype: float64, intent: inout")
    kernel = kernel.replace("returns: [b]\n", "") % ("nudge", "nudge")
    kernel += "  single: {function: measured_kernels:nudged_in_float32, returns: [a]}\n"
    kernel = kernel.replace("  single: {function: measured_kernels:nudge}\n", "")
    assert Verifier(Manner())((0, case_of(tmp_path, kernel, "numpy"))).status == "right"
    verified = Verifier(Manner())((0, case_of(tmp_path, kernel, "single")))
    assert verified.status == "failed"
    assert "vacuous check: a: the check cannot tell the right result from what was" in (
        verified.reason
    )


CAST = """
sizes: {n: [100]}
arrays:
  a: {shape: [n], dtype: float64}
  b: {shape: [n], dtype: float64, intent: inout}
  out: {shape: [n], dtype: float64, intent: out}
scalars: {s: {value: 0.1, dtype: float64}}
call: [a, b, out, s]
work: {bytes: n * itemsize(a)}
implementations:
  numpy: {function: measured_kernels:add_and_scale}
  single: {function: measured_kernels:add_and_scale_in_float32, cast: float32}
  wrong: {function: measured_kernels:add_and_scale_wrongly, cast: float32}
"""


def test_an_implementation_that_is_given_float32_is_held_against_a_float64_baseline(tmp_path):
    case = case_of(tmp_path, CAST, "single")
    recording = Recording(tmp_path, case)
    recording.run.prepare()
    recording.run.verify_at_last()
    assert (recording.last.status, recording.last.bytes) == ("ok", 400)
    assert 1e-9 < recording.last.max_rel_error < 1e-6
    recording.run.close()
    verified = Verifier(Manner())((0, case_of(tmp_path, CAST, "wrong")))
    assert verified.status == "wrong"
    assert "rtol: the default of float32" in verified.reason


@pytest.mark.parametrize(
    ("dtype", "precision", "given"),
    [
        ("float64", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("complex128", "float32", "complex64"),
        ("complex64", "float64", "complex128"),
        ("complex128", "float16", "complex64"),
        ("int64", "float32", "int64"),
        ("bool", "float16", "bool"),
    ],
)
def test_a_cast_is_of_numbers_with_a_precision(dtype, precision, given):
    assert cast_dtype(np.dtype(dtype), precision) == given
