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

SEEN_GAP = 1.5
"""Units that a gap is wide at least: a narrower one does not show beside a line of 1.25."""

MARK_WIDTH = 9.0
"""Units that the ring around a marked point takes, its line included."""

Values = NDArray[np.float64]

# Coordinates are rounded to a tenth of a unit, less than anyone sees. A report has a million of
# them, and a text is looked up in a tenth of the time that it is made in.
_TENTHS = [str(tenths / 10) for tenths in range(round(10 * WIDTH) + 1)]


@dataclass(frozen=True, slots=True)
class Sparkline:
    """One series, oldest first, on a log scale of its own, from its first time to its last."""

    lines: tuple[str, ...]
    """Points of each stretch without a gap; a point that stands alone is one of its own."""
    marks: tuple[tuple[float, float], ...]
    """Centres of the marked points, newest first; of such as would lie on each other the newest."""
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
    if not present.size:
        return Sparkline((), (), None, label)
    low, high = logs[present].min(), logs[present].max()
    spread = max(high - low, math.log(1.1))  # noise of a few percent stays small
    # Commits before the first time and after the last take no room: those of one case in a hundred
    # of a long history would leave a dot.
    since = present - present[0]
    step = (WIDTH - 2 * MARGIN) / max(since[-1], 1)
    down = 0.5 - (logs[present] - (low + high) / 2) / spread
    xs = np.rint(10 * (MARGIN + since * step)).astype(int)
    ys = np.rint(10 * (MARGIN + down * (HEIGHT - 2 * MARGIN))).astype(int)
    group = -(-2 * len(present) // MOST_POINTS)  # of each group the least and the greatest
    gaps = np.flatnonzero(np.diff(since) * step > max(1.5 * step, SEEN_GAP)) + 1
    lines, across, below = [], xs.tolist(), ys.tolist()
    for start, stop in pairwise([0, *gaps.tolist(), len(present)]):
        shown = range(start, stop) if group <= 2 else _thinned(below, start, stop, group)
        lines.append(" ".join([f"{_TENTHS[across[i]]},{_TENTHS[below[i]]}" for i in shown]))

    def centre(point: int) -> tuple[float, float]:
        return float(xs[point] / 10), float(ys[point] / 10)

    marks: list[tuple[float, float]] = []
    for index in sorted((i for i in marked if not math.isnan(logs[i])), reverse=True):
        mark = centre(int(present.searchsorted(index)))
        if not marks or marks[-1][0] - mark[0] >= MARK_WIDTH:
            marks.append(mark)
    return Sparkline(tuple(lines), tuple(marks), centre(-1), label)


def _thinned(ys: Sequence[int], start: int, stop: int, size: int) -> list[int]:
    """Indices of both ends, and of the first least and greatest of each group of points, which is
    more than the picture can show."""
    shown = {start, stop - 1}
    for first in range(start, stop, size):
        group = ys[first : min(first + size, stop)]
        shown |= {first + group.index(min(group)), first + group.index(max(group))}
    return sorted(shown)
