"""Layers against what they promise, attention against its formula, and the nearest of points by
hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpubench.kernels import attention, learning, nearest, panels

SOFTMAX = [learning.softmax_numpy, pytest.param(learning.softmax_parallel, marks=pytest.mark.ci)]
LAYER_NORM = [
    learning.layer_norm_numpy,
    pytest.param(learning.layer_norm_parallel, marks=pytest.mark.ci),
]
ATTENTION = [
    attention.attention_numpy,
    pytest.param(attention.attention_parallel, marks=pytest.mark.ci),
]
K_NEAREST = [
    nearest.k_nearest_numpy,
    pytest.param(nearest.k_nearest_parallel, marks=pytest.mark.ci),
]
KMEANS = [
    nearest.kmeans_step_numpy,
    pytest.param(nearest.kmeans_step_parallel, marks=pytest.mark.ci),
]


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(form, x):
    out = np.full_like(x, np.nan)
    form(x, out)
    return out


@pytest.mark.parametrize("form", SOFTMAX)
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 100])
def test_logarithms_of_probabilities_become_the_probabilities(form, columns):
    weights = np.random.default_rng(columns).random((17, columns)) + 0.1
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    found = softmax(form, np.log(probabilities).astype(np.float32))
    np.testing.assert_allclose(found, probabilities, rtol=1e-5)


@pytest.mark.parametrize("form", SOFTMAX)
def test_numbers_far_from_zero_do_not_overflow(form):
    x = np.array([[1e4, 1e4 - 1, -1e4], [-3e38, -3e38, -3e38]], np.float32)
    first, second = softmax(form, x)
    assert first == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0], abs=1e-6)
    assert second == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("form", SOFTMAX)
@pytest.mark.parametrize("place", [0, 31, 32, 63, 64, 69])
def test_the_largest_number_is_found_wherever_it_stands(form, place):
    x = np.zeros((1, 70), np.float32)
    x[0, place] = 200  # its exponential is no float
    assert softmax(form, x)[0].tolist() == pytest.approx(np.eye(70)[place], abs=1e-37)


@pytest.mark.parametrize("form", SOFTMAX)
def test_a_row_with_no_number_is_not_a_distribution(form):
    x = normal(3, 40)
    x[1, 35] = np.nan
    assert np.isnan(softmax(form, x)).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("form", LAYER_NORM)
def test_three_numbers_one_apart_are_normalised_by_hand(form):
    x, out = np.array([[1, 2, 3], [7, 7, 7]], np.float32), np.full((2, 3), np.nan, np.float32)
    form(x, np.array([1, 1, 2], np.float32), np.array([0, 5, 0], np.float32), out)
    assert out[0] == pytest.approx([-math.sqrt(1.5), 5, 2 * math.sqrt(1.5)], rel=1e-4)
    assert out[1].tolist() == [0, 5, 0]


@pytest.mark.parametrize("form", LAYER_NORM)
@pytest.mark.parametrize("columns", [31, 64, 1001])
def test_a_layer_far_from_zero_gets_mean_zero_and_variance_one(form, columns):
    x = 30 * normal(19, columns) + 1000
    out, ones = np.full_like(x, np.nan), np.ones(columns, np.float32)
    form(x, ones, 0 * ones, out)
    np.testing.assert_allclose(out.mean(axis=1, dtype=np.float64), 0, atol=1e-4)
    np.testing.assert_allclose(out.var(axis=1, dtype=np.float64), 1, rtol=1e-3)


@pytest.mark.parametrize("rows", [1, 63, 64, 65])
@pytest.mark.parametrize("d", [1, 4, 7])
def test_a_product_with_packed_rows_is_a_product(rows, d):
    some, weights = normal(rows, d), np.zeros((2, (d + 3) // 4 * 4), np.float32)
    weights[:, :d] = normal(2, d, seed=2)
    found = []
    for panel in panels.packed(some):
        sums = np.ones((2, panels.WIDTH), np.float32)
        panels.add_product(weights, panel, sums)
        found.append(sums)
    whole = np.hstack(found)
    np.testing.assert_allclose(whole[:, :rows], 1 + weights[:, :d] @ some.T, rtol=1e-4, atol=1e-5)
    assert (whole[:, rows:] == 1).all()


def attend(form, Q, K, V):
    out = np.full_like(Q, np.nan)
    form(Q, K, V, np.empty((len(Q), len(Q)), np.float32), out)
    return out


@pytest.mark.parametrize("form", ATTENTION)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (31, 64), (63, 65), (64, 3), (65, 128), (130, 5)])
def test_attention_is_its_formula_in_double_precision(form, n, d):
    Q, K, V = normal(3, n, d, seed=n)
    weights = np.exp(Q.astype(float) @ K.T.astype(float) / math.sqrt(d))
    expected = weights / weights.sum(axis=1, keepdims=True) @ V
    np.testing.assert_allclose(attend(form, Q, K, V), expected, atol=2e-5)


@pytest.mark.parametrize("form", ATTENTION)
def test_equal_keys_give_the_mean_of_the_values(form):
    Q, V = normal(2, 100, 8)
    found = attend(form, Q, np.ones_like(Q), V)
    np.testing.assert_allclose(found, np.tile(V.mean(axis=0), (100, 1)), atol=1e-6)


@pytest.mark.parametrize("form", ATTENTION)
def test_a_key_that_fits_far_better_gives_its_value_wherever_it_stands(form):
    """Whatever was summed before its tile is forgotten."""
    for place in (0, 63, 64, 199):
        Q, K = np.ones((200, 4), np.float32), np.zeros((200, 4), np.float32)
        K[place], V = 1000, normal(200, 4)
        np.testing.assert_allclose(attend(form, Q, K, V), np.tile(V[place], (200, 1)))


def k_nearest(form, queries, points, k):
    distances = np.full((len(queries), k), np.nan, np.float32)
    indices = np.full((len(queries), k), -1, np.int32)
    form(queries, points, distances, indices)
    return distances, indices


@pytest.mark.parametrize("form", K_NEAREST)
@pytest.mark.parametrize(("m", "n", "d", "k"), [(1, 1, 1, 1), (5, 63, 3, 4), (17, 65, 128, 65)])
def test_the_nearest_are_the_first_of_all_sorted(form, m, n, d, k):
    generator = np.random.default_rng(n)
    queries = nearest.queries({"m": m, "d": d}, generator)
    points = nearest.points({"n": n, "d": d}, generator)
    points[n // 2] = points[0]
    distances, indices = k_nearest(form, queries, points, k)
    for query, apart, found in zip(queries, distances, indices, strict=True):
        squares = ((points.astype(int) - query.astype(int)) ** 2).sum(axis=1)
        ranked = sorted((int(square), i) for i, square in enumerate(squares))[:k]
        assert list(zip(apart.tolist(), found.tolist(), strict=True)) == ranked


@pytest.mark.parametrize("form", K_NEAREST)
def test_points_at_the_largest_distance_of_all_are_told_apart(form):
    queries, points = np.zeros((1, 128), np.float32), np.full((3, 128), 255, np.float32)
    points[2, 0] = 254
    distances, indices = k_nearest(form, queries, points, 3)
    assert indices.tolist() == [[2, 0, 1]]
    assert distances.tolist() == [[128 * 255**2 - 509, 128 * 255**2, 128 * 255**2]]


@pytest.mark.parametrize("form", K_NEAREST)
def test_of_points_at_one_place_the_first_are_taken(form):
    _, indices = k_nearest(form, np.ones((2, 3), np.float32), np.ones((70, 3), np.float32), 4)
    assert indices.tolist() == [[0, 1, 2, 3]] * 2


def kmeans_step(form, points, centres):
    room = np.empty(centres.shape, np.int32), np.empty(len(centres), np.int32)
    labels, means = np.full(len(points), -1, np.int32), np.full_like(centres, np.nan)
    form(points, centres, *room, labels, means)
    return labels, means


@pytest.mark.parametrize("form", KMEANS)
def test_two_groups_and_a_centre_that_nobody_is_near(form):
    points = np.array([[0], [2], [10], [13], [5]], np.float32)
    labels, means = kmeans_step(form, points, np.array([[1], [200], [9]], np.float32))
    assert labels.tolist() == [0, 0, 2, 2, 0]  # 5 is as near to 9, and 1 comes first
    assert means[:, 0] == pytest.approx([7 / 3, 200, 11.5])


@pytest.mark.parametrize("form", KMEANS)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (15, 3), (257, 64), (2049, 65)])
def test_points_go_to_their_nearest_centre_and_keep_their_sum(form, n, k):
    generator = np.random.default_rng(n)
    values = {"n": n, "d": 5, "k": k}
    points, centres = nearest.points(values, generator), nearest.centres(values, generator)
    centres[-1] = centres[0]
    labels, means = kmeans_step(form, points, centres)
    apart = ((points[:, np.newaxis] - centres) ** 2).sum(axis=2)
    assert labels.tolist() == apart.argmin(axis=1).tolist()
    counts = np.bincount(labels, minlength=k)
    np.testing.assert_allclose(counts @ means, points.sum(axis=0, dtype=float), rtol=1e-6)
