"""``2 a`` with a little work of each library that has no workers of ours."""

from __future__ import annotations

from typing import Any


def torch_twice(a: Any) -> Any:
    return a * 2


jax_twice = torch_twice


def pandas_twice(a: Any) -> Any:
    import pandas

    return pandas.Series(a).mul(2).to_numpy()


def polars_twice(a: Any) -> Any:
    import polars

    return (polars.Series(a) * 2).to_numpy()


def scikit_learn_twice(a: Any) -> Any:
    """By the threads that joblib starts for a forest."""
    from sklearn.ensemble import RandomForestRegressor

    RandomForestRegressor(4).fit(a[:, None], a)
    return a * 2


def xgboost_twice(settings: Any, a: Any) -> Any:
    from xgboost import XGBRegressor

    XGBRegressor(n_estimators=2, **settings).fit(a[:, None], a)
    return a * 2
