"""The suite of data larger than memory: who runs into the limit, who does not, what is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.edge.systems.kernels import out_of_core
from gpubench.measure.direct import Job, Measured, bench
from gpubench.measure.worker import Worker
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

for module in ("distributed", "pyarrow", "pandas", "polars"):
    pytest.importorskip(module, reason="make test-systems has it")

SUITE = Path(__file__).parents[1] / "suites/out_of_core.yaml"
LIMIT = 384 * 2**20
"""Of the preset."""


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str, str], Measured]:
    """What became of each case of the preset, by kernel, implementation and device; the larger
    size, which does not fit into the limit."""
    cases = [case for case in build_plan([load_suite(SUITE, "smoke")], 0).cases() if larger(case)]
    with bench({case.backend for case in cases}) as take:
        return {
            (case.kernel_name, case.implementation_name, case.device): take(Job(case))
            for case in cases
        }


def larger(case: Case) -> bool:
    return (case.work()[0] or 0) >= LIMIT  # as many bytes of data, and some to work with


IN_PIECES = [
    ("norm", "memmap", "cpu"),
    ("norm", "numba", "cpu"),
    ("norm", "dask", "threads:2"),
    ("norm", "dask_workers", "dask:2:1"),
    ("group_sums", "row_groups", "cpu"),
    ("group_sums", "polars", "cpu"),
    ("group_sums", "dask", "threads:2"),
]
WHOLE = [("norm", "whole", "cpu"), ("group_sums", "pandas", "cpu")]


@pytest.mark.parametrize("name", IN_PIECES)
def test_what_works_in_pieces_is_measured_within_the_limit(
    measured: dict[tuple[str, str, str], Measured], name: tuple[str, str, str]
) -> None:
    record = measured[name].record
    assert record.status == "ok", record.reason
    assert measured[name].samples
    assert 0 <= (record.peak_bytes or 0) <= LIMIT


@pytest.mark.parametrize("name", WHOLE)
def test_what_reads_the_whole_file_has_no_time_and_says_why(
    measured: dict[tuple[str, str, str], Measured], name: tuple[str, str, str]
) -> None:
    record = measured[name].record
    assert record.status == "skipped", record
    assert f"{name[1]} exceeded its memory limit of 384 MiB" in (record.reason or "")
    assert not measured[name].samples


def test_workers_that_get_too_little_end_the_case_with_the_limit(tmp_path: Path) -> None:
    """Dask's own limit, for workers in other processes: a chunk that they cannot hold."""
    suite = tmp_path / "greedy.yaml"
    suite.write_text(GREEDY)
    (case,) = (c for c in build_plan([load_suite(suite)], 0).cases() if c.backend == "dask")
    with bench() as take:
        record = take(Job(case)).record
    assert not workers()
    assert record.status == "skipped", record
    assert (record.reason or "").startswith(
        "dask exceeded its memory limit of 200 MiB: a worker of dask:1:1 exceeded its memory: "
    )


def workers() -> list[str]:
    """Command lines of the processes that this one started and that serve no others."""
    lines, pending = list[str](), [os.getpid()]
    while pending:
        folder = Path(f"/proc/{pending.pop()}")
        for thread in (folder / "task").iterdir():
            children = (thread / "children").read_text().split()
            pending += map(int, children)
        lines.append((folder / "cmdline").read_text())
    return [line for line in lines[1:] if "forkserver" not in line and "tracker" not in line]


GREEDY = """\
version: 1
suite: greedy
kernels:
  fill:
    arrays: {out: {shape: [1], dtype: float64, intent: out}}
    call: [out]
    let: {limit: 200 * 2**20}
    implementations:
      numpy: {function: out_of_core_functions:one}
      dask:
        function: out_of_core_functions:one_of_many
        returns: [out]
        options: {memory: limit}
    devices: [cpu, "dask:1:1"]
    memory_limit: limit
    sampling: {timeout: 120, paired: false}
"""


def test_the_file_has_no_name_and_goes_with_its_process() -> None:
    worker = Worker(descriptors_of_a_file)
    try:
        worker.give(1000, 60)
        path, size = worker.answer()
        assert (size, Path(path).stat().st_size) == (8000, 8000)
        assert "deleted" in str(Path(path).readlink())
    finally:
        worker.end()
    assert not os.path.lexists(path)


def test_making_a_file_in_parquet_imports_no_pandas() -> None:
    """``start`` begins when inputs are drawn."""
    program = (
        "import sys; from gpubench.edge.systems.kernels import out_of_core; "
        "out_of_core._rows(1000, 1); "
        "print('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def descriptors_of_a_file(n: int) -> tuple[str, int]:
    path = out_of_core._path(out_of_core._numbers(n, 1))
    return path, Path(path).stat().st_size


def test_a_seed_gives_the_same_file() -> None:
    first, second = (Path(out_of_core._path(out_of_core._numbers(n, 1))) for n in (10, 20))
    assert first.read_bytes() == second.read_bytes()[:80]
