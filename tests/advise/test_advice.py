"""The time to a result by every way, where the best changes, its price, and devices together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from advise_sample import copies, cuda, numba, numpy, pool, write_scale

from gpubench.analysis.advice import Advice, Ask, Total, advise
from gpubench.analysis.estimates import Way, ways_of
from gpubench.results import open_table

NEAR = 0.03
"""By which an estimate of the sample's smooth times is off, relative."""


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> tuple[Way, ...]:
    directory = tmp_path_factory.mktemp("results")
    write_scale(directory)
    table = open_table(directory)
    rows = table.rows(table.snapshots(table.setups[0])[-1]).values()
    return ways_of([row for row in rows if row.seconds], ("n",), "runner, env")


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
    assert of["pool on processes with 4 workers"].seconds == pytest.approx(
        20 * pool(n, 4), rel=NEAR
    )


def test_a_fresh_process_pays_its_start_and_compilation(ways: tuple[Way, ...]) -> None:
    n = 3_000_000.0
    fresh = totals(advice(ways, ask(n)))
    cached = totals(advice(ways, ask(n, process="cached")))

    assert fresh["numba on cpu"].seconds == pytest.approx(0.4 + numba(n), rel=NEAR)
    assert cached["numba on cpu"].seconds == pytest.approx(numba(n), rel=NEAR)
    for of in (fresh, cached):
        workers = of["pool on processes with 2 workers"]
        assert workers.seconds == pytest.approx(0.5 + pool(n, 2), rel=NEAR)
    assert fresh["numba on cpu"].missing == ("start",)
    assert fresh["pool on processes with 2 workers"].missing == ()


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


def test_the_crossing_over_sizes_is_where_the_formulas_cross(ways: tuple[Way, ...]) -> None:
    one = advice(ways, ask(5000, calls=1, process="warm", have=("cpu",)))
    (crossing,) = one.over_size

    exact = (1e-5 - 1e-6) / (1e-9 - 2.5e-10)  # numpy(n) == numba(n): n = 12,000
    assert crossing.value == pytest.approx(exact, rel=0.1)
    assert crossing.low is not None and crossing.high is not None
    assert crossing.low < exact < crossing.high
    assert (crossing.before, crossing.after) == ("numpy on cpu", "numba on cpu")
    assert one.best.label == "numpy on cpu"


def test_the_crossing_over_calls_is_where_copies_are_repaid(ways: tuple[Way, ...]) -> None:
    n = 10_000_000.0
    one = advice(ways, ask(n, process="warm", have=("cpu", "cuda")))
    (crossing,) = one.over_calls

    exact = copies(n) / (numba(n) - cuda(n))
    assert math.ceil(exact) == round(crossing.value)
    assert (crossing.before, crossing.after) == ("numba on cpu", "cuda on cuda:0")


def test_what_is_not_there_is_left_out_and_more_workers_are_estimated(
    ways: tuple[Way, ...],
) -> None:
    def labels(*have: str) -> set[str]:
        return set(totals(advice(ways, ask(3_000_000, have=have))))

    assert labels("cpu") == {"numpy on cpu", "numba on cpu"}
    assert labels("cuda:0") == labels("cuda") == {"cuda on cuda:0"}
    assert labels("processes:3") == {
        f"pool on processes with {count}" for count in ("1 worker", "2 workers", "3 workers")
    }
    assert advise(ways, ask(3_000_000, have=("cuda:1",))) == ()
    n = 16_000_000.0
    eight = totals(advice(ways, ask(n, process="warm", have=("processes:8",))))
    estimated = eight["pool on processes with 8 workers"]
    assert estimated.kind == "extrapolated"
    assert estimated.seconds == pytest.approx(pool(n, 8), rel=0.2)


def test_beyond_the_sizes_it_extrapolates_and_says_so(ways: tuple[Way, ...]) -> None:
    one = advice(ways, ask(10**9, process="warm"))

    assert {total.kind for total in one.totals} == {"extrapolated"}
    assert totals(one)["numpy on cpu"].seconds == pytest.approx(numpy(10**9), rel=0.05)


def test_a_way_whose_copies_were_not_measured_is_left_out(ways: tuple[Way, ...]) -> None:
    def without(way: Way) -> Way:
        curves = {time: curve for time, curve in way.curves.items() if time != "end_to_end"}
        return replace(way, curves=curves)

    one = advice(tuple(map(without, ways)), ask(3_000_000))

    assert "cuda on cuda:0" not in totals(one)
    for label in ("cuda on cuda:0", "pool on processes with 1 worker"):  # as of those with a time
        assert any(words.startswith(f"{label}: its copies") for words in one.left_out)


def test_a_price_is_of_the_device_its_kind_or_the_machine(ways: tuple[Way, ...]) -> None:
    prices = {"cuda:0": 3600.0, "processes": 7200.0, "runner": 36.0}
    of = totals(advice(ways, ask(3_000_000, process="warm", prices=prices)))

    for label, hourly in (("cuda on cuda:0", 3600), ("numpy on cpu", 36)):
        assert of[label].price == pytest.approx(of[label].seconds * hourly / 3600)
    two = of["pool on processes with 2 workers"]
    assert two.price == pytest.approx(two.seconds * 2)
    assert totals(advice(ways, ask(3_000_000)))["numpy on cpu"].price is None


def test_devices_together_are_bounded_by_their_speeds(ways: tuple[Way, ...]) -> None:
    one = advice(ways, ask(10_000_000, calls=50, process="warm"))
    bound = one.together

    assert bound is not None
    assert set(bound.labels) == {"numba on cpu", "cuda on cuda:0"}  # pools share the processors
    of = totals(one)
    rates = sum(1 / of[label].seconds for label in bound.labels)
    assert bound.seconds == pytest.approx(1 / rates)
    assert advice(ways, ask(10_000_000, have=("cpu",))).together is None


def test_a_start_longer_than_the_result_takes_helps_nobody(ways: tuple[Way, ...]) -> None:
    one = advice(ways, ask(1_000_000, process="cached", have=("processes", "cuda")))

    assert one.best.label == "cuda on cuda:0"
    assert one.together is None  # the pool starts for half a second


def test_equals_are_those_whose_ratio_allows_1(ways: tuple[Way, ...]) -> None:
    one = advice(ways, ask(12_000, process="warm", have=("cpu",)))

    assert [total.label for total in one.equals] == [one.totals[1].label]
    assert advice(ways, ask(10_000_000, process="warm", have=("cpu",))).equals == ()
