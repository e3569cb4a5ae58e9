"""Levels are those of asv's fit, though pieces of many series are found at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from asv.step_detect import solve_potts_approx

from gpubench.analysis import changes
from gpubench.analysis.changes import MAX_SERIES_TOGETHER, Level, Logarithms, jump_cost, levels_of


def stepping(count: int, *steps: int, size: float = 0.3, seed: int = 1) -> Logarithms:
    """Logarithms with a scatter of 0.02 that go up and down by turns, at these places."""
    noise = np.random.default_rng(seed).normal(0.0, 0.02, count)
    places = np.arange(count)
    return noise + size * (sum((places >= step).astype(float) for step in steps) % 2)


def by_asv(values: Logarithms) -> list[Level]:
    stops, medians, _ = solve_potts_approx(
        values.tolist(), [1.0] * len(values), gamma=jump_cost(values)
    )
    return [Level(*level) for level in zip((0, *stops[:-1]), stops, medians, strict=True)]


def stops_of(values: Logarithms) -> list[int]:
    (levels,) = levels_of([values])
    return [level.stop for level in levels]


@pytest.mark.parametrize("step", [5, 19, 20, 21, 31, 32, 96, *range(157, 164), 221])
def test_a_step_is_found_at_its_place(step: int) -> None:
    for count in range(224, 256, 5):
        assert stops_of(stepping(count, step, size=0.16)) == [step, count]


def test_series_that_are_fitted_together_have_the_fit_that_asv_makes_of_each() -> None:
    chance = np.random.default_rng(5)
    together = [
        stepping(count, count // 3, count // 2, size=size, seed=count)
        for count in (10, 12, 20, 21, 96, 129, 288, 647)
        for size in (0.0, 0.05, 0.3)
    ]
    together += [stepping(293, 293 - newest, seed=newest) for newest in (1, 2, 3, 5)]
    together += [stepping(293, oldest, seed=oldest) for oldest in (1, 2)]
    together += [chance.normal(0.0, 0.02, 300) + 0.3 * (chance.random(300) < 0.05)]
    together += [np.log(chance.integers(1, 9, 300).astype(float))]  # a coarse clock: exact ties
    together += [chance.normal(0.0, 0.02, 30) for _ in range(MAX_SERIES_TOGETHER)]
    assert len(together) > MAX_SERIES_TOGETHER

    assert levels_of(together) == [by_asv(values) for values in together]


def test_levels_have_the_median_of_all_their_values() -> None:
    values = stepping(320, 129)

    ((first, second),) = levels_of([values])

    assert (first.value, second.value) == (np.median(values[:129]), np.median(values[129:]))


def test_no_series_have_no_levels() -> None:
    assert levels_of([]) == []


def test_a_higher_penalty_leaves_fewer_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    values = stepping(320, 128)
    assert stops_of(values) == [128, 320]

    monkeypatch.setattr(changes, "PENALTY", 10_000.0)

    assert stops_of(values) == [320]


def test_a_jump_costs_at_least_the_smallest_change_that_is_reported() -> None:
    assert jump_cost(np.zeros(20)) == math.log(changes.THRESHOLD)
    assert jump_cost(stepping(100, seed=3)) == pytest.approx(3 * 0.016 * np.log(100), rel=0.2)
