"""A global that Numba froze is named where it has changed since."""

from __future__ import annotations

import math
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba import njit

from gpubench.backends.numba_globals import changed_global, remember_globals


def made(constant: Any) -> tuple[Any, dict[str, Any]]:
    """Return a compiled function that names a global, and the globals of its own."""
    scope: dict[str, Any] = {"CONSTANT": constant, "np": np}
    exec("def scaled(x):\n    return CONSTANT * np.sum(x)\n", scope)
    function = njit(scope["scaled"])
    scope["calls"] = FunctionType(
        compile("scaled(x)", "calls", "eval"), {**scope, "scaled": function}
    )
    return function, function.py_func.__globals__


@pytest.mark.parametrize(
    ("before", "after"),
    [(1.0, 2.0), (1, 2), ((1, 2), (1, 3)), (np.zeros(3), np.ones(3)), ((1, (2, 3)), (1, (2, 4)))],
)
def test_a_global_that_changed_is_named(before: Any, after: Any) -> None:
    function, scope = made(before)
    remember_globals(function)
    assert changed_global(function) is None
    scope["CONSTANT"] = after
    remember_globals(function)  # as the next case does
    assert changed_global(function) == (
        "the global 'CONSTANT' has changed since scaled was compiled, and compiled code keeps the "
        "value that it had then: give it as an argument"
    )


@pytest.mark.parametrize("constant", [math.nan, (1, (2, 3)), np.array([math.nan]), ("a", 1)])
def test_a_global_that_is_as_it_was_is_not_named(constant: Any) -> None:
    function, _ = made(constant)
    remember_globals(function)
    assert changed_global(function) is None


def test_an_array_that_was_written_in_place_has_changed() -> None:
    function, scope = made(np.zeros(3))
    remember_globals(function)
    scope["CONSTANT"][1] = 5
    assert "'CONSTANT' has changed" in str(changed_global(function))


def test_functions_that_a_function_calls_are_looked_at() -> None:
    _, scope = made(1.0)
    calling = scope["calls"]
    remember_globals(calling)
    scope["CONSTANT"] = 2.0
    assert "since scaled was compiled" in str(changed_global(calling))


def test_of_plain_functions_and_others_nothing_is_said() -> None:
    for function in (print, np.add, len, lambda: 1):
        remember_globals(function)
        assert changed_global(function) is None
