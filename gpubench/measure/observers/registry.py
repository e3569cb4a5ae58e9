"""The observers of a run: gpubench's own, and those of installed packages, by entry point."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from gpubench.entry_points import OBSERVERS, declared
from gpubench.errors import GpubenchError
from gpubench.measure.observers.bandwidth import BandwidthObserver
from gpubench.measure.observers.cache import CacheObserver
from gpubench.measure.observers.disturbance import DisturbanceObserver
from gpubench.measure.observers.floor import FloorObserver
from gpubench.measure.observers.memory import MemoryObserver
from gpubench.measure.observers.pairs import PairsObserver
from gpubench.measure.observers.protocol import Observer
from gpubench.measure.observers.turns import TurnsObserver

BUILT_IN: tuple[type[Observer], ...] = (
    FloorObserver,
    PairsObserver,
    BandwidthObserver,
    CacheObserver,
    MemoryObserver,
    DisturbanceObserver,
    TurnsObserver,
)
"""In the order in which they are called; what measures beside the time comes first."""


def make_built_in() -> list[Observer]:
    """Return an observer of each kind that gpubench has, for one run."""
    return [kind() for kind in BUILT_IN]


def make_installed() -> list[Observer]:
    """Return an observer of each kind that other packages declare, by their names, for one run.

    Raises ``GpubenchError`` for one that cannot be loaded or made, or is no ``Observer``.
    """
    # A distribution that was renamed may be installed under both names: that is one observer.
    entries = {(entry.name, entry.value): entry for entry in declared(OBSERVERS)}
    return [_make(entries[key]) for key in sorted(entries)]


def _make(entry: EntryPoint) -> Observer:
    distribution = entry.dist.name if entry.dist is not None else "an unnamed distribution"
    origin = f"observer {entry.name!r} of {distribution}"
    try:
        observer = entry.load()()
    except Exception as error:
        raise GpubenchError(
            f"{origin} cannot be loaded from {entry.value}: {type(error).__name__}: {error}; "
            f"fix or uninstall {distribution}"
        ) from error
    if not isinstance(observer, Observer):
        raise GpubenchError(
            f"{origin} is no gpubench.measure.observers.protocol.Observer; "
            "derive it from that class, which has a method for each event"
        )
    observer.origin = origin
    return observer
