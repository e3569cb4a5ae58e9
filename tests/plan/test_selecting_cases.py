"""Choosing cases on the command line: by a formula, and by values of axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from gpubench.errors import PlanError
from gpubench.plan.plan import Plan
from gpubench.plan.rules import selected

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [8, 16]}
parameters: {tile: [2, 4], p: [0.5], exact: [true]}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a, p, exact]
implementations:
  numpy: {function: pkg:f, backend: numpy}
  spread: {function: pkg:h, backend: numba, threads: [1, 2]}
  tiled:
    factory: pkg:make
    with: {tile: tile}
    backend: numba_cuda
    launch: {block: [[16, 2]], grid: [cover, 3]}
devices: [cpu, "cuda:0"]
"""

NUMPY = ["numpy n=8", "numpy n=16"]
SPREAD = [f"spread n={n} threads={t}" for n in (8, 16) for t in (1, 2)]
TILED = [f"tiled n={n} tile={t}{g}" for n in (8, 16) for t in (2, 4) for g in ("", " grid=3")]


def shown(plan: Plan, where: str | None = None, axes: Sequence[str] = ()) -> list[str]:
    return [
        f"{case.implementation_name} {case.identity}".replace(" p=0.5", "")
        .replace(" exact=true", "")
        .replace(" block=16x2", "")
        .replace(" device=cuda:0", "")
        for case in selected(plan.cases(), where, axes)
    ]


WHERE = {
    "n == 8": [name for name in NUMPY + SPREAD + TILED if "n=8" in name],
    "tile == 4": [name for name in TILED if "tile=4" in name],
    "implementation == 'numpy'": NUMPY,
    "backend == 'numba' and threads == 2": [name for name in SPREAD if "threads=2" in name],
    "device == 'cuda:0' and blocks == 3": [name for name in TILED if "grid=3" in name],
    "suite == 'small' and kernel == 'small' and threads_per_block == 32": TILED,
    "n * itemsize(a) > 32 and implementation != 'tiled'": ["numpy n=16", *SPREAD[2:]],
}


@pytest.mark.parametrize("where", WHERE)
def test_a_formula_keeps_the_cases_for_which_it_holds(where: str, plan_of: PlanOf) -> None:
    assert shown(plan_of(KERNEL), where) == WHERE[where]


AXES = {
    "n=8": [name for name in NUMPY + SPREAD + TILED if "n=8" in name],
    "n=8,16": NUMPY + SPREAD + TILED,
    "tile=4": NUMPY + SPREAD + [name for name in TILED if "tile=4" in name],
    "implementation=numpy, spread": NUMPY + SPREAD,
    "threads=2": NUMPY + [name for name in SPREAD if "threads=2" in name] + TILED,
    "block=16x2": NUMPY + SPREAD + TILED,
    "grid=cover": NUMPY + SPREAD + [name for name in TILED if "grid" not in name],
    "device=cpu": NUMPY + SPREAD,
    "p=0.5": NUMPY + SPREAD + TILED,
    "exact=true": NUMPY + SPREAD + TILED,
}


@pytest.mark.parametrize("axis", AXES)
def test_values_of_an_axis_are_kept(axis: str, plan_of: PlanOf) -> None:
    assert shown(plan_of(KERNEL), None, [axis]) == AXES[axis]


def test_everything_that_is_asked_for_holds_together(plan_of: PlanOf) -> None:
    kept = shown(plan_of(KERNEL), "n > 8", ["implementation=tiled", "tile=2"])

    assert kept == ["tiled n=16 tile=2", "tiled n=16 tile=2 grid=3"]


REFUSED = {
    (
        "widht > 3",
        "",
    ): "no case has 'widht'; names are backend, blocks, device, exact, "
    "implementation, kernel, n, p, suite, threads, threads_per_block, tile",
    ("tiel == 2", ""): "no case has 'tiel'; did you mean 'tile'?",
    ("tile > threads", ""): "no case has all of threads, tile",
    ("n >", ""): "--where 'n >': ",
    ("", "tiel=2"): "no case has 'tiel'; did you mean 'tile'?",
    ("", "n=8,9"): "no case has n=9; values are 8, 16",
    ("", "n"): "-a 'n': write NAME=VALUE or NAME=VALUE,VALUE such as n=1024,4096",
    ("", "n="): "-a 'n=': write NAME=VALUE or NAME=VALUE,VALUE such as n=1024,4096",
}


@pytest.mark.parametrize(("where", "axis"), REFUSED)
def test_what_cannot_be_meant_is_refused(where: str, axis: str, plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    with pytest.raises(PlanError) as error:
        shown(plan, where or None, [axis] if axis else [])

    assert str(error.value).startswith(REFUSED[where, axis])
    if not where.endswith(">"):
        assert str(error.value) == REFUSED[where, axis]
