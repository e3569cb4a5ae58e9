"""A fit whose settled part is at hand is the fit made anew, and finds what the whole would."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from asv.step_detect import solve_potts_approx
from numpy.typing import NDArray

from gpubench.analysis import changes
from gpubench.analysis.changes import (
    BLOCK,
    Fits,
    Logarithms,
    best_pieces,
    fit,
    fit_settled,
    fit_together,
    settled_length,
)


def stepping(count: int, *steps: int, size: float = 0.3, seed: int = 1) -> Logarithms:
    """Logarithms with a scatter of 0.02 that go up and down by turns, at these places."""
    noise = np.random.default_rng(seed).normal(0.0, 0.02, count)
    places = np.arange(count)
    return noise + size * (sum((places >= step).astype(float) for step in steps) % 2)


def ends(values: Logarithms, fits: Fits) -> list[int]:
    return [level.stop for level in fit(values, fits)]


def test_what_is_settled_ends_a_block_or_two_before_the_newest() -> None:
    for count in range(3 * BLOCK, 20 * BLOCK):
        settled = settled_length(count)
        assert settled % BLOCK == 0
        assert BLOCK <= count - settled < 2 * BLOCK
    assert settled_length(3 * BLOCK - 1) == 0


@pytest.mark.parametrize(
    "step",
    [5, BLOCK - 1, BLOCK, 3 * BLOCK, *range(5 * BLOCK - 3, 5 * BLOCK + 4), 7 * BLOCK - 3],
)
def test_a_step_is_where_the_whole_fit_has_it_wherever_blocks_end(step: int) -> None:
    for count in range(7 * BLOCK, 8 * BLOCK, 5):
        values = stepping(count, step, size=0.16)
        whole, _, _ = solve_potts_approx(
            values.tolist(), [1.0] * count, gamma=changes.jump_cost(values)
        )
        assert ends(values, Fits()) == list(whole) == [step, count]


def test_series_that_are_fitted_together_have_the_fit_that_asv_makes_of_each() -> None:
    chance = np.random.default_rng(5)
    together = [
        stepping(count, count // 3, count // 2, size=size, seed=count)
        for count in (3 * BLOCK, 4 * BLOCK + 1, 9 * BLOCK, 20 * BLOCK + 7)
        for size in (0.0, 0.05, 0.3)
    ]
    together += [chance.normal(0.0, 0.02, 300) + 0.3 * (chance.random(300) < 0.05)]
    together += [np.log(chance.integers(1, 9, 300).astype(float))]  # a coarse clock: exact ties
    each = [(values, Fits()) for values in together]

    fit_settled(each)

    for values, fits in each:
        settled = values[: settled_length(len(values))]
        made, _, _ = solve_potts_approx(
            settled.tolist(), [1.0] * len(settled), gamma=changes.jump_cost(settled)
        )
        assert fits.at_hand(settled) == tuple(made)


@pytest.mark.parametrize("count", [12, 3 * BLOCK, 9 * BLOCK + 5])
def test_the_newest_values_have_that_fit_too(count: int) -> None:
    together = [
        (stepping(count, count - newest, size=0.3, seed=newest), Fits())
        for newest in (2, 3, 5, count // 2)
    ]

    fit_together(together)

    for values, fits in together:
        assert fits.at_hand(values) is not None
        assert fits.used == fitted_alone(values).used


def fitted_alone(values: Logarithms) -> Fits:
    fits = Fits()
    fit(values, fits)
    return fits


def test_levels_have_the_median_of_all_their_values() -> None:
    values = stepping(10 * BLOCK, 4 * BLOCK)

    first, second = fit(values, Fits())

    assert (first.value, second.value) == (
        np.median(values[: 4 * BLOCK]), np.median(values[4 * BLOCK :])
    )  # fmt: skip


def test_values_that_follow_leave_the_settled_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def noted(series: Sequence[Logarithms], costs: NDArray[np.float64]) -> list[list[int]]:
        lengths.extend(map(len, series))
        return best_pieces(series, costs)

    monkeypatch.setattr(changes, "best_pieces", noted)
    whole, fits = stepping(12 * BLOCK, 100, 250, 300), Fits()

    for count in range(6 * BLOCK, 12 * BLOCK + 1):
        anew = ends(whole[:count], Fits())
        lengths.clear()
        fits = Fits(fits.used)

        assert ends(whole[:count], fits) == anew

        long = [length for length in lengths if length > 4 * BLOCK]
        assert len(long) == (count % BLOCK == 0)
        assert len(fits.used) == 2

        lengths.clear()
        assert ends(whole[:count], Fits(fits.used)) == anew
        assert lengths == []


def test_both_parts_are_fitted_at_the_cost_of_all_values_up_to_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = stepping(10 * BLOCK, 4 * BLOCK)
    values[-BLOCK:] *= 3.0
    noted: list[float] = []

    def noting(series: Sequence[Logarithms], costs: NDArray[np.float64]) -> list[list[int]]:
        noted.extend(costs)
        return best_pieces(series, costs)

    monkeypatch.setattr(changes, "best_pieces", noting)
    fit(values, Fits())

    assert noted == [changes.jump_cost(part) for part in (values[: 9 * BLOCK], values)]


def test_a_fit_of_other_values_is_not_taken() -> None:
    values = stepping(10 * BLOCK, 4 * BLOCK)
    fits = Fits()
    fit(values, fits)

    assert ends(values, Fits(dict.fromkeys(fits.used, (7, 11)))) == [4 * BLOCK, 10 * BLOCK]


def test_a_fit_with_another_penalty_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    values, fits = stepping(10 * BLOCK, 4 * BLOCK), Fits()
    fit(values, fits)
    monkeypatch.setattr(changes, "PENALTY", 10_000.0)

    assert ends(values, Fits(fits.used)) == [10 * BLOCK]
