"""Values that a person asks for and no suite declares."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.errors import PlanError
from gpubench.plan.asked import declare
from gpubench.plan.case import Case
from gpubench.plan.expansion import cases_of
from gpubench.plan.plan import Plan
from gpubench.plan.rules import selected

PlanOf = Callable[..., Plan]

KERNEL = """
sizes:
  n: {values: [8, 16], default: 8}
  pair: {zip: {rows: [2, 4], columns: [3, 5]}}
parameters: {dtype: [float32]}
exclude: [{when: n > 1000}]
arrays: {a: {shape: [n, rows, columns], dtype: dtype, intent: inout}}
call: [a, a, n]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
  other: {function: "gpubench.kernels.elementwise:vector_add_numpy", backend: numpy}
"""


def chosen(plan: Plan, *texts: str) -> list[Case]:
    groups = plan.groups()
    cases = [case for group in groups for case in cases_of(group)]
    more = declare(groups, cases, texts)
    return selected([case for group in more for case in cases_of(group)], None, texts)


def names(plan: Plan, *texts: str) -> list[str]:
    return [f"{c.implementation_name} {c.identity}" for c in chosen(plan, *texts)]


def test_a_size_that_no_suite_declares_makes_cases_of_it(plan_of: PlanOf) -> None:
    cases = chosen(plan_of(KERNEL), "n=100,16", "rows=2")

    assert {case.values["n"] for case in cases} == {100, 16}
    assert {case.implementation_name for case in cases} == {"numpy", "other"}
    of_other = next(c for c in cases if c.implementation_name == "other" and c.values["n"] == 100)
    assert of_other.identity == "columns=3 n=100 rows=2 dtype=float32"
    baseline = of_other.baseline()
    assert baseline is not None and baseline.identity == of_other.identity
    assert of_other.array_specs["a"].shape == (100, 2, 3)


def test_a_default_and_what_is_declared_stay_as_they_are(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    assert names(plan, "n=8", "rows=2") == [
        f"{name} columns=3 rows=2 dtype=float32" for name in ("numpy", "other")
    ]
    groups = plan.groups()
    cases = [case for group in groups for case in cases_of(group)]
    assert declare(groups, cases, ["n=8,16", "implementation=numpy"]) == list(groups)


def test_axes_that_move_together_are_asked_for_together(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    cases = chosen(plan, "rows=7", "columns=9", "n=8", "implementation=numpy")
    assert [case.array_specs["a"].shape for case in cases] == [(8, 7, 9)]
    with pytest.raises(PlanError, match=r"rows, columns move together: give equally many values"):
        chosen(plan, "rows=7")


def test_limits_of_the_suite_and_of_the_format_hold(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    with pytest.raises(PlanError, match="no case has n=2000"):
        chosen(plan, "n=2000")  # excluded
    for text in ("n=1.5", "n=-1", "n=many"):
        with pytest.raises(PlanError, match=rf"^-a {text}: .*a whole number from 0"):
            chosen(plan, text)
    with pytest.raises(PlanError, match="no case has 'm'"):
        chosen(plan, "m=1")


def test_parameters_and_devices_too(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    (case, *_) = chosen(plan, "dtype=float64", "n=8")
    assert case.array_specs["a"].dtype == "float64"
    with pytest.raises(PlanError, match="no case has device=cuda:0"):  # NumPy serves none
        chosen(plan, "device=cuda:0")
