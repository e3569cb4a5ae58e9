"""Intervals of times and of ratios, and their verdicts: one rule for one and for a million."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest

from gpubench.record import CaseRecord
from gpubench.results import Ratio, geometric_mean, measured_rows
from gpubench.results.ratio import (
    MIN_PAIRS_FOR_INTERVAL,
    MIN_UNPAIRED_FACTOR,
    PAIRED_ERROR,
    VERDICTS,
    _chance_apart,
    independent_quotient,
    interval_of_rounds,
    paired_speedup,
    quotient,
    rank,
    rounds_of,
    verdicts,
)

Ends = tuple[float, float, float]
UNKNOWN = math.inf
COINS = list(itertools.product((0, 1), repeat=10))


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
        measured.append(
            (record, samples, rounds_of([[float(np.median(one)) for one in rounds]]), 0.0)
        )
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


def test_errors_of_two_independent_ratios_are_added_as_squares() -> None:
    one, other = Ratio(6.0, 6.0 / 1.03, 6.0 * 1.04), Ratio(3.0, 3.0 / 1.01, 3.0 * 1.02)

    found = independent_quotient(one, other)

    assert found.value == 2.0
    below = math.hypot(math.log(1.03), math.log(1.02))
    assert found.low == pytest.approx(2.0 * math.exp(-below))
    assert found.high == pytest.approx(2.0 * math.exp(math.hypot(math.log(1.04), math.log(1.01))))
    assert not independent_quotient(one, Ratio(3.0, 0.0, UNKNOWN)).has_interval
    assert not independent_quotient(Ratio(3.0, 0.0, UNKNOWN), one).has_interval


def test_of_two_alike_the_interval_leaves_out_1x_as_seldom_as_each_of_theirs() -> None:
    """Intervals of 99.5 % of normal logarithms: 2.807 standard deviations."""
    errors = np.random.default_rng(1).normal(0.0, 0.01, (20_000, 2))
    ends = np.exp(2.807 * 0.01)

    def seen(factor: float) -> float:
        outside = 0
        for logs in errors:
            old, new = np.exp(logs) * (1.0, factor)
            found = independent_quotient(
                Ratio(new, new / ends, new * ends), Ratio(old, old / ends, old * ends)
            )
            outside += not found.low <= 1 <= found.high
        return outside / len(errors)

    assert 0.003 < seen(1.0) < 0.007
    assert seen(1.06) > 0.88  # where both intervals have to be apart it is 0.56


@pytest.mark.parametrize("of_pairs", [False, True])
def test_two_processes_have_to_differ_by_a_tenth_and_pairs_by_a_hundredth(of_pairs: bool) -> None:
    values = [1.09, 1.11, 1 / 1.09, 1 / 1.11]
    found = np.array([(value, value * 0.99, value * 1.01) for value in values]).T

    many = [VERDICTS[code] for code in verdicts(found, np.full(4, of_pairs))]

    near = ["faster", "slower"] if of_pairs else ["unclear", "unclear"]
    assert many == [near[0], "faster", near[1], "slower"]
    of_paired = paired_speedup([1.04] * 8) if of_pairs else None
    least = of_paired.least if of_paired else MIN_UNPAIRED_FACTOR
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


@pytest.mark.slow
def test_the_rank_of_thousands_of_rounds_is_found_at_once() -> None:
    """A record can hold so many; counted with whole numbers that took minutes. Of so many, ``k`` is
    as far from the middle as two medians with normal errors are apart by chance."""
    for rounds in (1_000, 100_000):
        expected = rounds / 2 - NormalDist().inv_cdf(0.995) * math.sqrt(rounds / 2) / 2
        assert rank(rounds) == pytest.approx(expected, rel=0.002)


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


@pytest.mark.slow
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


def test_the_interval_of_pairs_is_what_the_signed_rank_test_does_not_reject() -> None:
    """By all 1,024 ways in which ten ratios may lie on either side of a middle: it is inside just
    when the ranks on one side are not so few that chance gives them in 0.5 % of the ways."""
    given = [1.013, 0.979, 1.201, 1.117, 1.052, 0.911, 1.033, 1.302, 1.083, 1.171]
    found = paired_speedup(given)
    assert found is not None
    ways = [sum(r * c for r, c in zip(range(1, 11), way, strict=True)) for way in COINS]

    def rejected(middle: float) -> bool:
        logs = [math.log(one / middle) for one in given]
        order = sorted(logs, key=abs)
        above = sum(rank for rank, log in enumerate(order, 1) if log > 0)
        rarer = sum(way <= min(above, 55 - above) for way in ways)
        return 2 * rarer / len(ways) <= PAIRED_ERROR

    for end, outwards in ((found.low, 1 / 1.0001), (found.high, 1.0001)):
        assert (rejected(end * outwards), rejected(end / outwards)) == (True, False)
    assert found.low < found.value < found.high


def test_the_middle_of_pairs_is_the_median_of_the_means_of_two() -> None:
    found = paired_speedup([1.0, 2.0, 8.0])
    assert found is not None
    # 1, 1.41, 2, 2.83, 4 and 8
    assert found.value == pytest.approx(math.sqrt(2.0 * math.sqrt(8.0)))


def test_too_few_pairs_have_no_interval_and_no_verdict() -> None:
    found = paired_speedup(ratios(MIN_PAIRS_FOR_INTERVAL - 1, 2.0))
    assert found is not None
    assert (found.low, found.high) == (0.0, math.inf)
    assert found.verdict == "unclear"
    assert paired_speedup([]) is None


def test_from_nine_rounds_on_a_round_of_pairs_counts_once_by_its_median() -> None:
    rounds = [[1.0 + k / 100, 2.0, 1.0 + k / 100] for k in range(9)]
    flat = [ratio for one in rounds for ratio in one]
    assert paired_speedup(flat, [3] * 9) == paired_speedup([1.0 + k / 100 for k in range(9)])
    assert paired_speedup(flat[:24], [3] * 8) == paired_speedup(flat[:24])


def test_very_many_pairs_are_joined_with_their_neighbours() -> None:
    random = np.random.default_rng(0)
    found = paired_speedup(np.exp(random.normal(math.log(2.0), 0.1, 50_000)).tolist())
    assert found is not None
    assert found.value == pytest.approx(2.0, rel=0.005)
    assert 1.99 < found.low < found.high < 2.01


@pytest.mark.parametrize("odd", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_ratio_does_not_count(odd: float) -> None:
    assert paired_speedup([*ratios(12), odd]) == paired_speedup(ratios(12))
    assert paired_speedup([odd]) is None


def test_a_few_outliers_widen_the_interval_on_their_side_alone() -> None:
    found = paired_speedup([*ratios(17, 2.0), 100.0, 1000.0, 1e6])
    assert found is not None
    assert 2.0 < found.low < found.value < 2.12 < found.high
    assert found.verdict == "faster"
