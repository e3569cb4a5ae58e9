"""Steps on long histories, neighbours on short ones."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from gpubench.analysis.changes import Change, changes_in, undone_by, verdicts_in
from gpubench.results import Times

Ends = tuple[float, float, float]
"""A median and its interval."""


def times(*medians: float | None, width: float = 0.01) -> list[Ends]:
    known = [math.nan if median is None else median for median in medians]
    return [(median, median * (1 - width), median * (1 + width)) for median in known]


def find_changes(ends: list[Ends]) -> tuple[Change, ...]:
    columns: Times = np.array(ends, float).reshape(-1, 3).T
    (found,) = changes_in(columns[:, None])
    return found


def test_a_long_history_shows_its_step_with_factor_and_commits() -> None:
    (change,) = find_changes(times(*[1.0] * 6, *[2.0] * 6))

    assert (change.kind, change.before, change.after) == ("step", 5, 6)
    assert change.slower
    assert change.ratio.factor == pytest.approx(2.0)
    assert change.ratio.value == pytest.approx(0.5)


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


def test_under_ten_points_two_commits_that_agree_are_a_step() -> None:
    (change,) = find_changes(times(1.0, 1.01, 1.0, 1.01, 1.5, 1.5))

    assert (change.kind, change.before, change.after) == ("step", 3, 4)


def test_two_that_do_not_agree_are_none() -> None:
    assert find_changes(times(1.0, 1.01, 1.0, 1.8, 1.3)) == ()


def test_one_commit_alone_beyond_all_before_is_to_be_checked() -> None:
    (change,) = find_changes(times(1.0, 1.01, 1.0, 1.01, 1.5))

    assert (change.kind, change.before, change.after) == ("check", 3, 4)


def test_one_of_the_past_that_was_not_confirmed_is_nothing() -> None:
    assert find_changes(times(1.0, 1.01, 1.0, 1.5, 1.0, 1.01)) == ()


def test_a_wide_interval_of_the_newest_leaves_it_in_its_level() -> None:
    assert find_changes(times(1.0, 1.01, 1.0, 1.5, width=0.4)) == ()


def test_one_commit_alone_is_not_judged_and_two_need_company() -> None:
    values = np.array([[1.0, 1.02]] * 4 + [[1.0, 5.0]])

    alone, together = (
        verdicts_in(np.stack([of, of * 0.99, of * 1.01])) for of in (values[4:], values)
    )

    assert not verdicts_in(np.ones((3, 9, 1)))[0].is_judged
    assert not alone[0].is_judged
    assert [one.is_judged for one in together] == [True] * 5


def test_five_times_is_to_be_checked_at_the_third_commit_though_its_interval_is_wide() -> None:
    scatters = (0.001, 0.001, 0.002, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3)
    values = np.array([*([1.0, 1.0 + by, 1.0] for by in scatters), [1.0, 1.01, 5.0]])

    *others, changed = verdicts_in(np.stack([values, values * 0.7, values * 1.4]))

    assert [change.kind for change in changed.changes] == ["check"]
    assert all(verdict.changes == () for verdict in others)


def test_under_five_percent_nothing_is_claimed() -> None:
    assert find_changes(times(1.0, 1.04, width=0.001)) == ()
    assert find_changes(times(*[1.0] * 8, *[1.04] * 8, width=0.001)) == ()


@pytest.mark.parametrize("commits", [4, 15])
def test_without_intervals_the_newest_commit_is_checked_by_what_its_level_scatters(
    commits: int,
) -> None:
    ends = [(1 + 0.01 * (place % 3), 0.0, math.inf) for place in range(commits)]

    (change,) = find_changes([*ends, (5.0, 0.0, math.inf)])

    assert (change.kind, change.after) == ("check", commits)


@pytest.mark.parametrize("commits", [12, 30, 100])
def test_two_levels_at_the_end_are_found_whatever_is_before_them(commits: int) -> None:
    chance = np.random.default_rng(7)
    before = np.repeat([1.5, 1.2], commits // 2) * chance.normal(1, 0.02, 2 * (commits // 2))
    newest = chance.normal(1, 0.005, 28) * np.repeat([1.0, 2.15, 1.0, 2.2, 6.7], [17, 1, 3, 5, 2])

    changes = find_changes(times(*before, *newest))

    assert [change.after - len(before) for change in changes[-2:]] == [21, 26]


def test_of_two_processors_in_turn_five_times_as_long_is_to_be_checked() -> None:
    level = [1.34, 1.83, 1.35, 1.34, 1.05, 1.02, 1.92, 1.92, 1.91, 1.0, 1.07]

    assert [change.kind for change in find_changes(times(*level, 9.5))] == ["check"]
    assert [change.kind for change in find_changes(times(*level, 7.5, 9.5))] == ["step"]


def test_nine_points_claim_no_step_and_ten_do() -> None:
    wide = times(*[1.0] * 5, *[2.0] * 4, width=0.6)

    assert find_changes(wide) == ()
    assert [c.kind for c in find_changes([*wide, *times(2.0, width=0.6)])] == ["step"]


def test_nothing_measured_has_no_changes() -> None:
    assert find_changes([]) == ()
    assert find_changes(times(None, None)) == ()


def noisy(*levels: float, sigma: float = 0.01, seed: int = 1) -> list[Ends]:
    chance = random.Random(seed)
    return times(*(level * math.exp(chance.gauss(0, sigma)) for level in levels))


def test_the_factor_of_a_step_has_an_interval_that_holds_the_truth() -> None:
    (change,) = find_changes(noisy(*[1.0] * 10, *[1.3] * 10))

    assert change.ratio.low < 1 / 1.3 < change.ratio.high
    assert change.ratio.high / change.ratio.low < 1.15
    assert change.ratio.verdict == "slower"


def test_noise_widens_the_interval_of_a_step() -> None:
    quiet, loud = (
        find_changes(noisy(*[1.0] * 10, *[1.3] * 10, sigma=sigma))[0] for sigma in (0.003, 0.03)
    )

    assert loud.ratio.high / loud.ratio.low > quiet.ratio.high / quiet.ratio.low


def test_noise_with_a_memory_widens_the_interval_of_a_step() -> None:
    chance = random.Random(3)
    levels = [[math.exp(chance.gauss(0.0, 0.02)) for _ in range(20)] for _ in range(2)]
    (without,) = find_changes(times(*levels[0], *(1.4 * value for value in levels[1])))
    # The same values, each near its neighbours: up to the middle and down again.
    waves = [[*sorted(level)[::2], *sorted(level)[::-2]] for level in levels]
    (along,) = find_changes(times(*waves[0], *(1.4 * value for value in waves[1])))

    width, wider = (math.log(one.ratio.high / one.ratio.low) for one in (without, along))
    assert along.ratio.factor == pytest.approx(without.ratio.factor)
    assert wider > 1.5 * width


@pytest.mark.parametrize("outliers", [1, 2])
def test_outliers_in_between_make_no_step(outliers: int) -> None:
    assert find_changes(times(*[1.0] * 8, *[1.5] * outliers, *[1.0] * 8)) == ()


def test_two_commits_at_the_newest_level_are_a_step() -> None:
    (change,) = find_changes(times(*[1.0] * 10, 1.5, 1.5))

    assert (change.kind, change.before, change.after) == ("step", 9, 10)


@pytest.mark.parametrize("commits", [20, 59, 65, 75, 120])
def test_two_commits_at_a_level_far_away_are_a_step_in_histories_of_any_length(
    commits: int,
) -> None:
    found = find_changes(noisy(*[1.0] * commits, 90.0, 90.0, sigma=0.05))

    assert [(change.kind, change.after) for change in found] == [("step", commits)]


def test_the_newest_commit_alone_is_to_be_checked() -> None:
    (change,) = find_changes(times(*[1.0] * 11, 1.5))

    assert (change.kind, change.before, change.after) == ("check", 10, 11)
    assert change.ratio.has_interval


def test_the_newest_commit_alone_with_a_wide_interval_is_nothing() -> None:
    assert find_changes(times(*[1.0] * 11, 1.5, width=0.5)) == ()


@pytest.mark.parametrize("seed", [3, 10, 12, 19, 24])
def test_neighbours_that_deviate_alike_raise_the_bar(seed: int) -> None:
    values, last, chance = [], 0.0, random.Random(seed)
    for _ in range(60):
        last = 0.6 * last + chance.gauss(0, 0.03)
        values.append(math.exp(last))

    assert find_changes(times(*values)) == ()


def test_levels_of_a_few_noisy_commits_are_hardly_ever_steps() -> None:
    medians = np.random.default_rng(1).normal(1.0, 0.05, (200, 12))

    found = changes_in(np.stack([medians, medians * 0.99, medians * 1.01]))

    assert sum(any(change.kind == "step" for change in of) for of in found) <= 2


def test_a_step_of_few_commits_in_a_long_history_is_found() -> None:
    changes = find_changes(noisy(*[1.0] * 30, *[1.1] * 4, *[1.0] * 30))

    assert [(change.before, change.after) for change in changes] == [(29, 30), (33, 34)]


def test_a_change_is_undone_where_the_time_is_back() -> None:
    changes = find_changes(times(*[1.0] * 6, *[2.0] * 6, *[1.02] * 6, *[3.0] * 6))

    assert [undone_by(changes, index) for index in range(3)] == [1, 2, None]


def test_a_change_that_goes_on_is_not_undone() -> None:
    changes = find_changes(times(*[1.0] * 6, *[2.0] * 6, *[3.0] * 6))

    assert [undone_by(changes, index) for index in range(2)] == [None, None]
