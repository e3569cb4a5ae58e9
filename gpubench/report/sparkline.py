"""Sparklines as inline SVG: the coordinates here, the markup in the templates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, MARGIN = 120.0, 28.0, 4.0
"""In SVG user units."""

MOST_POINTS = 120
"""About as many as its width has units; of a longer series the extremes are drawn."""

Values = NDArray[np.float64]


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


def _lines(xs: Values, ys: Values, known: NDArray[np.intp]) -> Iterator[str]:
    stretches = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    size = -(-2 * len(known) // MOST_POINTS)
    for stretch in stretches:
        if stretch.size > 1:
            drawn = _thinned(ys, stretch, size) if size > 2 else stretch
            pairs = zip(xs[drawn].tolist(), ys[drawn].tolist(), strict=True)
            yield " ".join(f"{x:g},{y:g}" for x, y in pairs)


def _thinned(ys: Values, stretch: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Both ends and the least and greatest of each group: more than the picture can show."""
    padded = np.resize(stretch, -(-len(stretch) // size) * size)
    padded[len(stretch) :] = stretch[-1]
    groups = ys[padded].reshape(-1, size)
    starts = np.arange(0, len(padded), size)
    least, greatest = starts + groups.argmin(axis=1), starts + groups.argmax(axis=1)
    ends = [0, len(stretch) - 1]
    drawn = np.unique(np.minimum(np.concatenate([ends, least, greatest]), ends[1]))
    thinned: NDArray[np.intp] = stretch[drawn]
    return thinned
