"""Numba's functions are compiled before a run, where that spares the cases something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.measure import compiling_ahead
from gpubench.measure.compiling_ahead import chosen
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

KERNELS = """\
from pathlib import Path

from numba import njit

def plain(a, b):
    b[:] = a

def drawn(values, generator):
    return generator.random((values["n"],) * 2).T

@njit(cache=True)
def kept(a, b):
    b[:] = a

@njit
def not_kept(a, b):
    b[:] = a

@njit(cache=True)
def broken(a, b):
    b[:] = a.no_such_thing
"""

SUITE = """\
version: 1
suite: {name}
backend: numba
kernels:
  {name}:
    sizes: {{n: [300, 20, 4000]}}
    parameters: {{dtype: [float32, float64]}}
    arrays:
      a: {{shape: [n], dtype: dtype}}
      b: {{shape: [n], dtype: dtype, intent: out}}
    call: [a, b]
    implementations:
      numpy: {{function: "{name}_kernels:plain"}}
      broken: {{function: "{name}_kernels:broken", backend: numba}}
      kept: {{function: "{name}_kernels:kept", backend: numba}}
      not_kept: {{function: "{name}_kernels:not_kept", backend: numba}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / f"{name}_kernels.py").write_text(KERNELS)
        (tmp_path / f"{name}.yaml").write_text(SUITE.format(name=name))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def cases(project):
    return list(build_plan(load_suites([project]), gpu_count=0).cases())


def environment_of(project):
    caches = {"XDG_CACHE_HOME": str(project / "cache")}
    return {**os.environ, "PYTHONPATH": f"{Path.cwd()}:{project}", **caches}


def compiled_signatures(project):
    """Files of compiled code, one for each set of types, by the function's name."""
    files = project.glob("cache/gpubench/compiled/*/numba_cache/*/*.nbc")
    return sorted(f"{file.name.partition('_')[0]}.{file.name.split('.')[1].split('-')[0]}"
                  for file in files)  # fmt: skip


def test_the_smallest_case_of_each_set_of_dtypes_is_called(project):
    found = [case for case in chosen(cases(project), ()) if case.suite.suite == "first"]
    assert {(case.implementation_name, case.identity) for case in found} == {
        (name, f"n=20 dtype={dtype}")
        for name in ("kept", "not_kept", "broken")
        for dtype in ("float32", "float64")
    }


LAYOUTS = """\
version: 1
suite: second
backend: numba
kernels:
  {0}:
    sizes: {{n: [20, 10]}}
    parameters: {{layout: [C, F]}}
    arrays:
      a: {{shape: [n, n], dtype: float64, {0}}}
      b: {{shape: [n, n], dtype: float64, intent: out}}
    call: [a, b]
    implementations:
      numpy: {{function: "second_kernels:plain"}}
      kept: {{function: "second_kernels:kept", backend: numba}}
"""


@pytest.mark.parametrize("how", ["order: layout", "fill: {function: 'second_kernels:drawn'}"])
def test_the_smallest_case_of_each_layout_is_called(project, how):
    text = LAYOUTS.replace("{0}:", "laid_out:").format(how)
    (project / "second.yaml").write_text(text)
    found = [case for case in chosen(cases(project), ()) if case.suite.suite == "second"]
    assert {case.identity for case in found} == {"n=10 layout=C", "n=10 layout=F"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["second.*kept"], {("second", "kept"), ("second", "not_kept")}),
        (["first__kept", "second__kept"], {("first", "kept"), ("second", "kept")}),
        ([r"first__kept\.time_kernel\('n=20 dtype=float32'\)"], {("first", "kept")}),
        (["nothing"], set()),
    ],
)
def test_only_what_asv_was_asked_for_is_compiled(project, asked, expected):
    found = chosen(cases(project), asked)
    assert {(case.suite.suite, case.implementation_name) for case in found} == expected


@pytest.mark.slow
def test_a_process_of_its_own_leaves_the_code_on_disk_and_no_failure_stops_it(project):
    command = [sys.executable, "-m", compiling_ahead.__name__, str(project)]
    environment = environment_of(project)
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert compiled_signatures(project) == ["first.kept"] * 2 + ["second.kept"] * 2


@pytest.mark.slow
def test_one_file_is_left_to_its_cases(project):
    (project / "second.yaml").unlink()
    subprocess.run(
        [sys.executable, "-m", compiling_ahead.__name__, str(project)],
        env=environment_of(project),
        check=True,
    )
    assert compiled_signatures(project) == []
