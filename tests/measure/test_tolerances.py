"""How far outputs may be from the baseline's comes from their size, and the reason says so."""

import numpy as np
import pytest

from gpubench.measure.check import DEFAULT_TOLERANCE, compare
from gpubench.suite.sampling import Check, OutputCheck

SIZES = [1e-300, 1e-9, 1.0, 1e9, 1e300]


def compared(found, expected, check=None):
    return compare({"out": np.asarray(found)}, {"out": np.asarray(expected)}, check or Check())


def normal(size=1.0, n=1000):
    return size * np.random.default_rng(1).standard_normal(n)


@pytest.mark.parametrize("norm", ["max", "l2"])
@pytest.mark.parametrize("size", SIZES)
def test_an_error_counts_by_the_size_of_the_values(size, norm):
    expected, check = normal(size), Check(norm=norm)
    assert compared(expected * (1 + 1e-13), expected, check).fault is None
    wrong = compared(expected * (1 + 1e-11), expected, check)
    assert wrong.fault is not None
    assert wrong.max_rel_error == pytest.approx(1e-11, rel=1e-3)
    assert wrong.max_abs_error == pytest.approx(1e-11 * np.abs(expected).max(), rel=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_a_sum_that_cancels_may_round_as_much_as_its_terms(size):
    expected = normal(size)
    expected[7] = 1e-17 * size
    found = expected.copy()
    found[7] = 2e-13 * size
    right = compared(found, expected)
    assert right.fault is None
    assert right.max_rel_error == pytest.approx(2e-13, rel=0.1)
    found[7] = 2e-12 * size
    assert compared(found, expected).fault is not None


@pytest.mark.parametrize("dtype", DEFAULT_TOLERANCE)
def test_both_tolerances_are_those_of_the_dtype(dtype):
    expected = np.full(100, 3, dtype)
    reason = compared(expected * expected.dtype.type(1.1), expected).fault
    rtol = DEFAULT_TOLERANCE[dtype]
    assert reason.startswith(
        f"out: 100 of 100 elements are off by more than {3 * rtol:.3g} + {rtol:g} |baseline| "
        f"(rtol: the default of {dtype}; atol: rtol times the baseline's root mean square 3); "
        "worst at [0]: "
    )


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (Check(rtol=1e-3), "0.002 + 0.001 |baseline| (atol: rtol times the baseline's root mean"),
        (Check(atol=1e-3), "0.001 + 1e-12 |baseline| (rtol: the default of float64); worst"),
        (Check(atol=1e-3, rtol=0.0), "0.001 + 0 |baseline| (by the suite's `check`); worst"),
        (Check(rtol={"float32": 0.5}), "2e-12 + 1e-12 |baseline| (rtol: the default of float64; "),
        (Check(rtol=0.0), "0 + 0 |baseline| (atol: rtol times"),
        (
            Check(outputs={"out": OutputCheck(atol=0.1, rtol=0.0)}),
            "0.1 + 0 |baseline| (by the suite's",
        ),
        (Check(outputs={"other": OutputCheck(atol=9.0)}), "2e-12 + 1e-12 |baseline|"),
    ],
)
def test_the_reason_says_where_a_tolerance_comes_from(check, words):
    fault = compared([2.0, 2.2, -2.0], [2.0, 2.0, -2.0], check).fault
    assert fault.startswith(f"out: 1 of 3 elements are off by more than {words}")


def test_one_large_element_does_not_hide_the_others_as_the_largest_would():
    expected = normal(n=10_000)
    expected[0] = 1e6
    found = expected.copy()
    found[1] += 1e-7
    assert compared(found, expected).fault is not None


def test_what_is_not_finite_has_no_size():
    expected = np.array([np.inf, np.nan, -np.inf, 2.0, -2.0])
    found = expected + 1e-11
    assert "root mean square 2)" in compared(found, expected).fault


def test_errors_are_relative_to_the_element_or_to_all_where_that_is_more():
    expected = np.array([1.0, -1.0, 0.0, 1e-20, 100.0])  # root mean square 44.7
    found = expected + np.array([0.0, 0.0, 1.0, 0.0, 10.0])
    assert compared(found, expected).max_rel_error == pytest.approx(0.1)
    found[4] = 100
    assert compared(found, expected).max_rel_error == pytest.approx(1 / 44.74, rel=1e-3)


