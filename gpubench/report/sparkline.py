"""Sparklines as inline SVG: the coordinates here, the markup in the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 120.0, 28.0, 4.0
"""In SVG user units."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """One series, oldest first, on a log scale of its own."""

    lines: tuple[str, ...]
    """``points`` of one polyline for each stretch without a gap."""
    marks: tuple[tuple[float, float], ...]
    """Centres of the marked points."""
    last: tuple[float, float] | None
    """Centre of the newest point."""
    label: str
    """Words for those who do not see it."""
    width: float = WIDTH
    height: float = HEIGHT


def sparkline(values: Sequence[float | None], label: str, marked: Sequence[int] = ()) -> Sparkline:
    """Draw positive values; ``None`` is a gap, ``marked`` are indices of points to mark."""
    logs = [math.log(value) if value else None for value in values]
    present = [value for value in logs if value is not None]
    low, high = (min(present), max(present)) if present else (0.0, 0.0)
    spread = max(high - low, math.log(1.1))  # noise of a few percent stays small
    middle = (low + high) / 2
    step = (WIDTH - 2 * MARGIN) / max(len(logs) - 1, 1)

    def place(index: int, value: float) -> tuple[float, float]:
        down = 0.5 - (value - middle) / spread
        return round(MARGIN + index * step, 1), round(MARGIN + down * (HEIGHT - 2 * MARGIN), 1)

    points = [None if v is None else place(i, v) for i, v in enumerate(logs)]
    drawn = [point for point in points if point]
    return Sparkline(
        lines=tuple(_lines(points)),
        marks=tuple(p for i in marked if (p := points[i])),
        last=drawn[-1] if drawn else None,
        label=label,
    )


def _lines(points: Sequence[tuple[float, float] | None]) -> list[str]:
    stretches: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(point)
    return [" ".join(f"{x:g},{y:g}" for x, y in s) for s in stretches if len(s) > 1]
