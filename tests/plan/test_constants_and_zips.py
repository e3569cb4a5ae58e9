"""Constants, intermediate values, axes that move together: what real kernels are declared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest

from gpubench.errors import PlanError
from gpubench.plan.case import Case
from gpubench.plan.expansion import expand
from gpubench.plan.explanation import explain
from gpubench.plan.plan import Plan, build_plan
from gpubench.plan.rules import skip_reason
from gpubench.plan.version import benchmark_version
from gpubench.suite.loading import load_suite

PlanOf = Callable[..., Plan]

KERNEL = """\
sizes: {n: [8, 16], width: [3]}
parameters: {tile: [2, 4]}
let:
  steps: 20
  rate: 0.25
  mode: "'fast'"
  rows: n // 4
  cells: rows * width
  tiles: cdiv(rows, tile)
arrays:
  a: {shape: [rows, width], dtype: float64, fill: {formula: i * rate + j / rows}, intent: inout}
scalars:
  dt: {value: rate / steps}
call: [a, steps, dt, mode]
implementations:
  numpy: {function: pkg:f}
  cuda:
    factory: pkg:make
    with: {tile: tile, rows: rows}
    backend: numba_cuda
    launch: {block: [[tile, tile]], grid: ["tiles", 1], shared_bytes: 8 * cells}
devices: [cpu, "cuda:0"]
work: {bytes: 16 * cells * steps, flops: tiles}
exclude: [{when: rows == 4 and tile == 4}]
skip: [{when: cells * steps > sm_count, reason: many cells}]
"""


def cases(plan: Plan, name: str) -> dict[str, Case]:
    return {case.identity: case for case in expand(plan.group(f"small__{name}")).cases}


def test_what_let_defines_is_in_no_name_and_its_axes_are_used(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    assert plan.faults() == ()
    assert list(cases(plan, "numpy")) == ["n=8 width=3", "n=16 width=3"]
    assert list(cases(plan, "cuda")) == [
        f"n={n} width=3 tile={tile} block={tile}x{tile} grid={grid} device=cuda:0"
        for n, tile, grid in [(8, 2, 1), (8, 4, 1), (16, 2, 2)]
    ]


def test_shapes_launches_scalars_and_work_use_what_let_defines(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)
    numpy = cases(plan, "numpy")["n=16 width=3"]
    cuda = cases(plan, "cuda")["n=16 width=3 tile=2 block=2x2 grid=2 device=cuda:0"]

    assert numpy.array_specs["a"].shape == (4, 3)
    assert numpy.scalars() == {"dt": 0.0125}
    assert cuda.with_values() == {"tile": 2, "rows": 4}
    assert cuda.launch is not None
    assert (cuda.launch.grid, cuda.launch.shared_bytes) == ((2, 1, 1), 96)
    assert (cuda.work(), numpy.work()) == ((3840, 2), (3840, None))
    assert skip_reason(cuda, {"sm_count": 240}) is None
    assert skip_reason(cuda, {"sm_count": 239}) == "many cells"


def test_constants_over_an_axis_that_a_case_has_not_are_left_out(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)
    shared = {"steps": 20, "rate": 0.25, "mode": "fast", "rows": 2, "cells": 6}

    assert cases(plan, "numpy")["n=8 width=3"].constants() == shared
    (cuda, *_) = cases(plan, "cuda").values()
    assert cuda.constants() == {**shared, "tiles": 1}
    assert cuda.data_values() == {"n": 8, "width": 3}


def test_a_formula_fills_an_array(plan_of: PlanOf) -> None:
    case = cases(plan_of(KERNEL), "numpy")["n=16 width=3"]
    i, j = np.indices((4, 3))

    np.testing.assert_array_equal(case.filled(case.array_specs["a"]), i * 0.25 + j / 4)


FAULTS = {
    "a fill": (
        "i * rate + j / rows",
        "i / (n - 16)",
        "arrays.a.fill.formula `i / (n - 16)`: is nan at [0, 0]; float64 takes finite numbers up to"
        " 1.7976931348623157e+308: change the formula",
        (11, 61),
    ),
    "a constant": ("n // 4", "log2(n - 16)", "let.rows `log2(n - 16)`: log2 needs a number above"
                   " 0, found 0", (7, 9)),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_a_formula_without_a_value_is_a_fault_of_its_cases(kind: str, plan_of: PlanOf) -> None:
    old, new, message, (line, column) = FAULTS[kind]
    plan = plan_of(KERNEL.replace(old, new).replace("[8, 16]", "[32, 16]"))

    fault = plan.faults()[0]
    assert fault.message == f"small numpy at n=16 width=3: {message}"
    assert (fault.line, fault.column) == (line + 4, column + 4)
    case = cases(plan, "numpy")["n=16 width=3"]
    with pytest.raises(PlanError):
        case.filled(case.array_specs["a"])
    assert cases(plan, "numpy")["n=32 width=3"].fault is None


ZIPPED = """\
sizes:
  shape: {zip: {m: [1024, 4096, 4096], k: [64, 64, 128], alpha: [0.5, 1.5, 0.5], mode: [x, y, y],
    dtype: [float32, float32, float64]}}
