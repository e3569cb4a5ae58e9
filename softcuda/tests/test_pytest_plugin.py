"""``pytest --softcuda`` runs tests on the device in software, and faults of kernels fail tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_runs import why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]

KERNEL = """\
import numpy as np
import pytest
from numba import cuda


@cuda.jit
def fill(a):
    a[cuda.grid(1)] = 1


def run(threads):
    fill[1, threads](cuda.to_device(np.zeros(8)))

"""
"""``fill`` writes past its array, in line 8, where it has more than 8 threads."""


def run_pytest(
    folder: Path, tests: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run tests, below ``KERNEL``, with options of pytest, in a process of their own."""
    (folder / "test_it.py").write_text(KERNEL + tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [*command, f"--rootdir={folder}", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment},
        check=False,
    )


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Return the numbers of pytest's last line, without warnings."""
    last = done.stdout.splitlines()[-1]
    found = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", last)}
    assert found, done.stdout + done.stderr
    return {word: number for word, number in found.items() if not word.startswith("warning")}


FAULTS = """
def test_right():
    run(8)

def test_stray_that_nobody_waits_for():
    run(9)

def test_stray_that_is_raised():
    run(9)
    cuda.synchronize()

@pytest.fixture
def stray():
    run(9)

def test_stray_in_a_fixture(stray):
    pass

@pytest.mark.xfail
def test_stray_that_is_expected():
    run(9)

def test_right_after_faults():
    run(8)
    cuda.synchronize()
"""


def test_a_fault_fails_its_test_with_the_line_and_no_other_test(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, FAULTS, "--softcuda")
    assert outcomes(done) == {"failed": 2, "passed": 2, "xfailed": 1, "error": 1}, done.stdout
    for name in ("nobody_waits_for", "is_raised"):
        assert f"test_it.py::test_stray_that_{name}" in done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("softcuda: out of bounds")]
    place = f"[in test_it.fill, block (0, 0, 0), thread (8, 0, 0), {tmp_path}/test_it.py:8]"
    assert len(said) == 3 and all(line.endswith(place) for line in said)


