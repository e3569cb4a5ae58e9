"""How kernels run: the order of threads and blocks, waiting, printing, and faults that end them."""

from __future__ import annotations

import platform
import signal
import struct

import pytest
from kernel_runs import (
    ASSERT,
    HOST_MEMORY,
    ILLEGAL_ADDRESS,
    ILLEGAL_INSTRUCTION,
    LAUNCH_FAILED,
    LAUNCH_TIMEOUT,
    MISALIGNED_ADDRESS,
    ORDERS,
    STACK_ERROR,
    SUCCESS,
    floats,
    run,
    why_not,
    words,
)

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


# ---- orders -------------------------------------------------------------------------------------


def _trace(order: str, **options: object) -> list[int]:
    return run("trace", grid=3, block=4, b=words(0), c_show=12, order=order, **options).c


def test_threads_and_blocks_run_in_ascending_order() -> None:
    assert _trace("ascending") == list(range(12))


def test_threads_and_blocks_run_in_descending_order() -> None:
    assert _trace("descending") == list(range(11, -1, -1))


def test_a_seed_permutes_the_threads_of_each_block_and_the_blocks() -> None:
    traces = [_trace(str(seed)) for seed in range(20)]
    blocks = [[trace[i] // 4 for i in (0, 4, 8)] for trace in traces]
    assert all(sorted(trace) == list(range(12)) for trace in traces)
    assert all(len({thread // 4 for thread in trace[:4]}) == 1 for trace in traces)
    assert len({tuple(one) for one in blocks}) > 3
    assert len({tuple(thread % 4 for thread in trace[:4]) for trace in traces}) > 5


def test_the_same_seed_gives_the_same_order() -> None:
    assert _trace("7") == _trace("7")


def test_a_seed_permutes_threads_anew_at_each_barrier() -> None:
    trace = run("trace_twice", block=16, b=words(0), c_show=32, order="5").c
    assert sorted(trace[:16]) == sorted(trace[16:]) == list(range(16))
    assert trace[:16] != trace[16:]


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_threads_go_on_after_a_barrier_as_they_came(order: str) -> None:
    trace = run("trace_twice", block=5, b=words(0), c_show=10, order=order).c
    expected = list(range(5)) if order == "ascending" else list(range(4, -1, -1))
    assert trace == expected * 2


# ---- waiting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_threads_see_what_others_wrote_before_a_barrier(order: str) -> None:
    outcome = run("reverse", grid=3, block=8, a=floats(*range(24)), c_show=24, order=order)
    reversed_blocks = [7, 6, 5, 4, 3, 2, 1, 0]
    expected = [8 * block + i for block in range(3) for i in reversed_blocks]
    assert words(*outcome.c) == floats(*expected)


def test_a_barrier_reduces_the_predicates_of_all_threads() -> None:
    assert run("reductions_of_a_barrier", block=40, c_show=1).c == [20 * 100 + 0 * 10 + 1]


@pytest.mark.parametrize("sanitize", [0, 1])
def test_a_producer_arrives_without_waiting(sanitize: int) -> None:
    outcome = run("producer", block=64, c_show=32, c_written=1, sanitize=sanitize)
    assert outcome.c == list(range(7, 39))
    assert outcome.reports == []


def test_a_barrier_does_not_wait_for_threads_that_have_ended() -> None:
    outcome = run("half_leave", block=64, c_show=32)
    assert outcome.c == [1] * 32
    assert outcome.reports == []


def test_threads_at_two_barriers_are_a_deadlock_that_names_both() -> None:
    outcome = run("two_barriers", block=3)
    assert outcome.result == LAUNCH_TIMEOUT
    report = outcome.report
    assert (report.kind, report.line, report.other_line) == ("barrier", 6, 4)
    assert (report.at, report.other) == ((0, 0), (0, 1))
    assert report.text == (
        "the kernel would never end: this thread waits at barrier 0, "
        "and thread (1, 0, 0) waits at barrier 1 (line 4)"
    )


@pytest.mark.parametrize("order", ORDERS)
def test_all_blocks_of_a_cooperative_launch_meet_at_the_barrier_of_the_grid(order: str) -> None:
    outcome = run("grid_sum", grid=4, block=48, cooperative=1, c_show=192, order=order)
    assert outcome.c == [sum(range(192))] * 192


def test_the_barrier_of_the_grid_needs_a_cooperative_launch() -> None:
    outcome = run("grid_sum", grid=4, block=32)
    assert (outcome.result, outcome.kinds) == (LAUNCH_FAILED, ["cooperative"])


@pytest.mark.parametrize("order", ORDERS)
def test_a_thread_that_yields_lets_others_run(order: str) -> None:
    assert run("yields", block=64, b=words(0), c_show=1, order=order).c == [42]


def test_the_clock_grows() -> None:
    assert run("clocks", block=4, c_show=4).c == [1] * 4


def test_subnormal_numbers_are_kept_whatever_the_program_does_with_its_own() -> None:
    assert run("halve", a=words(0x800000), c_show=1, flush=1).c == [0x400000]


def test_several_streams_run_kernels_at_once() -> None:
    outcome = run("reverse", grid=50, block=24, a_bytes=4800, c_bytes=4800, streams=6, repeat=20)
    assert outcome.results == [SUCCESS] * 120


# ---- accesses that are refused ------------------------------------------------------------------

OUTSIDE = {
    "past_the_end": "a write of 4 bytes 8 bytes past the end of 'b' (64 bytes)",
    "just_past_the_end": "a write of 4 bytes just past the end of 'b' (64 bytes)",
    "before_the_beginning": "a read of 4 bytes 12 bytes before the beginning of 'b' (64 bytes)",
    "nowhere": "a read of 4 bytes at the address 0x10000000000, where no memory of this device is",
    "in_a_gap": "a write of 4 bytes just past the end of 's' (96 bytes)",
    "past_dynamic": "a read of 4 bytes just past the end of dynamic shared memory (64 bytes)",
    "past_local": "a write of 4 bytes just past the end of local memory (24 bytes)",
}


@pytest.mark.parametrize("kernel", OUTSIDE)
@pytest.mark.parametrize("sanitize", [0, 1])
def test_an_access_outside_of_arrays_is_refused(kernel: str, sanitize: int) -> None:
    outcome = run(kernel, grid=2, block=4, b_bytes=64, b_written=1, dynamic=64, sanitize=sanitize)
    found = [report for report in outcome.reports if report.kind == "out of bounds"]
    assert outcome.result == ILLEGAL_ADDRESS
    assert [report.text for report in found] == [OUTSIDE[kernel]]


def test_a_refused_access_names_array_offset_thread_and_line() -> None:
    report = run("past_the_end", grid=2, block=4, b_bytes=64).report
    assert (report.array, report.offset, report.at, report.line) == ("b", 72, (1, 1), 12)
    assert report.space == "global"


def test_a_vector_is_one_access() -> None:
    outcome = run("across_the_end", b_bytes=64)
    assert outcome.report.text.startswith("a read of 32 bytes at offset 48 of 'b'")


def test_a_null_pointer_is_told_as_one() -> None:
    assert run("null").kinds == ["null"]


def test_a_misaligned_access_is_refused() -> None:
    outcome = run("misaligned")
    assert (outcome.result, outcome.kinds) == (MISALIGNED_ADDRESS, ["misaligned"])
    assert outcome.report.offset == 6


def test_freed_memory_is_named() -> None:
    report = run("touches_c", c_freed=1).report
    assert (report.kind, report.array) == ("freed", "c")


def test_memory_of_another_device_needs_peer_access() -> None:
    assert run("touches_c", c_device=1).kinds == ["peer"]
    assert run("touches_c", c_device=1, peers=2).result == SUCCESS


def test_memory_of_the_host_belongs_to_no_device() -> None:
    assert run("touches_c", c_device=1, c_kind=HOST_MEMORY).result == SUCCESS


def test_constants_are_not_written_even_after_they_were_read() -> None:
    outcome = run("writes_c", c_constant=1)
    assert (outcome.result, outcome.kinds) == (ILLEGAL_ADDRESS, ["read-only"])


def test_local_memory_lasts_as_long_as_its_function() -> None:
    outcome = run("after_leaving")
    assert outcome.report.text.endswith("local memory of a function that has returned")


def test_local_memory_belongs_to_its_thread() -> None:
    outcome = run("neighbours_frame", block=2)
    assert outcome.report.at == (0, 1)
    assert outcome.report.text.endswith("local memory of another thread")


def test_local_memory_outlives_calls_and_barriers() -> None:
    assert run("frames", block=40, c_show=40).c == [2 * (5 + i) + 7 for i in range(40)]


def test_memory_that_the_host_took_back_ends_the_kernel_and_not_the_process() -> None:
    outcome = run("reads_lost_memory", c_bytes=16384, c_lost=1)
    assert (outcome.result, outcome.status) == (ILLEGAL_ADDRESS, 0)
    assert outcome.report.array == "c"


# ---- other faults -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["endless_recursion", "endless_recursion_beside_others"])
def test_recursion_without_end_is_a_stack_overflow(kernel: str) -> None:
    outcome = run(kernel, block=8)
    assert (outcome.result, outcome.kinds) == (STACK_ERROR, ["stack overflow"])


def test_local_memory_without_end_is_a_stack_overflow() -> None:
    outcome = run("endless_frames")
    assert (outcome.result, outcome.kinds) == (STACK_ERROR, ["stack overflow"])


@pytest.mark.parametrize(
    "kernel",
    ["endless_loop", "endless_loop_beside_others", "endless_barriers", "endless_yields"],
)
def test_a_kernel_that_does_not_end_is_ended(kernel: str) -> None:
    outcome = run(kernel, block=4, timeout=0.1)
    assert (outcome.result, outcome.kinds) == (LAUNCH_TIMEOUT, ["time-out"])


def test_a_kernel_is_not_ended_while_it_holds_a_lock_of_the_host() -> None:
    outcome = run("endless_prints", a=b"text\n\0", timeout=0.1)
    assert outcome.result == LAUNCH_TIMEOUT
    assert set(outcome.printed.splitlines()) == {"text"}


def test_the_thread_that_was_running_is_named() -> None:
    outcome = run("endless_loop_beside_others", block=4, timeout=0.1)
    assert outcome.report.at == (0, 1)


def test_an_illegal_instruction_ends_the_kernel_and_not_the_process() -> None:
    outcome = run("is_illegal")
    assert (outcome.status, outcome.result) == (0, ILLEGAL_INSTRUCTION)
    assert outcome.kinds == ["illegal instruction"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="others divide by zero without a word")
def test_a_division_that_the_processor_refuses_ends_the_kernel_and_not_the_process() -> None:
    outcome = run("divides")
    assert (outcome.status, outcome.result) == (0, ILLEGAL_INSTRUCTION)


def test_faults_outside_of_kernels_end_the_process_as_before() -> None:
    assert run("add", crash=1).status == -signal.SIGSEGV


def test_a_trap_ends_the_kernel() -> None:
    outcome = run("traps", block=4)
    assert (outcome.result, outcome.kinds, outcome.report.line) == (LAUNCH_FAILED, ["trap"], 3)


def test_after_a_fault_the_next_launch_runs() -> None:
    outcome = run("endless_recursion_beside_others", block=8, repeat=3)
    assert outcome.results == [STACK_ERROR] * 3


def test_an_assertion_is_told_as_a_gpu_tells_it() -> None:
    texts = b"x > 0".ljust(16, b"\0") + b"k.py".ljust(16, b"\0") + b"fn\0"
    outcome = run("asserts", a=texts)
    assert (outcome.result, outcome.kinds) == (ASSERT, ["assert"])
    expected = "k.py:19: fn: block: [0,0,0], thread: [0,0,0] Assertion `x > 0` failed."
    assert outcome.errors.splitlines() == [expected]


# ---- printing -----------------------------------------------------------------------------------


def _printed(text: str, packed: bytes = b"") -> tuple[str, int]:
    outcome = run("prints", a=text.encode() + b"\n\0", b=packed.ljust(16, b"\0"), c_show=1)
    return outcome.printed.rstrip("\n"), outcome.c[0]


def test_numbers_are_printed_as_c_prints_them() -> None:
    packed = struct.pack("<ixxxxqdi", -5, -(1 << 40), 2.5, 7)
    assert _printed("%d|%lld|%6.2f|%03u", packed) == ("-5|-1099511627776|  2.50|007", 4)


def test_narrow_arguments_lie_side_by_side() -> None:
    assert _printed("%d %x %c%%", words(1, 255, ord("z"))) == ("1 ff z%", 3)


def test_widths_may_be_arguments() -> None:
    assert _printed("[%*d][%-*d]", words(4, 7, 3, 8)) == ("[   7][8  ]", 4)


def test_what_is_no_conversion_is_printed_as_it_stands() -> None:
    assert _printed("100%, %y") == ("100%, %y", 0)


def test_a_text_is_an_argument() -> None:
    assert _printed("<%s>", bytes(8)) == ("<(null)>", 1)


# ---- the heap -----------------------------------------------------------------------------------


def test_kernels_take_memory_and_give_it_back() -> None:
    outcome = run("uses_the_heap", block=4, c_show=4, c_written=1, sanitize=1)
    assert (outcome.c, outcome.reports) == ([1, 2, 3, 4], [])


def test_the_heap_has_8_megabytes() -> None:
    assert run("exhausts_the_heap", c_show=1).c == [8]


def test_a_wrong_free_is_told() -> None:
    outcome = run("frees_twice")
    assert outcome.kinds == ["free", "free"]
    assert outcome.reports[0].text.endswith("is freed a second time")
    assert "malloc of a kernel has not given" in outcome.reports[1].text


def test_the_use_of_freed_heap_memory_is_refused() -> None:
    assert run("uses_freed_heap").kinds == ["freed"]
