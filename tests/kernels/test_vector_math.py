"""Exponentials and logarithms, beside NumPy's in more digits, in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from gpubench.kernels import vector_math
from gpubench.kernels.lazy_numba import resolve

exp_of, log_of = resolve(vector_math.exp_of), resolve(vector_math.log_of)


@njit(error_model="numpy")
def exp_all(x: NDArray[Any], out: NDArray[Any]) -> None:
    for i in range(x.size):
        out[i] = exp_of(x[i], x.dtype.type)


@njit(error_model="numpy")
def log_all(x: NDArray[Any], out: NDArray[Any]) -> None:
    for i in range(x.size):
        out[i] = log_of(x[i], x.dtype.type)


def last_places(found: NDArray[Any], exact: NDArray[np.longdouble]) -> float:
    """The largest error in units in the last place of the exact number."""
    units = np.spacing(np.abs(exact).astype(found.dtype))
    return float(np.max(np.abs(found - exact) / units))


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 86.9), (np.float64, 707.9)])
def test_exp_is_within_two_roundings(dtype: type[Any], most: float) -> None:
    x = np.concatenate([np.linspace(-most, most, 20001), np.linspace(-1, 1, 20001)]).astype(dtype)
    out = np.empty_like(x)
    exp_all(x, out)
    assert last_places(out, np.exp(x.astype(np.longdouble))) < 1.5


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 2.0**126), (np.float64, 2.0**1022)])
def test_log_is_within_a_few_roundings(dtype: type[Any], most: float) -> None:
    x = np.concatenate([np.geomspace(1 / most, most, 20001), np.linspace(0.5, 2, 20001)])
    x = x.astype(dtype)
    out = np.empty_like(x)
    log_all(x, out)
    exact = np.log(x.astype(np.longdouble))
    assert out[exact == 0] == pytest.approx(0, abs=0)
    assert last_places(out[exact != 0], exact[exact != 0]) < 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_stops_where_numbers_end_and_of_no_number_is_none(dtype: type[Any]) -> None:
    x = np.array([-np.inf, -1e4, 1e4, 0, np.nan], dtype)
    out = np.empty_like(x)
    exp_all(x, out)
    assert 0 <= out[0] == out[1] < 2e-38
    assert 1e37 < out[2] < np.inf
    assert out[3] == 1
    assert np.isnan(out[4])
