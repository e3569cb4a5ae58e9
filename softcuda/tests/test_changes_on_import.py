"""What softcuda changes in modules of others when they are imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from softcuda.importing import change_on_import
from softcuda.pycuda import compile_by_nvrtc_on_import

PROGRAM = "__global__ void scale(float *a) { a[threadIdx.x] *= BY; }"


def test_a_module_is_changed_once_it_is_loaded_however_often_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "looked_for.py").write_text("number = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    change_on_import("looked_for", lambda module: setattr(module, "number", module.number + 1))
    assert importlib.util.find_spec("looked_for") is not None
    assert importlib.import_module("looked_for").number == 2
    change_on_import("looked_for", lambda module: setattr(module, "number", 5))
    assert sys.modules.pop("looked_for").number == 5


class CompileError(Exception):
    """As PyCUDA's, which is made of a message and the command."""

    def __init__(self, message: str, command: list[str], stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return ``pycuda.compiler`` as softcuda changes it, of a PyCUDA that is not built."""
    pytest.importorskip("cuda.bindings.nvrtc")
    module: Any = ModuleType("pycuda.compiler")
    module._find_pycuda_include_path = lambda: "/nowhere"
    device = SimpleNamespace(compute_capability=lambda: (8, 6))
    context = SimpleNamespace(get_device=lambda: device)
    driver = SimpleNamespace(Context=context, CompileError=CompileError)
    for name, each in (("pycuda", ModuleType("pycuda")), ("pycuda.driver", driver)):
        monkeypatch.setitem(sys.modules, name, each)
    monkeypatch.setitem(sys.modules, "pycuda.compiler", module)
    compile_by_nvrtc_on_import()
    return module


def test_pycuda_compiles_to_ptx_for_the_device_without_nvcc(compiler: Any) -> None:
    ptx = compiler.compile(PROGRAM, nvcc="/no/nvcc", options=["-DBY=3"]).decode()
    assert ".target sm_86" in ptx
    assert ".entry scale(" in ptx
    mangled = compiler.compile(PROGRAM, no_extern_c=True, arch="sm_90", options=["-DBY=3"]).decode()
    assert ".target sm_90" in mangled
    assert ".entry _Z5scalePf(" in mangled


def test_a_program_that_does_not_compile_says_who_refused_it(compiler: Any) -> None:
    with pytest.raises(CompileError, match="NVRTC, which compiles in place of nvcc") as refusal:
        compiler.compile(PROGRAM)
    assert 'identifier "BY" is undefined' in refusal.value.stderr
