"""``returns`` of an implementation, in a plan: what it is called with, its name and its version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.plan.plan import Plan
from gpubench.plan.version import benchmark_version

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [4]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: inout}
  c: {shape: [n], dtype: float32, intent: out}
call: [a, b, c]
returns: [total]
implementations:
  numpy: {function: "pkg:f", backend: numpy}
  other: {function: "numbers_of:FUNCTION", backend: numpy}
"""


@pytest.fixture(autouse=True)
def functions(tmp_path) -> None:
    text = "".join(
        f"def {name}({', '.join('xyz'[:count])}): ...\n"
        for count, name in enumerate(("one", "two", "three"), 1)
    )
    (tmp_path / "numbers_of.py").write_text(text, encoding="utf-8")


def returning(names: str, function: str) -> str:
    kernel = KERNEL.replace("FUNCTION", function)
    return kernel.replace(f'{function}", backend', f'{function}", returns: {names}, backend')


def test_what_is_returned_by_name_comes_before_the_kernels_results(plan_of: PlanOf) -> None:
    cases = {case.implementation_name: case for case in plan_of(returning("[c, b]", "two")).cases()}

    assert cases["other"].returns == ("c", "b", "total")
    assert cases["numpy"].returns == ("total",)


def test_out_arrays_that_are_returned_are_no_arguments_and_inout_ones_are(plan_of: PlanOf) -> None:
    plan = plan_of(returning("[c, b]", "two"))

    kernel = plan.loaded[0].suite.kernels["small"]

    assert plan.faults() == ()
    assert kernel.arguments("other") == ("a", "b")
    assert kernel.arguments("numpy") == ("a", "b", "c")


def test_a_function_that_takes_the_array_that_it_returns_is_a_fault(plan_of: PlanOf) -> None:
    (fault,) = plan_of(returning("[c]", "three")).faults()

    assert fault.line == 15
    assert fault.message == (
        "numbers_of:three takes (x, y, z), and is called with (a, b): change the function, or what "
        "the suite gives it"
    )


def test_a_case_keeps_its_name_and_a_benchmark_without_it_its_version(plan_of: PlanOf) -> None:
    without, empty = plan_of(KERNEL.replace("FUNCTION", "three")), returning("[]", "three")
    named = plan_of(returning("[c]", "two"))

    def version(plan: Plan, name: str) -> str:
        return benchmark_version(plan.loaded[0].suite.kernels["small"], name, "kernel")

    identities = [case.identity for case in without.cases()]
    assert identities == [case.identity for case in named.cases()] == ["n=4"] * 2
    assert version(without, "other") == version(plan_of(empty), "other")
    assert version(without, "numpy") == version(named, "numpy")
    # The function's name differs too, so that only the order of the results tells.
    both = (plan_of(returning(names, "two")) for names in ("[b, c]", "[c, b]"))
    assert len({version(plan, "other") for plan in both}) == 2
