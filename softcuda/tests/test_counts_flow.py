"""What warps do where their lanes part: loops, branches, calls, ends; and long traces."""

from __future__ import annotations

import random
import re
import resource
from typing import Any

import pytest
from counted_kernels import HEADER, Bench, entry, of_line
from softcuda_process import on_softcuda

from softcuda.counts import COUNTS
from softcuda.translation.counting import NOWHERE, Blocks, write_tables
from softcuda.translation.ptx import parse

ORDERS = ("ascending", "descending", "7")
FLOW = (
    HEADER
    + """
.visible .global .align 4 .u32 flag = 0;

// 1 for n < 2, else the sum of the two before
.func (.param .b32 result) fibonacci(.param .b32 number)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .loc 1 2 0
    ld.param.u32 %r1, [number];
    setp.lt.s32 %p1, %r1, 2;
    mov.u32 %r5, 1;
    @%p1 bra DONE;
    sub.s32 %r2, %r1, 1;
    sub.s32 %r3, %r1, 2;
    { .param .b32 given; .param .b32 taken;
      st.param.b32 [given], %r2;
      call (taken), fibonacci, (given);
      ld.param.b32 %r4, [taken]; }
    { .param .b32 given; .param .b32 taken;
      st.param.b32 [given], %r3;
      call (taken), fibonacci, (given);
      ld.param.b32 %r5, [taken]; }
    add.s32 %r5, %r4, %r5;
DONE:
    st.param.b32 [result], %r5;
    ret;
}
"""
    + entry(
        "recursion",
        """
    { .param .b32 given; .param .b32 taken;
      st.param.b32 [given], %n;
      call (taken), fibonacci, (given);
      ld.param.b32 %w1, [taken]; }
    mul.wide.u32 %d1, %i, 4;
    add.u64 %d1, %a, %d1;
    .loc 1 3 0
    st.global.u32 [%d1], %w1;
""",
    )
    + entry(
        "loop",  # n times
        """
    mov.u32 %w1, 0;
    bra TEST;
MORE:
    .loc 1 2 0
    ld.global.u32 %w2, [%a];
    add.u32 %w1, %w1, 1;
TEST:
    .loc 1 3 0
    setp.lt.u32 %p1, %w1, %n;
    @%p1 bra MORE;
    .loc 1 4 0
    ld.global.u32 %w2, [%a];
""",
    )
    + entry(
        "nested",  # n & 7 times, and in turn t: 3 bits of n from bit 3 * (t + 1) on
        """
    and.b32 %w1, %n, 7;
    mov.u32 %w2, 0;
OUTER:
    .loc 1 3 0
    setp.ge.u32 %p1, %w2, %w1;
    @%p1 bra DONE;
    mad.lo.u32 %w3, %w2, 3, 3;
    shr.u32 %w3, %n, %w3;
    and.b32 %w3, %w3, 7;
    add.u32 %w2, %w2, 1;
INNER:
    .loc 1 4 0
    setp.eq.u32 %p2, %w3, 0;
    @%p2 bra OUTER;
    sub.u32 %w3, %w3, 1;
    .loc 1 2 0
    ld.global.u32 %w4, [%a];
    bra INNER;
DONE:
""",
    )
    + entry(
        "choice",
        """
    mov.u32 %w1, 0;
    cases: .branchtargets ZERO, ONE, TWO, THREE;
    .loc 1 2 0
    brx.idx %n, cases;
ZERO: .loc 1 3 0
    ld.global.u32 %w2, [%a]; bra DONE;
ONE: .loc 1 4 0
    ld.global.u32 %w2, [%a]; bra DONE;
TWO: .loc 1 5 0
    ld.global.u32 %w2, [%a]; bra DONE;
THREE: .loc 1 6 0
    ld.global.u32 %w2, [%a];
DONE: .loc 1 7 0
    ld.global.u32 %w2, [%a];
""",
    )
    + entry(
        "scopes",  # each scope has a label X of its own: four loads, or two
        """
    setp.eq.u32 %p1, %n, 0;
    .loc 1 2 0
    {
    @%p1 bra X;
    ld.global.u32 %w2, [%a];
    X: ld.global.u32 %w2, [%a];
      {
      @%p1 bra X;
      ld.global.u32 %w2, [%a];
      X: ld.global.u32 %w2, [%a];
      }
    }
""",
    )
    + entry(
        "leaves_loop",  # a lane returns in turn n of 5, the others go on behind the loop
        """
    mov.u32 %w1, 0;
MORE:
    setp.eq.u32 %p1, %w1, %n;
    @%p1 ret;
    .loc 1 2 0
    ld.global.u32 %w2, [%a];
    add.u32 %w1, %w1, 1;
    setp.lt.u32 %p2, %w1, 5;
    @%p2 bra MORE;
    .loc 1 3 0
    ld.global.u32 %w2, [%a];
""",
    )
    + entry(
        "finds",  # an inner loop of 6 turns whose lanes return in turn n, within an outer of 2
        """
    mov.u32 %w3, 0;
OUTER:
    mov.u32 %w1, 0;
MORE:
    setp.eq.u32 %p1, %w1, %n;
    @%p1 bra FOUND;
    and.b32 %w4, %i, 3;
    add.u32 %w1, %w1, 1;
    setp.le.u32 %p2, %w1, %w4;
    @%p2 bra MORE;
    .loc 1 2 0
    ld.global.u32 %w2, [%a];
    add.u32 %w3, %w3, 1;
    setp.lt.u32 %p3, %w3, 2;
    @%p3 bra OUTER;
FOUND:
""",
    )
    + entry(
        "guards",
        """
    setp.lt.u32 %p1, %t, %n;
    mov.f32 %f1, 0f00000000;
    mov.f64 %g1, 0d0000000000000000;
    .loc 1 2 0
    @%p1 fma.rn.f32 %f1, %f1, %f1, %f1;
    .loc 1 3 0
    @!%p1 add.f64 %g1, %g1, %g1;
    .loc 1 4 0
    @%p1 rcp.approx.f32 %f1, %f1;
    .loc 1 5 0
    @%p1 mov.u32 %w1, 1;
    .loc 1 6 0
""",
    )
    + entry(
        "operations",
        """
    mov.b32 %w1, 0; mov.b64 %d1, 0; mov.b16 %h1, 0;
    mov.f32 %f1, 0f3F800000; mov.f64 %g1, 0d3FF0000000000000;
    .loc 1 2 0
    add.f32 %f1, %f1, %f1; sub.f32 %f1, %f1, %f1; mul.f32 %f1, %f1, %f1;
    fma.rn.f32 %f1, %f1, %f1, %f1;
    .loc 1 3 0
    add.f64 %g1, %g1, %g1; mul.f64 %g1, %g1, %g1; fma.rn.f64 %g1, %g1, %g1, %g1;
    .loc 1 4 0
    add.f16 %h1, %h1, %h1; fma.rn.f16 %h1, %h1, %h1, %h1;
    .loc 1 5 0
    add.f16x2 %w1, %w1, %w1; fma.rn.f16x2 %w1, %w1, %w1, %w1; fma.rn.bf16x2 %w1, %w1, %w1, %w1;
    .loc 1 6 0
    sin.approx.f32 %f1, %f1; cos.approx.f32 %f1, %f1; ex2.approx.f32 %f1, %f1;
    lg2.approx.f32 %f1, %f1; rcp.rn.f32 %f1, %f1; sqrt.rn.f32 %f1, %f1; rsqrt.approx.f32 %f1, %f1;
    tanh.approx.f32 %f1, %f1; div.rn.f32 %f1, %f1, %f1; div.rn.f64 %g1, %g1, %g1;
    .loc 1 7 0
    max.f32 %f1, %f1, %f1; neg.f32 %f1, %f1; abs.f64 %g1, %g1; setp.gt.f32 %p1, %f1, %f1;
    .loc 1 8 0
    add.u32 %w1, %w1, %w1; mad.lo.u32 %w1, %w1, %w1, %w1; shl.b32 %w1, %w1, 1; div.u32 %w1, 7, 3;
    .loc 1 9 0
    cvt.rn.f32.u32 %f1, %w1; cvt.f64.f32 %g1, %f1;
    .loc 1 10 0
    mov.u32 %w1, %w2; selp.f32 %f1, %f1, %f1, %p1; cvta.to.global.u64 %d1, %a;
    .loc 1 11 0
    shfl.sync.idx.b32 %w1, %w1, 0, 31, -1; membar.gl; bar.warp.sync -1;
    .loc 1 12 0
    bar.sync 0; barrier.sync 1;
    .loc 1 13 0
    ld.param.u64 %d1, [a]; ld.global.u32 %w1, [%a]; st.global.u32 [%a], %w1;
    red.global.add.u32 [%a], 1;
""",
    )
    + entry(
        "hands_over",  # lanes wait for what lane 0 does after a loop that they leave first
        """
    mov.u32 %w1, 0;
    setp.eq.u32 %p1, %t, 0;
    mul.lo.u32 %w3, %n, 1;
    @%p1 mul.lo.u32 %w3, %n, 2000;
MORE:
    .loc 1 2 0
    ld.volatile.global.u32 %w2, [%a];
    add.u32 %w1, %w1, 1;
    setp.lt.u32 %p2, %w1, %w3;
    @%p2 bra MORE;
    .loc 1 3 0
    @%p1 bra GIVE;
WAIT:
    ld.volatile.global.u32 %w2, [flag];
    setp.eq.u32 %p3, %w2, 0;
    @%p3 bra WAIT;
    bra DONE;
GIVE:
    st.volatile.global.u32 [flag], 1;
DONE:
""",
    )
    + entry(
        "spins",  # the other way about: lane 0 leaves the waiting loop first and then runs long
        """
    setp.eq.u32 %p1, %t, 0;
    mov.u32 %w1, 0;
WAIT:
    ld.volatile.global.u32 %w2, [flag];
    setp.ne.u32 %p2, %w2, 0;
    or.pred %p2, %p1, %p2;
    @!%p2 bra WAIT;
MORE:
    .loc 1 2 0
    ld.volatile.global.u32 %w3, [%a];
    add.u32 %w1, %w1, 1;
    setp.lt.u32 %p3, %w1, 5000;
    @%p3 bra MORE;
    st.volatile.global.u32 [flag], 1;
""",
    )
    + entry(
        "barriers",  # n turns with a barrier in each
        """
    mov.u32 %w1, 0;
MORE:
    setp.ge.u32 %p1, %w1, %n;
    @%p1 bra DONE;
    .loc 1 2 0
    ld.global.u32 %w2, [%a];
    bar.sync 0;
    ld.global.u32 %w2, [%a];
    add.u32 %w1, %w1, 1;
    bra MORE;
DONE:
""",
    )
    + entry(
        "generic",  # lanes below 16 touch global memory, the others shared memory
        """
    .shared .align 4 .b8 room[128];
    mul.wide.u32 %d1, %t, 4;
    mov.u64 %d2, room;
    cvta.shared.u64 %d2, %d2;
    setp.lt.u32 %p1, %t, %n;
    selp.b64 %d3, %a, %d2, %p1;
    add.u64 %d3, %d3, %d1;
    .loc 1 2 0
    st.u32 [%d3], %t;
    .loc 1 3 0
    ld.u32 %w1, [%d3];
""",
    )
    + entry(
        "copies",
        """
    .shared .align 16 .b8 room[512];
    mul.wide.u32 %d1, %t, 16;
    mov.u64 %d2, room;
    add.u64 %d2, %d2, %d1;
    add.u64 %d3, %a, %d1;
    .loc 1 2 0
    cp.async.ca.shared.global [%d2], [%d3], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
""",
    )
    + entry(
        "traps",  # lane 40 of none: the way to the trap does not keep lanes from meeting
        """
    setp.eq.u32 %p2, %n, 0;
    @%p2 bra OTHER;
    setp.eq.u32 %p1, %t, 40;
    @%p1 bra FAIL;
    ld.global.u32 %w2, [%a];
    bra MEET;
FAIL:
    trap;
OTHER:
    ld.global.u32 %w2, [%a];
MEET:
    .loc 1 2 0
    ld.global.u32 %w2, [%a];
""",
    )
)  # fmt: skip

