"""The words of ``fill``, each with what makes its array: a new word is one line of ``FILLERS``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpubench.arrow import AnyArray

MAX_DRAWN_INTEGER = 100
"""``uniform`` integers run from 0 to this number, which every dtype can hold."""

Filler = Callable[[tuple[int, ...], np.dtype[Any], np.random.Generator], AnyArray]
"""Makes an array of a shape and dtype, with random numbers where it draws."""


def _count_up(
    shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator
) -> AnyArray:
    return np.arange(math.prod(shape)).astype(dtype).reshape(shape)


def _draw_uniform(
    shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator
) -> AnyArray:
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return random.integers(0, MAX_DRAWN_INTEGER, shape, dtype=dtype, endpoint=True)
    return _draw_numbers(random.random, shape, dtype)


def _draw_normal(
    shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator
) -> AnyArray:
    return _draw_numbers(random.standard_normal, shape, dtype)


def _draw_numbers(
    numbers_of: Callable[..., AnyArray], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> AnyArray:
    """Draw an array of a dtype; both parts of complex numbers, and others as floating-point
    numbers."""
    if dtype.kind == "c":
        numbers = np.empty(shape, dtype)
        numbers.real, numbers.imag = numbers_of((2, *shape))
        return numbers
    # float32 is drawn as such, which takes half the time.
    drawn = np.float32 if dtype == np.float32 else np.float64
    return numbers_of(shape, drawn).astype(dtype, copy=False)


FILLERS: Mapping[str, Filler] = {
    "normal": _draw_normal,
    "uniform": _draw_uniform,
    "zeros": lambda shape, dtype, random: np.zeros(shape, dtype),
    "ones": lambda shape, dtype, random: np.ones(shape, dtype),
    "arange": _count_up,
}
"""Each word of ``fill`` in a suite, with what makes its array."""

FILLS = tuple(FILLERS)
