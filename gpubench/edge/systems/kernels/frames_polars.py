"""The questions of ``frames`` for Polars, to its frames and queries alike."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.edge.systems.kernels.frames import WINDOW

Frame = Any
"""A frame of Polars, or a query (``LazyFrame``)."""


def _polars() -> Any:
    return import_module("polars")


def group_1(x: Frame) -> Frame:
    """Return the sum of v1 by id1."""
    return x.group_by("id1").agg(_polars().col("v1").sum())


def group_2(x: Frame) -> Frame:
    """Return the sum of v1 by id1 and id2."""
    return x.group_by("id1", "id2").agg(_polars().col("v1").sum())


def group_3(x: Frame) -> Frame:
    """Return the sum of v1 and the mean of v3 by id3."""
    col = _polars().col
    return x.group_by("id3").agg(col("v1").sum(), col("v3").mean())


def group_4(x: Frame) -> Frame:
    """Return the means of v1, v2 and v3 by id4."""
    return x.group_by("id4").agg(_polars().col("v1", "v2", "v3").mean())


def group_5(x: Frame) -> Frame:
    """Return the sums of v1, v2 and v3 by id6."""
    return x.group_by("id6").agg(_polars().col("v1", "v2", "v3").sum())


def group_6(x: Frame) -> Frame:
    """Return the median and the standard deviation of v3 by id4 and id5."""
    v3 = _polars().col("v3")
    return x.group_by("id4", "id5").agg(median=v3.median(), std=v3.std())


def group_7(x: Frame) -> Frame:
    """Return the largest v1 less the smallest v2 by id3."""
    col = _polars().col
    return x.group_by("id3").agg(range=col("v1").max() - col("v2").min())


def group_8(x: Frame) -> Frame:
    """Return the two largest v3 by id6."""
    col = _polars().col
    return x.group_by("id6").agg(col("v3").top_k(2)).explode("v3")


def group_9(x: Frame) -> Frame:
    """Return the square of the correlation of v1 and v2 by id2 and id4, from sums of whole
    numbers."""
    polars = _polars()
    a, b, rows = polars.col("v1").cast(int), polars.col("v2").cast(int), polars.len().cast(int)
    both = rows * (a * b).sum() - a.sum() * b.sum()
    each = (rows * (a * a).sum() - a.sum() ** 2) * (rows * (b * b).sum() - b.sum() ** 2)
    return x.group_by("id2", "id4").agg(r2=both**2 / each)


def group_10(x: Frame) -> Frame:
    """Return the sum of v3 and the number of rows by id1, id2, id3, id4, id5 and id6."""
    polars = _polars()
    groups = x.group_by("id1", "id2", "id3", "id4", "id5", "id6")
    return groups.agg(polars.col("v3").sum(), rows=polars.len())


def group_missing(x: Frame) -> Frame:
    """Return the sum of v1 and the mean of v3 by id4, of the values that are there."""
    col = _polars().col
    return x.group_by("id4").agg(col("v1").sum(), col("v3").mean())


def join_inner(x: Frame, right: Frame) -> Frame:
    """Rows of ``x`` with those of ``right`` that have the same id."""
    return x.join(right, on="id")


def join_left(x: Frame, right: Frame) -> Frame:
    """Return every row of ``x``, with what ``right`` has of its id."""
    return x.join(right, on="id", how="left")


def sort(x: Frame) -> Frame:
    """Rows by rising id4, by falling v3 where that is equal, and by rising v1 where both are, so
    that no two orders are right."""
    return x.sort("id4", "v3", "v1", descending=[False, True, False])


def choose(x: Frame) -> Frame:
    """Rows with a v1 above 3 and a v3 below 50, in their order: a fifth of all."""
    col = _polars().col
    return x.filter((col("v1") > 3) & (col("v3") < 50))


def rolling(x: Frame) -> Frame:
    """Return the mean of each row's v3 and those of the 99 rows before."""
    return x.select(mean=_polars().col("v3").rolling_mean(WINDOW))


def read_csv(file: NDArray[np.uint8]) -> Frame:
    """Return a table of the bytes of a CSV file."""
    return _polars().read_csv(file.tobytes())


def read_parquet(keys: NDArray[np.int32], n: int, seed: int) -> Frame:
    """Return a table of the Parquet file that was made with ``keys``."""
    from gpubench.edge.systems.kernels.out_of_core import (
        parquet,  # which other questions need not wait for
    )

    return _polars().read_parquet(parquet(n, seed))
