"""Sorting where shares are cut, and of numbers that need care."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import sorting

FORMS = [sorting.sort_numpy, pytest.param(sorting.sort_parallel, marks=pytest.mark.ci)]


def sorted_by(form, x):
    out, given = np.full_like(x, np.nan), x.copy()
    form(x, np.empty_like(x), out)
    np.testing.assert_array_equal(x, given)
    return out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 100, 8191, 8193, 70_001])
def test_all_numbers_come_out_in_order(form, n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    np.testing.assert_array_equal(sorted_by(form, x), np.array(sorted(x)))


@pytest.mark.parametrize("form", FORMS)
def test_signs_infinities_and_equal_numbers_are_in_order(form):
    x = np.array([2, -1, np.inf, -np.inf, 1e-45, -1e-45, 2, -3e38, 3e38, 0], np.float32)
    assert sorted_by(form, x).tolist() == sorted(x.tolist())


def test_the_steps_of_a_merge_end_inside_a_tile():
    assert sorting._masks(16, 1) == [15, 4, 2, 1]
    assert sorting._masks(16, 4) == [15, 4]
