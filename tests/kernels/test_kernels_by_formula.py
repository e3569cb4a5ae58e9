"""The first kernels against plain formulas and at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpubench.kernels import elementwise, fractals, linear_algebra, reductions

DTYPES = ("float32", "float64")
ITERATIONS = 30


@pytest.mark.ci
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 300, 5), (5, 257, 259), (4, 256, 256), (9, 2, 513)]
)
def test_the_parallel_product_is_right_where_panels_and_bands_are_cut(
    shape: tuple[int, int, int],
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(1)
    A, B, C = rng.standard_normal((m, k)), rng.standard_normal((k, n)), np.full((m, n), np.nan)
    linear_algebra.matmul_parallel(A, B, C)
    np.testing.assert_allclose(C, A @ B, atol=1e-12)


@pytest.mark.parametrize(
    "form", [elementwise.vector_add_numpy, elementwise.vector_add_serial], ids=["numpy", "serial"]
)
def test_vector_add_adds_in_place(form: Any) -> None:
    a, b = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    form(a, b, 2)
    assert b.tolist() == [11, 22]


def test_increment_by_one_adds_one_in_place() -> None:
    a = np.array([1, 2], np.float32)
    elementwise.increment_by_one_numpy(a)
    assert a.tolist() == [2, 3]


def test_multiply_writes_the_products() -> None:
    c = np.empty(2)
    elementwise.multiply_numpy(np.array([2.0, 3.0]), np.array([4.0, 5.0]), c)
    assert c.tolist() == [8, 15]


@pytest.mark.parametrize(
    "form", [reductions.norm_numpy, pytest.param(reductions.norm_parallel, marks=pytest.mark.ci)]
)
def test_the_norm_of_three_and_four_is_five(form: Any) -> None:
    out = np.empty(1)
    form(np.array([3.0, 4.0]), out)
    assert out.tolist() == [5]


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize(
    "form", [reductions.norm_numpy, pytest.param(reductions.norm_parallel, marks=pytest.mark.ci)]
)
def test_the_norm_keeps_nan_and_infinity(form: Any, special: float) -> None:
    out = np.zeros(1)
    form(np.array([1.0, special]), out)
    np.testing.assert_equal(out[0], special)


@pytest.mark.ci
def test_a_norm_in_single_precision_stays_accurate_over_many_terms() -> None:
    x, out = np.full(2**22, 0.1, np.float32), np.empty(1, np.float32)
    reductions.norm_parallel(x, out)
    assert out[0] == pytest.approx(0.1 * 2**11, rel=1e-5)


def test_matmul_writes_the_product() -> None:
    C = np.empty((1, 1))
    linear_algebra.matmul_numpy(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), C)
    assert C.tolist() == [[11]]


@pytest.mark.parametrize(
    "form",
    [fractals.mandelbrot_numpy, pytest.param(fractals.mandelbrot_parallel, marks=pytest.mark.ci)],
)
def test_mandelbrot_counts_the_steps_of_each_pixel(form: Any) -> None:
    counts = np.empty((5, 5))
    form(counts, ITERATIONS)
    for row in range(5):
        for column in range(5):
            c = complex(-2 + 0.5 * column, -1.25 + 0.5 * row)
            assert counts[row, column] == _escape_time(c)


def _escape_time(c: complex) -> int:
    z = 0j
    for done in range(ITERATIONS):
        if abs(z) > 2:
            return done
        z = z * z + c
    return ITERATIONS


@pytest.mark.ci
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_parallel_picture_is_the_same_to_the_last_pixel(dtype: str) -> None:
    """Neither form fuses multiplications with additions, so that not even chaotic pixels differ."""
    found, expected = np.empty((130, 130), dtype), np.empty((130, 130), dtype)
    fractals.mandelbrot_parallel(found, 200)
    fractals.mandelbrot_numpy(expected, 200)
    np.testing.assert_array_equal(found, expected)
