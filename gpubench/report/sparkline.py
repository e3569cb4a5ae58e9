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

_TENTHS = [f"{tenth / 10}" for tenth in range(round(10 * max(WIDTH, HEIGHT)) + 1)]
"""Texts of all coordinates: writing a number takes longer than looking it up."""

Values = NDArray[np.float64]
Places = NDArray[np.intp]


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
    known = np.flatnonzero(~np.isnan(logs))
    low, high = (logs[known].min(), logs[known].max()) if known.size else (0.0, 0.0)
    spread = max(high - low, math.log(1.1))  # noise of a few percent stays small
    step = (WIDTH - 2 * MARGIN) / max(len(logs) - 1, 1)
    down = 0.5 - (logs - (low + high) / 2) / spread
    xs = np.round(MARGIN + np.arange(len(logs)) * step, 1)
    ys = np.round(MARGIN + down * (HEIGHT - 2 * MARGIN), 1)

    def place(index: int) -> tuple[float, float]:
        return float(xs[index]), float(ys[index])

    return Sparkline(
        lines=tuple(_lines(xs, ys, known)),
        marks=tuple(place(index) for index in marked if not math.isnan(logs[index])),
        last=place(int(known[-1])) if known.size else None,
        label=label,
    )


def _lines(xs: Values, ys: Values, known: Places) -> Iterator[str]:
    """``known`` are the places of what is no gap, in order."""
    starts = np.flatnonzero(np.diff(known, prepend=-2) > 1)
    size = -(-2 * len(known) // MOST_POINTS)
    drawn = _thinned(ys[known], starts, size) if size > 2 else np.arange(len(known))
    places = known[drawn]
    tenths = np.rint(10 * np.stack([xs[places], ys[places]])).astype(np.intp).tolist()
    points = [f"{_TENTHS[x]},{_TENTHS[y]}" for x, y in zip(*tenths, strict=True)]
    stops = [*np.searchsorted(drawn, starts[1:]).tolist(), len(points)]
    for start, stop in pairwise([0, *stops]):
        if stop - start > 1:
            yield " ".join(points[start:stop])


def _thinned(ys: Values, starts: Places, size: int) -> Places:
    """Indices of both ends of each stretch, and of the least and greatest of each group of its
    points: more than the picture can show."""
    lengths = np.diff(starts, append=len(ys))
    opens = (np.arange(len(ys)) - np.repeat(starts, lengths)) % size == 0
    groups, group_of = np.flatnonzero(opens), np.cumsum(opens) - 1

    def first(extremes: Values) -> Places:
        found = np.flatnonzero(ys == extremes[group_of])
        return found[np.diff(group_of[found], prepend=-1) > 0]

    least, greatest = np.minimum.reduceat(ys, groups), np.maximum.reduceat(ys, groups)
    ends = starts + lengths - 1
    return np.unique(np.concatenate([starts, ends, first(least), first(greatest)]))
