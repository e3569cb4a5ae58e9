"""Times between sizes, their intervals, and what is said of how wrong they were."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from advise_sample import SIZES, numpy, write_scale

from gpubench.edge.advise.checks import (
    MIN_COVERAGE,
    Prediction,
    check,
    get_drift,
    hide,
    is_known,
    keep,
    leave_out,
    predict,
    verification_path,
    verifications,
)
from gpubench.edge.advise.estimates import (
    MAX_FACTOR,
    MIN_DRIFT,
    Conditions,
    Curve,
    Estimate,
    Point,
    Way,
    build_ways,
    find_axes,
)
from gpubench.errors import ResultsError
from gpubench.results import CaseName, Row, Setup, open_table

KEY = ("scale", "scale")


def curve(times: dict[object, float], bounds: dict[object, float] | None = None) -> Curve:
    """Of seconds by size, or by sizes; bounds in seconds too."""
    points = []
    for at, seconds in times.items():
        place = at if isinstance(at, tuple) else (at,)
        bound = math.log(bounds[at]) if bounds else None
        points.append(Point(place, math.log(seconds), 0.1, bound=bound))
    return Curve.through(points)


def at(one: Curve, *place: float) -> Estimate:
    estimate = one.estimate(place)
    assert isinstance(estimate, Estimate), estimate
    return estimate


def rows_of(directory: Path) -> list[Row]:
    table = open_table(directory)
    (setup,) = table.setups
    return [row for row in table.rows(table.snapshots(setup)[-1]).values() if row.seconds]


def test_a_power_of_the_size_is_exact_between_sizes_and_a_little_beyond() -> None:
    cubic = curve({n: 1e-9 * n**3 for n in (10, 40, 160)})

    for n, kind in ((10, "measured"), (20, "predicted"), (100, "predicted"), (600, "extrapolated")):
        assert at(cubic, n).seconds == pytest.approx(1e-9 * n**3)
        assert at(cubic, n).kind == kind


def test_farther_than_4x_from_every_size_there_is_no_estimate() -> None:
    times = curve({n: 1e-9 * n for n in (10, 40, 160, 160_000)})

    assert [times.estimate((n,)) for n in (2, 641, 12_000, 10**18)] == ["far"] * 4
    assert [at(times, n).kind for n in (2.5, 640, 640_000)] == [
        "extrapolated", "predicted", "extrapolated",
    ]  # fmt: skip
    assert curve({8: 1.0}).estimate((9,)) == "single"
    assert at(curve({8: 1.0}), 8).seconds == 1.0


def test_no_estimate_is_below_the_time_of_a_smaller_size() -> None:
    """Noise, and a fixed cost that falls by chance, would go on falling."""
    falling = curve({100: 1.2, 200: 1.1, 400: 1.0})

    for n in (100, 150, 200, 400, 800, 1600):
        assert at(falling, n).seconds == pytest.approx(1.2)
    assert at(falling, 400).low < 1.0  # what was measured there is within


def test_no_estimate_is_below_the_bytes_over_the_bandwidth() -> None:
    times = dict.fromkeys((1000, 2000, 4000), 0.0001)
    bounded = curve(times, {n: n * 1.2e-8 for n in times})

    assert at(bounded, 8000).seconds == at(curve(times), 8000).seconds
    assert at(bounded, 16_000).seconds == pytest.approx(16_000 * 1.2e-8)
    assert at(bounded, 16_000).low == pytest.approx(16_000 * 1.2e-8)


def test_where_a_cache_holds_the_arrays_the_bound_does_not_apply() -> None:
    bounded = curve({1000: 1e-6, 2000: 2e-6, 4000: 1e-4}, {n: n * 1e-8 for n in (1000, 2000, 4000)})

    assert at(bounded, 1500).seconds == pytest.approx(1.5e-6)
    assert at(bounded, 2000).seconds == pytest.approx(2e-6)
    assert at(bounded, 2001).seconds == pytest.approx(2001 * 1e-8)


def test_the_interval_ends_at_those_of_the_neighbours_and_is_wider_between_them() -> None:
    times = curve({n: 1e-9 * n for n in (1000, 4000, 16_000)})

    there, between = at(times, 4000), at(times, 2000)

    assert there.high / there.seconds == pytest.approx(math.exp(0.1))
    assert between.high / between.seconds == pytest.approx(
        math.exp(math.hypot(0.1, math.log(4) / 4))
    )
    flat = at(curve({1000: 1.0, 4000: 1.0}), 2000)
    assert (flat.low, flat.high) == pytest.approx((math.exp(-0.1), math.exp(0.1)))


def test_two_axes_are_a_grid_and_a_missing_corner_is_no_guess() -> None:
    grid = curve({(n, d): n * d**2.0 for n in (10, 20, 40) for d in (2, 4)})
    assert at(grid, 15, 3).seconds == pytest.approx(15 * 9)
    assert at(grid, 80, 3).seconds == pytest.approx(80 * 9)

    assert curve({(10, 2): 1.0, (20, 4): 2.0}).estimate((15, 3)) == "corner"
    assert at(curve({(10, 2): 1.0, (20, 2): 2.0, (10, 4): 3.0}), 15, 2).kind == "predicted"


def row(sizes: dict[str, float], **fields: object) -> Row:
    made = Row(CaseName("s", "k", "numpy", "kernel", ""), "ok", seconds=1.0, sizes=sizes)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_axes_are_sizes_that_vary_and_do_not_grow_with_another() -> None:
    zipped = [row({"m": n, "k": n * n, "one": 8}) for n in (2, 4, 8)]
    crossed = [row({"rows": a, "columns": b}) for a, b in ((2, 64), (8, 16), (4, 32))]

    assert find_axes(zipped) == ("m",)
    assert find_axes(zipped, ["k"]) == ("k",)
    assert find_axes(crossed) == ("rows", "columns")


def test_ways_are_the_fastest_launch_of_each_implementation_and_device(tmp_path: Path) -> None:
    write_scale(tmp_path)
    ways = {way.label: way for way in build_ways(rows_of(tmp_path), ("n",))}

    pools = [f"pool on processes:{count}" for count in (1, 2, 4)]
    assert set(ways) == {"numpy on cpu", "numba on cpu", "cuda on cuda:0", *pools}
    assert [ways[label].workers for label in pools] == [1, 2, 4]
    cuda = ways["cuda on cuda:0"]
    assert {point.variant for point in cuda.curves["kernel"].points} == {"block=256"}
    assert {label for label, way in ways.items() if way.copies} == {"cuda on cuda:0", *pools}
    assert ways["numba on cpu"].once["compile"].seconds == pytest.approx(0.4)
    # What comes before the first call, which is counted as a call.
    assert ways[pools[2]].once["start"].seconds == pytest.approx(0.5, rel=0.05)


def test_disturbed_times_are_no_points() -> None:
    rows = [row({"n": n}, disturbed=share) for n, share in ((8, 0.1), (16, 0.9), (32, None))]

    (way,) = build_ways(rows, ("n",))

    assert [point.at for point in way.curves["kernel"].points] == [(8,), (32,)]
    assert build_ways([replace(one, disturbed=0.6) for one in rows], ("n",)) == ()


def test_bytes_and_bandwidth_make_the_bound_and_peak_bytes_the_memory() -> None:
    rows = [row({"n": n}, bytes=8 * n, peak_bytes=16 * n, device="cpu") for n in (100, 400)]
    known = Conditions(bandwidth={"cpu": 1e4}.get, memory={"cpu": 9600.0}.get)

    (way,) = build_ways(rows, ("n",), known)

    kernel = way.curves["kernel"]
    assert at(kernel, 1600).seconds == pytest.approx(1.28)
    assert kernel.get_held_bytes((200,)) == pytest.approx(3200)
    assert way.memory == 9600


# --- checks


def test_left_out_sizes_are_predicted_from_the_others(tmp_path: Path) -> None:
    write_scale(tmp_path)
    predictions = leave_out(KEY, ("n",), build_ways(rows_of(tmp_path), ("n",)))
    found = check(predictions)

    assert found is not None
    assert found.error < 0.05
    assert found.holds
    assert found.at == ""
    ends = [one for one in predictions if one.place["n"] == SIZES[-1]]
    assert {one.kind for one in ends} == {"extrapolated"}


def test_verification_hides_every_second_size_and_predicts_it(tmp_path: Path) -> None:
    write_scale(tmp_path)
    rows = rows_of(tmp_path)
    hidden = hide(KEY, rows, Conditions())

    shown = {p.at for way in hidden.shown for c in way.curves.values() for p in c.points}
    assert shown == {(n,) for n in SIZES[0::2]}
    assert {one.sizes["n"] for one in hidden.rows} == {*SIZES[1::2]}
    fresh = [replace(one, seconds=(one.seconds or 0) * 1.25) for one in hidden.rows]
    predictions = predict(hidden, fresh, "now")
    found = check(predictions)
    assert found is not None
    assert found.count == len(
        {(o.implementation, o.device, o.time, *o.place.values()) for o in predictions}
    )
    assert found.error == pytest.approx(0.2, abs=0.03)  # that of the hour
    assert all(one.measured == pytest.approx(one.stored * 1.25) for one in predictions)
    assert predict(hidden, [], "now") == []


def test_the_launch_that_is_advised_counts_and_the_fastest_is_known(tmp_path: Path) -> None:
    write_scale(tmp_path)
    hidden = hide(KEY, rows_of(tmp_path), Conditions())
    # At the hidden sizes the other launch is the faster one now.
    fresh = [
        replace(one, seconds=(one.seconds or 0) * (0.1 if "block=64" in one.name.case else 1))
        for one in hidden.rows
    ]

    ours = [one for one in predict(hidden, fresh, "now") if one.implementation == "cuda"]

    assert ours
    assert all(one.fastest < 0.2 * one.measured for one in ours)


def prediction(**fields: object) -> Prediction:
    made = Prediction(
        "scale", "scale", "numpy", "cpu", "", {"n": 8.0}, "kernel", "predicted",
        1.0, 0.9, 1.1, 1.0, 1.0, 1.0, "2026-03-01T10:00:00",
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


def test_regret_is_of_the_chosen_way_over_the_best() -> None:
    found = check(
        [
            prediction(seconds=1.0, measured=1.5, fastest=1.5),
            prediction(implementation="numba", seconds=1.2, measured=1.4, fastest=1.2),
            prediction(place={"n": 16.0}, seconds=3.0, measured=1.0, low=2.0, high=4.0),
        ]
    )

    assert found is not None
    assert (found.count, found.choices) == (3, 1)
    assert found.regret == pytest.approx(0.25)  # numpy was chosen, another launch of numba is best
    assert found.worst == 3.0
    assert found.coverage == 0.0
    assert not found.holds
    assert check([]) is None


def test_a_choice_that_took_twice_as_long_as_the_best_forbids_a_ranking() -> None:
    def found(chosen: float) -> bool:
        wide = {"low": 0.5, "high": 4.0}
        pair = [
            prediction(**wide, measured=chosen, fastest=chosen),
            prediction(**wide, implementation="numba", seconds=1.5, measured=1.0, fastest=1.0),
        ]
        result = check(pair)
        assert result is not None and result.coverage >= MIN_COVERAGE
        return result.holds

    assert found(1.9)
    assert not found(2.1)


def test_times_that_differ_at_another_hour_widen_every_interval(tmp_path: Path) -> None:
    write_scale(tmp_path)
    verified = [prediction(stored=1.0, measured=1.0 + 0.05 * place) for place in range(20)]

    drift = get_drift([verified])

    assert math.exp(drift) == pytest.approx(1.95)
    assert get_drift([[prediction(measured=1.5, stored=1.0)] * 8]) == MIN_DRIFT  # of too few
    assert get_drift([[prediction()] * 20]) == MIN_DRIFT  # never none

    def high(conditions: Conditions) -> float:
        way: Way = build_ways(rows_of(tmp_path), ("n",), conditions)[0]
        one = at(way.curves["kernel"], SIZES[4])
        return one.high / one.seconds

    assert high(Conditions(drift)) > 1.95 > high(Conditions())


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
    ways = {way.implementation: way for way in build_ways(rows_of(tmp_path), ("n",))}

    for n in (3000.0, 700_000.0):
        assert at(ways["numpy"].curves["kernel"], n).seconds == pytest.approx(numpy(n), rel=0.05)


@pytest.mark.parametrize(("width", "known"), [(1.0, True), (1.001, False)])
def test_a_time_is_known_whose_interval_is_no_wider_than_the_factor(
    width: float, known: bool
) -> None:
    low = 2.0  # with 1.0, low times the factor and the factor over low are one number
    estimate = Estimate(3.0, low, MAX_FACTOR * low * width, "measured")

    assert is_known(estimate) == known
    assert not is_known(None)
