"""A fit whose settled part is at hand is the fit made anew, and finds what the whole would."""

from __future__ import annotations

import numpy as np
import pytest
from asv.step_detect import solve_potts_approx

from gpubench.analysis import changes
from gpubench.analysis.changes import BLOCK, Logarithms, SettledFits, fit, settled_length


def stepping(count: int, *steps: int, size: float = 0.3, seed: int = 1) -> Logarithms:
    """Logarithms with a scatter of 0.02 that go up and down by turns, at these places."""
    noise = np.random.default_rng(seed).normal(0.0, 0.02, count)
    places = np.arange(count)
    return noise + size * (sum((places >= step).astype(float) for step in steps) % 2)


def ends(values: Logarithms, fits: SettledFits) -> list[int]:
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
            values.tolist(), [1.0] * count, gamma=changes._cost(values)
        )
        assert ends(values, SettledFits()) == list(whole) == [step, count]


def test_levels_have_the_median_of_all_their_values() -> None:
    values = stepping(10 * BLOCK, 4 * BLOCK)

    first, second = fit(values, SettledFits())

    assert (first.value, second.value) == (
        np.median(values[: 4 * BLOCK]), np.median(values[4 * BLOCK :])
    )  # fmt: skip


def test_values_that_follow_leave_the_settled_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    own = changes._stops
    monkeypatch.setattr(
        changes, "_stops", lambda values, cost: (lengths.append(len(values)), own(values, cost))[1]
    )
    whole, fits = stepping(12 * BLOCK, 100, 250, 300), SettledFits()

    for count in range(6 * BLOCK, 12 * BLOCK + 1):
        anew = ends(whole[:count], SettledFits())
        lengths.clear()
        fits = SettledFits(fits.used)

        assert ends(whole[:count], fits) == anew

        long = [length for length in lengths if length > 4 * BLOCK]
        assert len(long) == (count % BLOCK == 0)
        assert len(fits.used) == 1


def test_a_fit_of_other_values_is_not_taken() -> None:
    values = stepping(10 * BLOCK, 4 * BLOCK)
    settled = SettledFits()
    fit(values, settled)
    ((key, _),) = settled.used.items()

    assert ends(values, SettledFits({key: (7, 11)})) == [4 * BLOCK, 10 * BLOCK]
