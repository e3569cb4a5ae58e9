"""A ufunc for CUDA chooses its own launch: it has one case, and no row is of another launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.backends.protocol import ONE_THREAD_LAUNCH, refuse_launch
from gpubench.errors import KernelError
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

SUITE = """\
version: 1
suite: s
kernels:
  k:
    sizes: {n: [200]}
    arrays:
      x: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [x, out]
    baseline: NAME
    implementations:
      NAME: {function: "ufuncs_of_cuda:NAME", backend: numba_cuda, LAUNCH}
    devices: ["cuda:0"]
INCLUDE
"""
KERNELS = """\
import numba
from numba import cuda, guvectorize

@guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="cuda")
def general(x, out):
    out[0] = x[0]

@numba.vectorize(["float32(float32)"], target="cuda")
def elements(x, out):
    return x

@cuda.jit
def kernel(x, out):
    out[0] = x[0]
"""
BLOCKS = "launch: {block: [64, 128, 256]}"


def planned(folder: Path, name: str, launch: str, include: str = "") -> tuple[list[str], list[str]]:
    """Return the cases of a suite and what is said of it."""
    (folder / "suites").mkdir()
    (folder / "ufuncs_of_cuda.py").write_text(KERNELS)
    path = folder / "suites/s.yaml"
    text = SUITE.replace("NAME", name).replace("LAUNCH", launch).replace("INCLUDE", include)
    path.write_text(text.replace(", }", "}"))
    plan = build_plan([load_suite(path)], 1)
    said = [fault.message for fault in (*plan.faults(), *plan.warnings())]
    return [case.identity for each in plan.expansions() for case in each.cases], said


@pytest.mark.parametrize("name", ["general", "elements"])
@pytest.mark.parametrize("launch", [BLOCKS, "launch: {block: [64], grid: [1, 2]}"])
def test_a_ufunc_has_one_case_whatever_launches_are_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, launch: str
) -> None:
    monkeypatch.chdir(tmp_path)
    cases, said = planned(tmp_path, name, launch)
    assert cases == ["n=200 device=cuda:0"]
    decorator = {"general": "guvectorize", "elements": "vectorize"}[name]
    message = f"@{decorator} makes a function that chooses block and grid itself: remove it"
    assert message in said


def test_what_is_included_of_it_has_no_launch_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    include = "    include: [{values: {n: 8}, implementation: general, block: 32}]"
    cases, _ = planned(tmp_path, "general", BLOCKS, include)
    assert cases == ["n=200 device=cuda:0", "n=8 device=cuda:0"]


def test_without_a_launch_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert planned(tmp_path, "general", "") == (["n=200 device=cuda:0"], [])


def test_a_kernel_keeps_its_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cases, said = planned(tmp_path, "kernel", BLOCKS)
    assert [case.split()[1] for case in cases] == ["block=64", "block=128", "block=256"]
    assert said == []


def test_a_launch_is_refused_by_what_would_not_make_it() -> None:
    refuse_launch("a ufunc of Numba", None)
    with pytest.raises(KernelError) as refusal:
        refuse_launch("a ufunc of Numba", ONE_THREAD_LAUNCH)
    assert str(refusal.value) == (
        "a ufunc of Numba chooses its block and grid itself: remove `launch`"
    )
