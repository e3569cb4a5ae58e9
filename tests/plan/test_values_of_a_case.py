"""What a case tells the measuring side: arrays, scalars, launch, work, its baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gpubench.backends.protocol import Launch
from gpubench.errors import PlanError
from gpubench.plan.case import Case
from gpubench.plan.plan import Plan

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [100], m: [7]}
parameters: {dtype: [float64], tile: [4]}
arrays:
  a: {shape: [m, "2 * n"], dtype: dtype, fill: ones}
  b: {shape: [n], dtype: int32, intent: out}
scalars:
  alpha: {value: 2.5, dtype: dtype}
  count: {value: n * itemsize(a)}
  flag: {value: true}
call: [a, b, alpha, count, flag]
implementations:
  numpy: {function: pkg:f, backend: numpy}
  tiled:
    factory: pkg:make
    with: {tile: 2 * tile, name: "'text'", fast: true}
    backend: numba_cuda
    launch: {block: [32, 64], shared_bytes: tile * itemsize(a)}
devices: [cpu, "cuda:0"]
work: {bytes: size(a) * itemsize(a), flops: n * tile / 3}
"""


def only(plan: Plan, implementation: str) -> Case:
    return next(case for case in plan.cases() if case.implementation_name == implementation)


def test_arrays_are_as_large_as_they_are_at_the_case(plan_of: PlanOf) -> None:
    specs = only(plan_of(KERNEL), "numpy").array_specs

    a, b = specs["a"], specs["b"]
    assert (a.shape, a.dtype, a.itemsize, a.size) == ((7, 200), np.float64, 8, 1400)
    assert (a.intent, a.fill) == ("in", "ones")
    assert (b.shape, b.dtype, b.intent, b.fill) == ((100,), np.int32, "out", None)


def test_scalars_have_their_declared_dtype(plan_of: PlanOf) -> None:
    scalars = only(plan_of(KERNEL), "numpy").scalars()

    assert scalars == {"alpha": 2.5, "count": 800, "flag": True}
    assert [type(value) for value in scalars.values()] == [np.float64, int, bool]


def test_constants_of_a_factory_are_computed(plan_of: PlanOf) -> None:
    assert only(plan_of(KERNEL), "tiled").with_values() == {"tile": 8, "name": "text", "fast": True}


def test_work_is_counted_in_whole_numbers(plan_of: PlanOf) -> None:
    assert only(plan_of(KERNEL), "tiled").work() == (11200, 133)


def test_work_over_an_axis_that_a_case_has_not_is_unknown(plan_of: PlanOf) -> None:
    assert only(plan_of(KERNEL), "numpy").work() == (11200, None)


