"""Sizes that no suite declares, and at which a kernel that is right elsewhere may be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from math import isqrt

from gpubench.names import Value
from gpubench.suite.arrays import Range, Zip, axis_values
from gpubench.suite.model import Kernel


def values_beside(kernel: Kernel) -> Iterator[dict[str, int]]:
    """Yield values of all sizes of a kernel, which move together: one above the smallest of each,
    a prime of each, and 1. None where a size is no whole number."""
    columns: dict[str, Iterable[Value] | Range] = {}
    for name, axis in kernel.sizes.items():
        columns |= axis.zip if isinstance(axis, Zip) else {name: axis}
    values = {name: axis_values(column) for name, column in columns.items()}
    sizes = {name: [one for one in its if isinstance(one, int)] for name, its in values.items()}
    if not sizes or any(len(sizes[name]) < len(values[name]) for name in sizes):
        return
    above = {name: min(its) + 1 for name, its in sizes.items()}
    # Different primes: a kernel that takes rows for columns is right where both are as many.
    primes = dict[str, int]()
    for name, value in above.items():
        primes[name] = next(p for p in _primes_above(value) if p not in primes.values())
    yield from (above, primes, dict.fromkeys(above, 1))


def _primes_above(number: int) -> Iterator[int]:
    """Yield the primes above a number, by trial division: sizes are small enough for it."""
    return (n for n in count(number + 1) if all(n % d for d in range(2, isqrt(n) + 1)))
