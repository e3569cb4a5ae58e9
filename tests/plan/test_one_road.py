"""The way from a kernel to its cases leads through each room once: axes, implementations, cases."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

from gpubench.plan import plan as room
from gpubench.plan.asked import with_values
from gpubench.plan.plan import Plan

T = TypeVar("T")
PlanOf = Callable[..., Plan]
PLAN = Path(room.__file__).parent
KERNEL = """
sizes: {{n: {sizes}}}
parameters: {{dtype: [float32, float64]}}
arrays: {{a: {{shape: [n], dtype: dtype, intent: inout}}}}
call: [a]
exclude: [{{when: n == 3}}]
include: [{{implementation: numpy, values: {{n: 7, dtype: float32}}}}]
baseline: numpy
implementations:
  numpy: {{function: "pkg:f"}}
  numba: {{function: "pkg:g"}}
"""


def calls_of(work: Callable[[], T]) -> tuple[T, list[str], Counter[str]]:
    """Return the outcome of some work, the rooms in the order in which they were entered, and how
    often each function of them was called."""
    rooms: list[str] = []
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if event == "call" and path.parent == PLAN and not name.startswith("<"):
            rooms.append(path.stem)
            calls[f"{path.stem}.{name}"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        outcome = work()
    finally:
        sys.setprofile(before)
    return outcome, list(dict.fromkeys(rooms)), calls


def calls_of_a_plan(plan_of: PlanOf, sizes: list[int]) -> tuple[int, list[str], Counter[str]]:
    """Return how many cases there are, and what ``calls_of`` tells of making them."""
    cases, rooms, calls = calls_of(lambda: [*plan_of(KERNEL.format(sizes=sizes)).cases()])
    return len(cases), rooms, calls


def test_rooms_are_entered_one_after_the_other(plan_of: PlanOf) -> None:
    _, rooms, _ = calls_of_a_plan(plan_of, [1, 2, 3])

    assert rooms == ["plan", "source", "group", "axes", "expansion", "rules", "case"]


def test_a_case_more_costs_no_call_of_the_rooms_before_it(plan_of: PlanOf) -> None:
    few, _, before = calls_of_a_plan(plan_of, [1, 2, 3])
    many, _, after = calls_of_a_plan(plan_of, [*range(1, 40)])

    assert many > few
    earlier = ("plan.build_plan", "group.", "axes.")  # sources are read once in a process
    assert {name: number for name, number in after.items() if name.startswith(earlier)} == {
        name: number for name, number in before.items() if name.startswith(earlier)
    }


def test_a_group_is_expanded_once_for_all_that_ask_a_plan(plan_of: PlanOf) -> None:
    def ask() -> Plan:
        plan = plan_of(KERNEL.format(sizes=[1, 2, 3]) + "measure: [kernel, compile]\n")
        name = "small__numba.time_kernel n=2 dtype=float32"
        assert plan.find(name) in [*plan.cases()]
        assert plan.faults() == plan.warnings() == ()
        assert plan.times_of(plan.find(name)) == ("kernel",)
        assert with_values(plan, ["n=2"]) is plan
        return plan

    plan, _, calls = calls_of(ask)

    assert calls["expansion.expand"] == len(plan.groups()) == 2


def test_values_that_are_asked_for_expand_their_kernel_alone(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.format(sizes=[1, 2]))
    expected = len([*plan.cases()])

    wider, _, calls = calls_of(lambda: len([*with_values(plan, ["n=9"]).cases()]))

    assert wider == expected + 4
    assert calls["expansion.expand"] == 2
