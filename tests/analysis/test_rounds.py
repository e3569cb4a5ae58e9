"""Speedups of times taken in rounds: a round counts once, however many samples it has."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gpubench.analysis.rounds import apart, rank, speedup_of_rounds
from gpubench.analysis.speedup import speedup
from gpubench.results.samples import timing


@pytest.mark.parametrize(("one", "other", "k"), [(5, 5, 1), (4, 6, 2), (5, 4, 3), (3, 3, 1)])
def test_the_chance_is_that_of_all_orders_counted_one_by_one(one: int, other: int, k: int) -> None:
    places = range(one + other)
    counted = total = 0
    for own in itertools.combinations(places, one):
        others = [place for place in places if place not in own]
        counted += own[k - 1] > others[-k]
        total += 1
    assert apart(one, other, k) == pytest.approx(counted / total)


def test_the_rank_is_the_largest_with_one_per_cent() -> None:
    assert [rank(n, n) for n in (1, 4, 5, 6, 8, 9, 11, 20)] == [0, 0, 1, 1, 1, 2, 3, 6]
    assert 2 * apart(20, 20, 6) <= 0.01 < 2 * apart(20, 20, 7)


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


def sides(rounds: int, samples: int, between: float, count: int) -> list[Any]:
    """Pairs of sides that do not differ: ``between`` is the noise of rounds, samples have 0.5 %."""
    random = np.random.default_rng(rounds * samples)
    factors = 1 + between * random.standard_normal((count, 2, rounds, 1))
    return (factors * (1 + 0.005 * random.standard_normal((count, 2, rounds, samples)))).tolist()


@pytest.mark.parametrize(("rounds", "samples"), [(6, 4), (6, 20), (10, 5)])
@pytest.mark.parametrize("between", [0.0, 0.02])
def test_rounds_that_differ_among_themselves_raise_no_false_alarms(
    rounds: int, samples: int, between: float
) -> None:
    comparisons = sides(rounds, samples, between, count=400)
    alarms = sum(speedup_of_rounds(*both).verdict != "unclear" for both in comparisons)
    assert alarms <= 0.01 * len(comparisons)


def test_samples_taken_together_would_raise_them() -> None:
    """Why rounds are what is counted: the same samples as if all were independent."""
    verdicts = [
        speedup(*(timing(np.concatenate(side)) for side in both)).verdict
        for both in sides(6, 20, 0.02, count=100)
    ]
    assert verdicts.count("unclear") < 90


def test_a_slowdown_of_five_per_cent_is_found_in_noise_of_two() -> None:
    random = np.random.default_rng(5)

    def side(seconds: float) -> list[list[float]]:
        return (seconds * (1 + 0.02 * random.standard_normal((6, 4)))).tolist()

    found = [speedup_of_rounds(side(1.0), side(1.05)).verdict for _ in range(400)]
    assert found.count("slower") >= 0.95 * len(found)
