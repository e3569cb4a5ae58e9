"""Questions to tables: ten of groups, joins, and sorting, choosing, rolling means and two files.

The groups and joins are those of the benchmark of h2o.ai, now DuckDB Labs'
(duckdblabs/db-benchmark), in the words of pandas, which Modin and cuDF have too: one source for the
three. ``frames_polars`` has them for Polars, ``frames_arrays`` some for NumPy and Numba.
"""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Frame = Any
"""A frame of pandas, Modin or cuDF."""

WINDOW = 100
"""Rows of a rolling mean."""


def _by(x: Frame, *keys: str) -> Frame:
    """Return groups in whatever order they come, without empty ones."""
    return x.groupby(list(keys), as_index=False, sort=False, observed=True)


# --- groups


def group_1(x: Frame) -> Frame:
    """Return the sum of v1 by id1."""
    return _by(x, "id1").agg({"v1": "sum"})


def group_2(x: Frame) -> Frame:
    """Return the sum of v1 by id1 and id2."""
    return _by(x, "id1", "id2").agg({"v1": "sum"})


def group_3(x: Frame) -> Frame:
    """Return the sum of v1 and the mean of v3 by id3."""
    return _by(x, "id3").agg({"v1": "sum", "v3": "mean"})


def group_4(x: Frame) -> Frame:
    """Return the means of v1, v2 and v3 by id4."""
    return _by(x, "id4").agg({"v1": "mean", "v2": "mean", "v3": "mean"})


def group_5(x: Frame) -> Frame:
    """Return the sums of v1, v2 and v3 by id6."""
    return _by(x, "id6").agg({"v1": "sum", "v2": "sum", "v3": "sum"})


def group_6(x: Frame) -> Frame:
    """Return the median and the standard deviation of v3 by id4 and id5."""
    return _by(x, "id4", "id5").agg(median=("v3", "median"), std=("v3", "std"))


def group_7(x: Frame) -> Frame:
    """Return the largest v1 less the smallest v2 by id3."""
    both = _by(x, "id3").agg({"v1": "max", "v2": "min"})
    return both.assign(range=both["v1"] - both["v2"])[["id3", "range"]]


def group_8(x: Frame) -> Frame:
    """Return the two largest v3 by id6."""
    return x[["id6", "v3"]].sort_values("v3", ascending=False).groupby("id6").head(2)


def group_9(x: Frame) -> Frame:
    """Return the square of the correlation of v1 and v2 by id2 and id4, from sums of whole numbers:
    a function of one's own for each group would take minutes, and cuDF has none."""
    products = x.assign(rows=1, v11=x["v1"] * x["v1"], v22=x["v2"] * x["v2"], v12=x["v1"] * x["v2"])
    s = _by(products, "id2", "id4").agg(
        {"rows": "sum", "v1": "sum", "v2": "sum", "v11": "sum", "v22": "sum", "v12": "sum"}
    )
    both = s["rows"] * s["v12"] - s["v1"] * s["v2"]
    each = (s["rows"] * s["v11"] - s["v1"] ** 2) * (s["rows"] * s["v22"] - s["v2"] ** 2)
    return s.assign(r2=both**2 / each)[["id2", "id4", "r2"]]


def group_10(x: Frame) -> Frame:
    """Return the sum of v3 and the number of rows by id1, id2, id3, id4, id5 and id6."""
    keys = ("id1", "id2", "id3", "id4", "id5", "id6")
    return _by(x.assign(rows=1), *keys).agg({"v3": "sum", "rows": "sum"})


def group_missing(x: Frame) -> Frame:
    """Return the sum of v1 and the mean of v3 by id4, of the values that are there."""
    return _by(x, "id4").agg({"v1": "sum", "v3": "mean"})


# --- joins


def join_inner(x: Frame, right: Frame) -> Frame:
    """Rows of ``x`` with those of ``right`` that have the same id."""
    return x.merge(right, on="id")


def join_left(x: Frame, right: Frame) -> Frame:
    """Return every row of ``x``, with what ``right`` has of its id."""
    return x.merge(right, on="id", how="left")


# --- others


def sort(x: Frame) -> Frame:
    """Rows by rising id4, by falling v3 where that is equal, and by rising v1 where both are, so
    that no two orders are right."""
    return x.sort_values(["id4", "v3", "v1"], ascending=[True, False, True])


def choose(x: Frame) -> Frame:
    """Rows with a v1 above 3 and a v3 below 50, in their order: a fifth of all."""
    return x[(x["v1"] > 3) & (x["v3"] < 50)]


def rolling(x: Frame) -> Frame:
    """Return the mean of each row's v3 and those of the 99 rows before."""
    return x.assign(mean=x["v3"].rolling(WINDOW).mean())[["mean"]]


def make_read_csv(library: str) -> Any:
    """``read(file)``: a table of the bytes of a CSV file, by this library's reader."""
    module = import_module(library)

    def read(file: NDArray[np.uint8]) -> Frame:
        return module.read_csv(BytesIO(file.tobytes()))

    return read


def make_read_parquet(library: str) -> Any:
    """``read(keys, n, seed)``: a table of the Parquet file that was made with ``keys``, by this
    library's reader."""
    from gpubench.edge.systems.kernels.out_of_core import (
        parquet,  # which other questions need not wait for
    )

    module = import_module(library)

    def read(keys: NDArray[np.int32], n: int, seed: int) -> Frame:
        return module.read_parquet(parquet(n, seed))

    return read
