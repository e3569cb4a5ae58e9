"""Finding a case by name, in this process and in another, and what can be said of a whole plan."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest

from gpubench.errors import PlanError
from gpubench.plan.expansion import expand
from gpubench.plan.plan import Plan, build_plan
from gpubench.suite.loading import load_suite

PlanOf = Callable[..., Plan]

KERNEL = """
sizes: {n: [8, 16]}
arrays: {a: {shape: [n], dtype: float32, intent: inout}}
call: [a, a, n]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
  other: {function: "gpubench.kernels.elementwise:vector_add_numpy", backend: numpy}
  cuda:
    function: gpubench.kernels.elementwise:vector_add_cuda
    backend: numba_cuda
    launch: {block: [32, 64]}
devices: [cpu, "cuda:0"]
measure: [kernel, end_to_end]
"""

NAMES = [
    "n=8 block=64 device=cuda:0",
    "small__cuda n=8 block=64 device=cuda:0",
    "suites.small__cuda.time_kernel n=8 block=64 device=cuda:0",
    "suites.small__cuda.time_end_to_end('n=8 block=64 device=cuda:0')",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_case_is_found_by_each_of_its_names(name: str, plan_of: PlanOf) -> None:
    case = plan_of(KERNEL).find(name)

    assert case.implementation_name == "cuda"
    assert case.identity == "n=8 block=64 device=cuda:0"


UNKNOWN = {
    "n=8": "2 cases are called 'n=8'; put one of small__numpy, small__other before",
    "n=80 block=64 device=cuda:0": "the plan has no case 'n=80 block=64 device=cuda:0'; did you "
    "mean 'n=8 block=64 device=cuda:0'?",
    "small__cdua n=8": "the plan has no benchmark 'small__cdua'; did you mean 'small__cuda'?",
    "small__numpy n=9": "small__numpy has no case 'n=9'; did you mean 'n=8'?",
    "small__numpy": "small__numpy has no case ''; the first of 2 is 'n=8'",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_name_that_fits_no_case_says_which_is_nearest(name: str, plan_of: PlanOf) -> None:
    with pytest.raises(PlanError) as error:
        plan_of(KERNEL).find(name)

    assert str(error.value) == UNKNOWN[name]


def test_a_group_is_one_class_of_asv(plan_of: PlanOf) -> None:
    group = plan_of(KERNEL).group("small__cuda")

    assert [group.benchmark(time).asv_name for time in group.times] == [
        "suites.small__cuda.time_kernel",
        "suites.small__cuda.time_end_to_end",
    ]
    assert len(expand(group).cases) == 4
    assert group.source_text().startswith("@cuda.jit")


def test_another_process_finds_the_same_case(plan_of: PlanOf) -> None:
    case = plan_of(KERNEL, gpu_count=2).find("n=16 block=32 device=cuda:0")

    again = pickle.loads(pickle.dumps(case))

    assert again is not case
    assert (again.identity, again.benchmark("kernel")) == (case.identity, case.benchmark("kernel"))
    assert again.group.gpu_count == case.group.gpu_count == 2


def test_another_process_applies_the_same_preset(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    text = "version: 1\nsuite: small\nkernels:\n  small:\n" + indent(KERNEL, "    ")
    path.write_text(text + "presets: {smoke: {sizes: {n: [4]}}}\n", encoding="utf-8")
    case = build_plan([load_suite(path, "smoke")], 0).find("small__numpy n=4")

    assert pickle.loads(pickle.dumps(case)).identity == "n=4"


def test_only_times_that_mean_something_on_the_backend_are_taken(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.replace("[kernel, end_to_end]", "[compile, kernel]"))

    assert plan.group("small__numpy").times == ("kernel",)
    assert plan.group("small__cuda").times == ("compile", "kernel")


def test_a_function_that_is_missing_is_a_fault_and_its_cases_stay(plan_of: PlanOf) -> None:
    plan = plan_of(
        KERNEL.replace("elementwise:vector_add_cuda", "elementwise:vector_ad_cuda").replace(
            'other: {function: "gpubench.kernels.elementwise:vector_add_numpy", backend: numpy}',
            'other: {function: "pkg:f", backend: nunba}',
        )
    )

    assert [(fault.line, fault.message.partition(";")[0]) for fault in plan.faults()] == [
        (11, "unknown backend 'nunba'"),
        (12, "module 'gpubench.kernels.elementwise' has no 'vector_ad_cuda'"),
    ]
    identities = [case.identity for case in expand(plan.group("small__cuda")).cases]
    assert identities == [
        "n=8 block=32 device=cuda:0",
        "n=8 block=64 device=cuda:0",
        "n=16 block=32 device=cuda:0",
        "n=16 block=64 device=cuda:0",
    ]
    assert [case.identity for case in expand(plan.group("small__other")).cases] == ["n=8", "n=16"]
    case = plan.find(f"small__cuda {identities[0]}")
    assert case.backend == "numba_cuda"
    assert case.fault == plan.faults()[1].message


def test_a_baseline_that_is_missing_is_a_fault_once(plan_of: PlanOf) -> None:
    plan = plan_of(KERNEL.replace("vector_add_numpy", "vector_add_nunpy", 1))

    assert len(plan.faults()) == 1
    fault = plan.find("n=8 block=32 device=cuda:0").fault
    assert fault is not None
    assert fault.startswith("the baseline small numpy cannot run: module ")


def test_planning_imports_no_numba_and_no_kernel(plan_of: PlanOf, tmp_path: Path) -> None:
    plan_of(KERNEL)
    script = (
        "import sys; from gpubench.plan.plan import build_plan; "
        "from gpubench.suite.loading import load_suite; "
        "plan = build_plan([load_suite('small.yaml')], 1); "
        "print(len(list(plan.cases())), len(plan.warnings()), "
        "*(name in sys.modules for name in ('numba', 'gpubench.kernels.elementwise')))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    # One warning: `other` is `numpy` under another name.
    assert done.stdout.split() == ["8", "1", "False", "False"]


def test_formulas_without_a_value_are_faults_at_their_place(plan_of: PlanOf) -> None:
    plan = plan_of(
        KERNEL.replace("block: [32, 64]", "block: [n - 10]") + "work: {flops: log2(n - 8)}\n"
    )
    flops = "at n=8: work.flops `log2(n - 8)`: log2 needs a number above 0, found 0"

    assert [(fault.line, fault.message) for fault in plan.faults()] == [
        (18, f"small numpy {flops}"),
        (18, f"small other {flops}"),
        (
            15,
            "small cuda at n=8: implementations.cuda.launch.block `n - 10`: is -2; a whole "
            "number of at least 1 is needed: change the formula, or `exclude` such cases",
        ),
    ]


DIVIDED = """\
sizes: {n: [8]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: out}
call: [a, b]
baseline: together
implementations:
  one: {function: "pkg:f", backend: numpy}
  two: {function: "pkg:g", backend: numpy}
  together: {parts: [one, two], split: n}
"""


def test_a_baseline_whose_work_is_divided_has_its_parts(plan_of: PlanOf) -> None:
    plan = plan_of(DIVIDED)

    baseline = plan.find("small__one n=8").baseline()

    assert baseline is not None and baseline.group is plan.group("small__together")
    assert [part.implementation_name for part in baseline.parts()] == ["one", "two"]


def test_a_baseline_whose_part_is_missing_cannot_run(plan_of: PlanOf) -> None:
    plan = plan_of(DIVIDED.replace("pkg:g", "pkg:nothing"))

    fault = plan.find("small__one n=8").fault

    assert fault is not None and "its part small two: module 'pkg' has no 'nothing'" in fault
