"""``a[:n] *= 2`` for systems beside NumPy and Numba, each in the form that its functions have.

A module of its own: processes of a pool import it, and with it nothing of a test.
"""

from __future__ import annotations

from typing import Any


def torch(a: Any, n: int) -> None:
    """In place: tensors can be written, and NumPy's arrays."""
    a[:n] *= 2


def xgboost(settings: Any, a: Any, n: int) -> None:
    """In place; ``settings`` are for estimators."""
    a[:n] *= 2


def pycuda(a: Any, n: int) -> None:
    """In place, through a part of the array that shares its memory."""
    part = a[:n]
    part *= 2


def jax(a: Any, n: int) -> Any:
    return a.at[:n].multiply(2)


def array_api(xp: Any, a: Any, n: int) -> Any:
    return xp.where(xp.arange(a.shape[0]) < n, a * 2, a)


def dask(a: Any, n: int) -> Any:
    import dask.array

    return dask.array.where(dask.array.arange(a.shape[0]) < n, a * 2, a)


def ray(a: Any, n: int) -> Any:
    """``a`` is a reference to an object, and so is what a task returns."""
    import ray

    return ray.remote(of_part).remote(a, n)


def pool(pool: Any, a: Any, n: int) -> None:
    """In place: the tasks write the array itself."""
    list(pool.map(double, [a[: n // 2], a[n // 2 : n]]))


def joblib(parallel: Any, a: Any, n: int) -> Any:
    """Returned: what processes of loky write in place is lost."""
    import joblib
    import numpy as np

    parts = parallel(
        joblib.delayed(of_part)(part, len(part)) for part in (a[: n // 2], a[n // 2 : n])
    )
    return np.concatenate([*parts, a[n:]])


def double(part: Any) -> None:
    part *= 2


def of_part(part: Any, n: int) -> Any:
    """A copy whose first ``n`` elements are doubled."""
    copy = part.copy()
    copy[:n] *= 2
    return copy
