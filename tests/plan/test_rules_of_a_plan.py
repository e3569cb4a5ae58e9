"""Rules: what is excluded, skipped and included, and what is said about rules that do nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.plan.expansion import expand
from gpubench.plan.plan import Plan
from gpubench.plan.rules import skip_reason

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [8, 16]}
parameters: {tile: {values: [2, 4], default: 2}}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a]
implementations:
  numpy: {function: pkg:f, backend: numpy}
  tiled:
    factory: pkg:make
    with: {tile: tile}
    backend: numba_cuda
    launch: {block: [32, 64]}
  spread: {function: pkg:h, backend: numba, threads: [1, 2]}
devices: [cpu, "cuda:0"]
"""


def names(plan: Plan) -> set[str]:
    return {f"{case.implementation_name} {case.identity}" for case in plan.cases()}


ALL = {
    "numpy n=8",
    "numpy n=16",
    "spread n=8 threads=1",
    "spread n=8 threads=2",
    "spread n=16 threads=1",
    "spread n=16 threads=2",
    "tiled n=8 block=32 device=cuda:0",
    "tiled n=8 block=64 device=cuda:0",
    "tiled n=8 tile=4 block=32 device=cuda:0",
    "tiled n=8 tile=4 block=64 device=cuda:0",
    "tiled n=16 block=32 device=cuda:0",
    "tiled n=16 block=64 device=cuda:0",
    "tiled n=16 tile=4 block=32 device=cuda:0",
    "tiled n=16 tile=4 block=64 device=cuda:0",
}

EXCLUDED = {
    "n == 8": {name for name in ALL if "n=8" in name},
    "tile == 4": {name for name in ALL if "tile=4" in name},
    "tile == 4 and n == 8": {name for name in ALL if "tile=4" in name and "n=8" in name},
    "implementation == 'numpy' and n > 8": {"numpy n=16"},
    "threads > 1": {name for name in ALL if "threads=2" in name},
    "threads_per_block == 64": {name for name in ALL if "block=64" in name},
    "blocks * threads_per_block >= 4 * n": {
        name for name in ALL if "block=64" in name or ("n=8 " in name and "block=32" in name)
    },
    "size(a) * itemsize(a) == 64": {name for name in ALL if "n=16" in name},
}


def test_all_cases_are_there_without_a_rule(plan_of: PlanOf) -> None:
    assert names(plan_of(KERNEL)) == ALL


@pytest.mark.parametrize("rule", EXCLUDED)
def test_a_rule_excludes_the_cases_that_have_its_names(rule: str, plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL + f'exclude: [{{when: "{rule}"}}]\n')

    assert ALL - names(plan) == EXCLUDED[rule]
    assert plan.warnings() == ()


def test_a_rule_without_a_value_names_rule_and_case(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL + "exclude: [{when: log2(n - 8) > 3}]\n")

    problems = [str(case.problem) for case in plan.cases() if case.values["n"] == 8]
    (message, *_) = problems
    assert "small numpy at n=8: exclude.0.when `log2(n - 8" in message
    assert all(case.problem is None for case in plan.cases() if case.values["n"] != 8)


def messages(plan: Plan) -> list[str]:
    return [f"{fault.line}: {fault.message}" for fault in plan.warnings()]


def test_rules_that_match_nothing_are_warnings_at_their_place(plan_of: PlanOf) -> None:
    plan = plan_of(
        KERNEL
        + """\
exclude:
  - when: n > 8
  - when: n > 100
skip:
  - {when: tile > 8, reason: too wide}
  - {when: tile == 4, reason: too wide}
  - {when: sm_count < 1000000, reason: too few}
  - {when: device == 'NVIDIA H200', reason: too good}
"""
    )

    assert messages(plan) == [
        "21: this rule excludes no case: `n > 100`; remove it, or change its formula",
        "23: this rule skips no case: `tile > 8`; remove it, or change its formula",
    ]


SKIPPED = {
    ("tile == 4", "tiled n=8 tile=4 block=32 device=cuda:0"): "no",
    ("tile == 4", "tiled n=8 block=32 device=cuda:0"): None,
    ("tile == 4", "numpy n=8"): None,
    ("device == 'cpu'", "numpy n=8"): "no",
    ("threads_per_block > max_threads", "tiled n=8 block=64 device=cuda:0"): "no",
    ("threads_per_block > max_threads", "tiled n=8 block=32 device=cuda:0"): None,
    ("threads_per_block > max_threads", "numpy n=8"): None,
    ("sm_count < 10", "numpy n=8"): None,
    ("4 * itemsize(a) * tile > global_memory", "tiled n=8 tile=4 block=32 device=cuda:0"): "no",
}


