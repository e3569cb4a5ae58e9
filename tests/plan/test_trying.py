"""Cases to try: each counted case with another value of one axis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.errors import GpubenchError
from gpubench.plan.asked import with_values
from gpubench.plan.case import Case
from gpubench.plan.plan import Plan
from gpubench.plan.rules import selected
from gpubench.plan.trying import pair_up, proposed_value, without_axis

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [8, 16]}
parameters: {tile: [4, 8]}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a, a, tile]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
"""


def chosen(plan: Plan, *texts: str) -> list[Case]:
    return selected(with_values(plan, texts).cases(), None, texts)


def test_a_case_is_paired_with_the_one_that_differs_in_the_axis_alone(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)
    trials = pair_up(chosen(plan, "tile=4"), chosen(plan, "tile=2"), "tile=2")
    assert [trial.words for trial in trials] == ["tile=4 becomes tile=2"] * 2
    assert [trial.before.values["n"] for trial in trials] == [8, 16]
    assert [trial.after.values["n"] for trial in trials] == [8, 16]


def test_what_is_counted_already_is_tried_from_the_other_values(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)
    trials = pair_up(chosen(plan, "n=8"), chosen(plan, "n=8", "tile=8"), "tile=8")
    assert [trial.words for trial in trials] == ["tile=4 becomes tile=8"]


@pytest.mark.parametrize("text", ["tile=4", "padding=1"])
def test_where_nothing_differs_that_is_said(text: str, plan_of: PlanOf) -> None:
    cases = chosen(plan_of(KERNEL), "tile=4")
    with pytest.raises(GpubenchError, match="no case that is counted has another value"):
        pair_up(cases, cases, text)


def test_the_axis_that_is_tried_keeps_none_of_its_values() -> None:
    assert without_axis(("n=8", "tile=4", " tile = 8"), "tile") == ("n=8",)


LAUNCHED = """
sizes: {n: [64]}
parameters: {tile: [8], padding: [0]}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a, a, padding]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
  plain:
    function: "gpubench.kernels.elementwise:vector_add_cuda"
    backend: numba_cuda
    launch: {block: [[4, 64]], grid: cover}
  tiled:
    function: "gpubench.kernels.elementwise:vector_add_cuda"
    backend: numba_cuda
    launch: {block: [[tile, 4]], grid: cover}
devices: [cpu, "cuda:0"]
"""
WIDER = "make blockDim.x a multiple of 32"


@pytest.mark.parametrize(
    ("implementation", "change", "value"),
    [
        ("plain", "pad rows of 32 elements to 33", "padding=1"),
        ("plain", "pad rows of 32 elements to 36", "padding=4"),
        ("plain", WIDER, "block=32x8"),
        ("tiled", WIDER, "tile=32"),  # a block alone would not fit the tile
        ("plain", "let threadIdx.x choose the last index", None),
    ],
)
def test_a_hint_says_which_value_its_change_is(
    implementation: str, change: str, value: str | None, plan_of: PlanOf
) -> None:
    plan = plan_of(LAUNCHED, gpu_count=1)
    case = next(one for one in plan.cases() if one.implementation_name == implementation)
    assert proposed_value(case, change) == value
