"""View model of the table that says what the backends that were measured can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.results import Row

COLUMNS = {
    "gpu": "GPU",
    "cluster": "Cluster",
    "out_of_core": "Out of core",
    "in_place": "In place",
    "compiles": "Compiles",
}
"""Words for ``gpubench.backends.protocol.Capability``."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What backends can do, as their records say."""

    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    """``yes`` or ``no`` for each column, by backend; empty where no record tells."""


def capabilities(rows: Iterable[Row]) -> Capabilities:
    """Of the backends that have a time in these rows, by name."""
    known = {row.backend: row.capabilities for row in rows if row.seconds is not None}
    return Capabilities(
        tuple(COLUMNS.values()),
        {
            name: tuple("yes" if column in its else "no" for column in COLUMNS)
            for name, its in sorted(known.items())
            if its is not None
        },
    )
