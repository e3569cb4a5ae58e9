"""The time to a result by every way, which ways are ranked, where the fastest changes, prices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from advise_sample import SIZES, copies, cuda, numba, numpy, pool, write_scale

from gpubench.edge.advise.advice import COPIES, MEMORY, WIDE, Advice, Ask, Total, advise
from gpubench.edge.advise.estimates import GAP_WORDS, Conditions, Way, build_ways
from gpubench.results import Row, open_table

NEAR = 0.05
"""By which an estimate of the sample's smooth times is off, relative."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    directory = tmp_path_factory.mktemp("results")
    write_scale(directory)
    table = open_table(directory)
    every = table.rows(table.snapshots(table.setups[0])[-1]).values()
    return [row for row in every if row.seconds]


@pytest.fixture(scope="module")
def ways(rows: list[Row]) -> tuple[Way, ...]:
    return build_ways(rows, ("n",))


def ask(n: float, **how: Any) -> Ask:
    return Ask({"n": n}, **how)


def advice(ways: tuple[Way, ...], asked: Ask) -> Advice:
    (one,) = advise(ways, asked)
    return one


def totals(one: Advice) -> dict[str, Total]:
    return {total.label: total for total in one.totals}


def test_a_running_process_pays_copies_and_calls(ways: tuple[Way, ...]) -> None:
    n = 3_000_000.0
    of = totals(advice(ways, ask(n, calls=20, process="warm")))

    assert [total.seconds for total in of.values()] == sorted(t.seconds for t in of.values())
    assert of["numpy on cpu"].seconds == pytest.approx(20 * numpy(n), rel=NEAR)
    expected = cuda(n) * 20 + copies(n)
    assert of["cuda on cuda:0"].seconds == pytest.approx(expected, rel=NEAR)
    assert [part.name for part in of["cuda on cuda:0"].parts] == [
        "first call with copies", "19 calls",
    ]  # fmt: skip
    assert of["cuda on cuda:0"].variant == "block=256"
    assert of["pool on processes:4"].seconds == pytest.approx(20 * pool(n, 4), rel=NEAR)


def test_what_a_process_pays_once_counts_where_it_is_known_of_all(ways: tuple[Way, ...]) -> None:
    n = 3_000_000.0
    fresh, cached = advice(ways, ask(n)), advice(ways, ask(n, process="cached"))

    lacking = ("numpy on cpu", "numba on cpu", "cuda on cuda:0")
    for one in (fresh, cached):
        assert {part: {*labels} for part, labels in one.left_out.items()} == {"start": {*lacking}}
        of_pool = totals(one)["pool on processes:2"]
        assert of_pool.seconds == pytest.approx(pool(n, 2), rel=NEAR)
    assert totals(fresh)["numba on cpu"].seconds == pytest.approx(0.4 + numba(n), rel=NEAR)
    assert totals(cached)["numba on cpu"].seconds == pytest.approx(numba(n), rel=NEAR)

    pools = advice(ways, ask(n, have=("processes",)))
    assert pools.left_out == {}
    assert totals(pools)["pool on processes:2"].seconds == pytest.approx(0.5 + pool(n, 2), rel=NEAR)


def test_the_interval_of_a_sum_is_narrower_than_the_sum_of_intervals(ways: tuple[Way, ...]) -> None:
    one = totals(advice(ways, ask(3_000_000, calls=50, process="warm")))["cuda on cuda:0"]
    first, others = (part.estimate for part in one.parts)

    assert one.seconds == first.seconds + others.seconds
    squares = (first.high - first.seconds) ** 2 + (others.high - others.seconds) ** 2
    assert one.high == pytest.approx(one.seconds + math.sqrt(squares))
    assert first.low + others.low < one.low < one.seconds


def test_from_the_device_nothing_is_copied(ways: tuple[Way, ...]) -> None:
    of = totals(advice(ways, ask(3_000_000, from_host=False, process="warm")))

    assert of["cuda on cuda:0"].seconds == pytest.approx(cuda(3_000_000), rel=NEAR)


def test_stretches_over_sizes_lie_on_both_sides_of_where_formulas_cross(
    ways: tuple[Way, ...],
) -> None:
    one = advice(ways, ask(5000, calls=1, process="warm", have=("cpu",)))
    before, after = one.over_size

    exact = (1e-5 - 1e-6) / (1e-9 - 2.5e-10)  # numpy(n) == numba(n): n = 12,000
    assert (before.label, after.label) == ("numpy on cpu", "numba on cpu")
    assert before.first == SIZES[0] and after.last == SIZES[-1]
    assert exact / 3 < before.last < exact < after.first < exact * 3
    assert one.totals[0].label == "numpy on cpu"


