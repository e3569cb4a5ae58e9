"""Values that a person asks for and no suite declares."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.errors import PlanError
from gpubench.plan.asked import with_values
from gpubench.plan.case import Case
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
    return selected(with_values(plan, texts).cases(), None, texts)


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
    assert with_values(plan, ["n=8,16", "implementation=numpy"]) is plan


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


LAUNCHED = """
sizes: {n: [8, 16]}
parameters: {tile: [4, 8]}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a, a, a]
devices: [cpu, "cuda:*"]
exclude: [{when: threads_per_block > 512}]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
  numba_cuda:
    function: "pkg:f"
    launch: {block: [64, [16, 16]], grid: [cover, [n]]}
  tiled: {function: "pkg:f", backend: numba_cuda, launch: {block: [[tile, tile]]}}
  numba: {function: "pkg:f", threads: [1, 2]}
"""


def test_a_block_a_grid_and_threads_that_no_suite_declares(plan_of: PlanOf) -> None:
    plan = plan_of(LAUNCHED)

    asked = ("n=8", "implementation=numba_cuda", "block=96,32x4", "grid=7")
    assert names(plan, *asked) == [
        "numba_cuda n=8 block=96 grid=7 device=cuda:0",
        "numba_cuda n=8 block=32x4 grid=7 device=cuda:0",
    ]
    assert names(plan, "n=9", "threads=3", "implementation=numba") == ["numba n=9 threads=3"]
    stays = names(plan, "n=8", "block=96", "tile=4", "grid=cover")  # who has no block stays
    assert stays[0] == "numpy n=8"
    assert "tiled n=8 tile=4 block=96 device=cuda:0" in stays


def test_a_value_that_only_a_formula_of_a_launch_uses(plan_of: PlanOf) -> None:
    assert names(plan_of(LAUNCHED), "n=8", "tile=16", "implementation=tiled") == [
        "tiled n=8 tile=16 block=16x16 device=cuda:0"
    ]


def test_values_are_read_however_they_are_written(plan_of: PlanOf) -> None:
    plan = plan_of(LAUNCHED)

    written = names(plan, "n=1_000", "implementation=numpy")
    assert written == ["numpy n=1000"]
    assert names(plan, "n=8", "implementation=numba_cuda", "block=64x1", "grid=cover") == [
        "numba_cuda n=8 block=64 device=cuda:0"
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["block=0"], "-a block=0: one to three whole numbers from 1, x first, as 256 or 16x16"),
        (["block=2x2x2x2"], "-a block=2x2x2x2: one to three whole numbers from 1"),
        (["grid=n"], "-a grid=n: one to three whole numbers from 1, .*, or cover"),
        (["threads=0"], "-a threads=0: a whole number from 1"),
        (["threads=two"], "-a threads=two: a whole number from 1"),
        (["block=1024"], "no case has block=1024; values are 64, 16x16, 4x4, 8x8"),  # excluded
        (["n=5", "n=6"], "-a n is given twice; write its values at once: -a n=5,6"),
        (["m=5"], "no case has 'm'; names are .*block, blocks, device, grid, .*threads, "),
    ],
)
def test_what_no_launch_can_be_is_refused(plan_of: PlanOf, texts: list[str], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        chosen(plan_of(LAUNCHED), *texts)


def test_a_name_that_no_case_has_is_not_among_those_that_are_offered(plan_of: PlanOf) -> None:
    with pytest.raises(PlanError, match=r"^no case has 'threads'; names are ") as refused:
        chosen(plan_of(KERNEL), "threads=2")
    assert "threads" not in str(refused.value).partition("names are")[2]


def test_a_plan_has_the_cases_that_were_asked_for(plan_of: PlanOf) -> None:
    plan = plan_of(LAUNCHED)

    wider = with_values(plan, ["n=100", "block=96"])
    assert len([*wider.cases()]) > len([*plan.cases()])
    case = next(case for case in wider.cases() if case.identity == "n=100")
    assert wider.times_of(case) == ("kernel",)
    assert with_values(plan, ["n=8"]) is plan
    assert with_values(plan, []) is plan
