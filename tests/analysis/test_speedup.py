"""Speedups, their intervals and verdicts."""

from __future__ import annotations

import math

import pytest

from gpubench.analysis.speedup import Speedup, geometric_mean, speedup
from gpubench.results import Timing


def timing(median: float, low: float | None = None, high: float | None = None) -> Timing:
    return Timing(median, median if low is None else low, median if high is None else high)


def test_the_interval_holds_every_ratio_that_both_intervals_allow() -> None:
    found = speedup(baseline=timing(4.0, 3.6, 4.4), candidate=timing(2.0, 1.8, 2.2))

    assert found.value == 2.0
    assert found.low == pytest.approx(3.6 / 2.2)
    assert found.high == pytest.approx(4.4 / 1.8)


@pytest.mark.parametrize(
    ("baseline", "candidate", "verdict"),
    [
        (timing(2.0, 1.9, 2.1), timing(1.0, 0.9, 1.1), "faster"),
        (timing(1.0, 0.9, 1.1), timing(2.0, 1.9, 2.1), "slower"),
        (timing(1.0, 0.9, 1.1), timing(1.05, 1.0, 1.2), "unclear"),
        (timing(9.0, -math.inf, math.inf), timing(1.0, 0.9, 1.1), "unclear"),
        (timing(9.0, 8.9, 9.1), timing(1.0, -math.inf, 1.1), "unclear"),
        (timing(9.0, 8.9, 9.1), timing(1.0, 0.9, math.inf), "unclear"),
    ],
)
def test_an_interval_that_allows_1x_or_is_unknown_is_unclear(
    baseline: Timing, candidate: Timing, verdict: str
) -> None:
    assert speedup(baseline, candidate).verdict == verdict


def test_the_geometric_mean_of_a_gain_and_its_inverse_is_none() -> None:
    found = geometric_mean([Speedup(4.0, 3.0, 5.0), Speedup(0.25, 0.2, 0.3)])

    assert found is not None
    assert found.value == pytest.approx(1.0)
    assert found.low == pytest.approx(math.sqrt(0.6))
    assert found.high == pytest.approx(math.sqrt(1.5))


def test_one_unknown_interval_leaves_the_mean_without_one() -> None:
    found = geometric_mean([Speedup(4.0, 3.0, 5.0), Speedup(4.0, 0.0, math.inf)])

    assert found is not None
    assert (found.value, found.low, found.high) == (pytest.approx(4.0), 0.0, math.inf)
    assert not found.has_interval


def test_nothing_has_no_mean() -> None:
    assert geometric_mean([]) is None
