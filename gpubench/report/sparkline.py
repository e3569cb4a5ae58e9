"""Sparklines as inline SVG: the coordinates here, the markup in the templates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, MARGIN = 120.0, 28.0, 4.0
"""In SVG user units."""

MOST_POINTS = 120
"""About as many as its width has units; of a longer series the extremes are drawn."""

Values = NDArray[np.float64]
Indices = NDArray[np.intp]


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
    down = 0.5 - (logs - (low + high) / 2) / spread
    xs = np.round(MARGIN + np.arange(len(logs)) * step, 1)
    ys = np.round(MARGIN + down * (HEIGHT - 2 * MARGIN), 1)
    return Sparkline(
        lines=tuple(_lines(xs, ys, present)),
        marks=tuple((float(xs[i]), float(ys[i])) for i in marked if not math.isnan(logs[i])),
        last=(float(xs[present[-1]]), float(ys[present[-1]])) if present.size else None,
        label=label,
    )


def _lines(xs: Values, ys: Values, present: Indices) -> Iterator[str]:
    """``present`` are the points that are no gap, in order."""
    starts = np.flatnonzero(np.diff(present, prepend=-2) > 1)
    size = -(-2 * len(present) // MOST_POINTS)
    drawn = _thinned(ys[present], starts, size) if size > 2 else np.arange(len(present))
    shown = present[drawn]
    points = [f"{x},{y}" for x, y in zip(xs[shown].tolist(), ys[shown].tolist(), strict=True)]
    stops = [*np.searchsorted(drawn, starts[1:]).tolist(), len(points)]
    for start, stop in pairwise([0, *stops]):
        if stop - start > 1:
            yield " ".join(points[start:stop])


def _thinned(ys: Values, starts: Indices, size: int) -> Indices:
    """Of both ends of each stretch, and of the least and greatest of each group of its points,
    which is more than the picture can show."""
    lengths = np.diff(starts, append=len(ys))
    opens = (np.arange(len(ys)) - np.repeat(starts, lengths)) % size == 0
    groups, group_of = np.flatnonzero(opens), np.cumsum(opens) - 1

    def first(extremes: Values) -> Indices:
        equal = np.flatnonzero(ys == extremes[group_of])
        return equal[np.diff(group_of[equal], prepend=-1) > 0]

    shown = np.zeros(len(ys), bool)
    shown[starts] = shown[starts + lengths - 1] = True
    shown[first(np.minimum.reduceat(ys, groups))] = True
    shown[first(np.maximum.reduceat(ys, groups))] = True
    return np.flatnonzero(shown)