def test_stretches_over_calls_lie_on_both_sides_of_where_copies_are_repaid(
    ways: tuple[Way, ...],
) -> None:
    n = 10_000_000.0
    one = advice(ways, ask(n, process="warm", have=("cpu", "cuda")))
    before, after = one.over_calls

    exact = copies(n) / (numba(n) - cuda(n))
    assert (before.label, after.label) == ("numba on cpu", "cuda on cuda:0")
    assert before.last <= exact <= after.first


def test_devices_that_are_not_had_are_left_out(ways: tuple[Way, ...]) -> None:
    def labels(*have: str) -> set[str]:
        return set(totals(advice(ways, ask(3_000_000, have=have))))

    assert labels("cpu") == {"numpy on cpu", "numba on cpu"}
    assert labels("cuda:0") == labels("cuda") == {"cuda on cuda:0"}
    assert labels("processes:3") == {"pool on processes:1", "pool on processes:2"}
    assert labels("processes:8") == {f"pool on processes:{count}" for count in (1, 2, 4)}
    assert advise(ways, ask(3_000_000, have=("cuda:1",))) == ()


def test_beyond_4x_nothing_is_ranked(ways: tuple[Way, ...]) -> None:
    near, far = (advice(ways, ask(n, process="warm")) for n in (3 * SIZES[-1], 10**18))

    assert {total.kind for total in near.totals} == {"extrapolated"}
    assert far.totals == ()
    assert {one.reason for one in far.unranked} == {GAP_WORDS["far"]}


def test_what_is_not_known_within_4x_is_not_ranked(rows: list[Row]) -> None:
    unsure = build_ways(rows, ("n",), Conditions(drift=math.log(2.1)))

    one = advice(unsure, ask(3_000_000, process="warm"))

    assert one.totals == ()
    assert {each.reason for each in one.unranked} == {WIDE}


def test_what_does_not_fit_in_memory_is_not_ranked(rows: list[Row]) -> None:
    held = [
        replace(row, conditions={**row.conditions, "array_bytes": int(16 * row.size)})
        for row in rows
    ]
    small = Conditions(memory=lambda device: 16 * 2.0**20 if device == "cuda:0" else 2.0**40)
    ways = build_ways(held, ("n",), small)

    assert "cuda on cuda:0" in totals(advice(ways, ask(2**20)))
    one = advice(ways, ask(2**21))

    assert "numpy on cpu" in totals(one)
    assert {each.label: each.reason for each in one.unranked} == {"cuda on cuda:0": MEMORY}


def test_a_way_whose_copies_were_not_measured_is_not_ranked(ways: tuple[Way, ...]) -> None:
    def without(way: Way) -> Way:
        curves = {time: curve for time, curve in way.curves.items() if time != "end_to_end"}
        return replace(way, curves=curves)

    one = advice(tuple(map(without, ways)), ask(3_000_000))

    reasons = {each.label: each.reason for each in one.unranked}
    assert reasons["cuda on cuda:0"] == reasons["pool on processes:1"] == COPIES
    assert not reasons.keys() & totals(one).keys()


def test_a_price_is_of_the_device_its_kind_or_the_machine(ways: tuple[Way, ...]) -> None:
    prices = {"cuda:0": 3600.0, "processes": 7200.0, "runner": 36.0}
    asked = ask(3_000_000, process="warm", prices=prices, machine="runner")
    of = totals(advice(ways, asked))

    for label, hourly in (("cuda on cuda:0", 3600), ("numpy on cpu", 36)):
        assert of[label].price == pytest.approx(of[label].seconds * hourly / 3600)
    two = of["pool on processes:2"]
    assert two.price == pytest.approx(two.seconds * 2)
    assert totals(advice(ways, ask(3_000_000)))["numpy on cpu"].price is None


def test_equals_are_those_whose_ratio_allows_1(ways: tuple[Way, ...]) -> None:
    one = advice(ways, ask(12_000, process="warm", have=("cpu",)))

    assert [total.label for total in one.equals] == [one.totals[1].label]
    assert advice(ways, ask(10_000_000, process="warm", have=("cpu",))).equals == ()


def test_a_kernel_of_one_size_is_ranked_as_it_was_measured(rows: list[Row]) -> None:
    """Nothing tells its problems apart, so that no size is asked for."""
    its = [row for row in rows if row.size == SIZES[0] and row.name.time == "kernel"]

    (one,) = advise(build_ways(its, ()), Ask({}, from_host=False, process="warm"))

    assert one.totals[0].label == "numpy on cpu"
    assert one.totals[0].seconds == pytest.approx(numpy(SIZES[0]), rel=0.01)
    assert one.over_size == ()
