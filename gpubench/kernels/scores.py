"""What results of estimators are worth, for ``check: {score: gpubench.kernels.scores:...}``.

Each takes ``outputs`` and ``inputs`` by name and returns one number. Names are the same in all of
them: ``points`` (shape ``[n, d]``) are what was learned from, ``new_points`` (``[m, d]``) what the
result is tried on, and ``truth`` and ``new_truth`` (``[n]``, ``[m]``) what the data were made with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Named = Mapping[str, Any]


def accuracy(outputs: Named, inputs: Named) -> float:
    """Share of ``predictions`` (shape ``[m]``) that are ``new_truth``; higher is better."""
    return float(np.mean(outputs["predictions"] == inputs["new_truth"]))


def log_loss(outputs: Named, inputs: Named) -> float:
    """Mean of ``-log(p)`` of the class that is true, where ``probabilities`` (shape ``[m]``) are of
    class 1 of two; lower is better (Good, "Rational decisions", 1952).

    Probabilities are kept one rounding of float32 away from 0 and 1, so that a single bold mistake
    does not make it infinite.
    """
    least = float(np.finfo(np.float32).eps)
    right = np.clip(outputs["probabilities"].astype(np.float64), least, 1 - least)
    return float(-np.log(np.where(inputs["new_truth"] == 1, right, 1 - right)).mean())


def r2(outputs: Named, inputs: Named) -> float:
    """Coefficient of determination of ``predictions`` (shape ``[m]``) of the numbers ``new_truth``:
    1 less the share of their variance that is left; higher is better."""
    truth = inputs["new_truth"].astype(np.float64)
    left = np.square(truth - outputs["predictions"]).sum()
    return float(1 - left / np.square(truth - truth.mean()).sum())


def inertia(outputs: Named, inputs: Named) -> float:
    """Sum of squared distances of ``points`` from the one of ``centres`` (shape ``[k, d]``) that
    ``labels`` (``[n]``) give them; lower is better (Lloyd, "Least squares quantization in PCM",
    1982). It needs labels and centres that belong together."""
    apart = inputs["points"] - outputs["centres"][outputs["labels"]]
    return float(np.einsum("ij,ij->", apart, apart, dtype=np.float64))


def left_over(outputs: Named, inputs: Named) -> float:
    """Variance of ``points`` that ``components`` (shape ``[c, d]``, orthonormal rows) leave out,
    summed over dimensions; lower is better (Eckart and Young, 1936). Rows that are not orthonormal
    leave out more."""
    points = inputs["points"].astype(np.float64)
    points = points - points.mean(axis=0)
    components = outputs["components"].astype(np.float64)
    left = points - points @ components.T @ components
    return float(np.einsum("ij,ij->", left, left) / len(points))


def agreement(outputs: Named, inputs: Named) -> float:
    """Return the adjusted Rand index of ``labels`` (shape ``[n]``) and ``truth``: 1 where both make
    the same groups, whatever they are called, and about 0 where groups are drawn; higher is better
    (Hubert and Arabie, "Comparing partitions", 1985)."""
    _, mine = np.unique(outputs["labels"], return_inverse=True)
    _, theirs = np.unique(inputs["truth"], return_inverse=True)
    width = int(theirs.max()) + 1
    table = np.bincount(mine * width + theirs).astype(np.float64)
    both = _pairs(table)
    first = _pairs(np.bincount(mine).astype(np.float64))
    second = _pairs(np.bincount(theirs).astype(np.float64))
    chance = first * second / _pairs(np.array([float(mine.size)]))
    most = (first + second) / 2
    return float((both - chance) / (most - chance)) if most > chance else 1.0


def _pairs(counts: Array) -> float:
    """Return how many pairs there are inside groups of these sizes."""
    return float((counts * (counts - 1)).sum() / 2)
