"""CUDA cases through ``asv run`` on the device in software, with every fault that ends one.

asv runs in the Python that runs the tests, which has numba-cuda.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asv_project import HERE, SPAWNING, Project, isolated_environment, make_cuda_project

from gpubench.record import CaseRecord

pytestmark = pytest.mark.ci

SOFTWARE = {
    "GPUBENCH_SOFTCUDA": "1",
    "SOFTCUDA_FAULTS": "illegal:scale_illegal,lost:scale_lost,hang:scale_hang,oom:30000000",
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Project:
    """One commit of the sample, run on a device in software that is told to fail."""
    path = tmp_path_factory.mktemp("cuda") / "scaling"
    project = make_cuda_project(path, isolated_environment(home))
    endless = {**SOFTWARE, "SOFTCUDA_TIMEOUT": "5", "SOFTCUDA_FAULTS": ""}
    others = "suites.scale__(?!endless|hang)|large__"
    project.asv("run", *HERE, "--bench", others, code=2, **SOFTWARE)
    project.asv("run", *HERE, "--append-samples", "--bench", "endless", code=2, **endless)
    # A new process for each case verifies its own, which asv ends; else that is done ahead.
    project.asv("run", *SPAWNING, "--append-samples", "--bench", "hang", code=2, **SOFTWARE)
    return project


def outcomes(project: Project, implementation: str, kernel: str = "scale") -> Iterator[CaseRecord]:
    """What became of the cases of one implementation on the device, at last."""
    last = {
        (record.benchmark, record.case): record
        for record in project.records("only")
        if f"{kernel}__{implementation}" in record.benchmark
    }
    assert last, f"{implementation} is not on record"
    yield from last.values()


@pytest.mark.parametrize(
    ("implementation", "status", "words"),
    [
        ("impossible", "skipped", "the limit is 1024"),
        ("wrong", "wrong", "differs from the baseline"),
        ("outside", "failed", "kernels.py:27"),
        ("illegal", "failed", "ILLEGAL_ADDRESS"),
        ("lost", "failed", "cuda:0"),
        ("endless", "failed", "LAUNCH_TIMEOUT"),
    ],
)
def test_each_fault_ends_its_case_with_its_reason(
    measured: Project, implementation: str, status: str, words: str
) -> None:
    for record in outcomes(measured, implementation):
        assert record.status == status
        assert words in (record.reason or "")


def test_a_case_without_memory_says_so(measured: Project) -> None:
    for record in outcomes(measured, "right", "large"):
        assert record.status == "failed"
        assert "memory" in (record.reason or "")


def test_a_hanging_kernel_is_ended_by_its_timeout(measured: Project) -> None:
    """Its process is killed before it can say more than that it has begun."""
    for record in outcomes(measured, "hang"):
        assert record.status == "started"
        assert record.timeout == 30


def test_the_others_are_right_and_have_no_time(measured: Project) -> None:
    for record in outcomes(measured, "right"):
        assert record.status == "verified"


def test_no_time_of_the_device_in_software_is_recorded(measured: Project) -> None:
    times = measured.times("only")
    on_the_cpu = {key: seconds for key, seconds in times.items() if "__numpy" in key[0]}
    assert all(isinstance(seconds, float) and seconds > 0 for seconds in on_the_cpu.values())
    assert len(on_the_cpu) < len(times)
    for key, seconds in times.items():
        if key not in on_the_cpu and ".track_" not in key[0]:  # a count
            assert seconds is None or seconds != seconds, key


def test_the_report_shows_all_of_it(measured: Project) -> None:
    measured.run("gpubench", "report", "--output", "report")
    pages = "\n".join(p.read_text() for p in sorted((measured.path / "report").rglob("*.html")))
    for words in (
        "right, no time",
        "verified on softcuda, a CUDA device in software",
        "differs from the baseline",
        "ILLEGAL_ADDRESS",
        "LAUNCH_TIMEOUT",
        "kernels.py:27",
        "timed out",
    ):
        assert words in pages
