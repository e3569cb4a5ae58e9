"""A check that cannot tell the right result from none is refused: nothing gets a time by it."""

import numpy as np
import pytest
from builders import Recording, case_of

from gpubench.errors import KernelError
from gpubench.measure.outcomes import WrongResult
from gpubench.measure.vacuous import why_vacuous
from gpubench.measure.verification import VacuousCheckError
from gpubench.suite.sampling import Check

SOFTMAX = """
sizes: {n: [65536]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
implementations:
  numpy: {function: unproven_kernels:softmax}
  candidate: {function: unproven_kernels:softmax_of_zeros}
"""

SEIDEL = """
sizes: {n: [20]}
arrays:
  a: {shape: [n, n], dtype: float64, intent: inout, fill: {function: unproven_kernels:FILL}}
call: [a]
implementations:
  numpy: {function: unproven_kernels:seidel_2d}
  candidate: {function: unproven_kernels:seidel_2d_idle}
"""

DOUBLE = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
  faults: {shape: [1], dtype: int64, intent: inout, fill: zeros}
call: [a, out, faults]
implementations:
  numpy: {function: unproven_kernels:double_and_count_faults}
  candidate: {function: unproven_kernels:CANDIDATE}
"""

UNARY = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
implementations:
  numpy: {function: BASELINE}
"""

RETURNED = """
sizes: {n: [64]}
arrays: {a: {shape: [n], dtype: float64}}
call: [a]
returns: [result]
implementations:
  numpy: {function: unproven_kernels:as_array}
  candidate: {function: unproven_kernels:CANDIDATE}
"""


def recording(folder, kernel, implementation="candidate", check=""):
    return Recording(folder, case_of(folder, kernel + check, implementation))


def vacuous(folder, kernel, implementation="candidate", check=""):
    """Why the check is refused."""
    record = recording(folder, kernel, implementation, check).refusal(VacuousCheckError)
    assert (record.status, record.runs_per_sample) == ("failed", None)
    assert record.reason.startswith("vacuous check: ")
    return record.reason.removeprefix("vacuous check: ")


def test_a_softmax_of_zeros_is_wrong_however_small_the_results_are(tmp_path):
    record = recording(tmp_path, SOFTMAX).refusal(WrongResult)
    assert record.reason.startswith(
        "differs from the baseline 'numpy': out: 65536 of 65536 elements are off by more than "
    )
    assert record.max_rel_error == 1


@pytest.mark.parametrize("implementation", ["candidate", "numpy"])
def test_a_tolerance_above_all_results_is_refused(tmp_path, implementation):
    reason = vacuous(tmp_path, SOFTMAX, implementation, "check: {atol: 0.1}\n")
    assert reason.startswith(
        "out: the check cannot tell the right result from zeros: they differ by at most 0.0"
    )
    assert "0.1 + 1e-05 |baseline| (rtol: the default of float32) is allowed; set " in reason


def test_a_relative_tolerance_of_one_is_refused(tmp_path):
    check = "check: {norm: l2, rtol: 1.0}\n"
    reason = vacuous(tmp_path, SOFTMAX, check=check)
    assert "0 + 1 |baseline| (by the suite's `check`), as a whole in the l2 norm, is allowed" in (
        reason
    )


@pytest.mark.parametrize("implementation", ["candidate", "numpy"])
def test_a_fill_that_a_kernel_leaves_as_it_is_but_for_rounding_is_refused(tmp_path, implementation):
    reason = vacuous(tmp_path, SEIDEL.replace("FILL", "plane"), implementation)
    assert reason.startswith("a: the check cannot tell the right result from what was there before")


def test_a_kernel_that_leaves_a_better_fill_as_it_is_is_wrong(tmp_path):
    kernel = SEIDEL.replace("FILL", "rough")
    recording(tmp_path, kernel, "numpy").run.prepare()
    assert recording(tmp_path, kernel).refusal(WrongResult).status == "wrong"


def test_zeros_that_are_meant_need_another_output_that_proves_something(tmp_path):
    both = DOUBLE.replace("CANDIDATE", "double_and_count_faults")
    recording(tmp_path, both).run.prepare()
    wrong = DOUBLE.replace("CANDIDATE", "double_and_count_one")
    assert (
        "faults: 1 of 1 elements differ" in recording(tmp_path, wrong).refusal(WrongResult).reason
    )
    alone = both.replace("  out: {shape: [n], dtype: float32, intent: out}\n", "")
    alone = alone.replace("[a, out, faults]", "[a, faults]").replace("double_and_count", "count")
    assert vacuous(tmp_path, alone).startswith("the baseline leaves every output as it found it")


def test_an_output_of_zeros_alone_proves_nothing(tmp_path):
    kernel = RETURNED.replace("as_array", "are_negative").replace("CANDIDATE", "are_negative")
    assert vacuous(tmp_path, kernel) == (
        "the baseline's outputs are what a kernel that does nothing may give too (result: zeros); "
        "choose inputs (`fill`) whose result differs from that, or `exclude` this size"
    )


def test_an_output_without_elements_proves_nothing(tmp_path):
    kernel = UNARY.replace("BASELINE", "unproven_kernels:logarithm")
    kernel = kernel.replace("[64]", "[1]").replace("shape: [n]", "shape: [n - 1]")
    assert vacuous(tmp_path, kernel, "numpy") == (
        "no output has an element, and anything is right; `exclude` this size"
    )


