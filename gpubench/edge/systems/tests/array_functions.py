"""Functions over arrays of other libraries, right ones and wrong ones, which tests name in suites
and bind."""

from __future__ import annotations

from typing import Any


def add_numpy(a: Any, b: Any) -> None:
    b += a


def add(a: Any, b: Any) -> Any:
    return b + a


def subtract(a: Any, b: Any) -> Any:
    return b - a


def add_and_subtract_numpy(a: Any, b: Any, c: Any) -> None:
    b += a
    c[:] = b - 2 * a


def swapped(a: Any, b: Any) -> Any:
    """Both results, the second first."""
    return b - a, b + a


def straight(a: Any, b: Any) -> Any:
    return b + a, b - a


def writes_its_input(a: Any, b: Any) -> Any:
    a += 1
    return b + a - 1


def narrow(xp: Any, a: Any, b: Any) -> Any:
    """In single precision, whatever it is given."""
    return xp.astype(b + a, xp.float32)


def twice(xp: Any, a: Any) -> Any:
    return xp.sum(a * 2)


def asks_a_tensor(xp: Any, a: Any) -> Any:
    """No compiler can take it as a whole: what is done depends on a number in the array."""
    print(float(a[0]))
    return a * 2