DRAWN = random.Random(5)
UNEVEN = [DRAWN.randrange(50) for _ in range(64)]
NESTED = [DRAWN.randrange(1 << 27) for _ in range(64)]
NUMBERS = [DRAWN.randrange(10) for _ in range(64)]


def _counts(order: str, sanitize: bool = False) -> dict[str, Any]:
    """Return, for each kernel, its counts and those of its lines."""
    bench = Bench(FLOW, sanitize=sanitize)
    bench.device.set("order", order)
    runs: dict[str, tuple[list[int], int]] = {
        "recursion": (NUMBERS, 64),
        "loop": (UNEVEN, 64),
        "nested": (NESTED, 64),
        "choice": ([i % 4 for i in range(32)], 32),
        "scopes": ([i % 2 for i in range(32)], 32),
        "leaves_loop": ([i % 8 for i in range(32)], 32),
        "finds": ([i // 4 for i in range(32)], 32),
        "guards": ([10] * 48, 48),
        "operations": ([0] * 48, 48),
        "barriers": ([4] * 80, 80),
        "generic": ([16] * 32, 32),
        "copies": ([0] * 32, 32),
        "traps": ([i % 2 for i in range(32)], 32),
    }
    found = {}
    for kernel, (words, threads) in runs.items():
        bench.fill(bench.b, words)
        counted = bench.count(kernel, (1,), (threads,))
        lines = {str(line): of_line(counted, line) for line in range(1, 14)}
        found[kernel] = {"all": dict(counted.counts), **lines}
    return found


def _ascending() -> Any:
    return _counts("ascending")


def _descending() -> Any:
    return _counts("descending")


def _seeded() -> Any:
    return _counts("7")


def _sanitized() -> Any:
    return _counts("ascending", sanitize=True)


@pytest.fixture(scope="module")
def counted() -> Any:
    return on_softcuda(_ascending)


@pytest.mark.parametrize("other", [_descending, _seeded, _sanitized])
def test_counts_are_the_same_in_any_order_and_with_the_sanitizer(other: Any, counted: Any) -> None:
    assert on_softcuda(other) == counted


def requests(counted: Any, kernel: str, line: int) -> tuple[int, int]:
    """Return load requests of a line, and how many lanes its instructions had in all."""
    row = counted[kernel][str(line)]
    return row.get("global_load_requests", 0), row.get("ptx_thread_instructions", 0)


def test_a_loop_takes_the_turns_of_the_lane_that_has_most(counted: Any) -> None:
    warps = [UNEVEN[:32], UNEVEN[32:]]
    turns = sum(map(max, warps))
    assert requests(counted, "loop", 2) == (turns, 2 * sum(UNEVEN))
    row = counted["loop"]["3"]
    assert row["branches"] == turns + 2
    assert row["ptx_instructions"] == 2 * (turns + 2)
    parting = sum(len({n for n in warp if n < max(warp)}) for warp in warps)
    assert row["divergent_branches"] == parting
    # In each turn lanes wait for two instructions of the loop, and for two that test.
    assert row["waiting_lanes"] == 4 * (32 * turns - sum(UNEVEN))
    assert requests(counted, "loop", 4)[0] == 2  # they have met again


@pytest.mark.parametrize("kernel", ["loop", "nested", "choice", "scopes"])
def test_each_lane_that_is_off_waits_for_one_branch(kernel: str, counted: Any) -> None:
    row = counted[kernel]["all"]
    off = 32 * row["ptx_instructions"] - row["ptx_thread_instructions"]
    assert row["waiting_lanes"] == off > 0


def nested_turns(warp: list[int]) -> int:
    """Return the inner turns of a warp in lock step: lanes wait for each other behind the loop."""
    return sum(
        max((n >> (3 * turn + 3) & 7 for n in warp if turn < (n & 7)), default=0)
        for turn in range(8)
    )


def test_nested_loops_run_in_lock_step(counted: Any) -> None:
    warps = [NESTED[:32], NESTED[32:]]
    turns = sum(map(nested_turns, warps))
    of_lanes = [sum(n >> (3 * turn + 3) & 7 for turn in range(n & 7)) for n in NESTED]
    paired = max(of_lanes[:32]) + max(of_lanes[32:])
    assert turns > paired  # the k-th executions of lanes do not belong together
    assert requests(counted, "nested", 2)[0] == turns
    assert counted["nested"]["all"]["global_load_requests"] == turns + 2


def calls(numbers: list[int]) -> int:
    """Return how often a warp calls the function: lanes go through each call together."""
    more = [n for n in numbers if n >= 2]
    if not more:
        return 1
    return 1 + calls([n - 1 for n in more]) + calls([n - 2 for n in more])


def test_recursion_is_in_lock_step_at_each_depth(counted: Any) -> None:
    warps = [NUMBERS[:32], NUMBERS[32:]]
    row = counted["recursion"]["2"]
    assert row["branches"] == sum(map(calls, warps))
    assert counted["recursion"]["3"]["global_store_requests"] == 2
    assert counted["recursion"]["3"]["global_store_sectors"] == 8


def test_each_case_of_a_switch_runs_once_and_lanes_meet_behind_it(counted: Any) -> None:
    row = counted["choice"]["2"]
    assert (row["branches"], row["divergent_branches"]) == (1, 1)
    assert [requests(counted, "choice", line)[0] for line in range(3, 8)] == [1, 1, 1, 1, 1]


def test_labels_belong_to_their_scopes(counted: Any) -> None:
    row = counted["scopes"]["2"]
    assert (row["global_load_requests"], row["divergent_branches"]) == (4, 2)
    # Two branches, two loads of half of the lanes, two of all, and the return.
    assert row["ptx_thread_instructions"] == 2 * 32 + 2 * 16 + 2 * 32 + 32


def test_lanes_that_return_leave_their_warp(counted: Any) -> None:
    assert requests(counted, "leaves_loop", 2)[0] == 5
    assert requests(counted, "leaves_loop", 3) == (1, 2 * 12)  # n is 5, 6 or 7; with the return
    # Of the return itself nothing is a branch.
    assert counted["leaves_loop"]["all"]["divergent_branches"] == 0


def test_lanes_meet_behind_a_loop_that_others_leave_for_good(counted: Any) -> None:
    assert requests(counted, "finds", 2)[0] == 2


def test_lanes_whose_guard_is_off_do_not_calculate(counted: Any) -> None:
    lines = counted["guards"]
    assert lines["2"]["flops_float32"] == 2 * 10
    assert lines["3"]["flops_float64"] == 38
    assert lines["4"]["special_functions"] == 10
    assert [lines[str(line)].get("guarded_off_lanes", 0) for line in (2, 3, 4)] == [38, 10, 38]
    # Instructions count for all lanes that come to them.
    assert [lines[str(line)]["ptx_thread_instructions"] for line in (2, 3, 4, 5)] == [48] * 4
    assert [lines[str(line)]["ptx_instructions"] for line in (2, 3, 4, 5)] == [2] * 4


OPERATIONS = {
    2: {"flops_float32": 48 * 5, "ptx_float": 8},
    3: {"flops_float64": 48 * 4, "ptx_float": 6},
    4: {"flops_float16": 48 * 3, "ptx_float": 4},
    5: {"flops_float16": 48 * 10, "ptx_float": 6},
    6: {"special_functions": 48 * 10, "ptx_special": 20},
    7: {"ptx_float": 8},
    8: {"ptx_integer": 8, "integer_divisions": 2},
    9: {"ptx_convert": 4, "float64_from_float32": 2},
    10: {"ptx_move": 6},
    11: {"ptx_other": 6},
    12: {"ptx_other": 4, "barriers": 4},
}


@pytest.mark.parametrize("line", OPERATIONS)
def test_operations_count_by_their_types(line: int, counted: Any) -> None:
    row = dict(counted["operations"][str(line)])
    number = sum(each for name, each in OPERATIONS[line].items() if name.startswith("ptx_"))
    assert row.pop("ptx_instructions") == number
    assert row.pop("ptx_thread_instructions") == 24 * number
    assert row == OPERATIONS[line]


def test_memory_instructions_count_parameters_too(counted: Any) -> None:
    assert counted["operations"]["13"]["ptx_memory"] == 8


def test_classes_of_instructions_sum_up(counted: Any) -> None:
    classes = [one.name for one in COUNTS if one.name.startswith("ptx_")]
    classes = [name for name in classes if not name.endswith("instructions")]
    for kernel, lines in counted.items():
        for row in lines.values():
            total = row.get("ptx_instructions", 0)
            assert sum(row.get(name, 0) for name in classes) == total, kernel


def test_every_count_has_a_number(counted: Any) -> None:
    for lines in counted.values():
        assert set(lines["all"]) == {one.name for one in COUNTS}


def test_a_warp_counts_at_each_barrier(counted: Any) -> None:
    assert counted["barriers"]["2"]["barriers"] == 3 * 4
    assert requests(counted, "barriers", 2)[0] == 2 * 3 * 4
    assert counted["barriers"]["all"]["warps"] == 3
    assert counted["barriers"]["all"]["threads"] == 80


def test_generic_addresses_go_where_they_lead(counted: Any) -> None:
    row = counted["generic"]["2"]
    assert (row["global_store_requests"], row["global_store_sectors"]) == (1, 2)
    assert (row["shared_store_requests"], row["shared_store_wavefronts"]) == (1, 1)
    row = counted["generic"]["3"]
    assert (row["global_load_requests"], row["global_load_sectors"]) == (1, 2)
    assert (row["shared_load_requests"], row["shared_load_wavefronts"]) == (1, 1)


def test_an_asynchronous_copy_loads_and_stores(counted: Any) -> None:
    row = counted["copies"]["2"]
    assert (row["global_load_requests"], row["global_load_sectors"]) == (1, 16)
    assert (row["shared_store_requests"], row["shared_store_wavefronts"]) == (1, 4)


def test_a_way_to_a_trap_does_not_keep_lanes_apart(counted: Any) -> None:
    assert requests(counted, "traps", 2)[0] == 1


# ---- traces ------------------------------------------------------------------------------------


def _long() -> Any:
    """Run 32 lanes for a million turns each: of traces without a bound, some 400 MB."""
    found = []
    bench = Bench(FLOW)
    for order in ORDERS:
        bench.device.set("order", order)
        bench.fill(bench.b, [1_000_000 - i for i in range(32)])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        counted = bench.count("loop")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        row = of_line(counted, 3)
        found.append([grown, counted.counts["global_load_requests"], row["divergent_branches"]])
    return found


def test_traces_are_bounded_however_long_threads_run() -> None:
    for grown, loads, divergent in on_softcuda(_long):
        assert grown < 64 << 10  # KiB
        assert (loads, divergent) == (1_000_000 + 2, 31)


def _handing_over() -> Any:
    bench = Bench(FLOW)
    bench.fill(bench.b, [3] * 32)
    given = bench.count("hands_over")
    spun = bench.count("spins")
    return [
        of_line(given, 2)["global_load_requests"], of_line(spun, 2)["global_load_requests"],
    ]  # fmt: skip


def test_lanes_of_a_warp_may_wait_for_each_other_longer_than_a_trace() -> None:
    assert on_softcuda(_handing_over, timeout=60) == [6000, 5000]


def _uneven_blocks() -> Any:
    bench = Bench(FLOW)
    bench.fill(bench.b, [*([1] * 64), *([9] * 64), *([3] * 64)])
    answers = []
    for order in ORDERS:
        bench.device.set("order", order)
        counted = bench.count("loop", (3,), (64,)).counts
        answers.append([counted["busiest_block_instructions"], counted["ptx_instructions"]])
    return answers


def test_the_busiest_block_is_told_from_the_others() -> None:
    for busiest, every in on_softcuda(_uneven_blocks):
        # Two warps a block; a turn more or less is four instructions.
        assert 3 * busiest == every + 2 * 4 * ((9 - 1) + (9 - 3))


# ---- basic blocks -------------------------------------------------------------------------------


def _blocks(body: str) -> Blocks:
    (function,) = parse(HEADER + f".visible .entry k()\n{{ .reg .pred %p<2>; {body} }}").functions
    return Blocks(function, 0)


def test_there_may_be_any_number_of_blocks() -> None:
    many = 70_000
    blocks = _blocks("".join(f"L{i}: @%p1 bra L{i + 1};\n" for i in range(many)) + f"L{many}: ret;")
    assert len(blocks.blocks) == many + 1
    assert blocks.blocks[many - 1].meets == many
    table = list(write_tables(blocks.blocks))[-1]
    assert re.search(rf"{{{many}u, 0, 0, 0, 1}}", table)


@pytest.mark.parametrize(
    ("body", "meets"),
    [
        ("@%p1 bra B; A: add.u32 %r1, 1, 1; B: ret;", [1, 2, NOWHERE]),
        ("@%p1 bra B; bra C; B: bra C; C: add.u32 %r1, 1, 1; ret;", [3, 3, 3, NOWHERE]),
        ("A: @%p1 bra A; bra A;", [1, NOWHERE]),  # no way out: they still have an end
    ],
)
def test_lanes_meet_in_the_immediate_postdominator(body: str, meets: list[int]) -> None:
    assert [one.meets for one in _blocks(body).blocks] == meets
