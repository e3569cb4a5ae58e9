"""Dask's forms of array kernels, and a Monte Carlo sum that is drawn in pieces, by Ray too.

Functions of Dask take Dask arrays and return lazy ones of the shape and dtype that the NumPy form
writes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

POINTS = 2**14
"""Random points of one piece: their coordinates (256 KiB) stay in a core's L2 cache."""


def vector_add_dask(a: Any, b: Any, n: int) -> Any:
    """``b + a``, both of shape [n]."""
    return b + a


def norm_dask(x: Any) -> Any:
    """``sqrt(sum(x**2))`` as an array of shape [1]: a sum for each chunk, then their sum."""
    import dask.array

    return dask.array.sqrt((x * x).sum(keepdims=True))


def matmul_dask(A: Any, B: Any) -> Any:
    """Return ``A @ B`` for shapes [m, k] and [k, n]: a product for each pair of chunks that
    meet."""
    return A @ B


def pi_numpy(pieces: Array, seed: int, inside: Array) -> None:
    """``inside[0]`` becomes how many random points of a square lie in the quarter of a circle:
    ``POINTS`` of them for each number in ``pieces``, drawn from that number and the seed."""
    inside[0] = points_inside(pieces, seed).sum()


def pi_dask(pieces: Any, seed: int) -> Any:
    """Return the same, as an int64 array of shape [1]: a task for each chunk of ``pieces``."""
    counts = pieces.map_blocks(points_inside, seed, dtype=np.int64, meta=np.empty(0, np.int64))
    return counts.sum(keepdims=True)


def points_inside(pieces: Array, seed: int) -> Array:
    """Return how many points of each piece lie inside, int64 of the same shape."""
    return np.array([_inside(int(piece), seed) for piece in pieces], np.int64)


def _inside(piece: int, seed: int) -> int:
    # A generator of its own, so that a piece is the same whoever draws it.
    x, y = np.random.default_rng([seed, piece]).random((2, POINTS))
    return int(np.count_nonzero(x * x + y * y < 1.0))


def pi_ray(pieces: Any, seed: int) -> Array:
    """Return the same by Ray, from a reference to ``pieces``: a task for each processor."""
    import ray

    part, size = _remote_part(), ray.get(pieces).size
    share = -(-size // int(ray.cluster_resources()["CPU"]))
    sums = [part.remote(pieces, seed, first, share) for first in range(0, size, share)]
    return np.array([sum(ray.get(sums))], np.int64)


@cache
def _remote_part() -> Any:
    """Made once: Ray sends the function of each remote one to its workers."""
    import ray

    # A task whose worker died would else be tried again, in the time of a run.
    return ray.remote(max_retries=0)(_sum_of_part)


def _sum_of_part(pieces: Array, seed: int, first: int, share: int) -> int:
    return int(points_inside(pieces[first : first + share], seed).sum())
