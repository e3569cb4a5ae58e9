"""A map of independent tasks: on one processor, on a pool of the standard library, with joblib.

A task is a chain of arithmetic steps, each of which needs the one before, and its number is the sum
of the chain: ``steps`` says, for each task, how many there are (int64 of shape [tasks]), and what
comes back is float64 of the same shape. The chain is written in Python, where it holds the GIL, and
compiled by Numba, where it does not. ``batch`` tasks are handed over together: the last ones may be
fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.kernels.lazy_numba import njit

Array = np.ndarray[Any, Any]
Tasks = Callable[[Array], Array]
"""Does the tasks of one batch: their steps to their numbers."""


def task(steps: int) -> float:
    """Sum of the chain ``x = 0.5 * x + 0.5`` from 0, after so many steps; it is exact."""
    x = total = 0.0
    for _ in range(steps):
        x = 0.5 * x + 0.5
        total += x
    return total


def python_tasks(steps: Array) -> Array:
    """Return the tasks of a batch, in Python: one thread at a time."""
    return np.array([task(count) for count in steps.tolist()])


@njit(nogil=True, cache=True)
def _chains(steps: Array, out: Array) -> None:
    for i in range(steps.size):
        x = total = 0.0
        for _ in range(steps[i]):
            x = 0.5 * x + 0.5
            total += x
        out[i] = total


def compiled_tasks(steps: Array) -> Array:
    """Return the tasks of a batch, compiled: threads do them side by side."""
    out = np.empty(steps.size)
    _chains(steps, out)
    return out


def batches(steps: Array, batch: int) -> list[Array]:
    """Return views of the tasks, ``batch`` of them at a time."""
    return [steps[first : first + batch] for first in range(0, steps.size, batch)]


def python_serial(steps: Array, batch: int) -> Array:
    return python_tasks(steps)


def compiled_serial(steps: Array, batch: int) -> Array:
    return compiled_tasks(steps)


def python_pool(pool: Any, steps: Array, batch: int) -> Array:
    """On any pool that has the ``map`` of ``multiprocessing.Pool``."""
    return _on_pool(pool, python_tasks, steps, batch)


def compiled_pool(pool: Any, steps: Array, batch: int) -> Array:
    return _on_pool(pool, compiled_tasks, steps, batch)


def _on_pool(pool: Any, tasks: Tasks, steps: Array, batch: int) -> Array:
    # One batch at a time: a pool would put several into one message by itself.
    return np.concatenate(pool.map(tasks, batches(steps, batch), chunksize=1))


def python_joblib(parallel: Any, steps: Array, batch: int) -> Array:
    return _on_joblib(parallel, python_tasks, steps, batch)


def compiled_joblib(parallel: Any, steps: Array, batch: int) -> Array:
    return _on_joblib(parallel, compiled_tasks, steps, batch)


def _on_joblib(parallel: Any, tasks: Tasks, steps: Array, batch: int) -> Array:
    delayed = import_module("joblib").delayed
    return np.concatenate(parallel(delayed(tasks)(each) for each in batches(steps, batch)))


def python_written(pool: Any, steps: Array, batch: int, out: Array) -> None:
    """Do the same, and no number is sent: workers write into ``out``, which has to be in memory
    that they share."""
    pool.starmap(_write, zip(batches(steps, batch), batches(out, batch), strict=True), chunksize=1)


def _write(steps: Array, out: Array) -> None:
    out[:] = python_tasks(steps)
