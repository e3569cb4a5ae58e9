"""What a kernel starts ends with the process that measures it: after its timeout, after its case,
and with whoever asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from builders import case_of

from gpubench.measure.direct import Job, bench
from gpubench.measure.worker import Worker

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
    pytest.mark.slow,
]

KERNEL = """
sizes: {n: [8]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
measure: [kernel, start]
baseline: base
sampling: {number: 1, repeat: 2, timeout: TIMEOUT}
implementations:
  base: {function: returning_kernels:twice, backend: scripted}
  candidate: {function: returning_kernels:FUNCTION, backend: scripted}
"""

ENDING = 10.0
"""Seconds that a killed process may take to be gone on a busy machine."""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Where the kernel puts the id of what it started."""
    path = tmp_path / "child.txt"
    monkeypatch.setenv("RETURNING_KERNELS", str(path))
    return path


def candidate(tmp_path, function, timeout):
    text = KERNEL.replace("FUNCTION", function).replace("TIMEOUT", timeout)
    return case_of(tmp_path, text, "candidate")


def runs(process):
    """Whether it still does anything; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def ends(process):
    deadline = monotonic() + ENDING
    while runs(process) and monotonic() < deadline:
        sleep(0.01)
    return not runs(process)


def test_after_a_timeout_nothing_is_left_of_what_a_kernel_started(tmp_path, file):
    with bench() as take:
        found = take(Job(candidate(tmp_path, "starts_and_hangs", "2"), "kernel"))
        assert found.record.status == "timed_out"
        assert ends(int(file.read_text()))


def test_after_a_timeout_nothing_is_left_of_a_fresh_process(tmp_path, file):
    with bench() as take:
        found = take(Job(candidate(tmp_path, "hangs_when_fresh", "8"), "start"))
        assert found.record.status == "timed_out"
        assert ends(int(file.read_text()))


def test_what_a_kernel_leaves_lives_as_long_as_the_process_that_measures(tmp_path, file):
    with bench() as take:
        found = take(Job(candidate(tmp_path, "starts_and_returns", "60"), "kernel"))
        child = int(file.read_text())
        assert found.record.status == "ok"
        assert runs(child)
    assert ends(child)


def test_where_nobody_asks_any_more_all_of_it_ends(tmp_path, file):
    """As where the process that asked was killed: its end of the connection is closed."""
    worker = Worker(take_a_turn)
    try:
        worker.give(candidate(tmp_path, "starts_and_returns", "60"), 60.0)
        assert worker.answer() == "ok"
        child = int(file.read_text())
        worker._connection.close()
        assert ends(child)
        assert ends(worker._process.pid)
    finally:
        worker.end()


def take_a_turn(case):
    from gpubench.measure.direct import take_turn

    return take_turn(Job(case, "kernel")).record.status


LOCKED = """
import multiprocessing
from gpubench.measure.worker import Worker

locks = []

def lock(item):  # as Numba does from Python 3.14 on
    locks.append(multiprocessing.get_context("forkserver").RLock())
    return item

if __name__ == "__main__":
    worker = Worker(lock)
    worker.give("locked", 60.0)
    print(worker.answer())
    worker.end()
"""


def test_nothing_is_said_of_locks_of_a_process_that_was_killed(tmp_path):
    (tmp_path / "locked.py").write_text(LOCKED)

    done = subprocess.run(
        [sys.executable, tmp_path / "locked.py"], capture_output=True, text=True, timeout=300
    )

    assert (done.stdout, done.stderr) == ("locked\n", "")
