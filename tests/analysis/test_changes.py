"""Steps on long histories, neighbours on short ones."""

from __future__ import annotations

import math
import random

import pytest

from gpubench.analysis.changes import find_changes
from gpubench.results import Timing


def times(*medians: float | None, width: float = 0.01) -> list[Timing | None]:
    return [m and Timing(m, m * (1 - width), m * (1 + width)) for m in medians]  # type: ignore[misc]


def test_a_long_history_shows_its_step_with_factor_and_commits() -> None:
    (change,) = find_changes(times(*[1.0] * 6, *[2.0] * 6))

    assert (change.kind, change.before, change.after) == ("step", 5, 6)
    assert change.slower
    assert change.size == pytest.approx(2.0)
    assert change.factor == pytest.approx(0.5)


def test_steps_are_found_in_both_directions() -> None:
    changes = find_changes(times(*[1.0] * 6, *[2.0] * 6, *[1.0] * 6))

    assert [change.slower for change in changes] == [True, False]


def test_noise_makes_no_step() -> None:
    chance = random.Random(1)
    noisy = [chance.gauss(1.0, 0.01) for _ in range(40)]

    assert find_changes(times(*noisy)) == ()


def test_gaps_are_stepped_over() -> None:
    (change,) = find_changes(times(*[1.0] * 5, None, *[3.0] * 6))

    assert (change.before, change.after) == (4, 6)


def test_under_ten_points_neighbours_are_held_apart_by_their_intervals() -> None:
    (change,) = find_changes(times(1.0, 1.0, 1.5, 1.5))

    assert (change.kind, change.before, change.after) == ("difference", 1, 2)


def test_overlapping_intervals_make_no_difference() -> None:
    assert find_changes(times(1.0, 1.5, width=0.4)) == ()


def test_under_five_percent_nothing_is_claimed() -> None:
    assert find_changes(times(1.0, 1.04, width=0.001)) == ()
    assert find_changes(times(*[1.0] * 8, *[1.04] * 8, width=0.001)) == ()


def test_without_intervals_a_short_history_claims_nothing() -> None:
    assert find_changes([Timing(1.0, -math.inf, math.inf), Timing(9.0, -math.inf, math.inf)]) == ()


def test_nine_points_claim_no_step_and_ten_do() -> None:
    wide = times(*[1.0] * 5, *[2.0] * 4, width=0.6)

    assert find_changes(wide) == ()
    assert [c.kind for c in find_changes([*wide, *times(2.0, width=0.6)])] == ["step"]


def test_nothing_measured_has_no_changes() -> None:
    assert find_changes([]) == ()
    assert find_changes([None, None]) == ()
