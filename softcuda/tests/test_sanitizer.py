"""What the sanitizer finds: uninitialised memory, races, barriers that not all threads reach."""

from __future__ import annotations

import pytest
from kernel_runs import HOST_MEMORY, ORDERS, Outcome, Report, run, why_not, words

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def sanitized(kernel: str, **options: object) -> Outcome:
    return run(kernel, **{"sanitize": 1, "a_written": 1, "c_written": 1, **options})


def races(outcome: Outcome) -> list[Report]:
    return [report for report in outcome.reports if report.kind == "race"]


# ---- uninitialised memory -----------------------------------------------------------------------


def test_memory_of_the_device_is_uninitialised_until_it_is_written() -> None:
    report = sanitized("reads_what_nothing_wrote").report
    assert (report.kind, report.array, report.offset, report.line) == ("uninitialised", "b", 8, 4)
    assert sanitized("reads_what_nothing_wrote", b_written=1).reports == []


def test_memory_of_the_host_counts_as_initialised() -> None:
    assert sanitized("reads_what_nothing_wrote", b_kind=HOST_MEMORY).reports == []


def test_shared_memory_is_uninitialised_at_the_start_of_each_block() -> None:
    report = sanitized("reads_shared_that_nothing_wrote", grid=2, block=8).report
    assert (report.kind, report.array, report.offset) == ("uninitialised", "s", 16)
    assert (report.at, report.space) == ((0, 4), "shared")


def test_a_place_is_told_once_in_a_launch() -> None:
    outcome = sanitized("reads_what_nothing_wrote", grid=5, block=5)
    assert outcome.kinds.count("uninitialised") == 1


def test_without_the_sanitizer_nothing_is_told() -> None:
    assert run("reads_what_nothing_wrote").reports == []
    assert run("reverse_without_barrier", block=8).reports == []


# ---- races in shared memory ---------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_a_missing_barrier_is_a_race(order: str) -> None:
    found = races(sanitized("reverse_without_barrier", block=8, order=order))
    assert {(report.line, report.other_line) for report in found} == {(3, 4), (4, 3)}
    assert all(report.array == "s" and report.space == "shared" for report in found)


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_orders_the_threads_of_a_block(order: str) -> None:
    assert sanitized("reverse", grid=3, block=8, order=order).reports == []


def test_a_race_names_both_threads_and_what_each_does() -> None:
    found = races(sanitized("reverse_without_barrier", block=8, order="ascending"))[-1]
    assert (found.at, found.other) == ((0, 4), (0, 3))
    assert found.text == (
        "write/read race (shared, between barriers) at offset 12 of 's' (96 bytes): "
        "this thread reads 4 bytes that thread (3, 0, 0) writes (line 3)"
    )


def test_neighbouring_bytes_of_a_word_belong_to_different_threads() -> None:
    assert sanitized("neighbours_within_a_word", block=8).reports == []


def test_syncwarp_orders_the_lanes_of_its_warp() -> None:
    assert sanitized("broadcast_after_syncwarp", block=32).reports == []


def test_a_vote_orders_nothing() -> None:
    (found,) = races(sanitized("broadcast_after_vote", block=32))
    assert (found.line, found.other_line) == (4, 2)


def test_syncwarp_does_not_order_other_warps() -> None:
    (found,) = races(sanitized("syncwarp_is_for_one_warp", block=64))
    assert (found.at, found.other) == ((0, 40), (0, 0))


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_of_some_threads_orders_those(order: str) -> None:
    assert sanitized("some_meet", block=96, order=order).reports == []
    found = sanitized("some_meet_and_one_reads_more", block=96, order=order)
    assert {report.other for report in races(found)} | {report.at for report in races(found)} == {
        (0, 0),
        (0, 70),
    }


# ---- races in global memory ---------------------------------------------------------------------


def test_two_writes_of_one_value_are_no_race() -> None:
    assert sanitized("all_write_one", grid=3, block=8).reports == []


@pytest.mark.parametrize(
    ("grid", "block", "where"), [(2, 1, "between blocks"), (1, 2, "within a block")]
)
def test_two_writes_of_different_values_are_a_race(grid: int, block: int, where: str) -> None:
    (found,) = races(sanitized("all_write_their_own_number", grid=grid, block=block))
    assert found.text.startswith(f"write/write race (global, {where}) at offset 0 of 'c'")


