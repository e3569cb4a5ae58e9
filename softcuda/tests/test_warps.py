"""Operations of all lanes of a warp, compared with the pseudo-code of the PTX ISA."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from kernel_runs import FULL, ORDERS, SUCCESS, Outcome, run, why_not, words

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

UP, DOWN, BFLY, IDX = 1, 2, 3, 4
ALL, ANY, UNI, BALLOT = 5, 6, 7, 8
MATCH_ANY, MATCH_ALL = 9, 10
ADD, MIN_U, MAX_U, MIN_S, MAX_S, AND, OR, XOR = range(11, 19)
ELECT = 19
"""enum sc_warp_op (device.h)."""

Operation = tuple[int, int, int, int]
"""Which, mask, b, c."""
Answers = list[tuple[int, int]]
"""Result and predicate, by lane."""


def perform(
    values: list[int], operations: list[Operation], order: str = "ascending"
) -> list[Answers]:
    told = [part for one in operations for part in one] + [FULL] * 4
    words_of_all = 64 * len(operations)
    outcome = run(
        "warp_operations",
        block=32,
        a=words(*told),
        b=words(*values),
        c_bytes=4 * words_of_all,
        c_show=words_of_all,
        order=order,
    )
    assert outcome.result == SUCCESS
    pairs = list(zip(outcome.c[::2], outcome.c[1::2], strict=True))
    return [pairs[i : i + 32] for i in range(0, len(pairs), 32)]


def lanes(mask: int) -> list[int]:
    return [lane for lane in range(32) if mask >> lane & 1]


def shuffled(kind: int, lane: int, b: int, c: int, values: list[int]) -> tuple[int, int]:
    """PTX ISA, 9.7.9.6, its pseudo-code."""
    bval, cval, segment = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & segment) | (cval & ~segment)
    min_lane = lane & segment
    j = {
        UP: lane - bval,
        DOWN: lane + bval,
        BFLY: lane ^ bval,
        IDX: min_lane | (bval & ~segment),
    }[kind]
    inside = j >= max_lane if kind == UP else j <= max_lane
    return values[j if inside else lane], int(inside)


@pytest.mark.parametrize("order", ORDERS)
def test_shuffles_do_what_the_isa_says(order: str) -> None:
    numbers = random.Random(3)
    values = [numbers.randrange(1 << 32) for _ in range(32)]
    # As CUDA C++ makes c of a width: (32 - width) << 8, and 31 but for up.
    operations = [
        (kind, FULL, delta, (32 - width) << 8 | (0 if kind == UP else 31))
        for width in (2, 8, 16, 32)
        for delta in (0, 1, 3, width // 2, width - 1, 31)
        for kind in (UP, DOWN, BFLY, IDX)
    ]
    answers = perform(values, operations, order)
    for (kind, _, b, c), found in zip(operations, answers, strict=True):
        assert found == [shuffled(kind, lane, b, c, values) for lane in range(32)]


MASKS = (FULL, 0x0000FFFF, 0xF0F0F0F0, 0x80000001, 1 << 9)


def test_votes_are_of_the_lanes_of_the_mask() -> None:
    for values in ([0] * 32, [1] * 32, [lane % 3 for lane in range(32)]):
        operations = [(kind, mask, 0, 0) for mask in MASKS for kind in (ALL, ANY, UNI, BALLOT)]
        for (kind, mask, _, _), found in zip(operations, perform(values, operations), strict=True):
            ballot = sum(1 << lane for lane in lanes(mask) if values[lane])
            said = {
                ALL: ballot == mask,
                ANY: ballot != 0,
                UNI: ballot in (0, mask),
                BALLOT: ballot,
            }[kind]
            assert [found[lane][0] for lane in lanes(mask)] == [int(said)] * len(lanes(mask))


def test_matches_find_lanes_with_the_same_value() -> None:
    for values in ([7] * 32, [lane % 5 for lane in range(32)]):
        operations = [(kind, mask, 0, 0) for mask in MASKS for kind in (MATCH_ANY, MATCH_ALL)]
        for (kind, mask, _, _), found in zip(operations, perform(values, operations), strict=True):
            for lane in lanes(mask):
                same = sum(1 << other for other in lanes(mask) if values[other] == values[lane])
                every = same == mask
                expected = same if kind == MATCH_ANY or every else 0
                assert found[lane][0] == expected
                assert kind == MATCH_ANY or found[lane][1] == int(every)


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def folded(function: Callable[[int, int], int]) -> Callable[[list[int]], int]:
    def fold(values: list[int]) -> int:
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return result & FULL

    return fold


REDUCTIONS: dict[int, Callable[[list[int]], int]] = {
    ADD: lambda values: sum(values) & FULL,
    MIN_U: min,
    MAX_U: max,
    MIN_S: lambda values: min(values, key=signed),
    MAX_S: lambda values: max(values, key=signed),
    AND: folded(lambda a, b: a & b),
    OR: folded(lambda a, b: a | b),
    XOR: folded(lambda a, b: a ^ b),
}


def test_reductions_are_of_the_lanes_of_the_mask() -> None:
    numbers = random.Random(4)
    values = [numbers.randrange(1 << 32) for _ in range(32)]
    operations = [(kind, mask, 0, 0) for mask in MASKS for kind in REDUCTIONS]
    for (kind, mask, _, _), found in zip(operations, perform(values, operations), strict=True):
        expected = REDUCTIONS[kind]([values[lane] for lane in lanes(mask)])
        assert [found[lane][0] for lane in lanes(mask)] == [expected] * len(lanes(mask))


def test_one_lane_is_elected() -> None:
    operations = [(ELECT, mask, 0, 0) for mask in MASKS]
    for (_, mask, _, _), found in zip(operations, perform([0] * 32, operations), strict=True):
        leader = lanes(mask)[0]
        assert [found[lane] for lane in lanes(mask)] == [
            (leader, int(lane == leader)) for lane in lanes(mask)
        ]


@pytest.mark.parametrize("order", ORDERS)
def test_active_lanes_are_those_at_the_same_place(order: str) -> None:
    masks = [sum(1 << lane for lane in range(first, 32, 3)) for first in range(2)]
    found = run("active", block=32, c_show=32, order=order).c
    assert found == [[masks[0], masks[1], 0][lane % 3] for lane in range(32)]


def test_lanes_that_have_ended_are_not_waited_for() -> None:
    outcome = run("ended_lanes_vote", block=32, c_show=32)
    assert outcome.c[8:] == [0xFFFFFF00] * 24
    assert outcome.reports == []


@pytest.mark.parametrize("order", ORDERS)
def test_lanes_meet_by_operation_and_mask_wherever_they_are(order: str) -> None:
    assert run("branches_meet", block=32, c_show=32, order=order).c == [48] * 32


def test_lanes_that_never_meet_are_told_and_go_on() -> None:
    outcome = run("never_meet", block=32)
    assert (outcome.result, outcome.kinds) == (SUCCESS, ["warp"])
    report = outcome.report
    assert (report.at, report.line, report.other, report.other_line) == ((0, 0), 4, (0, 16), 6)
    assert report.text == (
        "lane 0 waits in vote.sync for the lanes 0xffffffff, of which 0xffff0000 never come: "
        "lane 16 waits at a barrier of the block (line 6)"
    )


def test_a_mask_must_name_the_lane_itself() -> None:
    outcome = run("not_a_member", block=32)
    assert outcome.report.text == (
        "lane 16 executes vote.sync with the mask 0x0000ffff, which does not name it"
    )


def _absent(block: int, sanitize: int) -> Outcome:
    return run("reads_an_absent_lane", block=block, sanitize=sanitize, c_written=1, c_show=block)


def test_the_value_of_a_lane_that_is_not_there_is_told_by_the_sanitizer() -> None:
    outcome = _absent(30, sanitize=1)
    assert (outcome.kinds, outcome.report.at) == (["warp"], (0, 26))
    assert outcome.c[25:28] == [129, 126, 127]


def test_a_whole_warp_shuffles_without_a_word() -> None:
    assert _absent(32, sanitize=1).reports == []
    assert _absent(30, sanitize=0).reports == []
