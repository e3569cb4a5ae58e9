"""Some questions of ``frames`` for NumPy and Numba: tables are mappings of columns, as
``gpubench.arrow`` describes them, and so is what is returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.edge.systems.kernels.frames import WINDOW
from gpubench.kernels.lazy_numba import njit

Column = NDArray[Any]
Columns = Mapping[str, Column]


def group_1_numpy(x: Columns) -> Columns:
    """Return the sum of v1 by id1, a category: a sum for each of its codes."""
    words = x["id1 categories"]
    counts = np.bincount(x["id1"], minlength=len(words))
    sums = np.bincount(x["id1"], x["v1"], minlength=len(words))
    (codes,) = counts.nonzero()
    return {"id1": words[codes], "v1": sums[codes].astype(np.int64)}


def group_1_numba(x: Columns) -> Columns:
    """Return the same, in one loop on one thread."""
    words = x["id1 categories"]
    counts, sums = _counts_and_sums(x["id1"], x["v1"], len(words))
    (codes,) = counts.nonzero()
    return {"id1": words[codes], "v1": sums[codes]}


@njit(cache=True)
def _counts_and_sums(codes: Column, values: Column, groups: int) -> tuple[Column, Column]:
    """Rows and the sum of whole numbers of each group, from codes below ``groups``."""
    counts, sums = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for i in range(codes.size):
        counts[codes[i]] += 1
        sums[codes[i]] += values[i]
    return counts, sums


def group_5_numpy(x: Columns) -> Columns:
    """Return the sums of v1, v2 and v3 by id6: numbers from 1 to the largest are codes
    themselves."""
    keys, groups = x["id6"], int(x["id6"].max()) + 1
    (codes,) = np.bincount(keys, minlength=groups).nonzero()
    v1, v2, v3 = (np.bincount(keys, x[v], minlength=groups)[codes] for v in ("v1", "v2", "v3"))
    return {"id6": codes, "v1": v1.astype(np.int64), "v2": v2.astype(np.int64), "v3": v3}


def group_5_numba(x: Columns) -> Columns:
    """Return the same, in one loop on one thread."""
    counts, v1, v2, v3 = _three_sums(x["id6"], x["v1"], x["v2"], x["v3"])
    (codes,) = counts.nonzero()
    return {"id6": codes, "v1": v1[codes], "v2": v2[codes], "v3": v3[codes]}


@njit(cache=True)
def _three_sums(
    keys: Column, v1: Column, v2: Column, v3: Column
) -> tuple[Column, Column, Column, Column]:
    """Rows and three sums of each group, by keys from 0."""
    groups = keys.max() + 1
    counts = np.zeros(groups, np.int64)
    a, b, c = np.zeros(groups, np.int64), np.zeros(groups, np.int64), np.zeros(groups)
    for i in range(keys.size):
        key = keys[i]
        counts[key] += 1
        a[key] += v1[i]
        b[key] += v2[i]
        c[key] += v3[i]
    return counts, a, b, c


def join_inner_numpy(x: Columns, right: Columns) -> Columns:
    """Rows of ``x`` with those of ``right`` that have the same id: where each id of ``right`` lies,
    by its number."""
    most = int(max(x["id"].max(), right["id"].max()))
    places = np.full(most + 1, -1, np.int64)
    places[right["id"]] = np.arange(right["id"].size)
    found = places[x["id"]]
    rows = found >= 0
    left = {name: values[rows] for name, values in x.items() if not name.endswith(" is null")}
    return {**left, "v2": right["v2"][found[rows]]}


def sort_numpy(x: Columns) -> Columns:
    """Rows by rising id4, by falling v3 where that is equal, and by rising v1 where both are, so
    that no two orders are right."""
    order = np.lexsort((x["v1"], -x["v3"], x["id4"]))
    return {name: x[name][order] for name in ("id4", "v1", "v3")}


def choose_numpy(x: Columns) -> Columns:
    """Rows with a v1 above 3 and a v3 below 50, in their order."""
    rows = (x["v1"] > 3) & (x["v3"] < 50)
    return {name: x[name][rows] for name in ("id4", "v1", "v3")}


def rolling_numba(x: Columns) -> Columns:
    """Return the mean of each row's v3 and those of the 99 rows before."""
    return {"mean": _rolling(x["v3"], WINDOW)}


@njit(cache=True)
def _rolling(values: Column, window: int) -> Column:
    """Means of ``window`` numbers up to each, NaN before there are as many."""
    means, total = np.full(values.size, np.nan), 0.0
    for i in range(values.size):
        total += values[i]
        if i >= window:
            total -= values[i - window]
        if i >= window - 1:
            means[i] = total / window
    return means
