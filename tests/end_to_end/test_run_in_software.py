"""``asv run`` with the device in software in place of a GPU: results are checked, never timed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from asv_project import Project, isolated_environment, make_project

from gpubench.backends.software import SWITCH, requested

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not requested(), reason=f"needs {SWITCH}=1"),
]

CUDA = "suites.vector_add__numba_cuda.time_kernel"
NUMPY = "suites.vector_add__numpy.time_kernel"
RIGHT, IMPOSSIBLE = "n=16384 block=128 device=cuda:0", "n=16384 block=2048 device=cuda:0"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    """The repository, to be measured by the Python that runs the tests."""
    environment = isolated_environment(home) | {SWITCH: "1"}
    del environment["CUDA_VISIBLE_DEVICES"]
    made = make_project(tmp_path / "toolkit", Path("no-wheel"), environment)
    made.asv("machine", "--yes")
    return made


def run(project: Project, code: int = 0) -> str:
    existing = ("--environment", f"existing:{sys.executable}", "--set-commit-hash", "mended")
    arguments = ("--quick", "--bench", "vector_add", "--show-stderr")
    return project.asv("run", *existing, *arguments, code=code, ASV_PYTHONPATH=str(project.path))


def test_a_right_kernel_is_verified_and_has_no_time(project: Project) -> None:
    run(project)
    right = project.outcome("mended", CUDA, RIGHT)
    assert (right.status, right.max_abs_error) == ("verified", 0.0)
    assert project.outcome("mended", CUDA, IMPOSSIBLE).status == "skipped"
    assert project.outcome("mended", NUMPY, "n=16384").status == "ok"
    times = project.times("mended")
    assert times[NUMPY, "n=16384"]
    assert not any(seconds and seconds > 0 for (name, _), seconds in times.items() if name == CUDA)


def test_the_report_says_that_it_is_right_and_has_no_time(project: Project) -> None:
    run(project)
    project.run("gpubench", "report")
    page = (project.path / "reports/html/kernel-vector_add.html").read_text()
    assert "right, no time" in page
    assert "verified on softcuda, a CUDA device in software" in page


def test_an_illegal_address_ends_its_case_and_no_other(project: Project) -> None:
    project.edit("toolkit/kernels.py", "if i < n:\n        b[i] += a[i]", "b[4 * i] += a[i]")
    run(project, code=2)
    wrong = project.outcome("mended", CUDA, RIGHT)
    assert wrong.status == "failed"
    assert wrong.reason is not None
    for said in ("softcuda: out of bounds", "vector_add_cuda", "'b'", "block (32, 0, 0)"):
        assert said in wrong.reason
    assert project.outcome("mended", NUMPY, "n=16384").status == "ok"
