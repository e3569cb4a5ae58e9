"""Some questions of ``frames`` for Dask's data frames, whose words are nearly those of pandas."""

from __future__ import annotations

from typing import Any

Frame = Any
"""A lazy frame of Dask."""


def group_1(x: Frame) -> Frame:
    """Return the sum of v1 by id1."""
    return x.groupby("id1", sort=False, observed=True)[["v1"]].sum().reset_index()


def group_3(x: Frame) -> Frame:
    """Return the sum of v1 and the mean of v3 by id3."""
    questions = {"v1": "sum", "v3": "mean"}
    return x.groupby("id3", sort=False, observed=True).agg(questions).reset_index()


def choose(x: Frame) -> Frame:
    """Rows with a v1 above 3 and a v3 below 50, in their order: a fifth of all."""
    return x[(x["v1"] > 3) & (x["v3"] < 50)]
