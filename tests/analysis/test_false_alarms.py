"""The rate of false alarms, against published values."""

from __future__ import annotations

import pytest

from gpubench.analysis.control import false_alarms, proportion_interval
from gpubench.results import Ratio


def test_alarms_are_verdicts_of_a_difference() -> None:
    same, slow, fast = Ratio(1, 0.9, 1.1), Ratio(0.8, 0.7, 0.9), Ratio(1.2, 1.1, 1.3)

    alarms = false_alarms([same, slow, same, fast])

    assert (alarms.comparisons, alarms.alarms, alarms.rate) == (4, 2, 0.5)


def test_no_comparison_tells_nothing() -> None:
    alarms = false_alarms([])

    assert (alarms.rate, alarms.low, alarms.high) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        (0, 100, 0.0, 0.0516),  # 1 - 0.005 ** (1 / 100)
        (100, 100, 0.9484, 1.0),
        (5, 10, 0.1283, 0.8717),  # Clopper and Pearson's own chart
        (1, 100, 0.00005, 0.0720),
    ],
)
def test_the_interval_of_a_rate_is_exact(count: int, total: int, low: float, high: float) -> None:
    assert proportion_interval(count, total) == pytest.approx((low, high), abs=5e-5)
