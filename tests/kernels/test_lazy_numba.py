"""Numba is imported when something compiled is used, and not before."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
from gpubench.kernels.lazy_numba import cuda, njit, prange, vectorize

HALF = 0.5

def plain(a):
    return a / 2

@njit
def _half(x):
    return x * HALF

@njit(parallel=True)
def compiled(a):
    out = a.copy()
    for i in prange(a.size):
        out[i] = _half(a[i])
    return out

@vectorize(["float64(float64)"])
def element_by_element(x):
    return _half(x)

@cuda.jit(device=True)
def _half_on_device(x):
    return _half(x)

@cuda.jit
def on_device(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = _half_on_device(a[i])

def make(factor):
    @njit
    def made(a):
        return a * factor
    return made

@njit(no_such_option=True)
def wrong(a):
    return a
"""

OTHER = """
from gpubench.kernels.lazy_numba import njit
from sample_kernels import _half

@njit
def quarter(x):
    return _half(_half(x))
"""

PROGRAM = """
import json, sys
import numpy as np
import sample_kernels, other_kernels
from gpubench.measure.targets import load_object

def loaded():
    return [name for name in ("numba", "numba.cuda") if name in sys.modules]

a = np.arange(4.0)
said = {}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sample_kernels.py").write_text(KERNELS)
    (tmp_path / "other_kernels.py").write_text(OTHER)
    return tmp_path


def said(folder: Path, program: str):
    """What a fresh process puts into ``said``."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}{program}\nprint(json.dumps(said))"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_plain_form_imports_no_numba(folder):
    program = """
said["half"] = load_object("sample_kernels:plain")(a).tolist()
said["loaded"] = loaded()
"""
    assert said(folder, program) == {"half": [0.0, 0.5, 1.0, 1.5], "loaded": []}


def test_the_forms_for_the_cpu_import_no_cuda(folder):
    program = """
for name in ("compiled", "element_by_element"):
    function = load_object(f"sample_kernels:{name}")
    said[name] = [type(function).__name__, function(a).tolist()]
said["quarter"] = load_object("other_kernels:quarter")(8.0)
said["made"] = load_object("sample_kernels:make")(3)(2.0)
said["loaded"] = loaded()
"""
    half = [0.0, 0.5, 1.0, 1.5]
    assert said(folder, program) == {
        "compiled": ["CPUDispatcher", half],
        "element_by_element": ["DUFunc", half],
        "quarter": 2.0,
        "made": 6.0,
        "loaded": ["numba"],
    }


@pytest.mark.gpu
def test_kernels_for_cuda_find_what_they_call(folder):
    program = """
from gpubench.backends.devices import gpu_count
gpu_count()  # starts the device in software, where that is asked for
out = np.zeros(4)
sample_kernels.on_device[1, 4](a, out)
said["half"] = out.tolist()
said["left waiting"] = [
    name for name, found in vars(sample_kernels).items() if type(found).__name__.startswith("Lazy")
]
"""
    assert said(folder, program) == {
        "half": [0.0, 0.5, 1.0, 1.5],
        "left waiting": [],
    }


def test_a_waiting_function_can_be_used_without_the_engine(folder):
    program = """
waiting = sample_kernels.compiled
said["name"] = waiting.__name__
said["before"] = loaded()
said["half"] = waiting(a).tolist()
said["same"] = sample_kernels.compiled is waiting._compiled
said["inner"] = waiting.py_func.__name__
"""
    assert said(folder, program) == {
        "name": "compiled",
        "before": [],
        "half": [0.0, 0.5, 1.0, 1.5],
        "same": True,
        "inner": "compiled",
    }


def test_a_name_that_numba_has_not_is_an_import_error(folder):
    program = """
from gpubench.kernels.lazy_numba import no_such_name
try:
    no_such_name(a)
except ImportError as error:
    said["error"] = str(error)
"""
    assert said(folder, program) == {"error": "cannot import name 'no_such_name' from 'numba'"}


def test_a_waiting_object_says_what_is_meant_where_it_is_named(folder):
    program = """
waiting = sample_kernels.compiled
said["stands for"] = type(waiting.__gpubench_target__()).__name__
said["by name"] = load_object("sample_kernels:compiled") is waiting.__gpubench_target__()
said["plain"] = hasattr(sample_kernels.plain, "__gpubench_target__")
"""
    assert said(folder, program) == {
        "stands for": "CPUDispatcher",
        "by name": True,
        "plain": False,
    }
