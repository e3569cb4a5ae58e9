"""Times between sizes, their intervals, and what is said of how wrong they were."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from advise_sample import SIZES, numpy, write_scale

from gpubench.analysis.advice_checks import (
    LEAST_COVERAGE,
    Drifts,
    Prediction,
    checked,
    drifts_of,
    hide,
    keep,
    left_out,
    predictions_of,
    verification_path,
    verifications,
    without_hidden,
)
from gpubench.analysis.estimates import (
    LEAST_DRIFT,
    REFERENCES,
    Curve,
    Guess,
    Point,
    TimeOfWay,
    Way,
    axes_of,
    calibrated,
    references,
    refreshed,
    time_of_way,
    ways_of,
)
from gpubench.errors import ResultsError
from gpubench.results import CaseName, Row, Setup, open_table

KEY = ("scale", "scale")


def curve(times: dict[object, float]) -> Curve:
    """Of seconds by size, or by sizes."""
    points = []
    for at, seconds in sorted(times.items(), key=repr):
        place = at if isinstance(at, tuple) else (at,)
        points.append(Point(place, Guess(math.log(seconds), 0.1), ""))
    return Curve(tuple(sorted(points)))


def rows_of(directory: Path) -> list[Row]:
    table = open_table(directory)
    (setup,) = table.setups
    return [row for row in table.rows(table.snapshots(setup)[-1]).values() if row.seconds]


def test_a_power_of_the_size_is_exact_between_sizes_and_beyond() -> None:
    cubic = curve({n: 1e-9 * n**3 for n in (10, 40, 160)})

    for n, kind in (
        (10, "measured"),
        (20, "predicted"),
        (100, "predicted"),
        (1000, "extrapolated"),
    ):
        estimate = cubic.at((n,))
        assert estimate is not None
        assert estimate.seconds == pytest.approx(1e-9 * n**3)
        assert estimate.kind == kind


def test_sizes_more_than_four_times_apart_give_no_prediction() -> None:
    kinds = [(e := curve({1: 1.0, apart: 2.0}).at((1.5,))) and e.kind for apart in (4, 4.1)]

    assert kinds == ["predicted", "wide"]


def test_a_fixed_cost_is_bent_towards_and_a_step_is_not() -> None:
    sizes = [4**k for k in range(8)]
    smooth = curve({n: 100 + n for n in sizes}).at((128.0,))
    straight = curve({n: 100 + n for n in sizes[3:5]}).at((128.0,))
    step = curve({n: n * (1 if n < 100 else 3) for n in sizes}).at((128.0,))

    assert smooth is not None and straight is not None and step is not None
    assert abs(smooth.seconds - 228) < 0.5 * abs(straight.seconds - 228)
    assert 64 < step.seconds < 3 * 256  # between both ends: nothing swings


def test_two_axes_are_a_grid_and_a_missing_corner_is_no_guess() -> None:
    grid = {(n, d): n * d**2.0 for n in (10, 20, 40) for d in (2, 4)}
    estimate = curve(grid).at((15.0, 3.0))
    assert estimate is not None
    assert estimate.seconds == pytest.approx(15 * 9)

    assert curve({(10, 2): 1.0, (20, 4): 2.0}).at((15.0, 3.0)) is None
    alone = curve({(10, 2): 1.0, (20, 2): 2.0, (10, 4): 3.0}).at((15.0, 2.0))
    assert alone is not None
    assert alone.kind == "predicted"


def test_without_calibration_only_measured_sizes_have_an_interval() -> None:
    times = curve({1: 1.0, 2: 2.0})

    between, there = times.at((1.5,)), times.at((2.0,))

    assert between is not None and there is not None
    assert (between.low, between.high) == (0.0, math.inf)
    assert there.low == pytest.approx(2 * math.exp(-0.1))


def test_between_few_sizes_lines_bend_as_usual(tmp_path: Path) -> None:
    """Beyond them nothing is known."""
    times: dict[object, float] = {n: 1e-9 * n for n in (1000, 4000, 16000)}
    (way,) = calibrated([Way("a", "cpu", "", "", ("n",), {"kernel": curve(times)})])

    between, beyond = (way.curves["kernel"].at((n,)) for n in (2000.0, 32000.0))

    assert between is not None and beyond is not None
    reach = math.log(4) / 4  # in the middle of sizes that are 4x apart
    assert between.high / between.seconds == pytest.approx(math.exp(math.hypot(0.1, reach)))
    assert between.seconds / between.low == pytest.approx(between.high / between.seconds)
    assert (beyond.low, beyond.high) == (0.0, math.inf)


def row(sizes: dict[str, float]) -> Row:
    return Row(CaseName("s", "k", "numpy", "kernel", ""), "ok", seconds=1.0, sizes=sizes)


def test_axes_are_sizes_that_vary_and_do_not_grow_with_another() -> None:
    zipped = [row({"m": n, "k": n * n, "one": 8}) for n in (2, 4, 8)]
    crossed = [row({"rows": a, "columns": b}) for a, b in ((2, 64), (8, 16), (4, 32))]

    assert axes_of(zipped) == ("m",)
    assert axes_of(zipped, ["k"]) == ("k",)
    assert axes_of(crossed) == ("rows", "columns")


def random_ways(seed: int, count: int = 6) -> tuple[Way, ...]:
    """Fixed and linear costs and a step where a cache ends, each time off by some percent."""
    chance = random.Random(seed)
    ways = []
    for place in range(count):
        fixed, each, step = chance.uniform(1e-6, 1e-4), chance.uniform(1e-10, 1e-8), 2**17
        times: dict[object, float] = {
            n: (fixed + n * each * (2 if n > step else 1)) * chance.gauss(1, 0.05) for n in SIZES
        }
        ways.append(Way(f"way_{place}", "cpu", "", "", ("n",), {"kernel": curve(times)}))
    return calibrated(ways)


def test_intervals_hold_nine_of_ten_hidden_sizes_that_differ_by_chance() -> None:
    held = []
    for seed in range(8):
        ways = random_ways(seed)
        shown, taken = without_hidden(ways)
        for (place, time), points in taken.items():
            assert not {p.at for p in points} & {p.at for p in shown[place].curves[time].points}
            for point in points:
                if (estimate := shown[place].curves[time].at(point.at)) is None:
                    continue
                held.append(estimate.low <= math.exp(point.guess.log) <= estimate.high)

    assert len(held) > 300
    assert sum(held) / len(held) >= LEAST_COVERAGE


def test_intervals_are_no_wider_than_a_time_differs_where_nothing_bends() -> None:
    times: dict[object, float] = {n: 1e-9 * n for n in SIZES}
    (way,) = calibrated([Way("a", "cpu", "", "", ("n",), {"kernel": curve(times)})])

    estimate = way.curves["kernel"].at((1500.0,))

    assert estimate is not None
    assert estimate.high / estimate.seconds == pytest.approx(math.exp(0.1), rel=1e-6)


def test_ways_are_the_fastest_launch_of_each_implementation_and_device(tmp_path: Path) -> None:
    write_scale(tmp_path)
    ways = {way.implementation: way for way in ways_of(rows_of(tmp_path), ("n",))}

    assert set(ways) == {"numpy", "numba", "cuda", "pool"}
    assert ways["pool"].axes == ("n", "workers")
    assert ways["pool"].counts == (1, 2, 4)
    assert ways["pool"].device == "processes"
    assert {p.variant for p in ways["cuda"].curves["kernel"].points} == {"block=256"}
    assert {name for name, way in ways.items() if way.copies} == {"cuda", "pool"}
    assert ways["numba"].once["compile"].seconds == pytest.approx(0.4)
    # What comes before the first call, which is counted as a call.
    assert ways["pool"].once["start"].seconds == pytest.approx(0.5, rel=0.05)


def test_left_out_sizes_are_predicted_from_the_others(tmp_path: Path) -> None:
    write_scale(tmp_path)
    predictions = left_out(KEY, ways_of(rows_of(tmp_path), ("n",)))
    found = checked(predictions)

    assert found is not None
    assert found.error < 0.05
    assert found.holds
    assert found.at == ""
    ends = [
        one for one in predictions if one.kind == "extrapolated" and one.place["n"] == SIZES[-1]
    ]
    assert {one.implementation for one in ends} == {"numpy", "numba", "cuda", "pool"}


def test_verification_hides_every_second_size_and_the_most_workers(tmp_path: Path) -> None:
    write_scale(tmp_path)
    ways = ways_of(rows_of(tmp_path), ("n",))
    shown, taken = without_hidden(ways)

    for place, way in enumerate(ways):
        places = {point.at for point in shown[place].curves["kernel"].points}
        hidden = {point.at for point in taken[place, "kernel"]}
        assert places | hidden == {point.at for point in way.curves["kernel"].points}
        if way.counts:
            assert {at[1] for at in places} == {1, 2}
            assert {at for at in hidden if at[1] < 4} == {
                (n, w) for n in SIZES[1::2] for w in (1, 2)
            }
        else:
            assert {at[0] for at in hidden} == set(SIZES[1::2])
    at = (SIZES[4], 4.0)
    pool = next(way for way in shown if way.counts)
    estimate = pool.curves["kernel"].at(at)
    assert estimate is not None
    assert estimate.kind == "extrapolated"


def test_compilation_and_start_are_measured_again_and_predicted_as_they_were_stored(
    tmp_path: Path,
) -> None:
    write_scale(tmp_path)
    rows = rows_of(tmp_path)
    hidden = hide(KEY, rows, Drifts())
    wanted = [
        row
        for row in rows
        if (row.name.implementation, row.name.time, row.name.case) in hidden.cases
    ]
    once = [row for row in wanted if row.name.time in ("compile", "start")]
    # Of the pool once, though it was started with 1, 2 and 4 processes: one is in an advice.
    assert sorted(row.name.implementation for row in once) == ["numba", "pool"]

    said = predictions_of(
        hidden, [replace(row, seconds=row.seconds * 1.25) for row in wanted], "now"
    )

    of_once = {one.time: one for one in said if one.time in ("compile", "start")}
    assert of_once["compile"].seconds == pytest.approx(0.4)
    assert of_once["compile"].measured == pytest.approx(0.5)
    assert of_once["start"].stored == of_once["start"].seconds > 0.5
    found = checked(said)
    assert found is not None
    assert (found.once, found.once_error) == (2, pytest.approx(0.2))
    assert found.count == sum(one.kind == "predicted" for one in said) == 7 * 8
    assert found.change == pytest.approx(1.25)
    assert found.error == pytest.approx(0.2, abs=0.02)  # that of the hour
    assert found.line_error < 0.02  # that of the lines
    assert found.coverage < LEAST_COVERAGE
    assert found.refreshed is not None
    assert found.refreshed.count == found.count
    assert found.refreshed.error < 0.02  # sizes that were shown tell of the hour
    assert found.refreshed.holds
    never = [one for one in said if one.time not in ("compile", "start")]
    assert found.choices == checked(never).choices  # type: ignore[union-attr]


def test_each_way_is_refreshed_by_sizes_of_its_own(tmp_path: Path) -> None:
    write_scale(tmp_path)
    axes, rows = ("n",), rows_of(tmp_path)
    ways = [way for way in ways_of(rows, axes) if way.device == "cpu"]
    seconds = {at: row.seconds for row in rows if row.seconds and (at := time_of_way(row, axes))}

    def factor(implementation: str, n: float) -> float:
        """NumPy takes twice as long, and Numba the longer the larger the arrays are."""
        return 2.0 if implementation == "numpy" else (n / SIZES[0]) ** 0.1

    fresh = {
        time: seconds[time] * factor(time.way[0], time.at[0])
        for time in references(ways)
        if time.way[0] in ("numpy", "numba")
    }
    for way in ways:
        points = way.curves["kernel"].points
        sizes = sorted(one.at for one in fresh if one.way == way.key and one.time == "kernel")
        assert [sizes[0], sizes[-1]] == [points[0].at, points[-1].at]
        assert len(sizes) == REFERENCES < len(points)

        before, after = way.curves["kernel"], refreshed(way, fresh).curves["kernel"]
        for n in (3000.0, SIZES[3], SIZES[-1]):
            old, new = before.at((n,)), after.at((n,))
            assert old is not None and new is not None
            expected = factor(way.implementation, n)
            assert new.seconds / old.seconds == pytest.approx(expected, rel=1e-3)
            assert new.high / new.seconds == pytest.approx(old.high / old.seconds)
        assert refreshed(way, {}) == way


def test_what_lies_beyond_the_sizes_measured_again_moved_like_all_of_them() -> None:
    times: dict[object, float] = {n: 1e-9 * n for n in (1000, 2000, 4000, 8000)}
    way = Way("a", "cpu", "", "", ("n",), {"kernel": curve(times)})
    again = {2000: 2.0, 4000: 8.0}

    newer = refreshed(
        way, {TimeOfWay(way.key, (n,), "kernel", ""): times[n] * f for n, f in again.items()}
    )

    moved = [math.exp(p.guess.log) / times[p.at[0]] for p in newer.curves["kernel"].points]
    assert moved == pytest.approx([4.0, 2.0, 8.0, 4.0])


def prediction(**fields: object) -> Prediction:
    made = Prediction(
        "scale", "scale", "numpy", "cpu", "", {"n": 8.0}, "kernel", "predicted",
        1.0, 0.9, 1.1, 1.0, 1.0, 1.0, "2026-03-01T10:00:00",
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


def test_regret_is_of_the_chosen_way_over_the_best() -> None:
    found = checked(
        [
            prediction(seconds=1.0, measured=1.5, fastest=1.5),
            prediction(implementation="numba", seconds=1.2, measured=1.4, fastest=1.2, high=None),
            prediction(place={"n": 16.0}, seconds=3.0, measured=1.0, kind="extrapolated"),
        ]
    )

    assert found is not None
    assert (found.count, found.choices, found.extrapolated) == (2, 1, 1)
    assert found.regret == pytest.approx(
        0.25
    )  # numpy was chosen, numba with another launch is best
    assert found.coverage == 0.5
    assert found.extrapolated_error == 2.0
    assert not found.holds


def test_once_refreshed_estimates_count_with_intervals_of_their_own() -> None:
    found = checked(
        [
            prediction(seconds=2.0, low=1.9, high=2.1, refreshed=(1.0, 0.9, 1.1)),
            prediction(
                implementation="numba", measured=0.5, fastest=0.5, refreshed=(1.2, 1.1, None)
            ),
            prediction(place={"n": 16.0}, high=None),
        ]
    )

    assert found is not None and found.refreshed is not None
    assert (found.count, found.coverage, found.regret) == (3, pytest.approx(1 / 3), 0.0)
    again = found.refreshed
    assert (again.count, again.coverage, again.regret, again.refreshed) == (2, 0.5, 1.0, None)


def test_compile_and_start_count_for_coverage_and_nobody_chooses_by_them() -> None:
    once = {"time": "compile", "kind": "measured", "measured": 2.0}
    found = checked(
        [
            prediction(),
            prediction(implementation="numba"),
            prediction(**once),
            prediction(implementation="numba", **once),
        ]
    )

    assert found is not None
    assert (found.count, found.once, found.choices) == (2, 2, 1)
    assert (found.error, found.once_error, found.coverage) == (0.0, 0.5, 0.5)


def test_times_that_differ_at_another_hour_widen_every_interval(tmp_path: Path) -> None:
    write_scale(tmp_path)
    verified = [
        prediction(stored=1.0, measured=1.0 + 0.05 * place, refreshed=(1.5, 1.4, 1.6))
        for place in range(20)
    ]

    drift, refreshed = drifts_of([verified])

    assert math.exp(drift) == pytest.approx(1.95)
    # They had been expected to take 1.5 times as long since others of their ways did.
    assert math.exp(refreshed) == pytest.approx(1.5)
    assert drifts_of([[prediction(measured=1.5, stored=1.0)] * 8]) == Drifts()  # of too few
    assert drifts_of([[prediction()] * 20]) == Drifts()  # never none
    axes, rows = ("n",), rows_of(tmp_path)
    before, after = (ways_of(rows, axes, drift=d)[0].curves["kernel"] for d in (LEAST_DRIFT, drift))
    one, other = before.at((3000.0,)), after.at((3000.0,))
    assert one is not None and other is not None
    assert other.high / other.seconds > 1.95 > one.high / one.seconds


def test_predictions_are_kept_and_the_newest_verification_counts(tmp_path: Path) -> None:
    setup = Setup("runner", "env" * 60)
    path = verification_path(tmp_path, setup)
    path.parent.mkdir()
    old, new = prediction(), prediction(at="2026-03-02T10:00:00", measured=1.05)

    keep([old, old], path, tmp_path)
    with path.open("a") as file:
        file.write('not json\n{"suite": "scale"}\n')
    keep([new, prediction(kernel="other")], path, tmp_path)

    assert verifications(path, tmp_path) == {
        KEY: [new],
        ("scale", "other"): [prediction(kernel="other")],
    }
    assert path.suffix == ".jsonl"
    assert not path.name.endswith(".gpubench.jsonl")  # it is no record
    assert verifications(tmp_path / "runner" / "none.jsonl", tmp_path) == {}


def test_a_link_out_of_the_results_is_neither_read_nor_written(tmp_path: Path) -> None:
    results, victim = tmp_path / "results", tmp_path / "victim"
    results.mkdir()
    keep([prediction()], victim, tmp_path)
    before = victim.read_bytes()
    link = results / "advice-env.jsonl"
    link.symlink_to(victim)

    assert verifications(link, results) == {}
    with pytest.raises(ResultsError, match="symbolic link"):
        keep([prediction()], link, results)
    assert victim.read_bytes() == before


def test_times_of_the_sample_are_estimated_within_a_few_percent(tmp_path: Path) -> None:
    write_scale(tmp_path)
    ways = {way.implementation: way for way in ways_of(rows_of(tmp_path), ("n",))}

    for n in (3000.0, 700_000.0):
        estimate = ways["numpy"].curves["kernel"].at((n,))
        assert estimate is not None
        assert estimate.seconds == pytest.approx(numpy(n), rel=0.03)
