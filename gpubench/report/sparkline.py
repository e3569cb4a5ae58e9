"""Sparklines as inline SVG: the coordinates here, the markup in the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, MARGIN = 120.0, 28.0, 4.0
"""In SVG user units."""

MAX_POINTS = 80
"""One for three units of its width, twice: of a longer series the extremes are drawn."""

LEAST_RANGE = 1.5
"""Factor that the height stands for at least: noise of a tenth looks like noise beside a step."""

SEEN_GAP = 1.5
"""Units that a gap is wide at least: a narrower one does not show beside a line of 1.25."""

MARK_WIDTH = 9.0
"""Units that the ring around a marked point takes, its line included."""

PARTS_OF_UNIT = 2
"""Coordinates of lines are counted in such parts, by which ``.spark path`` of ``gpubench.css``
divides them: half a unit is less than half the width of the line."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sparkline:
    """One series, oldest first, over all commits of the setup, so that all sparklines of a page
    have one axis of time. The scale is logarithmic and the series' own; linear where a number is 0
    or negative."""

    lines: tuple[str, ...]
    """Each stretch without a gap as a path of SVG after its ``M``: the first point, and from there
    ways from point to point, in whole halves of a unit, which are short to write. A page has
    hundreds of such lines."""
    marks: tuple[tuple[float, float], ...]
    """Centres of the marked points, newest first; of such as would lie on each other the newest."""
    last: tuple[float, float] | None
    """Centre of the newest point."""
    label: str
    """Words for those who do not see it."""
    width: float = WIDTH
    height: float = HEIGHT


def sparkline(
    values: Values,
    label: str,
    marked: Sequence[int] = (),
    places: NDArray[np.intp] | None = None,
    commits: int = 0,
) -> Sparkline:
    """Draw values; NaN is a gap, ``marked`` are indices of points to mark. ``places`` are theirs
    among so many ``commits``; without, they are all commits there are."""
    places = np.arange(len(values)) if places is None else places
    present = np.flatnonzero(~np.isnan(values))
    if not present.size:
        return Sparkline((), (), None, label)
    logs, least = values[present], math.log(LEAST_RANGE)
    if (logs > 0).all():
        logs = np.log(logs)
    else:
        least = (LEAST_RANGE - 1) * np.abs(logs).max() or 1.0
    spread = max(logs.max() - logs.min(), least)
    step = (WIDTH - 2 * MARGIN) / max((commits or len(values)) - 1, 1)
    down = 0.5 - (logs - (logs.min() + logs.max()) / 2) / spread
    # Less than a tenth of a unit nobody sees.
    xs = np.round(MARGIN + places[present] * step, 1)
    ys = np.round(MARGIN + down * (HEIGHT - 2 * MARGIN), 1)
    points = np.stack([xs, ys], axis=1)
    group = math.ceil(2 * len(points) / MAX_POINTS)  # of each the least and the greatest
    # A commit that does not know the case is no gap, one where it has no value is.
    is_gap = (np.diff(present) > 1) & (np.diff(places[present]) * step > SEEN_GAP)
    gaps = np.flatnonzero(is_gap) + 1
    lines = [_path(stretch[_shown(stretch[:, 1], group)]) for stretch in np.split(points, gaps)]
    marks: list[tuple[float, float]] = []
    for x, y in points[np.isin(present, marked)][::-1].tolist():
        if not marks or marks[-1][0] - x >= MARK_WIDTH:
            marks.append((x, y))
    last_x, last_y = points[-1].tolist()
    return Sparkline(tuple(lines), tuple(marks), (last_x, last_y), label)


def _path(points: Values) -> str:
    """Return points, shape (points, 2), as a path; one that stands alone as a line of no length."""
    parts = np.rint(PARTS_OF_UNIT * points).astype(int)
    (x, y), ways = parts[0].tolist(), np.diff(parts, axis=0)
    ways = ways[ways.any(axis=1)].tolist()
    return (
        f"{x} {y}"
        + ("l" if ways else "h0")
        + " ".join(f"{dx}{'' if dy < 0 else ' '}{dy}" for dx, dy in ways)
    )


def _shown(ys: Values, size: int) -> NDArray[np.intp]:
    """Return the indices of points to draw: both ends, and the first least and greatest of each
    group of so many points, which is more than the picture can show."""
    if size <= 2:
        return np.arange(len(ys))
    groups = np.pad(ys, (0, -len(ys) % size), mode="edge").reshape(-1, size)
    first = size * np.arange(len(groups))
    extremes = first + np.stack([groups.argmin(axis=1), groups.argmax(axis=1)])
    return np.unique(np.append(extremes, [0, len(ys) - 1]))