def test_atomic_operations_do_not_race_with_each_other() -> None:
    outcome = sanitized("all_add_atomically", grid=2, block=8, c=words(0), c_show=1)
    assert (outcome.c, outcome.reports) == ([16], [])


@pytest.mark.parametrize("order", ORDERS)
def test_a_plain_read_races_with_an_atomic_operation(order: str) -> None:
    found = races(sanitized("adds_and_reads", block=8, order=order))
    assert {(report.line, report.other_line) for report in found} <= {(2, 3), (3, 2)}
    assert found


def test_blocks_that_write_the_same_elements_race() -> None:
    (found,) = races(sanitized("blocks_overlap", grid=2, block=8))
    assert (found.at, found.other, found.array) == ((1, 0), (0, 0), "c")


@pytest.mark.parametrize("order", ORDERS)
def test_updating_in_place_from_a_neighbour_is_a_race(order: str) -> None:
    assert races(sanitized("reads_the_next", grid=2, block=4, a_written=1, order=order))


def test_the_end_of_a_launch_orders_what_comes_after() -> None:
    outcome = sanitized("add", grid=2, block=8, b_written=1, repeat=3)
    assert outcome.reports == []


def test_the_barrier_of_the_grid_orders_all_blocks() -> None:
    assert sanitized("grid_sum", grid=4, block=32, cooperative=1).reports == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", ["last_block_adds", "last_thread_adds"])
def test_the_last_block_may_read_what_others_wrote_before_a_fence(kernel: str, order: str) -> None:
    outcome = sanitized(kernel, grid=4, block=8, c=words(0, 0), c_show=2, order=order)
    assert outcome.c[1] == 32
    assert outcome.reports == []


@pytest.mark.parametrize("order", ORDERS)
def test_without_a_fence_the_last_block_races(order: str) -> None:
    outcome = sanitized("last_block_without_fence", grid=4, block=8, c=words(0, 0), order=order)
    (found,) = races(outcome)
    assert (found.array, found.line, found.other_line) == ("b", 9, 2)


@pytest.mark.parametrize("order", ORDERS)
def test_without_a_barrier_the_fence_of_one_thread_is_not_that_of_all(order: str) -> None:
    outcome = sanitized("last_block_without_barrier", grid=4, block=8, c=words(0, 0), order=order)
    assert [report.array for report in races(outcome)] == ["b"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_lock_orders_what_is_done_under_it_if_a_fence_comes_before_it_opens(order: str) -> None:
    options = {"grid": 3, "block": 4, "c": words(0, 0), "order": order}
    assert sanitized("locks", **options).reports == []
    assert {report.offset for report in races(sanitized("locks_without_fence", **options))} == {4}


def test_a_flag_orders_if_it_is_strong_and_a_fence_comes_before_it() -> None:
    options = {"grid": 2, "c": words(0, 0)}
    assert sanitized("passes_by_flag", **options).reports == []
    (without_fence,) = races(sanitized("passes_by_flag_without_fence", **options))
    assert (without_fence.offset, without_fence.line, without_fence.other_line) == (4, 6, 2)
    offsets = {report.offset for report in races(sanitized("passes_by_plain_flag", **options))}
    assert offsets == {0, 4}


# ---- barriers -----------------------------------------------------------------------------------


def test_a_barrier_that_some_threads_never_reach_is_told() -> None:
    report = sanitized("half_leave", block=64).report
    assert (report.kind, report.line, report.other, report.other_line) == ("barrier", 7, (0, 32), 5)
    assert report.text == (
        "not all threads of the block reach this barrier: "
        "thread (32, 0, 0) has ended before (line 5), "
        "which is defined since compute capability 7.0 alone"
    )


def test_threads_of_one_warp_at_two_barriers_are_told() -> None:
    report = sanitized("barrier_in_both_branches", block=8).report
    assert (report.kind, report.line, report.other_line) == ("barrier", 6, 4)
    assert run("barrier_in_both_branches", block=8).reports == []
