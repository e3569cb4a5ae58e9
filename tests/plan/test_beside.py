"""Sizes beside the declared ones, at which a kernel is verified too."""

from __future__ import annotations

from collections.abc import Callable

from gpubench.plan.beside import cases_beside
from gpubench.plan.plan import Plan

PlanOf = Callable[..., Plan]

KERNEL = """
sizes:
  m: [64, 8]
  pair: {zip: {rows: [4, 2], columns: [5, 3]}}
parameters: {dtype: [float32, float64]}
arrays: {a: {shape: [m, rows, columns], dtype: dtype, intent: inout}}
call: [a, a, m]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
  other: {function: "gpubench.kernels.elementwise:vector_add_numpy", backend: numpy}
"""


def beside(plan: Plan) -> list[str]:
    cases = cases_beside(plan, plan.cases())
    return [f"{case.implementation_name} {case.identity}" for case in cases]


def test_all_sizes_are_one_above_the_smallest_then_different_primes_then_one(
    plan_of: PlanOf,
) -> None:
    found = beside(plan_of(KERNEL))

    assert [name for name in found if name.startswith("other")] == [
        f"other columns={columns} m={m} rows={rows} dtype={dtype}"
        for m, rows, columns in ((9, 3, 4), (11, 5, 7), (1, 1, 1))
        for dtype in ("float32", "float64")
    ]
    assert len(found) == 12


def test_sizes_that_the_rules_of_a_suite_exclude_are_left_out(plan_of: PlanOf) -> None:
    assert beside(plan_of(KERNEL + "exclude: [{when: m % 2 == 1}]")) == []
    left = beside(plan_of(KERNEL + "exclude: [{when: m == 1}, {when: implementation == 'other'}]"))
    assert {name.split()[0] for name in left} == {"numpy"}
    assert len(left) == 4


def test_sizes_without_a_value_for_a_formula_are_left_out(plan_of: PlanOf) -> None:
    text = KERNEL.replace("[m, rows, columns]", "[m, rows, columns - 1]")
    assert not any(name.endswith("columns=1 m=1 rows=1") for name in beside(plan_of(text)))


def test_a_kernel_without_sizes_has_none(plan_of: PlanOf) -> None:
    fixed = KERNEL[KERNEL.index("parameters:") :].replace("m, rows, columns", "7")
    assert beside(plan_of(fixed.replace("[a, a, m]", "[a, a, a]"))) == []


def test_only_the_chosen_implementations_and_their_baselines_are_computed(plan_of: PlanOf) -> None:
    plan = plan_of(
        KERNEL
        + "  third: {function: 'gpubench.kernels.elementwise:vector_add_numpy', backend: numpy}"
    )
    chosen = [case for case in plan.cases() if case.implementation_name == "other"]
    found = {case.implementation_name for case in cases_beside(plan, chosen)}
    assert found == {"numpy", "other"}
    assert cases_beside(plan, []) == []


def test_a_rule_that_says_which_sizes_a_kernel_takes_is_not_idle(plan_of: PlanOf) -> None:
    def idle(rule: str) -> bool:
        warnings = plan_of(KERNEL + f"exclude: [{{when: {rule}}}]").warnings()
        return any("this rule excludes no case" in str(warning) for warning in warnings)

    assert not idle("m % 2 == 1")
    assert idle("m > 1000")
    assert idle("m < 8")


def test_sizes_at_which_a_rule_has_no_value_are_left_out(plan_of: PlanOf) -> None:
    found = beside(plan_of(KERNEL + "exclude: [{when: 8 // (m - 1) > 100}]"))
    assert found and not any("m=1 " in name for name in found)
