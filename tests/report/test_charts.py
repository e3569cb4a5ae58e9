"""What a kernel's charts say, from rows and histories made by hand."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from histories import NUMBA, NUMPY, beside_numpy, history_of, snapshot, timed

from gpubench.analysis.changes import Change, changes_of
from gpubench.analysis.headline import KernelNow
from gpubench.report.charts import (
    MAX_TABLE_COMMITS,
    HistoryChart,
    LaunchMap,
    Rooflines,
    SizeChart,
    history_chart,
    launch_maps,
    rooflines,
    size_charts,
)
from gpubench.report.figures import history_figure
from gpubench.report.navigation import commit_label
from gpubench.report.text import share
from gpubench.results import CaseName, History, Ratio, Row

RANKS = {"numpy": 0, "numba": 1, "cuda": 2}
NARROW = "\N{NARROW NO-BREAK SPACE}"


# over commits


def history(*commits: dict[CaseName, float | None]) -> History:
    """One snapshot for each, with seconds by case; a case without seconds failed."""
    measured = []
    for index, seconds in enumerate(commits):
        rows = [timed(name, value) for name, value in seconds.items()]
        measured.append((snapshot(index), beside_numpy(rows)))
    return history_of(measured)


def chart(of: History, changes: Sequence[Change] | None = None) -> HistoryChart:
    """``numba`` against ``numpy``; with these changes of it, or those that there are."""
    all_changes = changes_of(of)
    if changes is not None:
        all_changes[NUMBA] = tuple(changes)
    labels = [commit_label(commit) for commit in of.commits]
    return history_chart(of, labels, all_changes, [NUMBA], [NUMPY], RANKS, None)


def test_a_chart_has_the_commits_that_know_one_of_its_cases() -> None:
    other = replace(NUMPY, kernel="norm")
    shown = chart(history({NUMPY: 4.0}, {other: 1.0}, {NUMPY: 4.0, NUMBA: 2.0}))

    assert [commit.date for commit in shown.commits] == ["unknown date", "1970-01-01"]
    baseline, numba = shown.series
    assert baseline.times.values.tolist() == [4.0, 4.0]
    assert [math.isnan(value) for value in numba.times.values] == [True, False]
    assert numba.speedups.values[1] == 2.0


def test_the_table_lists_the_newest_commits_first_and_not_all_of_many() -> None:
    shown = chart(history(*({NUMPY: 4.0, NUMBA: 2.0} for _ in range(MAX_TABLE_COMMITS + 7))))

    assert len(shown.commits) == MAX_TABLE_COMMITS + 7
    assert shown.listed == tuple(range(MAX_TABLE_COMMITS + 6, 6, -1))
    assert [len(series.points) for series in shown.series] == [MAX_TABLE_COMMITS, MAX_TABLE_COMMITS]


def test_a_point_without_a_time_says_its_status_and_one_not_measured_none() -> None:
    (_, numba) = chart(
        history({NUMPY: 4.0, NUMBA: 2.0}, {NUMPY: 4.0, NUMBA: None}, {NUMPY: 4.0})
    ).series

    assert [point.status for point in numba.points] == [None, "failed", "ok"]
    assert [point.seconds is None for point in numba.points] == [True, True, False]
    assert [point.speedup is None for point in numba.points] == [True, True, False]


def test_an_interval_that_is_not_known_leaves_a_gap_in_the_band_and_no_gap_in_the_line() -> None:
    of = history({NUMPY: 4.0, NUMBA: 2.0}, {NUMPY: 4.0, NUMBA: 2.0})
    of.times[1:, of.rows_of[NUMBA], 0] = 0.0, math.inf
    of.speedups[1:, of.rows_of[NUMBA], 0] = 0.0, math.inf

    (_, numba) = chart(of).series

    assert numba.times.values.tolist() == [2.0, 2.0]
    for curve in (numba.times, numba.speedups):
        assert [math.isnan(low) for low in curve.lows] == [True, False]
        assert [math.isnan(high) for high in curve.highs] == [True, False]
    assert numba.points[-1].seconds == 2.0


def test_a_case_that_stopped_says_since_when_and_why() -> None:
    (_, numba) = chart(
        history(
            {NUMPY: 4.0, NUMBA: 2.0},
            {NUMPY: 4.0},
            {NUMPY: 4.0, NUMBA: None},
            {NUMPY: 4.0, NUMBA: None},
        )
    ).series

    assert (numba.stopped, numba.status) == (2, "failed")
    assert numba.sentence == (
        "numba: failed since 00000000; the last value was 2.00\u202fs at 00000000, unknown date."
    )


def test_a_case_that_never_had_a_time_did_not_stop() -> None:
    (_, numba) = chart(history({NUMPY: 4.0, NUMBA: None}, {NUMPY: 4.0, NUMBA: None})).series

    assert (numba.stopped, numba.status) == (None, None)
    assert numba.sentence == "numba: failed."


def test_changes_are_marked_at_their_place_among_the_commits_of_the_chart() -> None:
    other = replace(NUMPY, kernel="norm")
    of = history({other: 1.0}, {NUMPY: 4.0, NUMBA: 2.0}, {other: 1.0}, {NUMPY: 4.0, NUMBA: 4.0})
    change = Change("check", 1, 3, 2.0, 4.0, Ratio(0.5, 0.49, 0.51), 1)

    (_, numba) = chart(of, [change]).series

    assert numba.marked == (1,)
    assert numba.changes == (change,)
    assert numba.sentence.endswith(
        "; one commit alone, to be checked: slower by 2.00× at 00000000 "
        "(by times alone; rests on 1 commit)."
    )


def test_values_of_another_version_are_counted_and_marked_in_the_chart() -> None:
    of_before = (NUMBA.benchmark.asv_name,)
    rows = beside_numpy([timed(NUMPY, 4.0), timed(NUMBA, 2.0)])
    of = history_of(
        [(snapshot(place, superseded=of_before if place < 3 else ()), rows) for place in range(6)]
    )

    shown = chart(of)

    baseline, numba = shown.series
    assert (baseline.left_out, numba.left_out) == (0, 3)
    assert "3 older values of another version of it left out" in numba.sentence
    assert "◂ numba 3 older values of another version" in str(history_figure(shown)["layout"])


def test_one_commit_is_no_history_of_no_change() -> None:
    (_, alone) = chart(history({NUMPY: 4.0, NUMBA: 2.0})).series
    (_, steady) = chart(history({NUMPY: 4.0, NUMBA: 2.0}, {NUMPY: 4.0, NUMBA: 2.0})).series

    now = f"numba: 2.00{NARROW}s, 2.00× (1.96–2.04×) at the newest commit"
    assert alone.sentence == f"{now}."
    assert steady.sentence == f"{now}; no change of its time was found."


@pytest.mark.parametrize(
    ("disturbed", "words"),
    [
        (5, "its time is not judged: other work disturbed 5 of 5 values"),
        (2, "no change of its time was found: other work disturbed 2 of 5 values"),
    ],
)
def test_disturbed_values_are_not_said_to_have_no_change(disturbed: int, words: str) -> None:
    seconds = (2.0, 2.0, 2.0, 30.0, 30.0)
    of = history_of(
        [
            (
                snapshot(place),
                beside_numpy(
                    [
                        timed(NUMPY, 4.0),
                        timed(NUMBA, value, disturbed=0.9 if 5 - place <= disturbed else 0.0),
                    ]
                ),
            )
            for place, value in enumerate(seconds)
        ]
    )

    (_, numba) = chart(of).series

    assert numba.sentence.endswith(f"at the newest commit; {words}.")


# over sizes


def sized(implementation: str, n: int, seconds: float, **fields: Any) -> Row:
    name = CaseName("add", "add", implementation, "kernel", f"n={n}")
    return timed(name, seconds, sizes={"n": float(n)}, size=float(n), **fields)


def over_sizes(*seconds: tuple[float, float]) -> SizeChart:
    """NumPy's and another's seconds at sizes 1, 2, 4 ..."""
    rows = []
    for index, (numpy, numba) in enumerate(seconds):
        rows += [sized("numpy", 2**index, numpy), sized("numba", 2**index, numba)]
    (shown,) = size_charts(beside_numpy(rows).values(), RANKS)
    return shown


SAME, WIN, LOSS = (1.0, 1.0), (1.0, 0.5), (1.0, 2.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ((LOSS, SAME), "is never clearly faster in this range."),
        ((LOSS, WIN, SAME), "is faster at n = 2, but not up to the largest size."),
        ((WIN, WIN), "is faster at every size measured, from n = 1 on."),
        ((SAME, WIN), "is faster from n = 2 on; below, it is unclear."),
        ((LOSS, SAME, WIN), "is faster from n = 4 on; the crossover lies above n = 1."),
    ],
)
def test_the_crossover_is_said_for_every_way_to_lie(
    seconds: Sequence[tuple[float, float]], words: str
) -> None:
    (series,) = over_sizes(*seconds).series

    assert series.sentence == f"numba {words}"


def test_series_stand_in_the_order_of_the_page_and_sizes_from_the_smallest() -> None:
    rows = [sized(name, n, 1.0) for n in (4, 2) for name in ("cuda", "numba", "numpy")]

    (shown,) = size_charts(beside_numpy(rows).values(), RANKS)

    assert [series.implementation for series in shown.series] == ["numba", "cuda"]
    assert [point.size for point in shown.series[0].points] == [2.0, 4.0]


def test_of_several_launches_the_fastest_stands_for_a_size() -> None:
    fast = replace(
        sized("cuda", 2, 0.25), name=CaseName("add", "add", "cuda", "kernel", "n=2 block=64")
    )
    rows = beside_numpy([sized("numpy", 2, 1.0), sized("cuda", 2, 0.5)])
    speedup = Ratio(4.0, 3.9, 4.1)
    slow = list(rows.values())
    at_four = beside_numpy([sized("numpy", 4, 1.0), sized("cuda", 4, 0.5)]).values()

    (shown,) = size_charts([*slow, replace(fast, speedup=speedup), *at_four], RANKS)

    first = shown.series[0].points[0]
    assert (first.name.case, first.speedup, first.seconds) == ("n=2 block=64", speedup, 0.25)


def test_an_axis_of_several_sizes_names_them_all() -> None:
    rows = [
        replace(row, sizes={"m": 2.0, "n": row.size / 2})
        for n in (2, 4)
        for row in beside_numpy([sized("numpy", n, 1.0), sized("numba", n, 0.5)]).values()
    ]

    (shown,) = size_charts(rows, RANKS)

    assert shown.axis == "m × n"
    assert shown.series[0].sentence.endswith("from m = 2, n = 1 on.")


def test_rows_of_one_size_and_other_times_make_no_chart() -> None:
    rows = beside_numpy([sized("numpy", 2, 1.0), sized("numba", 2, 0.5)])
    compiling = replace(
        sized("numba", 4, 0.5),
        name=CaseName("add", "add", "numba", "cold", "n=4"),
        speedup=Ratio(2, 1, 3),
    )

    assert list(size_charts([*rows.values(), compiling], RANKS)) == []


# over launches


def launched(case: str, seconds: float | None, problem: str = "n=64", **fields: Any) -> Row:
    name = CaseName("add", "add", "cuda", "kernel", case)
    size = float(problem.partition("=")[2].split()[0])
    sizes = {"n": size}
    return timed(name, seconds, problem=problem, sizes=sizes, size=size, **fields)


def launch_map(*rows: Row) -> LaunchMap:
    (shown,) = launch_maps(rows, ["numpy", "cuda"])
    return shown


def test_blocks_are_ordered_by_their_numbers() -> None:
    cases = [f"n=64 block={block}" for block in ("128", "16x16", "8x32", "64", "8x8")]

    shown = launch_map(*(launched(case, 1.0) for case in cases))

    assert list(shown.rows) == ["8x8", "8x32", "16x16", "64", "128"]
    assert (shown.corner, shown.columns) == ("block \\ size", ("n=64",))


def test_columns_of_a_swept_grid_are_those_of_the_largest_size() -> None:
    shown = launch_map(
        *(
            launched(f"n={n} block=64{grid}", seconds, f"n={n}")
            for n in (8, 64)
            for grid, seconds in ((" grid=4", 2.0), (" grid=16", 1.0), ("", 3.0))
        )
    )

    assert (shown.problem, shown.corner) == ("n=64", "block \\ grid")
    assert shown.columns == ("cover", "4", "16")
    (cells,) = shown.rows.values()
    assert shown.best == tuple(cell.name for cell in cells if cell)
    assert len(shown.best) == 3
    assert shown.sentence == (
        f"At the largest size cuda is fastest with n=64 block=64 grid=16: 1.00{NARROW}s."
    )


def test_each_largest_problem_has_a_map_of_its_own_where_the_grid_is_swept() -> None:
    rows = [
        launched(f"n=64 dtype={dtype} block=64 grid={grid}", 1.0, f"n=64 dtype={dtype}")
        for dtype in ("float64", "float32")
        for grid in (2, 4)
    ]

    maps = launch_maps(rows, ["cuda"])

    assert [shown.problem for shown in maps] == ["n=64 dtype=float32", "n=64 dtype=float64"]


def test_reasons_are_numbered_once_and_a_launch_without_a_time_is_never_the_best() -> None:
    shown = launch_map(
        launched("n=64 block=32", None),
        launched("n=64 block=64", 2.0),
        launched("n=64 block=96", None),
    )

    assert shown.reasons == ("broken",)
    cells = {label: cell for label, (cell,) in shown.rows.items() if cell}
    assert [cells[block].reason for block in ("32", "64", "96")] == ["broken", None, "broken"]
    assert shown.best == (cells["64"].name,)


def test_no_time_at_all_says_what_became_of_the_launches() -> None:
    skipped = replace(launched("n=64 block=32", None), status="skipped")

    shown = launch_map(skipped, launched("n=64 block=64", None))

    assert shown.sentence == "No launch of cuda has a time: failed or skipped."


def test_one_launch_or_another_time_makes_no_map() -> None:
    transfer = launched("n=64 block=64", 1.0)
    transfer = replace(transfer, name=replace(transfer.name, time="transfer"))

    assert list(launch_maps([launched("n=64 block=32", 1.0), transfer], ["cuda"])) == []


# rooflines


def moving(implementation: str, n: int, seconds: float, **fields: Any) -> Row:
    """A case that moves eight bytes of an element and does one operation on it."""
    row = sized(implementation, n, seconds, bytes=8 * n, flops=n, **fields)
    return replace(row, bytes_per_second=8 * n / seconds, flops_per_second=n / seconds)


def roofs(*rows: Row, others: Sequence[KernelNow] = ()) -> tuple[Rooflines, dict[CaseName, float]]:
    of = history_of([(snapshot(), beside_numpy(rows))])
    now = KernelNow(("add", "add"), of.latest, beside_numpy(rows))
    return rooflines(now, of, [now, *others], RANKS)


FAST_MEMORY = {"triad_bytes_per_second": 1e3, "peak_bytes_per_second": 2e3}


def test_more_than_the_memory_gives_is_said_in_words_and_in_no_share() -> None:
    shown, shares = roofs(
        moving("cuda", 100, 0.4, device="cuda:0", conditions=FAST_MEMORY),
        moving("cuda", 200, 2.0, device="cuda:0", conditions=FAST_MEMORY),
    )

    (roof,) = shown.devices
    assert [point.share for point in roof.points] == [2.0, 0.8]
    words = [share(point.share) for point in roof.points]
    assert words == ["cache-resident or undercounted", "80 %"]
    assert [point.intensity for point in roof.points] == [1 / 8, 1 / 8]
    assert roof.sentences[-1] == "cuda: 80 % of what is attainable at n = 200."
    assert set(shares.values()) == {2.0, 0.8}


def test_each_device_has_a_roof_or_says_what_would_give_it() -> None:
    shown, shares = roofs(
        moving("cuda", 100, 1.0, device="cuda:0", conditions=FAST_MEMORY),
        moving("cuda", 200, 1.0, device="cuda:1"),
        moving("numba", 100, 1.0, device="cpu"),
    )

    assert [roof.device for roof in shown.devices] == ["cuda:0"]
    assert [missing.command for missing in shown.missing] == [
        "asv run --bench __triad__",
        "asv run 00000000^!",
    ]
    assert "the bandwidth of cuda:1 is not in the record" in shown.missing[1].why
    assert len(shares) == 1


def test_a_kernel_that_only_moves_data_gives_the_ceiling_of_the_cpu() -> None:
    triad = moving("numpy", 1000, 1.0, device="cpu")
    triad = replace(triad, name=CaseName("copies", "triad", "numpy", "kernel", "n=1000"))
    stream = KernelNow(("copies", "triad"), snapshot().commit, {triad.name: triad})

    shown, _ = roofs(moving("numba", 100, 0.2, device="cpu"), others=[stream])

    (roof,) = shown.devices
    assert roof.sentences[0] == "Bandwidth 8.00e-06 GB/s: copies.triad numpy n=1000."
    assert [point.share for point in roof.points] == [0.5]


def test_a_suite_that_counts_no_operations_has_rates_and_nothing_to_draw() -> None:
    row = replace(
        moving("cuda", 100, 1.0, device="cuda:0", conditions=FAST_MEMORY),
        flops=None,
        flops_per_second=None,
    )

    shown, _ = roofs(row)

    assert not shown.devices[0].drawn
    assert shown.devices[0].points[0].flops_per_second is None
    assert shown.devices[0].points[0].share == 0.8


def test_a_kernel_without_any_time_says_nothing_of_its_roofline() -> None:
    shown, shares = roofs(timed(NUMPY, None))

    assert (shown.devices, shown.missing, shares) == ((), (), {})
