"""Estimators of machine learning, fitted and asked: NumPy, Numba, scikit-learn, XGBoost and cuML.

Data are drawn by functions that a suite names under ``init``; all features are float32, and all
labels int32, as GPUs like them. Whoever fits gets the same data and the same settings: numbers of
iterations, trees and neighbours, depths and penalties. A model is no array, so that a function
which fits one returns what it gives for ``new_points``, a tenth as many as it learned from; what
the model answers alone has kernels of its own (``*_predict``), whose model is fitted on the first
call, which is no part of a time.

``points`` have the shape ``[n, d]``, ``new_points`` ``[m, d]``, ``truth`` ``[n]`` and
``new_truth`` ``[m]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import njit, prange

Points = NDArray[np.float32]
Numbers = NDArray[np.float32]
Labels = NDArray[np.int32]
Values = Mapping[str, Any]
Random = np.random.Generator
Settings = Mapping[str, Any]
"""Keyword arguments of XGBoost's estimators: device and threads."""

SEED = 0
"""Of all estimators that draw."""
_TOGETHER = 256  # new points whose distances NumPy keeps at once
_SHARES = 16  # of the points, each with sums of its own, whatever the number of threads
_FAR = np.float32(np.inf)


# --- data


def heaps(values: Values, generator: Random) -> tuple[Points, Points]:
    """``n`` points around ``k`` centres with variance 1, and ``k`` of them to start from.

    The centres are uniform in a cube of side 20, so that some heaps overlap.
    """
    n, d, k = values["n"], values["d"], values["k"]
    centres = generator.uniform(-10, 10, (k, d))
    points = centres[generator.integers(0, k, n)] + generator.standard_normal((n, d))
    start = points[generator.choice(n, k, replace=False)]
    return points.astype(np.float32), start.astype(np.float32)


def corners(values: Values, generator: Random) -> tuple[Points, Labels]:
    """``n`` points around the eight corners of a cube of side 10 with variance 1, and the corner of
    each: heaps of any shape would do, and these have a truth to compare with."""
    truth = generator.integers(0, 8, values["n"], np.int32)
    centres = 10.0 * np.stack([truth & 1, truth >> 1 & 1, truth >> 2], axis=1)
    points = centres + generator.standard_normal((values["n"], 3))
    return points.astype(np.float32), truth


def stretched(values: Values, generator: Random) -> Points:
    """``n`` points in ``d`` dimensions, whose variance falls from one direction to the next as
    ``1 / i``: no component is useless, and none like another."""
    n, d = values["n"], values["d"]
    turned, _ = np.linalg.qr(generator.standard_normal((d, d)))
    lengths = 1 / np.sqrt(np.arange(1, d + 1))
    points: Points = ((generator.standard_normal((n, d)) * lengths) @ turned).astype(np.float32)
    return points


def straight(values: Values, generator: Random) -> tuple[Points, Numbers, Points, Numbers]:
    """Return a linear function of normal features, and noise of a tenth of its variance: points,
    numbers, and a tenth as many new ones."""
    points, numbers = _straight(values, generator)
    n = values["n"]
    return points[:n], numbers[:n], points[n:], numbers[n:]


def halved(values: Values, generator: Random) -> tuple[Points, Labels, Points, Labels]:
    """Return which side of a plane the same is on: classes 0 and 1."""
    points, numbers = _straight(values, generator)
    n, truth = values["n"], (numbers > 0).astype(np.int32)
    return points[:n], truth[:n], points[n:], truth[n:]


