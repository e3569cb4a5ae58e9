"""Linear algebra on the CPU where pieces are cut, and against what is known of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpubench.kernels import matrix_vector, small_matrices, transposes

MATVECS = [
    matrix_vector.matvec_numpy,
    pytest.param(matrix_vector.matvec_parallel, marks=pytest.mark.ci),
]
SPMVS = [matrix_vector.spmv_numpy, pytest.param(matrix_vector.spmv_parallel, marks=pytest.mark.ci)]
TRANSPOSES = [
    transposes.transpose_numpy,
    pytest.param(transposes.transpose_parallel, marks=pytest.mark.ci),
]
CHOLESKYS = [
    small_matrices.batched_cholesky_numpy,
    pytest.param(small_matrices.batched_cholesky_parallel, marks=pytest.mark.ci),
]


def normal(*shape, dtype="float64"):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("matvec", MATVECS)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 30])
def test_rows_of_digits_times_powers_of_ten_are_numbers_with_these_digits(matvec, rows):
    digits = np.arange(3.0 * rows).reshape(rows, 3) % 10
    found = np.empty(rows)
    matvec(digits, np.array([100.0, 10.0, 1.0]), found)
    assert [f"{number:03.0f}" for number in found] == [
        "".join(f"{digit:.0f}" for digit in row) for row in digits
    ]


@pytest.mark.parametrize("transpose", TRANSPOSES)
@pytest.mark.parametrize("shape", [(1, 200), (63, 65), (64, 64), (65, 63), (129, 70)])
def test_a_transpose_is_right_where_tiles_are_cut(transpose, shape):
    a = np.arange(shape[0] * shape[1]).reshape(shape)
    out = np.full(shape[::-1], -1)
    transpose(a, out)
    for i, j in np.ndindex(shape):
        assert out[j, i] == i * shape[1] + j


def sparse(dense):
    """Compressed rows of a matrix."""
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32)
    return starts, columns.astype(np.int32), dense[rows, columns]


@pytest.mark.parametrize("spmv", SPMVS)
@pytest.mark.parametrize("empty", [[], [0], [6], [2, 3], range(7)])
def test_a_sparse_product_is_that_of_the_dense_matrix_with_its_empty_rows(spmv, empty):
    dense = normal(7, 7) * (normal(7, 7) > 0)
    dense[list(empty)] = 0
    starts, columns, values = sparse(dense)
    found = np.full(7, np.nan)
    spmv(starts, columns, values, normal(7), np.empty_like(values), found)
    np.testing.assert_allclose(found, dense @ normal(7), rtol=1e-13, atol=1e-14)
    assert not found[list(empty)].any()


@pytest.mark.ci
@pytest.mark.parametrize("n", [255, 257, 3000])
@pytest.mark.parametrize("rows", ["even", "skewed"])
def test_a_sparse_product_with_ones_sums_rows_where_pieces_are_cut(n, rows):
    matrix = {"n": n, "per_row": 5, "rows": rows, "dtype": "float64"}
    starts, columns, values = matrix_vector.sparse_matrix(matrix, np.random.default_rng(n))
    found = np.empty(n)
    matrix_vector.spmv_parallel(starts, columns, values, np.ones(n), values, found)
    sums = [values[first:last].sum() for first, last in itertools.pairwise(starts)]
    np.testing.assert_allclose(found, sums, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rows", ["even", "skewed"])
def test_a_drawn_sparse_matrix_has_its_numbers_in_order(rows):
    matrix = {"n": 2000, "per_row": 8, "rows": rows, "dtype": "float32"}
    starts, columns, values = matrix_vector.sparse_matrix(matrix, np.random.default_rng(0))
    lengths = np.diff(starts)
    assert (starts[0], starts[-1]) == (0, columns.size) == (0, values.size)
    assert columns.min() >= 0
    assert columns.max() < 2000
    for first, last in itertools.pairwise(starts):
        assert (np.diff(columns[first:last]) >= 0).all()
    assert (lengths.max() == 8) == (rows == "even")
    assert (lengths.max() > 100 and lengths.min() == 0) == (rows == "skewed")


@pytest.mark.ci
@pytest.mark.parametrize("k", [4, 16])
def test_products_of_many_rotations_are_rotations_by_the_sums_of_their_angles(k):
    angles = np.random.default_rng(k).uniform(0, 7, (2, 70))

    def rotations(angle):
        matrices = np.zeros((angle.size, k, k)) + np.eye(k)
        matrices[:, 0, 0] = matrices[:, k - 1, k - 1] = np.cos(angle)
        matrices[:, k - 1, 0] = np.sin(angle)
        matrices[:, 0, k - 1] = -np.sin(angle)
        return matrices

    product = small_matrices.make_batched_matmul_parallel(k=k)
    found = np.empty((70, k, k))
    product(rotations(angles[0]), rotations(angles[1]), found)
    np.testing.assert_allclose(found, rotations(angles.sum(axis=0)), atol=1e-14)


@pytest.mark.parametrize("cholesky", CHOLESKYS)
@pytest.mark.parametrize("n", [63, 65, 200])
@pytest.mark.parametrize("k", [1, 4, 6, 9])
def test_a_factor_is_lower_and_gives_its_matrix_where_pieces_are_cut(cholesky, n, k):
    matrices = {"n": n, "k": k, "dtype": "float64"}
    A = small_matrices.positive_definite(matrices, np.random.default_rng(n))
    L = np.full_like(A, np.nan)
    cholesky(A, L)
    np.testing.assert_allclose(L @ L.transpose(0, 2, 1), A, rtol=1e-12, atol=1e-13)
    assert not np.triu(L, 1).any()
    assert (np.diagonal(L, axis1=1, axis2=2) > 0).all()


@pytest.mark.ci
def test_the_factor_of_the_matrix_of_minima_is_full_of_ones():
    place = np.arange(1.0, 10.0)
    A = np.minimum.outer(place, place)[np.newaxis]
    L = np.empty_like(A)
    small_matrices.batched_cholesky_parallel(A, L)
    assert (L[0] == np.tri(9)).all()
