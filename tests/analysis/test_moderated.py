"""Moderated t against published values, limma's worked example and simulated cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpubench.analysis.moderated import (
    MAX_PRIOR_FREEDOM,
    MIN_VARIANCE,
    Prior,
    digamma,
    estimate_tau,
    find_discoveries,
    fit_prior,
    moderate,
    p_values,
    standard_errors,
    t_quantile,
    trigamma,
    two_sided_tail,
)

EULER = 0.57721566490153286


@pytest.mark.parametrize(
    ("freedom", "chance", "quantile"),
    [  # Abramowitz and Stegun, table 26.10
        (1, 0.05, 12.706),
        (1, 0.5, 1.000),
        (2, 0.01, 9.925),
        (3, 0.5, 0.765),
        (4, 0.05, 2.776),
        (4, 0.01, 4.604),
        (10, 0.002, 4.144),
        (30, 0.01, 2.750),
        (120, 0.05, 1.980),
    ],
)
def test_tails_are_those_of_the_tables(freedom: int, chance: float, quantile: float) -> None:
    assert t_quantile(chance, freedom) == pytest.approx(quantile, abs=6e-4)
    assert two_sided_tail(quantile, freedom) == pytest.approx(chance, rel=2e-3)


@pytest.mark.parametrize("t", [1e-9, 0.01, 0.9, 3.0, 40.0, 1e4])
def test_tails_are_those_of_the_closed_forms(t: float) -> None:
    assert two_sided_tail(t, 1) == pytest.approx(2 / math.pi * math.atan2(1, t), rel=1e-11)
    of_two = 2 / (math.hypot(t, math.sqrt(2)) * (math.hypot(t, math.sqrt(2)) + t))
    assert two_sided_tail(t, 2) == pytest.approx(of_two, rel=1e-11)


def test_tails_are_the_same_on_both_sides_and_fall() -> None:
    t = np.linspace(0, 60, 400)
    for freedom in (0.3, 2.7, 11.5, 400.0):
        chances = two_sided_tail(t, freedom)
        assert chances[0] == 1.0
        assert np.all(np.diff(chances) < 0) and np.all(chances >= 0)
        assert np.array_equal(chances, two_sided_tail(-t, freedom))


def test_digamma_and_trigamma_have_their_known_values() -> None:
    assert digamma([0.5, 1.0, 2.0]) == pytest.approx(
        [-EULER - 2 * math.log(2), -EULER, 1 - EULER], abs=1e-11
    )
    assert trigamma([0.5, 1.0, 2.0]) == pytest.approx(
        [math.pi**2 / 2, math.pi**2 / 6, math.pi**2 / 6 - 1], abs=1e-10
    )


@pytest.mark.parametrize("freedom", [2.0, 4.0])
def test_the_prior_of_simulated_cases_is_found(freedom: float) -> None:
    rng = np.random.default_rng(1)
    true = 0.03**2 * freedom / rng.chisquare(freedom, 4_000)
    seen = true * rng.chisquare(3, true.size) / 3
    prior = fit_prior(seen, np.full(true.size, 3.0))
    assert math.sqrt(prior.variance) == pytest.approx(0.03, rel=0.1)
    assert prior.freedom == pytest.approx(freedom, rel=0.6)


def test_a_kind_whose_cases_are_alike_counts_for_eight_processes_at_most() -> None:
    rng = np.random.default_rng(2)
    prior = fit_prior(0.01**2 * rng.chisquare(3, 1000) / 3, np.full(1000, 3.0))
    assert prior.freedom == MAX_PRIOR_FREEDOM


def test_a_tenth_of_the_cases_that_leap_leaves_the_prior_as_it_is() -> None:
    rng = np.random.default_rng(3)
    quiet = 0.02**2 * rng.chisquare(3, 300) / 3
    leaping = quiet.copy()
    leaping[:30] *= 900
    one, other = (fit_prior(each, np.full(300, 3.0)) for each in (quiet, leaping))
    assert math.sqrt(other.variance / one.variance) < 1.2


def test_few_cases_are_joined_with_what_was_known_before() -> None:
    before = Prior(0.1**2, 3.0)
    assert fit_prior([], [], before, 5) == before
    assert fit_prior([7.0], [0.0], before, 5) == before
    lucky = fit_prior([1e-9], [3.0], before, 5)
    assert lucky.variance > fit_prior([1e-9], [3.0]).variance * 100
    assert before.freedom < lucky.freedom < MAX_PRIOR_FREEDOM
    with pytest.raises(ValueError, match="no variance"):
        fit_prior([], [])


def test_a_case_lies_between_its_kind_and_itself() -> None:
    variances, freedoms = moderate([0.04, 0.04, math.nan], [4.0, 400.0, 0.0], Prior(0.01, 4.0))
    assert variances == pytest.approx([0.025, 0.04, 0.01], rel=0.01)
    assert freedoms.tolist() == [8.0, 404.0, 4.0]
    assert moderate([0.0], [10.0], Prior(1e-12, 4.0))[0] == [MIN_VARIANCE]


def test_p_values_of_unchanged_cases_are_even() -> None:
    rng = np.random.default_rng(4)
    count = 20_000
    scatter = np.sqrt(0.02**2 * 4 / rng.chisquare(4, count))
    old, new = (rng.normal(0, scatter[:, None], (count, 4)) for _ in range(2))
    seen = (old.var(1, ddof=1) + new.var(1, ddof=1)) / 2
    variances, freedoms = moderate(seen, np.full(count, 6.0), Prior(0.02**2, 4.0))
    errors = standard_errors(variances, 4, 4)
    chances = p_values(new.mean(1) - old.mean(1), errors, freedoms)
    for level in (0.5, 0.05, 0.005):
        assert np.mean(chances <= level) == pytest.approx(level, rel=0.2)


def test_tau_is_what_runs_add() -> None:
    rng = np.random.default_rng(5)
    errors = np.full(2000, 0.01)
    for tau in (0.0, 0.03):
        differences = rng.normal(0, np.hypot(0.01, tau), 2000)
        differences[:400] += 0.7
        found = estimate_tau(differences, errors, np.full(2000, 500.0), 0.1)
        assert found == pytest.approx(tau, abs=0.015)
    assert estimate_tau([1.0, 2.0], [0.01, 0.01], [5.0, 5.0], 0.1) == 0.1


def test_discoveries_follow_benjamini_and_hochberg() -> None:
    chances = [0.03, 0.001, 0.2, 0.008, 0.9]
    assert find_discoveries(chances, 0.05) == [True, True, False, True, False]
    assert find_discoveries(chances, 0.01) == [False, True, False, False, False]
    assert find_discoveries([], 0.01) == []
