"""Ranks decide which levels of a series are real, whatever its noise looks like."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpubench.analysis.changes import changes_in
from gpubench.analysis.steps import (
    Floats,
    find_levels,
    is_another_mix,
    rank_evidence,
    rank_interval,
)

LEAST = math.log(1.05)


def noise(kind: str, seed: int, commits: int = 100) -> Floats:
    """Logarithms of times without a step."""
    chance = np.random.default_rng(seed)
    if kind == "two processors":
        return chance.choice([0.0, 0.3], commits) + chance.normal(0, 0.02, commits)
    if kind == "outliers":
        return chance.standard_t(2, commits) * 0.04
    return chance.normal(0, 0.04, commits)


def starts(values: Floats) -> list[int]:
    medians = np.exp(values)
    (changes,) = changes_in(np.stack([medians, 0 * medians, medians + math.inf])[:, None])
    return [change.after for change in changes]


@pytest.mark.parametrize("kind", ["normal", "two processors", "outliers"])
def test_noise_of_every_kind_has_no_step(kind: str) -> None:
    assert [starts(noise(kind, seed)) for seed in range(20)] == [[]] * 20


@pytest.mark.parametrize(("kind", "step"), [("normal", 0.12), ("two processors", 0.45)])
def test_a_step_of_three_scatters_is_found_where_it_is(kind: str, step: float) -> None:
    found = 0
    for seed in range(20):
        values = noise(kind, seed)
        values[60:] += step
        found += any(abs(place - 60) <= 2 for place in starts(values))

    assert found >= 18


def test_a_run_of_commits_on_the_slower_of_two_processors_is_no_step() -> None:
    values = np.tile([0.0, 0.3], 50) + noise("normal", 1) / 4
    values[40:46] += 0.3 - np.tile([0.0, 0.3], 3)  # three at a time happen by chance

    assert starts(values) == []


def test_another_share_of_two_processors_is_no_step() -> None:
    chance = np.random.default_rng(5)

    def mixed(fast: float) -> Floats:
        return chance.choice([0.0, 0.4], 40, p=[fast, 1 - fast]) + chance.normal(0, 0.01, 40)

    assert starts(np.concatenate([mixed(0.15), mixed(0.85)])) == []
    moved = np.concatenate([mixed(0.15), mixed(0.85) - 0.4])
    assert len(starts(moved)) == 1


def test_three_outliers_in_a_row_do_not_divide_a_level_of_a_noisy_history() -> None:
    values = noise("outliers", 3)
    values[50:53] += 0.1

    assert starts(values) == []


def test_a_level_within_a_level_is_found() -> None:
    values = noise("normal", 4) / 10
    values[40:52] += 0.2

    assert starts(values) == [40, 52]


def test_a_long_level_is_not_lost_behind_a_few_short_ones() -> None:
    # As photutils': the short levels fall, and their mixture scatters too much to be told apart.
    ends = [(3, 0.6), (4, 0.03), (6, -0.05), (160, 0.12)]
    values = np.concatenate([np.full(count, level) for count, level in ends])
    values += np.random.default_rng(1).normal(0, 0.004, len(values))

    assert 13 in starts(values)


def test_a_level_far_above_a_quiet_one_is_found_though_both_drift() -> None:
    # As vaex's: what wanders in one of two levels does not hide that they are apart.
    chance = np.random.default_rng(0)
    values = [0.0]
    for _ in range(199):
        values.append(0.9 * values[-1] + chance.normal(0, 0.02))
    drift = np.interp(np.arange(30), [0, 3, 15, 29], [0.2, 0.5, 1.1, 0.85])

    (first, *_) = starts(np.concatenate([values, drift + chance.normal(0, 0.05, 30)]))

    assert abs(first - 200) <= 5


def test_a_step_that_the_fit_does_not_propose_is_in_no_memory_of_its_level() -> None:
    # In 26 commits on two processors: a step is no run of neighbours that deviate alike.
    found = 0
    for seed in range(20):
        values = noise("two processors", seed, 26)
        values[8:] += 0.5
        found += any(abs(place - 8) <= 2 for place in starts(values))

    assert found >= 18


def test_levels_are_of_the_whole_series_and_say_how_neighbours_deviate() -> None:
    levels = find_levels(np.repeat([0.0, 1.0], 20), [20], LEAST)

    assert levels.bounds == (0, 20, 40)
    assert levels.memory == 0  # equal values have no order


def test_evidence_grows_with_the_commits_and_is_exact_where_levels_do_not_overlap() -> None:
    separation, evidence = rank_evidence(np.zeros(3), np.ones(97))

    assert separation == 1
    assert evidence == pytest.approx(math.log(math.comb(100, 3) / 2))
    assert rank_evidence(np.zeros(5), np.ones(95))[1] > evidence
    assert rank_evidence(np.arange(10.0), np.arange(10.0)) == (0.5, 0)


def test_the_interval_of_a_difference_leaves_out_what_one_outlier_says() -> None:
    before, after = np.linspace(0, 0.1, 30), np.linspace(0.5, 0.6, 30)
    after[3] = 9.0

    low, high = rank_interval(before, after, 2.58)

    assert 0.4 < low < 0.5 < high < 0.6


def test_the_newest_commit_is_held_against_its_level_where_files_have_no_intervals() -> None:
    quiet = noise("normal", 5, 40) / 10

    assert starts(np.append(quiet, 0.18)) == [40]
    assert starts(np.append(quiet, quiet.max() * 1.5)) == []
    assert starts(np.append(noise("outliers", 6, 40), 0.05)) == []


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_another_mix_of_the_same_two_processors_is_no_step(share: float) -> None:
    chance = np.random.default_rng(3)
    fast = np.concatenate([chance.random(60) < 0.05, chance.random(60) < 1 - share])
    medians = np.where(fast, 1.0, 1.9) * chance.normal(1, 0.01, 120)

    assert starts(np.log(medians)) == []


def test_a_single_stretch_at_the_other_level_is_no_mix_of_processors_that_take_turns() -> None:
    slow, fast = np.log(8.0), 0.0
    stretch = np.repeat([fast, slow, fast], [2, 3, 12])
    turns = np.array([fast, slow, fast, fast, slow, *[fast] * 5, slow, *[fast] * 6])
    after = np.full(40, slow)

    assert [is_another_mix(turns, after), is_another_mix(after, turns)] == [True, True]
    assert [is_another_mix(stretch, after), is_another_mix(after, stretch)] == [False, False]


def test_the_interval_by_ranks_leaves_out_as_many_differences_as_the_test_allows() -> None:
    before, after = 10.0 * np.arange(10), 1.0 * np.arange(10)  # differences -90, -89 ... 9

    low, high = rank_interval(before, after, 1.96)

    # Of 100 pairs 50 - 1.96 * sqrt(100 * 21 / 12) = 24.07 at each end.
    assert (low, high) == (-90 + 24, 9 - 24)
