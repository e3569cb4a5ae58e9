"""What more workers bring: the time of one implementation over how many threads, processes or
nodes did its work."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpubench.analysis.comparison import time_ratio
from gpubench.names import device_kind
from gpubench.results import Ratio, Row


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One implementation on so many workers."""

    workers: int
    row: Row
    """Its fastest launch."""
    speedup: Ratio | None
    """Against the fewest workers; ``None`` for these themselves."""
    efficiency: float | None
    """Speedup over the ratio of the workers: 1 where twice the workers take half the time."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """One implementation with one problem over at least two numbers of workers."""

    implementation: str
    kind: str
    """Its devices without the number of workers: ``processes``, ``cpu``."""
    case: str
    """Identity of the problem."""
    size: float
    points: tuple[ScalingPoint, ...]
    """The fewest workers first."""


def workers_of(row: Row) -> int | None:
    """Threads that the suite gives an implementation, or workers of the pool or cluster that it ran
    on, by its record; ``None`` where neither is known."""
    counted = row.threads or row.conditions.get("workers")
    return counted if isinstance(counted, int) else None


def scalings(rows: Iterable[Row]) -> tuple[Scaling, ...]:
    """Return how a kernel's ``kernel`` times scale: by implementation, largest problem first."""
    groups: dict[tuple[str, str, str], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        workers = workers_of(row)
        if row.name.time != "kernel" or row.seconds is None or workers is None:
            continue
        kind = device_kind(row.device)
        fastest = groups[row.name.implementation, kind, row.problem]
        if workers not in fastest or row.seconds < (fastest[workers].seconds or math.inf):
            fastest[workers] = row
    points = [
        Scaling(implementation, kind, problem, next(iter(by.values())).size, _points(by))
        for (implementation, kind, problem), by in groups.items()
        if len(by) > 1
    ]
    return tuple(sorted(points, key=lambda one: (one.implementation, one.kind, -one.size)))


def _points(by: dict[int, Row]) -> tuple[ScalingPoint, ...]:
    (fewest, first), *others = sorted(by.items())
    points = [ScalingPoint(fewest, first, None, None)]
    for workers, row in others:
        ratio = time_ratio(first, row)
        efficiency = None if ratio is None else ratio.value * fewest / workers
        points.append(ScalingPoint(workers, row, ratio, efficiency))
    return tuple(points)
