"""Importing the benchmarks starts nothing: asv's fork server imports them before it forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv_project import CHECKOUT

INSPECTION = """
import gc, json, os, sys
import numpy
before = len(os.listdir("/proc/self/task"))

import benchmarks.suites

pool = sys.modules.get("numba.np.ufunc.parallel")
cuda = sys.modules.get("numba.cuda.cudadrv.driver")
print(json.dumps({
    "classes": [name for name, item in vars(benchmarks.suites).items() if hasattr(item, "params")],
    "kernels": [name for name in sys.modules if name.startswith("gpubench.kernels.")],
    "new threads": len(os.listdir("/proc/self/task")) - before,
    "thread pool": bool(pool and pool._is_initialized),
    # Without a driver Numba calls it initialized, with an error.
    "cuda": bool(cuda and cuda.driver.is_initialized and not cuda.driver.initialization_error),
    "opencl": "pyopencl" in sys.modules,
    "compiler": "numba.core.codegen" in sys.modules,
    "left alone": gc.get_freeze_count() > 100_000,
}))
"""


LISTING = ["benchmark.py", "discover", "benchmarks", "result.json"]
FORKING = ["benchmark.py", "run_server", "benchmarks", "socket"]


@pytest.fixture(scope="module", params=[LISTING, FORKING], ids=["listing", "forking"])
def imported(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a fresh process looks like after importing this repository's own benchmarks, to list
    them or to be forked for each."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("counts threads in /proc, which this system has not")
    kept = {name: value for name, value in os.environ.items() if name != "GPUBENCH_PRESET"}
    done = subprocess.run(
        [sys.executable, "-c", INSPECTION, *request.param[1:]],
        cwd=CHECKOUT, env=kept, check=True, capture_output=True, text=True,
    )  # fmt: skip
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_the_benchmarks_are_there(imported: dict[str, Any]) -> None:
    assert {"vector_add__numpy", "vector_add__numba_cuda"} <= set(imported["classes"])


def test_no_thread_is_started(imported: dict[str, Any]) -> None:
    assert imported["new threads"] == 0
    assert not imported["thread pool"]


def test_no_context_and_no_platform_is_opened(imported: dict[str, Any]) -> None:
    assert not imported["cuda"]
    assert not imported["opencl"]


def test_no_kernel_is_imported(imported: dict[str, Any]) -> None:
    assert set(imported["kernels"]) <= {"gpubench.kernels.lazy_numba"}


def test_only_a_process_to_be_forked_has_a_compiler_ready(
    imported: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    assert imported["compiler"] == (request.node.callspec.params["imported"] == FORKING)


def test_a_fork_does_not_collect_what_it_was_given(
    imported: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    assert imported["left alone"] == (request.node.callspec.params["imported"] == FORKING)