@pytest.mark.ci  # the test above has the rule, in one process
def test_workers_of_xdist_run_on_it_and_hand_their_counts_over(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    # A warning of pytest's own would end the workers.
    options = ("-n", "2", "--softcuda-count", "-W", "error::pytest.PytestWarning")
    done = run_pytest(tmp_path, FAULTS, *options)
    assert outcomes(done) == {"failed": 2, "passed": 2, "xfailed": 1, "error": 1}, done.stdout
    (row,) = re.findall(r"^test_it\.fill +(\d+) ", done.stdout, re.MULTILINE)
    assert row == "2"
    assert "test_it.fill: 4 without counts: the launch ended with" in done.stdout


UNITTEST = """
import unittest

class TestFill(unittest.TestCase):
    def test_right(self):
        run(8)

    def test_stray(self):
        run(9)

    def test_that_fails_by_itself(self):
        run(9)
        self.fail("of its own")
"""


@pytest.mark.ci  # the first test has the plugin's rule
def test_tests_of_unittest_fail_too_and_keep_their_own_reason(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, UNITTEST, "--softcuda")
    assert outcomes(done) == {"failed": 2, "passed": 1}
    assert "AssertionError: of its own" in done.stdout
    assert len(re.findall("^softcuda: out of bounds", done.stdout, re.MULTILINE)) == 2


RACE = """
@cuda.jit
def race(a):
    a[0] = cuda.threadIdx.x

def test_race():
    race[1, 2](cuda.to_device(np.zeros(8)))
"""


@pytest.mark.ci  # the first test has the plugin's rule
def test_the_sanitizer_fails_a_test_with_a_race(tmp_path: Path) -> None:
    assert outcomes(run_pytest(tmp_path, RACE, "--softcuda")) == {"passed": 1}
    done = run_pytest(tmp_path, RACE, "--softcuda-sanitize")
    assert outcomes(done) == {"failed": 1}
    line = 1 + f"{KERNEL}{RACE}".splitlines().index("    a[0] = cuda.threadIdx.x")
    assert "softcuda: race: " in done.stdout and f"test_it.py:{line}]" in done.stdout


MARKED = """
@pytest.mark.softcuda
def test_needs_it():
    run(8)

@pytest.mark.softcuda(skip="it measures times")
def test_without_it():
    pass

@pytest.mark.softcuda(faults=False)
def test_fault_that_does_not_matter():
    if cuda.is_available():
        run(9)

def test_counts(softcuda_device):
    run(8)
    softcuda_device.wait()
    (launch,) = softcuda_device.counts()
    assert launch.counts["global_store_sectors"] == 2
"""


def test_marked_tests_are_skipped_on_it_or_elsewhere(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, MARKED, "--softcuda-count", "-rs")
    assert outcomes(done) == {"passed": 3, "skipped": 1}, done.stdout
    assert "on softcuda: it measures times" in done.stdout
    done = run_pytest(tmp_path, MARKED, "-rs", CUDA_VISIBLE_DEVICES="")
    assert outcomes(done) == {"passed": 2, "skipped": 2}, done.stdout
    assert "runs on softcuda only: pytest --softcuda" in done.stdout


@pytest.mark.ci  # the first test has the plugin's rule
def test_a_marker_that_says_what_nothing_follows_from_fails_its_test(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "@pytest.mark.softcuda(1, fault=0)\ndef test_it(): pass\n")
    assert outcomes(done) == {"error": 1}
    taken = "pytest.mark.softcuda takes skip='reason' or faults=False, not 1, fault"
    assert taken in done.stdout


EMPTY = """
@cuda.jit
def count(a, x):
    a[0] = len(x) + len(x[0])

def test_it():
    a = np.zeros(1)
    count[1, 1](a, ((), (), ()))
    assert a[0] == 3
"""


@pytest.mark.ci  # the first test has the plugin's rule
def test_what_numba_cannot_describe_by_lines_runs_without_them(tmp_path: Path) -> None:
    assert outcomes(run_pytest(tmp_path, EMPTY, "--softcuda")) == {"passed": 1}


@pytest.mark.ci  # the first test has the plugin's rule
def test_hints_stand_at_the_end(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "def test_it(): run(8)\n", "--softcuda-hints")
    assert outcomes(done) == {"passed": 1}
    assert "no hints for test_it.fill" in done.stdout


def test_a_conftest_sees_the_device_and_so_do_processes_that_a_test_starts(tmp_path: Path) -> None:
    seen = "from numba import cuda; assert cuda.get_current_device().name == 'softcuda'"
    (tmp_path / "conftest.py").write_text(seen)
    start = f"subprocess.check_call([sys.executable, '-c', {seen!r}])"
    test = f"import subprocess, sys\ndef test(): {start}\n"
    assert outcomes(run_pytest(tmp_path, test, "--softcuda")) == {"passed": 1}


@pytest.mark.ci  # the first test has the plugin's rule
def test_a_module_with_a_fault_while_it_is_imported_is_an_error(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "run(9)\ndef test_it(): pass\n", "--softcuda")
    assert outcomes(done) == {"error": 1}
    assert "softcuda: out of bounds" in done.stdout


def test_where_it_cannot_run_pytest_says_why_in_one_line(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path, "", "--softcuda", SOFTCUDA_CACHE=str(tmp_path / "cache"), CC="", PATH=""
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    (said,) = done.stderr.strip().splitlines()
    assert said.startswith("ERROR: the CUDA device in software needs a C compiler")


def test_without_its_options_nothing_of_it_is_started(tmp_path: Path) -> None:
    test = "import os\ndef test_it(): assert 'SOFTCUDA' not in os.environ\n"
    assert outcomes(run_pytest(tmp_path, test)) == {"passed": 1}
