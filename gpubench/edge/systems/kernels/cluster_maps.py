"""The map of independent tasks (``gpubench.edge.systems.kernels.maps``) by Dask and by Ray.

``steps`` is an int64 array of shape [tasks], the number of steps of each task's chain, and what
comes back is float64 of the same shape. ``batch`` tasks are handed over together.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpubench.edge.systems.kernels.maps import Array, python_tasks


def map_dask(steps: Any, batch: int) -> Any:
    """Return a Dask array of ``steps``, of which a chunk becomes one task. One that has chunks of
    ``batch`` elements already (``options: {chunks: batch}``) is not taken apart first."""
    return steps.rechunk(batch).map_blocks(python_tasks, dtype=np.float64, meta=np.empty(0))


def map_ray(steps: Any, batch: int) -> Array:
    """Send each task the reference ``steps``, and which part of it is its own."""
    import ray

    part, size = _remote_part(), ray.get(steps).size
    numbers = [part.remote(steps, first, batch) for first in range(0, size, batch)]
    return np.concatenate(ray.get(numbers))


@cache
def _remote_part() -> Any:
    """Made once: Ray sends the function of each remote one to its workers."""
    import ray

    # A task whose worker died would else be tried again, in the time of a run.
    return ray.remote(max_retries=0)(_part)


def _part(steps: Array, first: int, batch: int) -> Array:
    return python_tasks(steps[first : first + batch])
