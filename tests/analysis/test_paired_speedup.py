"""The speedup of pairs, and the rate of false alarms, against known values."""

import math

import pytest

from gpubench.analysis.control import false_alarms, proportion_interval
from gpubench.analysis.paired import LEAST, paired_speedup
from gpubench.analysis.speedup import Speedup


def ratios(count, first=1.0):
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
def test_the_interval_lies_between_the_order_statistics_of_the_sign_test(count, low, high):
    given = ratios(count)
    found = paired_speedup(given)
    assert (found.low, found.high) == (given[low - 1], given[high - 1])
    assert found.value == pytest.approx((given[count // 2 - 1] + given[count // 2]) / 2)


def test_too_few_pairs_have_no_interval_and_no_verdict():
    found = paired_speedup(ratios(LEAST - 1, 2.0))
    assert (found.low, found.high) == (0.0, math.inf)
    assert found.verdict == "unclear"
    assert paired_speedup([]) is None


def test_from_eight_rounds_on_a_round_counts_once_by_its_median():
    rounds = [[1.0 + k / 100, 2.0, 1.0 + k / 100] for k in range(8)]
    flat = [ratio for one in rounds for ratio in one]
    found = paired_speedup(flat, [3] * 8)
    assert (found.low, found.value, found.high) == (1.0, pytest.approx(1.035), 1.07)
    assert paired_speedup(flat[:21], [3] * 7) == paired_speedup(flat[:21])


def test_a_few_outliers_change_nothing():
    found = paired_speedup([*ratios(17, 2.0), 100.0, 1000.0, 1e6])
    assert (found.low, found.high) == (2.03, 2.16)
    assert found.verdict == "faster"


def test_alarms_are_verdicts_of_a_difference():
    same, slow, fast = Speedup(1, 0.9, 1.1), Speedup(0.8, 0.7, 0.9), Speedup(1.2, 1.1, 1.3)
    alarms = false_alarms([same, slow, same, fast])
    assert (alarms.comparisons, alarms.alarms, alarms.rate) == (4, 2, 0.5)


def test_no_comparison_tells_nothing():
    alarms = false_alarms([])
    assert (alarms.rate, alarms.low, alarms.high) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("count", "total", "confidence", "low", "high"),
    [
        (0, 100, 0.99, 0.0, 0.0516),  # 1 - 0.005 ** (1 / 100)
        (100, 100, 0.99, 0.9484, 1.0),
        (5, 10, 0.95, 0.1871, 0.8129),  # Clopper and Pearson's own chart
        (1, 100, 0.99, 0.00005, 0.0720),
    ],
)
def test_the_interval_of_a_rate_is_exact(count, total, confidence, low, high):
    assert proportion_interval(count, total, confidence) == pytest.approx((low, high), abs=5e-5)
