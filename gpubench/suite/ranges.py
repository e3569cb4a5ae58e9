"""Ranges of whole numbers: pure arithmetic, bounded before any value is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MAX_VALUES = 10_000
"""Most values of one axis."""
FORMS = ("values", "pow2", "geometric", "linear")


def expand(form: str, numbers: Sequence[Any]) -> tuple[Any, ...]:
    """Values of an axis written as ``form``, both ends included where the steps reach them."""
    if form == "values":
        return tuple(numbers)
    if form == "geometric":
        return _geometric(*numbers)
    first, last, *step = numbers
    steps = range(first, last + 1, *step)
    return tuple(2**exponent for exponent in steps) if form == "pow2" else tuple(steps)


def count(form: str, numbers: Sequence[Any]) -> int:
    """How many values ``expand`` makes, without making them."""
    if form in ("values", "geometric"):
        return len(expand(form, numbers))
    first, last, *step = numbers
    return int((last - first) // (step[0] if step else 1) + 1)


def fault(form: str, numbers: Sequence[Any]) -> str | None:
    """What is wrong with the numbers of a range, or ``None``."""
    if form == "values":
        return _too_many(len(numbers))
    first, last, *step = numbers
    if last < first:
        return f"runs from {first} to {last}; the last is not below the first"
    least = 2 if form == "geometric" else 1
    if step and step[0] < least:
        kind = "factor" if form == "geometric" else "step"
        return f"found the {kind} {step[0]}; allowed: {least} or more"
    if form == "geometric":
        return None
    return _too_many(count(form, numbers))


def _too_many(count: int) -> str | None:
    return f"found {count} values; allowed: at most {MAX_VALUES}" if count > MAX_VALUES else None


def _geometric(first: int, last: int, factor: int) -> tuple[int, ...]:
    values = []
    while first <= last:
        values.append(first)
        first *= factor
    return tuple(values)