def test_the_inputs_depend_only_on_axes_of_the_data(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    assert only(plan, "tiled").values == {"m": 7, "n": 100, "dtype": "float64", "tile": 4}
    assert only(plan, "tiled").data_values() == only(plan, "numpy").data_values()
    assert only(plan, "numpy").data_values() == {"m": 7, "n": 100, "dtype": "float64"}


LAUNCHES = {
    "block: [32]": Launch((32, 1, 1), (4, 1, 1)),
    "block: [32], grid: cover": Launch((32, 1, 1), (4, 1, 1)),
    "block: [[16, 2]], over: [n, m]": Launch((16, 2, 1), (7, 4, 1)),
    "block: [[16, 2]], over: [n, m, 3]": Launch((16, 2, 1), (7, 4, 3)),
    "block: [[16, 2, 2]]": Launch((16, 2, 2), (7, 1, 1)),
    "block: [32], grid: [[9, 2]]": Launch((32, 1, 1), (9, 2, 1)),
    "block: [32], grid: ['cdiv(n, 32)', m]": Launch((32, 1, 1), (4, 7, 1)),
    "block: [32], shared_bytes: 8 * tile": Launch((32, 1, 1), (4, 1, 1), shared_bytes=32),
    "block: [32], cooperative: true": Launch((32, 1, 1), (4, 1, 1), cooperative=True),
}


@pytest.mark.parametrize("written", LAUNCHES)
def test_a_launch_in_whole_numbers(written: str, plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.replace("block: [32, 64], shared_bytes: tile * itemsize(a)", written))

    assert only(plan, "tiled").launch == LAUNCHES[written]


def test_covering_puts_the_last_dimension_of_the_first_output_on_x(plan_of: PlanOf) -> None:
    text = KERNEL.replace("fill: ones", "intent: inout").replace("[32, 64]", "[[32, 2]]")

    assert only(plan_of(text), "tiled").launch == Launch((32, 2, 1), (7, 4, 1), shared_bytes=32)


def test_an_implementation_without_a_launch_has_none(plan_of: PlanOf) -> None:
    case = only(plan_of(KERNEL), "numpy")

    assert (case.launch, case.block, case.grid, case.threads) == (None, None, None, None)


BROKEN = {
    "shape: [n]|shape: [n / 3]": "arrays.b.shape `n / 3`: is 33.333333333333336; a whole number of "
    "at least 0 is needed: change the formula, or `exclude` such cases",
    "shape: [n]|shape: [n - 200]": "arrays.b.shape `n - 200`: is -100; a whole number of at least "
    "0 is needed: change the formula, or `exclude` such cases",
    "shape: [n]|shape: [n // (m - 7)]": "arrays.b.shape `n // (m - 7)`: division by zero",
}


@pytest.mark.parametrize("change", BROKEN)
def test_a_formula_without_a_value_names_case_field_and_formula(
    change: str, plan_of: PlanOf
) -> None:
    case = only(plan_of(KERNEL.replace(*change.split("|"))), "numpy")

    with pytest.raises(PlanError) as error:
        _ = case.array_specs

    place, message = str(error.value).split(": ", 1)
    assert place.rpartition("/")[2].startswith("small.yaml:10:")
    assert message == f"small numpy at m=7 n=100 dtype=float64: {BROKEN[change]}"


def test_a_cover_of_more_than_three_dimensions_says_what_to_write(plan_of: PlanOf) -> None:
    case = only(plan_of(KERNEL.replace("{shape: [n]", "{shape: [n, m, 2, 2]")), "tiled")

    with pytest.raises(PlanError, match="4 dimensions does not fit a grid of three: write `over`"):
        _ = case.launch


def test_the_baseline_stands_where_the_case_stands(plan_of: PlanOf) -> None:
    text = KERNEL.replace("m: [7]", "m: [7, 8]")
    plan = plan_of(text)
    tiled = plan.find("small__tiled m=8 n=100 dtype=float64 tile=4 block=64 device=cuda:0")

    baseline = tiled.baseline()

    assert baseline is not None
    assert baseline.identity == "m=8 n=100 dtype=float64"
    assert baseline.device == "cpu"
    assert baseline == plan.find("small__numpy m=8 n=100 dtype=float64")
    assert baseline.baseline() is None


def test_a_baseline_with_a_launch_takes_its_first_on_the_same_device(plan_of: PlanOf) -> None:
    text = KERNEL.replace("call:", "baseline: tiled\ncall:").replace("tile: [4]", "tile: [4, 8]")
    text = text.replace("numpy: {function: pkg:f, backend: numpy}", "other: " + "{function: pkg:o, "
        "backend: numba_cuda, launch: {block: [128]}}")  # fmt: skip
    plan = plan_of(text.replace("cuda:0", "cuda:*"), gpu_count=2)
    other = plan.find("small__other m=7 n=100 dtype=float64 block=128 device=cuda:1")

    baseline = other.baseline()

    assert baseline is not None
    assert baseline.identity == "m=7 n=100 dtype=float64 tile=4 block=32 device=cuda:1"


def test_a_baseline_stands_at_the_default_of_an_axis_of_its_own(plan_of: PlanOf) -> None:
    text = KERNEL.replace("call:", "baseline: tiled\ncall:")
    text = text.replace("tile: [4]", "tile: {values: [4, 8], default: 8}")

    baseline = only(plan_of(text), "numpy").baseline()

    assert baseline is not None
    assert baseline.values["tile"] == 8
    assert baseline.device == "cuda:0"


def test_a_kernel_with_one_implementation_has_no_baseline(plan_of: PlanOf) -> None:
    text = KERNEL.replace("  numpy: {function: pkg:f, backend: numpy}\n", "")
    plan = plan_of(text.replace("call:", "baseline: tiled\ncall:"))

    assert only(plan, "tiled").baseline() is None


def test_a_baseline_that_runs_nowhere_is_a_fault_of_its_candidates(plan_of: PlanOf) -> None:
    text = KERNEL.replace("call:", "baseline: tiled\ncall:").replace('[cpu, "cuda:0"]', "[cpu]")
    plan = plan_of(text)

    assert only(plan, "numpy").fault == (
        "the baseline small tiled (backend numba_cuda) runs on none of cpu: name a device "
        "that it serves, or another `baseline`"
    )
    assert [(fault.line, fault.message) for fault in plan.faults()] == [
        (15, only(plan, "numpy").fault)
    ]


def test_a_source_is_found_beside_its_suite(plan_of: PlanOf, tmp_path: Path) -> None:
    text = KERNEL.replace("function: pkg:f", "source: cl/add.cl, entry: add")

    assert only(plan_of(text), "numpy").source_path() == tmp_path / "cl" / "add.cl"