def test_an_output_that_is_not_compared_may_be_anything(tmp_path):
    kernel = DOUBLE.replace("CANDIDATE", "double_and_draw")
    outputs = "check: {outputs: {faults: {compare: false, reason: it is drawn}}}\n"
    made = recording(tmp_path, kernel, check=outputs)
    made.run.prepare()
    assert (made.last.status, made.last.warnings) == ("ok", ())


def test_a_result_that_is_not_compared_may_be_anything(tmp_path):
    kernel = RETURNED.replace("[result]", "[sum, result]").replace("as_array", "as_two")
    kernel = kernel.replace("CANDIDATE", "as_none_and_array")
    check = "check: {outputs: {sum: {compare: false, reason: it is for debugging}}}\n"
    made = recording(tmp_path, kernel, check=check)
    made.run.prepare()
    assert made.last.status == "ok"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("nan_everywhere", "the baseline leaves every output as it found it (outputs: out, only"),
        ("infinite_everywhere", "out: the baseline gives only NaN and infinities, which say noth"),
    ],
)
def test_a_baseline_that_gives_no_number_is_none(tmp_path, function, reason):
    kernel = UNARY.replace("BASELINE", f"unproven_kernels:{function}")
    assert vacuous(tmp_path, kernel, "numpy").startswith(reason)
    started = kernel.replace("intent: out", "intent: inout")
    assert vacuous(tmp_path, started, "numpy").startswith("out: the baseline gives only NaN and")


def test_a_baseline_may_give_some_nan(tmp_path):
    kernel = UNARY.replace("BASELINE", "unproven_kernels:logarithm")
    recording(tmp_path, kernel, "numpy").run.prepare()


@pytest.mark.parametrize("function", ["accept", "accept_of_ints"])
def test_a_check_of_ones_own_that_accepts_everything_is_refused(tmp_path, function):
    kernel = UNARY.replace("BASELINE", "unproven_kernels:as_out")
    kernel = kernel.replace("unproven_kernels:as_out", "measured_kernels:scale")
    if function == "accept_of_ints":  # whose poison is a number like others
        kernel = kernel.replace("float32", "int32")
    reason = vacuous(tmp_path, kernel, "numpy", "check: {function: unproven_kernels:accept}\n")
    what = "zeros" if function == "accept" else "what was there before"
    assert reason.startswith(
        f"out: the check unproven_kernels:accept takes {what} for the right result; have it look "
        "at out, or say `compare: false` of out"
    )


@pytest.mark.parametrize("function", ["accept_first_half", "divide"])
def test_a_check_of_ones_own_may_look_at_less_and_fail_on_zeros(tmp_path, function):
    kernel = UNARY.replace("BASELINE", "measured_kernels:scale")
    check = f"check: {{function: unproven_kernels:{function}}}\n"
    recording(tmp_path, kernel, "numpy", check).run.prepare()


@pytest.mark.parametrize("kind", ["list", "tuple"])
def test_a_list_is_another_kind_of_result_than_an_array(tmp_path, kind):
    kernel = RETURNED.replace("CANDIDATE", f"as_{kind}")
    assert recording(tmp_path, kernel).refusal(KernelError).reason == (
        f"candidate returned a {kind} as 'result'; allowed: an array, or a number. "
        "Return numpy.asarray(...) of it"
    )


def test_nothing_is_no_result_either(tmp_path):
    kernel = RETURNED.replace("[result]", "[sum, result]").replace("as_array", "as_two")
    kernel = kernel.replace("CANDIDATE", "as_none_and_array")
    reason = recording(tmp_path, kernel).refusal(KernelError).reason
    assert "returned a NoneType as 'sum'" in reason


def test_structured_outputs_prove_something_by_one_field():
    kind = np.dtype([("sum", np.float64), ("faults", np.int32), ("name", "U2")])
    expected = {"out": np.array([(3.5, 0, ""), (0.0, 0, "")], kind)}
    assert why_vacuous(expected, {}, Check()) is None
    assert "cannot tell" in why_vacuous(expected, {}, Check(atol=4.0))
    assert "(out: zeros)" in why_vacuous({"out": np.zeros(2, kind)}, {}, Check())


@pytest.mark.parametrize(
    "values",
    [[0.0, -0.0], np.zeros(3, np.complex64), [False], ["", ""], np.zeros((), "M8[s]")],
)
def test_zeros_of_every_kind_prove_nothing(values):
    assert "zeros" in why_vacuous({"out": np.asarray(values)}, {}, Check())


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e300])
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_results_of_any_size_prove_something(size, norm):
    expected = {"out": size * np.random.default_rng(1).standard_normal(1000)}
    started = {"out": expected["out"] * (1 + 1e-6)}
    assert why_vacuous(expected, started, Check(norm=norm)) is None
    expected["out"][::2] = 0
    assert why_vacuous(expected, started, Check(norm=norm)) is None


def test_it_is_enough_that_the_last_element_differs():
    expected = {"out": np.zeros(100_000)}
    expected["out"][-1] = 1.0
    assert why_vacuous(expected, {"out": np.zeros(100_000)}, Check()) is None
    assert "leaves every output as it found it" in why_vacuous(expected, expected, Check())


def test_values_whose_norm_is_no_number_prove_nothing():
    expected = {"out": np.full(9, 1.5e308)}
    for norm in ("max", "l2"):
        assert "tell the right result from zeros" in why_vacuous(expected, {}, Check(norm=norm))