def _straight(values: Values, generator: Random) -> tuple[Points, Numbers]:
    n, d = values["n"], values["d"]
    points = generator.standard_normal((n + n // 10, d)).astype(np.float32)
    slopes = generator.standard_normal(d) / np.sqrt(d)
    numbers = points @ slopes + np.sqrt(0.1) * generator.standard_normal(len(points))
    return points, numbers.astype(np.float32)


def bent(values: Values, generator: Random) -> tuple[Points, Labels, Points, Labels]:
    """Classes 0 and 1 by a bent surface in five of ``d`` uniform features, for trees."""
    n = values["n"]
    points, truth = _bent(n + n // 10, values["d"], generator)
    return points[:n], truth[:n], points[n:], truth[n:]


def new_and_bent(values: Values, generator: Random) -> tuple[Points, Labels]:
    """``m`` points of the same kind, to ask a model about."""
    return _bent(values["m"], values["d"], generator)


def _bent(n: int, d: int, generator: Random) -> tuple[Points, Labels]:
    """Friedman's first function ("Multivariate adaptive regression splines", 1991, section 4.3)
    with noise of variance 1, above or below 14.4, about its mean."""
    points = generator.random((n, d), np.float32)
    a, b, c, e, f = points[:, :5].T.astype(np.float64)
    number = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * e + 5 * f
    number += generator.standard_normal(n)
    return points, (number > 14.4).astype(np.int32)


# --- k-means: labels [n] and centres [k, d] after so many of Lloyd's steps, or when none moves


def _nearest_centres(points: Points, centres: Points) -> Labels:
    lengths = np.einsum("ij,ij->i", centres, centres)
    labels: Labels = np.argmin(lengths - 2 * points @ centres.T, axis=1).astype(np.int32)
    return labels


def kmeans_numpy(points: Points, start: Points, iterations: int) -> tuple[Labels, Points]:
    """Distances are a matrix product of a BLAS. A centre that no point is nearest to stays."""
    centres, labels = start.copy(), _nearest_centres(points, start)
    for _ in range(iterations):
        counts = np.bincount(labels, minlength=len(centres))
        for j, column in enumerate(points.T):
            sums = np.bincount(labels, column, len(centres))
            np.divide(sums, counts, out=centres[:, j], where=counts > 0, casting="same_kind")
        before, labels = labels, _nearest_centres(points, centres)
        if np.array_equal(before, labels):
            break
    return labels, centres


# Leave to reassociate lets the sums over dimensions run in vectors.
@njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _lloyd(points: Points, centres: Points, labels: Labels, sums: Any, counts: Any) -> Any:
    """Give each point its nearest centre, and make the centres anew; how many labels changed."""
    n, d = points.shape
    k, moved = len(centres), 0
    for share in prange(_SHARES):
        sums[share] = 0
        counts[share] = 0
        changed = 0
        for i in range(n * share // _SHARES, n * (share + 1) // _SHARES):
            nearest, least = 0, _FAR
            for c in range(k):
                square = np.float32(0)
                for j in range(d):
                    apart = points[i, j] - centres[c, j]
                    square += apart * apart
                if square < least:
                    nearest, least = c, square
            changed += labels[i] != nearest
            labels[i] = nearest
            counts[share, nearest] += 1
            for j in range(d):
                sums[share, nearest, j] += points[i, j]
        moved += changed
    return moved


def kmeans_parallel(points: Points, start: Points, iterations: int) -> tuple[Labels, Points]:
    """Take a point at a time over the threads of the CPU: no distance is written down."""
    centres = start.copy()
    labels = np.full(len(points), -1, np.int32)
    sums = np.empty((_SHARES, *centres.shape))
    counts = np.empty((_SHARES, len(centres)), np.int64)
    for _ in range(iterations):
        moved = _lloyd(points, centres, labels, sums, counts)
        if not moved:
            return labels, centres
        count = counts.sum(axis=0)[:, None]
        np.divide(sums.sum(axis=0), count, out=centres, where=count > 0, casting="same_kind")
    _lloyd(points, centres, labels, sums, counts)
    return labels, centres


def kmeans_scikit_learn(points: Points, start: Points, iterations: int) -> tuple[Labels, Points]:
    model = import_module("sklearn.cluster").KMeans(
        len(start), init=start, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd"
    )
    model.fit(points)
    return model.labels_, model.cluster_centers_


def kmeans_cuml(points: Any, start: Any, iterations: int) -> tuple[Any, Any]:
    model = import_module("cuml.cluster").KMeans(
        n_clusters=len(start), init=start, n_init=1, max_iter=iterations, tol=0
    )
    model.fit(points)
    return model.labels_.astype(np.int32), model.cluster_centers_


# --- principal components: the first c, [c, d]


def pca_numpy(points: Points, c: int) -> Points:
    """Eigenvectors of the covariance, which is a matrix product of a BLAS."""
    centred = points - points.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(vectors[:, ::-1][:, :c].T)


def pca_scikit_learn(points: Points, c: int) -> Points:
    """By the same way; its default, ``auto``, chooses it for many points of few dimensions."""
    model = import_module("sklearn.decomposition").PCA(c, svd_solver="covariance_eigh")
    components: Points = model.fit(points).components_
    return np.ascontiguousarray(components)


def pca_cuml(points: Any, c: int) -> Any:
    return import_module("cuml").PCA(n_components=c, svd_solver="full").fit(points).components_


# --- linear regression: predictions of new points [m]


def linear_numpy(points: Points, truth: Numbers, new_points: Points) -> Numbers:
    """Least squares by a singular value decomposition of LAPACK (gelsd)."""
    means = points.mean(axis=0)
    slopes, *_ = np.linalg.lstsq(points - means, truth - truth.mean())
    predictions: Numbers = (new_points - means) @ slopes + truth.mean()
    return predictions


def linear_scikit_learn(points: Points, truth: Numbers, new_points: Points) -> Numbers:
    model = import_module("sklearn.linear_model").LinearRegression()
    predictions: Numbers = model.fit(points, truth).predict(new_points)
    return predictions


def linear_cuml(points: Any, truth: Any, new_points: Any) -> Any:
    model = import_module("cuml").LinearRegression(algorithm="svd")
    return model.fit(points, truth).predict(new_points)


# --- logistic regression with the penalty ``|slopes|² / 2``: probabilities of class 1 [m], float32


def logistic_numpy(points: Points, truth: Labels, new_points: Points) -> Numbers:
    """Newton's method (Hastie, Tibshirani and Friedman, *The Elements of Statistical Learning*,
    section 4.4.1), until a step is below 1e-4."""
    ones = np.ones((len(points), 1), np.float32)
    columns = np.hstack([points, ones])
    penalty = np.ones(columns.shape[1], np.float32)
    penalty[-1] = 0  # the intercept has none
    slopes = np.zeros(columns.shape[1], np.float32)
    for _ in range(100):
        probabilities = 1 / (1 + np.exp(-(columns @ slopes)))
        gradient = columns.T @ (probabilities - truth).astype(np.float32) + penalty * slopes
        weights = (probabilities * (1 - probabilities))[:, None]
        curvature = columns.T @ (weights * columns) + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        slopes -= step
        if np.abs(step).max() < 1e-4:
            break
    answers: Numbers = 1 / (1 + np.exp(-(new_points @ slopes[:-1] + slopes[-1])))
    return answers.astype(np.float32)


def make_logistic_scikit_learn(newton: bool) -> Any:
    """scikit-learn's default is L-BFGS; with ``newton`` it is the method of the NumPy form, which
    is meant for many points of few dimensions."""

    def logistic(points: Points, truth: Labels, new_points: Points) -> Numbers:
        linear = import_module("sklearn.linear_model")
        model = linear.LogisticRegression(solver="newton-cholesky" if newton else "lbfgs")
        probabilities: Numbers = model.fit(points, truth).predict_proba(new_points)[:, 1]
        return probabilities.astype(np.float32)

    return logistic


def logistic_cuml(points: Any, truth: Any, new_points: Any) -> Any:
    model = import_module("cuml").LogisticRegression(C=1.0)
    return model.fit(points, truth).predict_proba(new_points)[:, 1].astype(np.float32)


# --- density-based clusters: labels [n], -1 for noise


# A square is added up in one order in both passes, so that they find the same neighbours.
@njit(cache=True)
def _are_near(points: Points, i: Any, j: Any, square: Any) -> Any:
    total = np.float32(0)
    for axis in range(points.shape[1]):
        apart = points[i, axis] - points[j, axis]
        total += apart * apart
    return total <= square


@njit(parallel=True, cache=True)
def _dense(points: Points, square: Any, least: Any, dense: Any) -> None:
    """Mark the points that have so many neighbours, themselves included."""
    for i in prange(len(points)):
        count = 0
        for j in range(len(points)):
            count += _are_near(points, i, j, square)
        dense[i] = count >= least


@njit(cache=True)
def _grown(points: Points, square: Any, dense: Any, labels: Labels) -> None:
    """Find groups of dense points that are near each other, and the points near them, one group
    after another."""
    waiting = np.empty(len(points), np.int64)
    group = 0
    for first in range(len(points)):
        if not dense[first] or labels[first] >= 0:
            continue
        labels[first], waiting[0], count = group, first, 1
        while count:
            count -= 1
            i = waiting[count]
            for j in range(len(points)):
                if labels[j] < 0 and _are_near(points, i, j, square):
                    labels[j] = group
                    if dense[j]:
                        waiting[count] = j
                        count += 1
        group += 1


def dbscan_numba(points: Points, radius: float, neighbours: int) -> Labels:
    """By definition (Ester, Kriegel, Sander and Xu, 1996): all pairs, without a tree. Neighbours
    are counted on all threads, groups grow on one."""
    square = np.float32(radius * radius)
    dense = np.empty(len(points), np.bool_)
    labels = np.full(len(points), -1, np.int32)
    _dense(points, square, neighbours, dense)
    _grown(points, square, dense, labels)
    return labels


def dbscan_scikit_learn(points: Points, radius: float, neighbours: int) -> Labels:
    """By a tree, as scikit-learn chooses for three dimensions."""
    model = import_module("sklearn.cluster").DBSCAN(eps=radius, min_samples=neighbours)
    labels: Labels = model.fit(points).labels_.astype(np.int32)
    return labels


def dbscan_cuml(points: Any, radius: float, neighbours: int) -> Any:
    model = import_module("cuml").DBSCAN(eps=radius, min_samples=neighbours)
    return model.fit(points).labels_.astype(np.int32)


# --- k nearest neighbours by brute force: classes [m] of new points, 0 or 1, by most of an odd k


def neighbours_numpy(points: Points, truth: Labels, new_points: Points, k: int) -> Labels:
    """Distances are a matrix product of a BLAS, ``_TOGETHER`` new points at a time."""
    predictions = np.empty(len(new_points), np.int32)
    lengths = np.einsum("ij,ij->i", points, points)
    for first in range(0, len(new_points), _TOGETHER):
        some = slice(first, first + _TOGETHER)
        apart = lengths - 2 * new_points[some] @ points.T
        nearest = np.argpartition(apart, k, axis=1)[:, :k]
        predictions[some] = 2 * truth[nearest].sum(axis=1) > k
    return predictions


@njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _vote(points: Points, truth: Labels, new_points: Points, k: Any, predictions: Labels) -> None:
    n, d = points.shape
    for i in prange(len(new_points)):
        squares = np.full(k, _FAR)  # of the nearest so far, nearest first
        votes = np.zeros(k, np.int32)
        for p in range(n):
            square = np.float32(0)
            for j in range(d):
                apart = new_points[i, j] - points[p, j]
                square += apart * apart
            if square < squares[k - 1]:
                place = k - 1
                while place > 0 and squares[place - 1] > square:
                    squares[place], votes[place] = squares[place - 1], votes[place - 1]
                    place -= 1
                squares[place], votes[place] = square, truth[p]
        predictions[i] = 2 * votes.sum() > k


def neighbours_parallel(points: Points, truth: Labels, new_points: Points, k: int) -> Labels:
    """Take a new point at a time over the threads of the CPU, with its nearest so far beside
    it."""
    predictions = np.empty(len(new_points), np.int32)
    _vote(points, truth, new_points, k, predictions)
    return predictions


def neighbours_scikit_learn(points: Points, truth: Labels, new_points: Points, k: int) -> Labels:
    neighbours = import_module("sklearn.neighbors").KNeighborsClassifier
    model = neighbours(k, algorithm="brute").fit(points, truth)
    predictions: Labels = model.predict(new_points).astype(np.int32)
    return predictions


def neighbours_cuml(points: Any, truth: Any, new_points: Any, k: int) -> Any:
    neighbours = import_module("cuml.neighbors").KNeighborsClassifier
    model = neighbours(n_neighbors=k, algorithm="brute").fit(points, truth)
    return model.predict(new_points).astype(np.int32)


# --- random forests of so many trees, no deeper than ``depth``: classes of new points [m]


def _forest_scikit_learn(trees: int, depth: int) -> Any:
    forest = import_module("sklearn.ensemble").RandomForestClassifier
    return forest(trees, max_depth=depth, max_features="sqrt", random_state=SEED)


def _forest_xgboost(settings: Settings, d: int, trees: int, depth: int) -> Any:
    """Return a forest: one round of as many trees; each split is looked for among the root of
    ``d`` features, as in the others."""
    return import_module("xgboost").XGBRFClassifier(
        n_estimators=trees,
        max_depth=depth,
        colsample_bynode=np.sqrt(d) / d,
        random_state=SEED,
        **settings,
    )


def _forest_cuml(trees: int, depth: int) -> Any:
    return import_module("cuml").RandomForestClassifier(
        n_estimators=trees, max_depth=depth, max_features="sqrt", random_state=SEED
    )


def forest_scikit_learn(
    points: Points, truth: Labels, new_points: Points, trees: int, depth: int
) -> Labels:
    model = _forest_scikit_learn(trees, depth).fit(points, truth)
    predictions: Labels = model.predict(new_points).astype(np.int32)
    return predictions


def forest_xgboost(
    settings: Settings, points: Points, truth: Labels, new_points: Points, trees: int, depth: int
) -> Labels:
    model = _forest_xgboost(settings, points.shape[1], trees, depth).fit(points, truth)
    predictions: Labels = model.predict(new_points).astype(np.int32)
    return predictions


def forest_cuml(points: Any, truth: Any, new_points: Any, trees: int, depth: int) -> Any:
    model = _forest_cuml(trees, depth).fit(points, truth)
    return model.predict(new_points).astype(np.int32)


# --- gradient boosting, so many rounds of trees no deeper than 6: probabilities of class 1 [m]


def _boosting_scikit_learn(rounds: int) -> Any:
    boosting = import_module("sklearn.ensemble").HistGradientBoostingClassifier
    return boosting(
        learning_rate=0.1,
        max_iter=rounds,
        max_leaf_nodes=None,
        max_depth=6,
        l2_regularization=1.0,
        max_bins=255,
        early_stopping=False,
        random_state=SEED,
    )


def _boosting_xgboost(settings: Settings, rounds: int) -> Any:
    return import_module("xgboost").XGBClassifier(
        learning_rate=0.1,
        n_estimators=rounds,
        max_depth=6,
        reg_lambda=1.0,
        tree_method="hist",
        max_bin=255,
        random_state=SEED,
        **settings,
    )


def _probabilities(model: Any, new_points: Points) -> Numbers:
    probabilities: Numbers = model.predict_proba(new_points)[:, 1].astype(np.float32)
    return probabilities


def boosting_scikit_learn(
    points: Points, truth: Labels, new_points: Points, rounds: int
) -> Numbers:
    """Trees over histograms, as XGBoost's."""
    return _probabilities(_boosting_scikit_learn(rounds).fit(points, truth), new_points)


def boosting_xgboost(
    settings: Settings, points: Points, truth: Labels, new_points: Points, rounds: int
) -> Numbers:
    return _probabilities(_boosting_xgboost(settings, rounds).fit(points, truth), new_points)


# --- what a model answers: fitted once in a process, on 20,000 points of their own

_LEARNED_FROM = 20_000


def _lessons(d: int) -> tuple[Points, Labels]:
    return _bent(_LEARNED_FROM, d, np.random.default_rng(SEED))


@lru_cache(maxsize=1)
def _fitted_forest_scikit_learn(d: int, trees: int, depth: int) -> Any:
    return _forest_scikit_learn(trees, depth).fit(*_lessons(d))


@lru_cache(maxsize=1)
def _fitted_forest_xgboost(d: int, trees: int, depth: int, settings: tuple[Any, ...]) -> Any:
    return _forest_xgboost(dict(settings), d, trees, depth).fit(*_lessons(d))


@lru_cache(maxsize=1)
def _fitted_forest_cuml(d: int, trees: int, depth: int) -> Any:
    return _forest_cuml(trees, depth).fit(*_lessons(d))


@lru_cache(maxsize=1)
def _fitted_boosting_scikit_learn(d: int, rounds: int) -> Any:
    return _boosting_scikit_learn(rounds).fit(*_lessons(d))


@lru_cache(maxsize=1)
def _fitted_boosting_xgboost(d: int, rounds: int, settings: tuple[Any, ...]) -> Any:
    return _boosting_xgboost(dict(settings), rounds).fit(*_lessons(d))


def forest_predict_scikit_learn(new_points: Points, trees: int, depth: int) -> Labels:
    model = _fitted_forest_scikit_learn(new_points.shape[1], trees, depth)
    predictions: Labels = model.predict(new_points).astype(np.int32)
    return predictions


def forest_predict_xgboost(
    settings: Settings, new_points: Points, trees: int, depth: int
) -> Labels:
    where = tuple(settings.items())
    model = _fitted_forest_xgboost(new_points.shape[1], trees, depth, where)
    predictions: Labels = model.predict(new_points).astype(np.int32)
    return predictions


def forest_predict_cuml(new_points: Any, trees: int, depth: int) -> Any:
    model = _fitted_forest_cuml(new_points.shape[1], trees, depth)
    return model.predict(new_points).astype(np.int32)


def boosting_predict_scikit_learn(new_points: Points, rounds: int) -> Numbers:
    return _probabilities(_fitted_boosting_scikit_learn(new_points.shape[1], rounds), new_points)


def boosting_predict_xgboost(settings: Settings, new_points: Points, rounds: int) -> Numbers:
    where = tuple(settings.items())
    return _probabilities(_fitted_boosting_xgboost(new_points.shape[1], rounds, where), new_points)