arrays:
  a: {shape: [m, k], dtype: dtype}
  b: {shape: [m], dtype: dtype, intent: out}
scalars: {s: {value: 2 * alpha, dtype: dtype}}
call: [a, b, s, mode]
implementations:
  numpy: {function: pkg:f}
"""


def test_axes_that_move_together_have_any_values(plan_of: PlanOf) -> None:
    plan = plan_of(ZIPPED)

    assert (plan.faults(), plan.warnings()) == ((), ())
    assert list(cases(plan, "numpy")) == [
        "k=64 m=1024 alpha=0.5 dtype=float32 mode=x",
        "k=64 m=4096 alpha=1.5 dtype=float32 mode=y",
        "k=128 m=4096 alpha=0.5 dtype=float64 mode=y",
    ]
    (*_, last) = cases(plan, "numpy").values()
    assert last.group.axes.size_names == ("k", "m")
    assert last.array_specs["a"].dtype == np.float64
    assert [type(value) for value in last.scalars().values()] == [np.float64]


def test_the_place_of_a_repeated_value_is_that_of_the_values_beside_it(plan_of: PlanOf) -> None:
    (*_, last) = cases(plan_of(ZIPPED), "numpy").values()

    origins = {field: origin.rpartition("small.yaml:")[2] for field, _, origin in explain(last)}
    assert (origins["m"], origins["k"]) == ("6:37", "6:56")


PRESETS = """\
version: 1
suite: small
kernels:
  small:
    sizes: {n: [8]}
    let: {steps: 20, half: n // 2}
    arrays:
      a: {shape: [n], dtype: float32, intent: inout}
      b: {shape: [half], dtype: float32, intent: out}
    scalars: {dt: {value: 0.5, dtype: float32}}
    call: [a, b, dt, steps]
    implementations: {numpy: {function: "pkg:f"}}
presets:
  S: {sizes: {n: [4]}}
  paper:
    let: {steps: 500}
    arrays: {a: {fill: {formula: 20.0 / n}}}
    kernels: {small: {scalars: {dt: {value: 0.001}}, arrays: {b: {shape: [half, 2], dtype: int32}}}}
"""


def test_a_preset_changes_constants_arrays_and_scalars(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(PRESETS)

    def only(preset: str | None) -> Case:
        (case,) = build_plan([load_suite(path, preset)], 0).cases()
        return case

    plain, paper = only(None), only("paper")
    assert (plain.constants(), paper.constants()) == (
        {"steps": 20, "half": 4},
        {"steps": 500, "half": 4},
    )
    assert plain.scalars() == {"dt": 0.5}
    assert paper.scalars() == {"dt": np.float32(0.001)}
    assert paper.array_specs["a"].intent == "inout"
    assert (paper.filled(paper.array_specs["a"]) == 2.5).all()
    assert (paper.array_specs["b"].shape, paper.array_specs["b"].dtype) == ((4, 2), np.int32)
    assert paper.identity == plain.identity == "n=8"
    explained = {field: origin for field, _, origin in explain(paper)}
    assert explained["let.steps"] == f"{path}:16:18 (preset paper)"


def test_a_preset_that_changes_what_is_measured_has_results_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(PRESETS)

    def version(preset: str | None) -> str:
        kernel = load_suite(path, preset).suite.kernels["small"]
        return benchmark_version(kernel, "numpy", "kernel")

    assert version("S") == version(None) != version("paper")


def test_a_long_chain_of_names_is_refused(tmp_path: Path) -> None:
    from gpubench.errors import SuiteError

    def text(count: int) -> str:
        names = [f"x{number}: x{number - 1} + 1" for number in range(1, count)]
        let = "let: {x0: n, " + ", ".join(names) + f"}}\narrays: {{a: {{shape: [x{count - 1}], "
        let += "dtype: int8, intent: out}}\ncall: [a]\nsizes: {n: [1]}\n"
        let += "implementations: {numpy: {function: 'pkg:f'}}\n"
        return "version: 1\nsuite: small\nkernels:\n  small:\n" + indent(let, "    ")

    path = tmp_path / "small.yaml"
    path.write_text(text(100))
    (case,) = build_plan([load_suite(path)], 0).cases()
    assert case.array_specs["a"].shape == (100,)
    path.write_text(text(500))
    with pytest.raises(SuiteError, match="'x100' leads back to itself, or over more than 100"):
        load_suite(path)


def test_a_preset_may_do_without_a_constant(tmp_path: Path) -> None:
    text = PRESETS.replace("fill: {formula: 20.0 / n}", "shape: [7]")
    text = text.replace("a: {shape: [n],", "a: {shape: [count],").replace(
        "let: {", "let: {count: 3,", 1
    )
    path = tmp_path / "small.yaml"
    path.write_text(text)

    (case,) = build_plan([load_suite(path, "paper")], 0).cases()
    assert case.array_specs["a"].shape == (7,)
