"""A benchmark's version changes with what is measured, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.plan.plan import Plan
from gpubench.plan.version import benchmark_version

PlanOf = Callable[..., Plan]

KERNEL = """
title: A kernel
sizes: {n: [100], m: [7]}
parameters: {dtype: [float64], tile: [4]}
arrays:
  a: {shape: [n * m], dtype: dtype, fill: ones}
  b: {shape: [n], dtype: int32, intent: out}
init: {function: pkg:init, returns: [c, d]}
scalars: {alpha: {value: 2.5, dtype: dtype}, beta: {value: 1}}
call: [a, b, alpha, beta, c, d]
implementations:
  numpy: {function: pkg:f, backend: numpy}
  tiled:
    factory: pkg:make
    with: {tile: tile, fast: true}
    backend: numba_cuda
    launch: {block: [32, 64], grid: cover, over: [n], shared_bytes: 8 * tile}
devices: [cpu, "cuda:0"]
work: {bytes: n, flops: n}
measure: [kernel, end_to_end]
"""


def version(plan: Plan, time: str = "kernel", name: str = "tiled") -> str:
    return benchmark_version(plan.loaded[0].suite.kernels["small"], name, time)


SAME = {
    "a size": "n: [100]|n: {pow2: [4, 9]}",
    "a default": "n: [100]|n: {values: [100], default: 100}",
    "a value of a parameter": "tile: [4]|tile: [8, 16]",
    "a title": "title: A kernel|title: The kernel",
    "the order of arrays": "alpha: {value: 2.5, dtype: dtype}, beta: {value: 1}|"
    "beta: {value: 1}, alpha: {value: 2.5, dtype: dtype}",
    "the order of constants": "tile: tile, fast: true|fast: true, tile: tile",
    "another implementation": "pkg:f,|pkg:another,",
    "blocks": "block: [32, 64]|block: [[tile, 2]]",
    "grids": "grid: cover|grid: [1, 2]",
    "devices": '[cpu, "cuda:0"]|[cpu, "cuda:*"]',
    "work": "flops: n|flops: 2 * n",
    "spaces in a formula": "n * m|n*m",
    "a default that is written": "dtype: dtype, fill: ones|dtype: dtype, intent: in, fill: ones",
    "other times": "measure: [kernel, end_to_end]|measure: [kernel]",
    "what is compared": "measure:|check: {rtol: 1, outputs: {b: {atol: 2}}}\nmeasure:",
    "a rule": "measure:|exclude: [{when: n > 100}]\nmeasure:",
}

OTHER = {
    "a shape": "shape: [n * m]|shape: [m * n]",
    "a dtype": "dtype: int32|dtype: int64",
    "an order in memory": "dtype: int32|dtype: int32, order: F",
    "a cast": "factory: pkg:make|factory: pkg:make\n    cast: float32",
    "a fill": "fill: ones|fill: normal",
    "an intent": "intent: out|intent: inout",
    "the function that draws data": "pkg:init|pkg:start",
    "what it returns": "returns: [c, d]|returns: [d, c]",
    "a scalar": "value: 2.5|value: 2.25",
    "a scalar's kind": "value: 1}|value: 1.0}",
    "the order of arguments": "[a, b, alpha, beta, c, d]|[a, b, beta, alpha, c, d]",
    "the factory": "pkg:make|pkg:build",
    "a constant": "fast: true|fast: false",
    "what is covered": "over: [n]|over: [m]",
    "shared memory": "8 * tile|16 * tile",
    "cooperation": "grid: cover|grid: cover, cooperative: true",
}


@pytest.mark.parametrize("change", SAME)
def test_history_is_kept_when_only_this_changes(change: str, plan_of: PlanOf) -> None:
    changed = KERNEL.replace(*SAME[change].split("|"))
    assert changed != KERNEL

    assert version(plan_of(changed)) == version(plan_of(KERNEL))


@pytest.mark.parametrize("change", OTHER)
def test_history_starts_anew_when_this_changes(change: str, plan_of: PlanOf) -> None:
    changed = KERNEL.replace(*OTHER[change].split("|"))
    assert changed != KERNEL

    assert version(plan_of(changed)) != version(plan_of(KERNEL))


def test_each_time_and_each_implementation_has_its_own(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL)

    versions = {version(plan, t, n) for t in ("kernel", "cold") for n in ("numpy", "tiled")}

    assert len(versions) == 4


def test_a_version_is_the_same_in_every_release(plan_of: PlanOf) -> None:
    assert version(plan_of(KERNEL)) == "b7753a921fd8c833"
