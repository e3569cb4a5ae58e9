"""Entry points of installed packages: backends and observers of others are found there."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any

OBSERVERS = "gpubench.observers"
"""The group of observers of other packages."""


@cache
def _installed() -> Any:  # of another type in Python 3.11
    # Each time, all distributions of the environment are read: 3 to 13 ms.
    return entry_points()


@cache
def declared(group: str) -> EntryPoints:
    """Return the entry points of a group; the environment is read once in a process."""
    found: EntryPoints = _installed().select(group=group)
    return found
