"""Hints: each is on the kernel that costs more than it must, and not on the one that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernel_runs import why_not
from softcuda_process import on_softcuda

from softcuda.counts import COUNTS, AccessCounts, LaunchCounts, LineCounts
from softcuda.hints import MAX_HINTS, Hint, find_hints, format_hint, hints_of

needs_numba = pytest.mark.skipif(bool(why_not()), reason=why_not())

QUICK = (
    *(
        "copy",
        "records",
        "row a thread",
        "transpose in shared",
        "reduction",
        "literal",
        "sobel",
        "matmul",
    ),
    *("sum in memory", "sum by atomics", "window", "stencil", "array_sum"),
)
"""A pair for each rule, and more for those with several causes."""


def count_quick_pairs() -> Any:
    return _count_pairs(QUICK)


def count_other_pairs() -> Any:
    import hint_pairs

    return _count_pairs([pair.name for pair in hint_pairs.PAIRS if pair.name not in QUICK])


def _count_pairs(names: Any) -> Any:
    """Return, by name of the pair, its rule, the rules of the hints of both kernels, and the count
    that has to fall, of both."""
    import hint_pairs
    from numba import cuda

    import softcuda

    device = softcuda.start()
    device.set("count", "1")
    answers = {}
    for pair in hint_pairs.PAIRS:
        if pair.name not in names:
            continue
        rules, numbers = [], []
        for run in (pair.bad, pair.good):
            run()
            cuda.synchronize()
            (launch,) = device.counts()
            (hints,) = hints_of([launch]).values()
            rules.append([hint.rule for hint in hints])
            numbers.append(launch.counts[pair.falls])
        answers[pair.name] = pair.rule, rules, numbers
    return answers


def _check(answers: Any) -> None:
    for name, (rule, (of_bad, of_good), (bad, good)) in answers.items():
        assert rule in of_bad, (name, of_bad)
        assert rule not in of_good, (name, of_good)
        assert good < bad, (name, bad, good)


@needs_numba
def test_a_hint_is_on_the_bad_kernel_of_a_pair_and_not_on_the_good_one() -> None:
    answers = on_softcuda(count_quick_pairs)
    assert answers.keys() == set(QUICK)
    _check(answers)


@needs_numba
@pytest.mark.thorough
def test_so_it_is_on_all_other_pairs() -> None:
    answers = on_softcuda(count_other_pairs)
    assert len(answers) + len(QUICK) >= 30
    _check(answers)


def rules_of_silent() -> Any:
    import hint_pairs
    from numba import cuda

    import softcuda

    device = softcuda.start()
    device.set("count", "1")
    answers = []
    for name, rule, run in hint_pairs.SILENT:
        run()
        cuda.synchronize()
        (hints,) = hints_of(device.counts()).values()
        answers.append([name, rule, [hint.rule for hint in hints]])
    return answers


@needs_numba
def test_small_launches_have_no_hint_of_what_they_do_not_do() -> None:
    """Launch blocks whose results share a sector, and blocks of more threads than elements."""
    for name, rule, found in on_softcuda(rules_of_silent):
        assert rule not in found, name


# ---- rules, from counts that are given ----------------------------------------------------------


def access(**given: Any) -> AccessCounts:
    """Return an access of a warp to a column of 32 rows, with what is given otherwise."""
    common: dict[str, Any] = {
        "file": "k.py",
        "line": 5,
        "space": "global",
        "kind": "load",
        "size": 4,
        "requests": 10,
        "lanes": 320,
        "passes": 320,
        "ideal": 40,
        "same_address": 0,
        "step_x": 128,
        "step_y": None,
        "pitch": None,
        "uniform": 0,
        "padded": 0,
        "sectors": 320,
        "block_sectors": 320,
    }
    return AccessCounts(**common | given)


def launch(*accesses: AccessCounts, lines: Any = (), block: Any = (32, 8, 1)) -> LaunchCounts:
    sums = {one.name: 0 for one in COUNTS}
    for line in lines:
        for name, number in line.counts.items():
            sums[name] += number
    return LaunchCounts(
        *("m.k", (1, 1, 1), block, 0, (8, 0), None),
        counts=sums,
        lines=tuple(lines),
        accesses=accesses,
        loaded_block_sectors=sum(one.block_sectors for one in accesses),
    )


def only(found: LaunchCounts) -> Hint:
    (hint,) = find_hints(found)
    return hint


def test_a_hint_has_two_counts_a_cause_one_change_and_what_it_leaves() -> None:
    hint = only(launch(access(step_y=4)))
    assert format_hint(hint) == [
        "k.py:5: coalescing, 88% of the sectors: 320 sectors in 10 loads, where 40 would do "
        "(32 sectors for each load)",
        "    threadIdx.x steps 128 bytes and threadIdx.y 4 bytes: x chooses the row",
        "    exchange threadIdx.x and threadIdx.y in the indices, and in block and grid: "
        "320 sectors become 40",
    ]


def test_a_swap_that_would_spoil_another_access_is_not_proposed() -> None:
    rows = access(kind="store", step_x=4, step_y=128, passes=40)
    hint = only(launch(access(step_y=4), rows))
    assert hint.change.startswith("bring a tile through shared memory")


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"step_y": 4}, "x chooses the row"),
        ({"step_x": 12}, "fields of one record lie side by side"),
        ({"step_x": 4096}, "each thread has a row of its own"),
        ({"step_x": "varies"}, "threadIdx.x has no fixed step"),
    ],
)
def test_the_step_of_the_threads_tells_the_cause(given: Any, cause: str) -> None:
    assert cause in only(launch(access(**given))).cause


def test_rows_shorter_than_a_warp_are_a_cause_of_their_own() -> None:
    hint = only(launch(access(step_x=4, step_y=4096, passes=80), block=(4, 64, 1)))
    assert hint.cause == "a row of the block has 4 threads, and a warp has 32"
    assert not list(find_hints(launch(access(step_x=4, passes=80))))


@pytest.mark.parametrize("step", [1, "varies"])
def test_rows_of_bytes_that_begin_within_a_sector_are_no_fault(step: Any) -> None:
    bytes_of_rows = {"size": 1, "passes": 20, "ideal": 10, "step_x": step}
    assert not list(find_hints(launch(access(**bytes_of_rows))))
    assert list(find_hints(launch(access(**bytes_of_rows | {"step_x": 2}))))


def test_an_index_from_data_is_told_from_a_stride_that_changes() -> None:
    given = {"step_x": "varies"}
    assert "comes from data" in only(launch(access(**given, uneven=10))).cause
    assert "changes between requests" in only(launch(access(**given))).cause
    in_shared = given | {"space": "shared", "pitch": "varies", "ideal": 10, "padded": 320}
    assert "copy of the table" in only(launch(access(**in_shared, uneven=10))).change
    assert "neighbouring elements" in only(launch(access(**in_shared))).change


def test_rows_of_a_block_whose_banks_overlap_want_a_wider_block() -> None:
    rows = access(space="shared", step_x=4, pitch=80, passes=20, ideal=10, padded=20)
    hint = only(launch(rows, block=(16, 16, 1)))
    assert hint.cause == "a warp has 2 rows of the block, and their banks overlap"
    assert hint.change == "make blockDim.x a multiple of 32"


def test_few_lanes_of_8_bytes_in_both_halves_of_a_warp_are_no_conflict() -> None:
    few = {"space": "shared", "size": 8, "lanes": 40, "passes": 20, "ideal": 10, "step_x": None}
    assert not list(find_hints(launch(access(**few))))
    assert only(launch(access(**few | {"passes": 40}))).rule == "bank conflicts"


@pytest.mark.parametrize(
    ("loads", "given", "has_hint"),
    [(4, {}, False), (3, {}, True), (4, {"pitch": 260}, True), (4, {"step_x": 4}, True)],
)
def test_loads_that_the_assembler_joins_are_no_conflict(
    loads: int, given: Any, has_hint: bool
) -> None:
    rows = {"space": "shared", "step_x": 0, "pitch": 256, "passes": 20, "ideal": 10, "padded": 10}
    found = [*find_hints(launch(*[access(**rows | given)] * loads, block=(16, 16, 1)))]
    assert bool(found) == has_hint


def test_a_pad_is_a_whole_bank() -> None:
    rows = access(space="shared", size=1, step_x=32, pitch=32, passes=80, ideal=10, padded=10)
    assert only(launch(rows)).change == "pad rows of 32 elements to 36"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("    while k < n[i]:\n", "leave a loop after different turns"),
        ("    for k in range(n[i]):\n", "leave a loop after different turns"),
        ("    if forward[i]:\n", "go different ways"),
    ],
)
def test_a_loop_of_uneven_turns_is_told_from_a_choice(
    code: str, cause: str, tmp_path: Path
) -> None:
    file = tmp_path / "k.py"
    file.write_text(code)
    counts = {"ptx_instructions": 10, "ptx_thread_instructions": 160, "waiting_lanes": 160}
    hint = only(launch(access(passes=40), lines=[LineCounts(str(file), 1, counts)]))
    assert (hint.rule, hint.line) == ("divergence", 1)
    assert hint.evidence == "160 of 320 lanes are off; those that part here are off 160 times"
    assert cause in hint.cause


def test_a_pad_that_does_not_help_is_not_proposed() -> None:
    of_shared = {"space": "shared", "pitch": 128, "passes": 320, "ideal": 10}
    padded = only(launch(access(**of_shared, padded=10)))
    assert padded.change == "pad rows of 32 elements to 33"
    assert padded.predicted is not None
    assert (padded.predicted.now, padded.predicted.then) == (320, 10)
    assert "pad" not in only(launch(access(**of_shared, padded=300))).change


def test_requests_with_few_lanes_have_no_hint_of_coalescing() -> None:
    assert not list(find_hints(launch(access(lanes=40, passes=40, ideal=10))))


def test_float64_is_no_accident_where_an_array_holds_it() -> None:
    line = LineCounts("k.py", 7, {"flops_float64": 90, "float64_from_float32": 3})
    side_by_side = {"passes": 40, "step_x": 4}
    assert only(launch(access(**side_by_side), lines=[line])).rule == "float64"
    wide = access(**side_by_side | {"step_x": 8}, size=8, ideal=40, number="f64")
    assert not list(find_hints(launch(wide, lines=[line])))
    of_integers = access(**side_by_side | {"step_x": 8}, size=8, ideal=40, number="u64")
    assert only(launch(of_integers, lines=[line])).rule == "float64"


SINGLE = {"flops_float64": 90, "flops_float32": 10, "float64_from_float32": 3}


@pytest.mark.parametrize(
    ("code", "counts", "cause", "change"),
    [
        ("t = 2.5 * a[i]", SINGLE, "the literal 2.5 is float64", "write float32(2.5)"),
        ("t = 2 * a[i, j - 1]", SINGLE, "the integer 2 is int64", "write float32(2)"),
        ("t = a[i - 1] ** 2 + b", SINGLE, "a float64 scalar or variable", "divide float32"),
        (
            "t = a[i] * k",
            SINGLE | {"float64_from_integer": 1},
            "an integer becomes float64",
            "convert the integer",
        ),
        (
            "t = y0 + y * py",
            {"flops_float64": 90, "float64_from_integer": 3},
            "no number is float32",
            "where float32 would do",
        ),
    ],
)
def test_the_line_tells_what_leads_to_float64(
    code: str, counts: Any, cause: str, change: str, tmp_path: Path
) -> None:
    file = tmp_path / "k.py"
    file.write_text(f"    {code}\n")
    hint = only(launch(access(passes=40, step_x=4), lines=[LineCounts(str(file), 1, counts)]))
    assert cause in hint.cause
    assert change in hint.change


def test_a_kernel_has_at_most_three_hints_the_largest_share_first() -> None:
    accesses = [access(line=line, passes=line * 100) for line in range(1, 6)]
    (hints,) = hints_of([launch(*accesses)]).values()
    assert [hint.line for hint in hints] == [5, 4, 3]
    assert len(hints) == MAX_HINTS


def test_many_lines_of_one_rule_leave_room_for_another() -> None:
    accesses = [access(line=line, passes=line * 100) for line in range(5, 8)]
    in_double = LineCounts("k.py", 9, {"flops_float64": 1, "flops_float32": 99})
    (hints,) = hints_of([launch(*accesses, lines=[in_double])]).values()
    assert [hint.line for hint in hints] == [7, 6, 9]


def test_a_rule_gives_one_hint_a_line_and_the_largest_of_several_launches() -> None:
    same_line = launch(access(), access(kind="store"))
    (hints,) = hints_of([same_line, launch(access(passes=640))]).values()
    assert [(hint.rule, hint.line) for hint in hints] == [("coalescing", 5)]
    assert hints[0].share == max(600 / 640, 560 / 640)


def test_no_hint_says_anything_of_time() -> None:
    found = launch(access(step_y=4), access(space="shared", pitch=128, padded=10))
    words = " ".join(line for hint in find_hints(found) for line in format_hint(hint))
    assert not {"time", "faster", "slower", "speed"} & set(words.split())
