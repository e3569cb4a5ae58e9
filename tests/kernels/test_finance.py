"""Prices against what they have to be, and random numbers against their distribution."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from gpubench.kernels import finance, random_numbers

FORMULAS = [
    finance.black_scholes_numpy,
    pytest.param(finance.black_scholes_parallel, marks=pytest.mark.ci),
]
OPTIONS = [finance.option_numpy, pytest.param(finance.option_parallel, marks=pytest.mark.ci)]
COUNTS = [finance.pi_numpy, pytest.param(finance.pi_parallel, marks=pytest.mark.ci)]
RATE, SPREAD = 0.02, 0.3


def priced(formula, share, strike, years):
    arrays = [np.array([float(one)]) for one in (share, strike, years)]
    call, put = np.full((2, 1), np.nan)
    formula(*arrays, np.float64(RATE), np.float64(SPREAD), call, put)
    return call[0], put[0]


def exact_call(share, strike, years):
    width = SPREAD * math.sqrt(years)
    high = (math.log(share / strike) + (RATE + SPREAD**2 / 2) * years) / width
    below = NormalDist().cdf
    return share * below(high) - strike * math.exp(-RATE * years) * below(high - width)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("strike", [60, 99, 100, 101, 140])
def test_a_call_costs_what_the_normal_distribution_says(formula, strike):
    call, _ = priced(formula, 100, strike, 2)
    assert call == pytest.approx(exact_call(100, strike, 2), abs=2e-5)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_call_less_a_put_is_the_share_less_what_is_paid_later(formula):
    call, put = priced(formula, 100, 90, 3)
    assert call - put == pytest.approx(100 - 90 * math.exp(-RATE * 3))


@pytest.mark.parametrize("count", COUNTS)
def test_three_quarters_and_a_little_of_the_points_are_inside(count):
    inside = np.zeros(1, np.int64)
    count(1_000_000, np.uint64(1), inside)
    assert 4 * inside[0] / 1_000_000 == pytest.approx(math.pi, abs=5 * 1.64e-3)  # 5 deviations


@pytest.mark.ci
@pytest.mark.parametrize("n", [1, 16383, 16385, 50_000])
def test_both_forms_count_the_same_points_where_pieces_are_cut(n):
    found = np.zeros((2, 1), np.int64)
    for count, inside in zip((finance.pi_numpy, finance.pi_parallel), found, strict=True):
        count(n, np.uint64(7), inside)
    assert found[0] == found[1]


def test_normal_numbers_are_those_of_the_inverse_distribution():
    bits = random_numbers.bits_numpy(np.arange(5000, dtype=np.uint64), np.uint64(3))
    constants = finance.wichura({"dtype": "float64"}, np.random.default_rng())
    uniform = ((bits >> np.uint64(41)).astype(float) + 0.5) / 2**23
    exact = [NormalDist().inv_cdf(one) for one in uniform]
    np.testing.assert_allclose(finance.normal_numpy(bits, constants), exact, rtol=2e-7)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mean_gain_discounted_is_the_price_of_the_formula(option, dtype):
    drift = (RATE - SPREAD**2 / 2) * 1.0
    constants = finance.wichura({"dtype": dtype}, np.random.default_rng())
    numbers = (dtype(one) for one in (100, 105, drift, SPREAD))
    out = np.zeros(1)
    option(400_000, np.uint64(5), *numbers, constants, np.empty(1024), out)
    assert math.exp(-RATE) * out[0] == pytest.approx(exact_call(100, 105, 1), rel=0.02)


def test_the_bits_are_those_that_the_algorithm_is_published_with():
    """The first numbers of SplitMix64 from the state 1234567."""
    counters = np.arange(1, 6, dtype=np.uint64)
    assert random_numbers.bits_numpy(counters, np.uint64(1234567)).tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423,
        4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
