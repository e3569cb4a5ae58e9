"""Sparklines as inline SVG: the coordinates here, the markup in the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, MARGIN = 120.0, 28.0, 4.0
"""In SVG user units."""

MOST_POINTS = 120
"""About as many as its width has units; of a longer series the extremes are drawn."""

Values = NDArray[np.float64]

# Coordinates are rounded to a tenth of a unit, less than anyone sees. A report has a million of
# them, and a text is looked up in a tenth of the time that it is made in.
_TENTHS = [str(tenths / 10) for tenths in range(round(10 * WIDTH) + 1)]


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


def sparkline(values: Values, label: str, marked: Sequence[int] = ()) -> Sparkline:
    """Draw positive values; NaN is a gap, ``marked`` are indices of points to mark."""
    logs = np.log(values)
    present = np.flatnonzero(~np.isnan(logs))
    low, high = (logs[present].min(), logs[present].max()) if present.size else (0.0, 0.0)
    spread = max(high - low, math.log(1.1))  # noise of a few percent stays small
    step = (WIDTH - 2 * MARGIN) / max(len(logs) - 1, 1)
    down = 0.5 - (logs[present] - (low + high) / 2) / spread
    xs = np.rint(10 * (MARGIN + present * step)).astype(int)
    ys = np.rint(10 * (MARGIN + down * (HEIGHT - 2 * MARGIN))).astype(int)
    group = -(-2 * len(present) // MOST_POINTS)  # of each group the least and the greatest
    gaps = np.flatnonzero(present[1:] - present[:-1] > 1) + 1
    lines, across, below = [], xs.tolist(), ys.tolist()
    for start, stop in pairwise([0, *gaps.tolist(), len(present)]):
        if stop - start > 1:
            shown = range(start, stop) if group <= 2 else _thinned(below, start, stop, group)
            lines.append(" ".join([f"{_TENTHS[across[i]]},{_TENTHS[below[i]]}" for i in shown]))

    def centre(point: int) -> tuple[float, float]:
        return float(xs[point] / 10), float(ys[point] / 10)

    return Sparkline(
        lines=tuple(lines),
        marks=tuple(
            centre(int(present.searchsorted(i))) for i in marked if not math.isnan(logs[i])
        ),
        last=centre(-1) if present.size else None,
        label=label,
    )


def _thinned(ys: Sequence[int], start: int, stop: int, size: int) -> list[int]:
    """Indices of both ends, and of the first least and greatest of each group of points, which is
    more than the picture can show."""
    shown = {start, stop - 1}
    for first in range(start, stop, size):
        group = ys[first : min(first + size, stop)]
        shown |= {first + group.index(min(group)), first + group.index(max(group))}
    return sorted(shown)