def test_beside_nothing_but_zeros_every_error_is_infinite():
    right = compared([0.0, 1e-30], [0.0, 0.0], Check(atol=1e-20))
    assert (right.fault, right.max_abs_error, right.max_rel_error) == (None, 1e-30, np.inf)
    assert compared([0.0, 0.0], [0.0, 0.0]).max_rel_error == 0
    assert compared([0, 1], [0, 0]).max_rel_error == np.inf
    assert compared([False, True], [False, True]).max_rel_error == 0


def test_small_errors_in_a_norm_are_neither_lost_nor_too_large():
    for size in SIZES:
        expected = normal(size)
        fault = compared(1.01 * expected, expected, Check(norm="l2", rtol=1e-3)).fault
        assert fault.startswith("out: relative error 0.01 (l2 norm) is above 0.001 (by the suite's")


ANY = Check(dtype="any")


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        ("float32", "float64", 5e-6),
        ("float64", "float32", 5e-6),
        ("float16", "float64", 5e-3),
        ("float16", "float32", 5e-3),
        ("complex64", "complex128", 5e-6),
        ("complex128", "complex64", 5e-6),
    ],
)
def test_of_two_precisions_the_coarser_one_says_what_is_allowed(found, expected, error):
    baseline = normal().astype(expected)
    assert compared((baseline * (1 + error)).astype(found), baseline, ANY).fault is None
    fault = compared((baseline * (1 + 10 * error)).astype(found), baseline, ANY).fault
    coarser = min(found, expected, key=lambda name: int(name.lstrip("floatcmpex")))
    assert f"rtol: the default of {coarser};" in fault


def test_another_precision_is_refused_unless_it_is_allowed():
    baseline = normal()
    fault = compared(baseline.astype(np.float32), baseline).fault
    assert fault == (
        "out: dtype float32, the baseline gives float64; `check: {dtype: any}` compares them all "
        "the same"
    )
    of_another = Check(outputs={"other": OutputCheck(dtype="any")})
    assert compared(baseline.astype(np.float32), baseline, of_another).fault == fault
    of_this = Check(outputs={"out": OutputCheck(dtype="any")})
    assert compared(baseline.astype(np.float32), baseline, of_this).fault is None


def test_a_tolerance_by_dtype_is_that_of_the_coarser_one():
    check = Check(dtype="any", rtol={"float32": 1e-3, "float64": 1e-9}, atol=0.0)
    baseline = normal()
    off = (baseline * (1 + 5e-4)).astype(np.float32)
    assert compared(off, baseline, check).fault is None
    assert compared(off.astype(np.float64), baseline, check).fault is not None


def test_a_number_that_the_coarser_precision_does_not_hold_is_wrong():
    with np.errstate(over="ignore"):
        found = np.array([1e300, 1.0]).astype(np.float32)
    fault = compared(found, [1e300, 1.0], ANY).fault
    assert fault.startswith("out: 1 of 2 elements are NaN or infinite on one side only")


@pytest.mark.parametrize("found", ["int32", "int64", "uint64"])
@pytest.mark.parametrize("expected", ["int16", "int64", "uint64"])
def test_integers_of_any_width_must_be_equal(found, expected):
    baseline = np.arange(100).astype(expected)
    assert compared(baseline.astype(found), baseline, ANY).fault is None
    off = baseline.astype(found)
    off[7] += 3
    result = compared(off, baseline, ANY)
    assert result.fault == "out: 1 of 100 elements differ; first at [7]: 10 instead of 7"
    assert result.max_abs_error == 3


def test_large_integers_are_compared_exactly():
    large = np.array([2**63 - 1], np.int64)
    assert compared(large.astype(np.uint64), large, ANY).fault is None
    assert compared(large.astype(np.uint64) + np.uint64(1), large, ANY).fault is not None


@pytest.mark.parametrize(
    ("found", "expected"), [("int64", "float64"), ("float32", "int32"), ("complex64", "float32")]
)
def test_numbers_of_different_kinds_are_not_compared(found, expected):
    fault = compared(np.arange(9, dtype=found), np.arange(9, dtype=expected), ANY).fault
    assert fault.startswith(f"out: dtype {found}, the baseline gives {expected}; `dtype: any` comp")
