"""What goes wrong in kernels for CUDA is found on a machine without a GPU, and has no time."""

from pathlib import Path

import pytest
from builders import plan_of

from gpubench.backends.software import SWITCH, requested
from gpubench.measure.direct import Job, bench
from gpubench.measure.verify_cases import Manner, orders, verified

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not requested(), reason=f"needs {SWITCH}=1: a GPU hides these faults"),
]

N, BLOCK = 37, 16

SUITE = """
sizes: {n: [SIZE]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
devices: [cpu, 'cuda:0']
implementations:
  numpy: {function: cuda_kernels:double}
  candidate:
    function: cuda_kernels:FUNCTION
    backend: numba_cuda
    launch: {block: [WIDE], grid: GRID}
"""


def case_of(folder, function, grid="cover"):
    words = {"SIZE": N, "WIDE": BLOCK, "GRID": grid, "FUNCTION": function}
    text = SUITE
    for word, meaning in words.items():
        text = text.replace(word, str(meaning))
    cases = plan_of(folder, text).cases()
    return next(case for case in cases if case.implementation_name == "candidate")


def record_of(folder, function, grid="cover"):
    """What is on record of a kernel that is asked for a time."""
    with bench() as take:
        measured = take(Job(case_of(folder, function, grid), samples=1))
    assert not measured.samples
    return measured.record


def found_in(folder, function, **manner):
    """What is found of a kernel that is only verified."""
    ((_, found),) = verified([case_of(folder, function)], Manner(in_software=True, **manner))
    return found


def test_a_right_kernel_is_verified_and_has_no_time(tmp_path):
    right = record_of(tmp_path, "in_bounds")
    assert (right.status, right.max_abs_error) == ("verified", 0.0)
    assert right.reason.startswith("verified on softcuda, a CUDA device in software, which has no")
    assert right.method is right.runs_per_sample is None
    assert not [name for name in right.conditions if "second" in name or "clock" in name]


def test_an_illegal_address_fails_with_kernel_block_thread_and_array(tmp_path):
    wrong = record_of(tmp_path, "out_of_bounds")
    assert wrong.status == "failed"
    assert wrong.reason.startswith("the work crashed on cuda:0:")
    assert "softcuda: out of bounds" in wrong.reason
    assert "out_of_bounds" in wrong.reason and "'out'" in wrong.reason
    assert "block (0, 0, 0), thread (7, 0, 0)" in wrong.reason  # 7 * 7 is the first beyond 36


@pytest.mark.parametrize(
    ("function", "grid", "fault"),
    [
        ("in_bounds", f"[[n // {BLOCK}]]", "a run leaves 5 of the 37 elements of 'out' unwritten"),
        ("one_thread_for_all", "cover", "a run leaves 36 of the 37 elements of 'out' unwritten"),
        ("in_wrong_place", "cover", "out: 21 of 37 elements are off by more than "),
    ],
)
def test_a_kernel_that_misses_elements_is_wrong(tmp_path, function, grid, fault):
    wrong = record_of(tmp_path, function, grid)
    assert wrong.status == "wrong"
    assert wrong.reason.startswith(f"differs from the baseline 'numpy': {fault}")


@pytest.mark.parametrize("sanitize", [False, True])
def test_verifying_names_the_line_of_an_illegal_address(tmp_path, sanitize):
    found = found_in(tmp_path, "out_of_bounds", sanitize=sanitize)
    assert found.status == "failed"
    (fault,) = found.faults
    assert (fault.array, fault.block, fault.thread) == ("out", (0, 0, 0), (7, 0, 0))
    assert line(fault) == "out[i * i] = 2 * a[i % a.size]"


def test_the_sanitizer_finds_a_race_and_both_of_its_lines(tmp_path):
    assert found_in(tmp_path, "without_a_barrier").status == "right"
    found = found_in(tmp_path, "without_a_barrier", sanitize=True)
    assert found.status == "wrong"
    assert found.reason.startswith("its results are right, and it has a fault")
    fault = found.faults[0]
    assert (fault.kind, fault.space) == ("race", "shared")
    assert "tile[" in line(fault)


def test_a_result_that_depends_on_the_order_of_threads_is_a_fault(tmp_path):
    found = found_in(tmp_path, "last_to_come", orders=orders(3))
    assert found.status == "wrong"
    assert "depends on the order of threads (right in" in found.reason


def test_a_right_kernel_is_right_in_every_order_and_under_the_sanitizer(tmp_path):
    found = found_in(tmp_path, "in_bounds", orders=orders(4), sanitize=True)
    assert (found.reason, found.status, found.faults) == (None, "right", ())


@pytest.mark.parametrize("manner", [{}, {"sanitize": True}, {"orders": orders(2)}])
def test_a_kernel_that_never_ends_is_given_up_at_a_line(tmp_path, manner):
    found = found_in(tmp_path, "never_ending", limit=2.0, **manner)
    assert found.status == "timed_out"
    assert found.reason.startswith("stopped by its timeout of 2 s; raise `timeout`")
    (fault,) = found.faults
    assert fault.kind == "time-out"
    assert line(fault) in ("while a[0] == a[0]:", "out[0] = a[0]")


def line(fault):
    """The line of source that a fault is at."""
    return Path(fault.file).read_text().splitlines()[fault.line - 1].strip()
