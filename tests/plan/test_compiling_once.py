"""Compilation is measured once of cases that are compiled alike."""

import pytest

from gpubench.asv_benchmarks import benchmark_classes
from gpubench.errors import PlanError
from gpubench.measure.direct import jobs
from gpubench.plan.expansion import expand
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITE = """
version: 1
suite: sample
kernels:
  scale:
    sizes: {n: [8, 64, 512]}
    parameters: {dtype: [float32, float64], tile: [4, 8]}
    arrays:
      a: {shape: [n], dtype: dtype}
      out: {shape: [n], dtype: dtype, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "numpy:negative", backend: numpy}
      plain: {function: "none:plain", backend: numba, threads: [1, 2]}
      made: {factory: "none:make", with: {width: tile}, backend: numba}
      sized: {factory: "none:make", with: {width: n // 8}, backend: numba}
      cuda: {function: "none:kernel", backend: numba_cuda,
             launch: {block: [32, 64], grid: [cover, [n]]}}
    devices: [cpu, "cuda:*"]
    measure: [kernel, compile]
"""

COMPILED = {
    "numpy": [],
    "plain": ["n=8 dtype=float32 threads=1", "n=8 dtype=float64 threads=1"],
    "made": [
        f"n=8 dtype={dtype} tile={tile}" for dtype in ("float32", "float64") for tile in (4, 8)
    ],
    "sized": [f"n={n} dtype={dtype}" for n in (8, 64, 512) for dtype in ("float32", "float64")],
    "cuda": [
        f"n=8 dtype={dtype} block=32 device=cuda:{device}"
        for device in (0, 1)
        for dtype in ("float32", "float64")
    ],
}


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "sample.yaml").write_text(SUITE)
    return build_plan(load_suites([tmp_path]), gpu_count=2)


@pytest.mark.parametrize("implementation", COMPILED)
def test_sizes_launches_and_threads_are_compiled_alike(plan, implementation):
    group = plan.group(f"sample__scale__{implementation}")

    compiled = [case.identity for case in expand(group).cases if "compile" in plan.times_of(case)]

    assert sorted(compiled) == sorted(COMPILED[implementation])


def test_asv_gets_the_other_times_of_all_cases(tmp_path, plan):
    (tmp_path / "sample.yaml").write_text(SUITE)
    plain = benchmark_classes(tmp_path)["sample__scale__plain"]

    assert len(plain.params[0]) == 12
    assert sorted(plain.time_compile.params[0]) == sorted(COMPILED["plain"])
    assert not hasattr(plain.time_kernel, "params")


def test_cases_that_are_asked_for_are_compiled_once_whichever_they_are(plan):
    asked = [
        case for case in expand(plan.group("sample__scale__plain")).cases if case.values["n"] > 8
    ]

    compiled = [job.case.identity for job in jobs(asked) if job.time == "compile"]

    assert compiled == ["n=64 dtype=float32 threads=1", "n=64 dtype=float64 threads=1"]


def test_a_formula_without_a_value_does_not_hide_the_other_cases(tmp_path):
    (tmp_path / "sample.yaml").write_text(SUITE.replace("n // 8", "64 // (n - 8)"))
    plan = build_plan(load_suites([tmp_path]), gpu_count=0)
    cases = expand(plan.group("sample__scale__sized")).cases

    with pytest.raises(PlanError):
        cases[0].with_values()
    assert sum("compile" in plan.times_of(case) for case in cases) == 6
