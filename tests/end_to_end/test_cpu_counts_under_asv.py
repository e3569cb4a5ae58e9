"""Counts of Numba's code on the CPU as ``track_*`` results of ``asv run``, where asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from asv_project import Project, isolated_environment, make_cuda_project

from gpubench.record import CountsRecord, parse_line
from gpubench.work.costs import TRACKED_CPU_COSTS

pytestmark = pytest.mark.ci

SUITE = """\
version: 1
suite: sums
kernels:
  total:
    sizes: {n: [1000]}
    arrays:
      a: {shape: [n], dtype: float64, fill: normal}
      out: {shape: [1], dtype: float64, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "summing:by_numpy", backend: numpy}
      numba: {function: "summing:by_numba", backend: numba}
"""

KERNELS = """\
import numpy as np
from numba import njit

def by_numpy(a, out):
    out[0] = a.sum()

@njit
def by_numba(a, out):
    total = 0.0
    for i in range(a.size):
        total += a[i]
    out[0] = total
"""

BENCHMARKS = "suites.sums__total__numba"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Project:
    path = tmp_path_factory.mktemp("counted") / "scaling"
    project = make_cuda_project(path, isolated_environment(home))
    (path / "suites/sums.yaml").write_text(SUITE)
    (path / "summing.py").write_text(KERNELS)
    project.commit("sums", 2)
    return project


def run(project: Project, **variables: str) -> str:
    here = ("--environment", f"existing:{sys.executable}", "--launch-method", "forkserver")
    commit = ("--set-commit-hash", project.git("rev-parse", "sums"))
    return project.asv("run", *here, *commit, "--quick", "--bench", "total__numba", **variables)


def test_costs_are_kept_by_asv_as_they_are_on_record(project: Project) -> None:
    run(project, GPUBENCH_COUNT="cpu", GPUBENCH_TRACK="1")

    (path,) = project.results.glob("*/*.gpubench.jsonl")
    lines = [parse_line(line) for line in path.read_text().splitlines()]
    (counted,) = (line for line in lines if isinstance(line, CountsRecord))
    results = project.result("sums")["results"]
    found = {
        name.removeprefix(f"{BENCHMARKS}.track_"): row["result"][0]
        for name, row in results.items()
        if ".track_" in name
    }
    assert found.keys() == TRACKED_CPU_COSTS.keys()
    assert found["ir_instructions"] == counted.totals["ir_instructions"]
    assert found["memory_bytes"] == 8 * 1000 + 8 + 8  # the sum, and the None that is returned
    assert (found["scalar_permille"], found["serial_permille"]) == (1000, 1000)
    assert found["allocations"] == 0
    assert f"{BENCHMARKS}.time_kernel" in results


def test_without_counts_there_is_nothing_to_track(project: Project, tmp_path: Path) -> None:
    other = project.copy(tmp_path / "scaling")
    other.environment["ASV_PYTHONPATH"] = str(other.path)
    shown = run(other, GPUBENCH_TRACK="1")
    assert "time_kernel" in shown and "track_" not in shown
