"""Globals that Numba froze when it compiled: it takes their values as constants (Numba's manual,
*Deviations from Python semantics*), so that a later change is without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

MAX_GLOBAL_BYTES = 2**20
"""Largest global array that is remembered: what is remembered is a copy."""

_at_first: WeakKeyDictionary[Any, Mapping[str, object]] = WeakKeyDictionary()
"""Globals of compiled functions as they were when these were bound first, before they ran."""


def remember_globals(function: Any) -> None:
    """Remember the globals of a function and of the functions that it names, once."""
    for dispatcher in _compiled_in(function):
        if dispatcher not in _at_first:
            _at_first[dispatcher] = _constants_of(dispatcher)


def changed_global(function: Any) -> str | None:
    """Return what to say of a global that is not what it was as the function was bound first;
    ``None`` where all are."""
    for dispatcher in _compiled_in(function):
        now = _constants_of(dispatcher)
        for name, before in _at_first.get(dispatcher, {}).items():
            if name in now and now[name] != before:
                return (
                    f"the global {name!r} has changed since {dispatcher.py_func.__name__} was "
                    "compiled, and compiled code keeps the value that it had then: give it as an "
                    "argument"
                )
    return None


def _compiled_in(function: Any) -> Iterator[Any]:
    python = function if isinstance(function, FunctionType) else getattr(function, "py_func", None)
    if isinstance(python, FunctionType):
        named = map(python.__globals__.get, python.__code__.co_names)
        each = (function, *named)
        # Of types alone, as Numba has objects that open a device when they are asked.
        yield from (one for one in each if type(one).__name__.endswith("Dispatcher"))


def _constants_of(dispatcher: Any) -> dict[str, object]:
    """Return what the numbers, texts, tuples and arrays among the globals of a function hold: their
    text, or their bytes. Compared by these, a NaN equals itself, and a tuple may be nested."""
    python = dispatcher.py_func
    values = {name: python.__globals__.get(name) for name in python.__code__.co_names}
    return {
        name: (value.dtype, value.shape, value.tobytes())
        if isinstance(value, np.ndarray)
        else repr(value)
        for name, value in values.items()
        if isinstance(value, bool | int | float | complex | str | tuple)
        or (isinstance(value, np.ndarray) and value.nbytes <= MAX_GLOBAL_BYTES)
    }
