"""Which line of which file sets each value of a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.plan.explanation import explain
from gpubench.plan.plan import Plan, build_plan
from gpubench.suite.loading import load_suite

BASE = """\
version: 1
suite: base
kernels:
  small:
    sizes: {n: [8, 16]}
    parameters:
      dtype:
        - float32
        - float64
      tile: {values: [2, 4], default: 2}
    arrays: {a: {shape: [n], dtype: dtype, intent: inout}}
    scalars: {alpha: {value: 2.5}}
    call: [a, alpha]
    implementations:
      numpy: {function: pkg:f, backend: numpy}
      tiled:
        factory: pkg:make
        with: {width: 2 * tile}
        backend: numba_cuda
        launch: {block: [32]}
    devices: [cpu, "cuda:0"]
    work: {flops: n}
    sampling: {repeat: 3}
presets:
  smoke:
    sizes: {n: [4]}
"""

TOP = """\
version: 1
suite: top
extends: base.yaml
kernels:
  small:
    measure: [kernel, cold]
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(BASE, encoding="utf-8")
    Path("top.yaml").write_text(TOP, encoding="utf-8")
    return build_plan([load_suite("top.yaml", "smoke")], 0)


def test_each_value_comes_with_the_place_that_set_it(plan: Plan) -> None:
    case = plan.find("top__small__tiled n=4 dtype=float64 tile=4 block=32 device=cuda:0")

    rows = {field: (value, origin) for field, value, origin in explain(case)}

    assert rows == {
        "n": ("4", "base.yaml:26:17 (preset smoke)"),
        "dtype": ("float64", "base.yaml:9:11"),
        "tile": ("4", "base.yaml:10:13"),
        "block": ("32", "base.yaml:20:25"),
        "grid": ("1 (covers a)", "default"),
        "shared_bytes": ("0", "default"),
        "device": ("cuda:0", "base.yaml:21:14"),
        "factory": ("pkg:make", "base.yaml:17:18"),
        "with.width": ("8", "base.yaml:18:23"),
        "backend": ("numba_cuda", "base.yaml:19:18"),
        "arrays.a": ("float64 [4] inout", "base.yaml:11:17"),
        "scalars.alpha": ("2.5", "base.yaml:12:22"),
        "work.flops": ("4", "base.yaml:22:19"),
        "call": ("a, alpha", "base.yaml:13:11"),
        "baseline": ("numpy", "default"),
        "measure": ("kernel, cold", "top.yaml:6:14"),
        "sampling.repeat": ("3", "base.yaml:23:24"),
    }


def test_a_backend_comes_from_the_name_or_from_the_top_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "base.yaml"
    text = BASE.replace("pkg:f, backend: numpy", "pkg:f").replace("backend: numba_cuda", "")
    path.write_text(text.replace("kernels:\n", "backend: numba_cuda\nkernels:\n", 1))
    plan = build_plan([load_suite(path)], 0)

    plain = explain(plan.find("base__small__numpy n=8 dtype=float32"))
    tiled = explain(plan.find("base__small__tiled n=8 dtype=float32 block=32 device=cuda:0"))

    assert ("backend", "numpy", "the implementation's name") in plain
    assert ("backend", "numba_cuda", f"{path}:3:10") in tiled
