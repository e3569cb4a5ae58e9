"""Intervals of times and of ratios, and their verdicts: one rule for one and for a million."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from gpubench.record import CaseRecord
from gpubench.results import Ratio, geometric_mean, measured_rows
from gpubench.results.ratio import (
    BETWEEN_PROCESSES,
    LEAST_PAIRS,
    VERDICTS,
    _chance_apart,
    interval_of_rounds,
    paired_speedup,
    quotient,
    rank,
    verdicts,
)

Ends = tuple[float, float, float]
UNKNOWN = math.inf


def ratio(baseline: Ends, candidate: Ends) -> Ratio:
    value, low, high = quotient(np.array(baseline), np.array(candidate)).tolist()
    return Ratio(value, low, high)


def speedup_of_rounds(
    baseline: Sequence[Sequence[float]], candidate: Sequence[Sequence[float]]
) -> Ratio:
    """As `gpubench time` gets it from samples of each round."""
    measured = []
    for implementation, rounds in (("numpy", baseline), ("numba", candidate)):
        record = CaseRecord(f"suites.add__{implementation}.time_kernel", "n=4", "ok", "")
        samples = [sample for one in rounds for sample in one]
        measured.append((record, samples, [float(np.median(one)) for one in rounds], 0.0))
    speedup = measured_rows(measured)[1].speedup
    assert speedup is not None
    return speedup


def test_the_interval_holds_every_ratio_that_both_intervals_allow() -> None:
    found = ratio(baseline=(4.0, 3.6, 4.4), candidate=(2.0, 1.8, 2.2))

    assert found.value == 2.0
    assert found.low == pytest.approx(3.6 / 2.2)
    assert found.high == pytest.approx(4.4 / 1.8)


CASES: list[tuple[Ends, Ends, str]] = [
    ((2.0, 1.9, 2.1), (1.0, 0.9, 1.1), "faster"),
    ((1.0, 0.9, 1.1), (2.0, 1.9, 2.1), "slower"),
    ((1.0, 0.9, 1.1), (1.05, 1.0, 1.2), "unclear"),
    ((9.0, -UNKNOWN, UNKNOWN), (1.0, 0.9, 1.1), "unclear"),
    ((9.0, 8.9, 9.1), (1.0, -UNKNOWN, 1.1), "unclear"),
    ((9.0, 8.9, 9.1), (1.0, 0.9, UNKNOWN), "unclear"),
]


@pytest.mark.parametrize(("baseline", "candidate", "verdict"), CASES)
def test_an_interval_that_allows_1x_or_is_unknown_is_unclear(
    baseline: Ends, candidate: Ends, verdict: str
) -> None:
    assert ratio(baseline, candidate).verdict == verdict


def test_many_ratios_come_out_as_each_alone() -> None:
    baselines, candidates = (np.array([case[side] for case in CASES]).T for side in (0, 1))

    ratios = quotient(baselines, candidates)

    for place, (baseline, candidate, verdict) in enumerate(CASES):
        alone = ratio(baseline, candidate)
        assert ratios[:, place].tolist() == [alone.value, alone.low, alone.high]
        assert VERDICTS[verdicts(ratios, np.zeros(len(CASES), np.bool_))[place]] == verdict


def test_where_a_time_is_missing_there_is_no_ratio_and_no_verdict() -> None:
    missing = (math.nan, math.nan, math.nan)

    found = quotient(np.array(missing), np.array((1.0, 0.9, 1.1)))

    assert np.isnan(found).all()
    assert VERDICTS[int(verdicts(found, np.array(False)))] == "unclear"


@pytest.mark.parametrize("of_pairs", [False, True])
def test_two_processes_have_to_differ_by_five_per_cent_and_pairs_need_not(of_pairs: bool) -> None:
    values = [1.04, 1.06, 1 / 1.04, 1 / 1.06]
    found = np.array([(value, value * 0.99, value * 1.01) for value in values]).T

    many = [VERDICTS[code] for code in verdicts(found, np.full(4, of_pairs))]

    near = ["faster", "slower"] if of_pairs else ["unclear", "unclear"]
    assert many == [near[0], "faster", near[1], "slower"]
    of_paired = paired_speedup([1.04] * 8) if of_pairs else None
    least = of_paired.least if of_paired else BETWEEN_PROCESSES
    assert many == [Ratio(*ends, least).verdict for ends in found.T.tolist()]


def test_the_geometric_mean_of_a_gain_and_its_inverse_is_none() -> None:
    found = geometric_mean([Ratio(4.0, 3.0, 5.0), Ratio(0.25, 0.2, 0.3)])

    assert found is not None
    assert found.value == pytest.approx(1.0)
    assert found.low == pytest.approx(math.sqrt(0.6))
    assert found.high == pytest.approx(math.sqrt(1.5))


def test_one_unknown_interval_leaves_the_mean_without_one() -> None:
    found = geometric_mean([Ratio(4.0, 3.0, 5.0), Ratio(4.0, 0.0, math.inf)])

    assert found is not None
    assert (found.value, found.low, found.high) == (pytest.approx(4.0), 0.0, math.inf)
    assert not found.has_interval


def test_nothing_has_no_mean() -> None:
    assert geometric_mean([]) is None


@pytest.mark.parametrize(("one", "other", "k"), [(5, 5, 1), (4, 6, 2), (5, 4, 3), (3, 3, 1)])
def test_the_chance_is_that_of_all_orders_counted_one_by_one(one: int, other: int, k: int) -> None:
    places = range(one + other)
    counted = total = 0
    for own in itertools.combinations(places, one):
        others = [place for place in places if place not in own]
        counted += own[k - 1] > others[-k]
        total += 1
    assert _chance_apart(one, other, k) == pytest.approx(counted / total)


def test_the_rank_is_the_largest_with_one_per_cent() -> None:
    assert [rank(n) for n in (1, 4, 5, 6, 8, 9, 11, 20)] == [0, 0, 1, 1, 1, 2, 3, 6]
    assert 2 * _chance_apart(20, 20, 6) <= 0.01 < 2 * _chance_apart(20, 20, 7)


def test_the_interval_of_a_time_reaches_between_its_rounds() -> None:
    assert interval_of_rounds(np.array([3.0, 1.0, 2.0, 5.0, 4.0])).tolist() == [1.0, 5.0]
    assert interval_of_rounds(np.arange(9.0)).tolist() == [1.0, 7.0]
    assert interval_of_rounds(np.ones(4)).tolist() == [-math.inf, math.inf]
    of_two_times = np.array([[3.0, 1.0, 2.0, 5.0, 4.0], [6.0, 6.0, 7.0, 6.0, 8.0]])
    assert interval_of_rounds(of_two_times).tolist() == [[1.0, 6.0], [5.0, 8.0]]


def test_the_ends_are_ratios_of_rounds() -> None:
    baseline = [[2.0 + i / 10] * 3 for i in range(9)]
    candidate = [[1.0 + i / 10] * 3 for i in range(9)]
    found = speedup_of_rounds(baseline, candidate)
    assert found.value == pytest.approx(2.4 / 1.4)
    assert (found.low, found.high) == (pytest.approx(2.1 / 1.7), pytest.approx(2.7 / 1.1))
    assert found.verdict == "faster"


def test_fewer_than_five_rounds_have_no_ends() -> None:
    found = speedup_of_rounds([[2.0] * 10] * 4, [[1.0] * 10] * 5)
    assert (found.value, found.low, found.high) == (2.0, 0.0, math.inf)
    assert found.verdict == "unclear"


@pytest.mark.parametrize(("rounds", "samples"), [(6, 4), (6, 20), (10, 5)])
@pytest.mark.parametrize("between", [0.0, 0.02])
def test_rounds_that_differ_among_themselves_raise_no_false_alarms(
    rounds: int, samples: int, between: float
) -> None:
    """Sides that do not differ: ``between`` is the noise of rounds, samples have 0.5 %."""
    random = np.random.default_rng(rounds * samples)
    factors = 1 + between * random.standard_normal((400, 2, rounds, 1))
    sides = factors * (1 + 0.005 * random.standard_normal((400, 2, rounds, samples)))
    found = [speedup_of_rounds(*both) for both in sides.tolist()]
    alarms = sum(not one.low <= 1 <= one.high for one in found)
    assert alarms <= 0.01 * 400


def test_a_slowdown_of_five_per_cent_is_found_in_noise_of_two() -> None:
    random = np.random.default_rng(5)

    def side(seconds: float) -> list[list[float]]:
        noise: list[list[float]] = (seconds * (1 + 0.02 * random.standard_normal((6, 4)))).tolist()
        return noise

    found = [speedup_of_rounds(side(1.0), side(1.05)) for _ in range(400)]
    assert sum(one.high < 1 for one in found) >= 0.95 * len(found)


def ratios(count: int, first: float = 1.0) -> list[float]:
    return [first + k / 100 for k in range(count)]


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        # Ranks from tables of the sign test at 1 %: 1 of 8, 1 of 10, 4 of 20, 12 of 40.
        (8, 1, 8),
        (10, 1, 10),
        (20, 4, 17),
        (40, 12, 29),
    ],
)
def test_the_interval_of_pairs_lies_between_the_order_statistics_of_the_sign_test(
    count: int, low: int, high: int
) -> None:
    given = ratios(count)
    found = paired_speedup(given)
    assert found is not None
    assert (found.low, found.high) == (given[low - 1], given[high - 1])
    assert found.value == pytest.approx((given[count // 2 - 1] + given[count // 2]) / 2)


def test_too_few_pairs_have_no_interval_and_no_verdict() -> None:
    found = paired_speedup(ratios(LEAST_PAIRS - 1, 2.0))
    assert found is not None
    assert (found.low, found.high) == (0.0, math.inf)
    assert found.verdict == "unclear"
    assert paired_speedup([]) is None


def test_from_eight_rounds_on_a_round_of_pairs_counts_once_by_its_median() -> None:
    rounds = [[1.0 + k / 100, 2.0, 1.0 + k / 100] for k in range(8)]
    flat = [ratio for one in rounds for ratio in one]
    found = paired_speedup(flat, [3] * 8)
    assert found is not None
    assert (found.low, found.value, found.high) == (1.0, pytest.approx(1.035), 1.07)
    assert paired_speedup(flat[:21], [3] * 7) == paired_speedup(flat[:21])


def test_a_few_outliers_change_nothing() -> None:
    found = paired_speedup([*ratios(17, 2.0), 100.0, 1000.0, 1e6])
    assert found is not None
    assert (found.low, found.high) == (2.03, 2.16)
    assert found.verdict == "faster"
