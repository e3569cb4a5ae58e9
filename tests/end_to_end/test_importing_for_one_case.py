"""A process that asv starts for one case imports what that case needs, and no more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from asv_project import CHECKOUT

from gpubench.measure.asv_settings import VARIABLE, AsvSettings

DISCOVERY = """
import sys
from asv_runner.discovery import _discover
sys.argv = ["benchmark.py", "discover", sys.argv[1], sys.argv[2]]
_discover(sys.argv[2:])
"""

RUN = """
import json, sys
folder, name, result = sys.argv[1:]
settings = json.dumps({"repeat": 1, "warmup_time": 0})
from asv_runner.run import _run
sys.argv = ["benchmark.py", "run", folder, name, settings, "None", result]
_run(sys.argv[2:])
print(json.dumps(sorted(sys.modules)))
"""

FOR_PEOPLE = {"asv", "click", "rich"}
NUMBA = {"numba", "llvmlite"}
CUDA = {"numba.cuda", "numba_cuda", "cuda"}

Modules = Callable[[str], set[str]]


def program(text: str, *arguments: str | Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    """What is imported when a benchmark's first case has run, with a result, after discovery."""
    project = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "benchmarks", project / "benchmarks", ignore=ignored)
    (project / "suites").mkdir()
    for name in ("vector_add", "mandelbrot"):
        shutil.copy(CHECKOUT / f"suites/{name}.yaml", project / "suites")
    settings = AsvSettings(run="1-2", results_dir=str(project / "results"), machine="desk")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")},
        "GPUBENCH_PRESET": "smoke",
        VARIABLE: json.dumps(asdict(settings)),
        "ASV_COMMIT": "0123456789",
        "ASV_ENV_NAME": "existing",
        "CUDA_VISIBLE_DEVICES": "",
    }
    benchmarks, result = project / "benchmarks", project / "result.json"
    program(DISCOVERY, benchmarks, result, environment=environment)
    first = f"suites.{FIRST}.time_kernel-0"
    program(RUN, benchmarks, first, result, environment=environment)  # puts the facts on record

    def of(class_name: str) -> set[str]:
        name = f"suites.{class_name}.time_kernel-0"
        imported = program(RUN, benchmarks, name, result, environment=environment)
        assert json.loads(result.read_text())["samples"][0] > 0
        return set(json.loads(imported.splitlines()[-1]))

    return of


FIRST = "vector_add__numpy"


def test_a_numpy_case_imports_no_numba(modules: Modules) -> None:
    imported = modules("vector_add__numpy")
    assert "gpubench.kernels.elementwise" in imported
    assert not imported & (NUMBA | CUDA)


@pytest.mark.ci  # the test above has its rule for NumPy
def test_a_numba_case_imports_no_cuda(modules: Modules) -> None:
    imported = modules("vector_add__numba_parallel")
    assert "numba" in imported
    assert not imported & CUDA


@pytest.mark.parametrize(
    "implementation", ["numpy", pytest.param("numba_parallel", marks=pytest.mark.ci)]
)
def test_what_only_people_see_is_not_imported(modules: Modules, implementation: str) -> None:
    assert not modules(f"mandelbrot__{implementation}") & FOR_PEOPLE