@pytest.mark.parametrize(("rule", "name"), SKIPPED)
def test_a_case_is_skipped_where_facts_of_the_device_say_so(
    rule: str, name: str, plan_of: PlanOf
) -> None:
    rule_now = rule.replace("max_threads", "shared_memory_per_block")
    plan = plan_of(KERNEL + f'skip: [{{when: "{rule_now}", reason: "no"}}]\n')
    case = plan.find(f"small__{name}")
    facts = {"shared_memory_per_block": 48, "global_memory": 60}

    assert skip_reason(case, facts) == SKIPPED[rule, name]


def test_a_skipped_case_stays_in_the_plan(plan_of: PlanOf) -> None:
    assert names(plan_of(KERNEL + "skip: [{when: n > 0, reason: never}]\n")) == ALL


def test_an_included_case_is_added_as_it_says(plan_of: PlanOf) -> None:
    plan = plan_of(
        KERNEL
        + """\
exclude: [{when: n == 16}]
include:
  - {implementation: numpy, values: {n: 999}}
  - {implementation: tiled, values: {n: 16}, block: [16, 2], grid: 7}
  - {implementation: tiled, values: {n: 17, tile: 3}, device: "cuda:1"}
  - {implementation: spread, values: {n: 9}, threads: 5}
"""
    )

    assert names(plan) - ALL == {
        "numpy n=999",
        "tiled n=16 block=16x2 grid=7 device=cuda:0",
        "tiled n=17 tile=3 block=32 device=cuda:1",
        "spread n=9 threads=5",
    }
    assert plan.warnings() == ()


def test_a_case_that_is_there_already_is_not_added_twice(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL + "include: [{implementation: numpy, values: {n: 8}}]\n")

    assert names(plan) == ALL
    assert messages(plan) == [
        "19: this entry adds no case to 'numpy': it is in the plan already, or no backend serves "
        "its device; remove it",
    ]


def test_an_implementation_without_a_device_is_a_warning(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.replace('[cpu, "cuda:0"]', "[cpu]"))

    assert [group.class_name for group in plan.groups()] == ["small__numpy", "small__spread"]
    assert messages(plan) == [
        "12: 'tiled' has no cases: its backend 'numba_cuda' serves none of the kernel's devices: "
        "cpu"
    ]


def test_an_included_case_may_be_the_only_one_on_a_device(plan_of: PlanOf) -> None:
    text = KERNEL.replace('[cpu, "cuda:0"]', "[cpu]")
    plan = plan_of(text + 'include: [{implementation: tiled, values: {n: 8}, device: "cuda:1"}]\n')

    assert [case.identity for case in expand(plan.group("small__tiled")).cases] == [
        "n=8 block=32 device=cuda:1"
    ]
    assert plan.warnings() == ()


def test_rules_are_not_judged_where_cases_could_not_be_made(plan_of: PlanOf) -> None:
    plan = plan_of(
        KERNEL.replace("[32, 64]", "[n - 8]") + "exclude: [{when: threads_per_block > 100}]\n"
    )

    assert len(plan.faults()) == 1
    assert plan.warnings() == ()


def test_blocks_that_are_equal_at_a_point_are_measured_once(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.replace("block: [32, 64]", "block: [4, [tile]]"))

    tiled = [case.identity for case in plan.cases() if case.implementation_name == "tiled"]

    assert len(tiled) == len(set(tiled)) == 6
    assert messages(plan) == [
        "12: 'tiled' comes twice to 'n=8 tile=4 block=4 device=cuda:0' and 1 more, measured once; "
        "remove the value that repeats"
    ]


def test_an_include_with_a_block_does_not_ask_for_that_of_its_implementation(
    plan_of: PlanOf,
) -> None:
    text = KERNEL.replace("block: [32, 64]", "block: [n // 16]")
    entries = ["{implementation: tiled, values: {n: 9, tile: 2}, block: 3, grid: 5}"]
    entries.append("{implementation: tiled, values: {n: 9, tile: 4}}")
    plan = plan_of(f"{text}include: [{', '.join(entries)}]\n")

    cases = [case for case in expand(plan.group("small__tiled")).cases if case.values["n"] == 9]

    assert [case.identity for case in cases] == [
        "n=9 block=3 grid=5 device=cuda:0",
        "n=9 tile=4 device=cuda:0",
    ]
    assert cases[0].problem is None
    assert "launch.block `n // 16`: is 0" in str(cases[1].problem)


def test_of_several_rules_only_those_that_take_something_out_are_not_idle(plan_of: PlanOf) -> None:
    rules = ["n == 8", "n <= 8", "threads_per_block == 64", "threads_per_block == 64 and tile == 4"]
    listed = ", ".join(f"{{when: {rule}}}" for rule in rules)
    plan = plan_of(f"{KERNEL}exclude: [{listed}]\n")

    idle = [warning.message.split("`")[1] for warning in plan.warnings()]

    assert idle == ["n <= 8", "threads_per_block == 64 and tile == 4"]
