"""Which facts of a run can explain a time, and of which cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from gpubench.names import Value
from gpubench.record import APPENDED, UNCOMMITTED

PASSING = {
    *("run", APPENDED, "host", "machine", "version", "no_gpu", "ram", "memory_bytes"),
    "interleaved_processes",  # of records of earlier releases
    UNCOMMITTED,
}
"""Facts that tell one run from another and explain no speed. Uncommitted code is marked."""

BLAS_ENDINGS = ("_blas", "_blas_threads")
"""Endings of facts about a library that only some processes load."""

READINGS = ("_per_second", "_seconds", "_mhz", "_c", "_w")
"""Endings of facts that are readings, which differ from run to run."""


def explains(name: str) -> bool:
    """Return whether a fact of that name can explain a change of speed."""
    return name not in PASSING and not name.endswith(READINGS)


def concerns_case(
    name: str,
    backend: str,
    conditions: Mapping[str, Value],
    listed: Iterable[tuple[str, Collection[str]]],
) -> bool:
    """Return whether a case depends on a fact; ``listed`` are backends and the facts that they
    list.

    A driver says nothing about a case on the CPU, and SciPy's BLAS nothing about one whose process
    had not loaded it. What no backend lists concerns all.
    """
    if name.endswith(BLAS_ENDINGS) and name not in conditions:
        return False
    backends = {each for each, names in listed if name in names}
    return not backends or backend in backends
