"""Where a time changed: steps by asv's own detector, or two commits set side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.levels import Level, SettledFits, fit, quick_scatter
from gpubench.analysis.speedup import Speedup, speedup
from gpubench.results import Timing

Values = NDArray[np.float64]

FEWEST_POINTS = 10
"""Below, the detector claims steps that are not there (precision 0.37 at 6 points, 0.97 at 10)."""

THRESHOLD = 1.05
"""Smallest factor that is reported; asv's own default for regressions, 5 %."""

LASTING = 3
"""Fewest measured commits at a level that is called one: two outliers in a row do occur."""

LONG = 200
"""Measured commits from which a level has to last one more: three outliers in a row do occur."""

LASTING_NEWEST = 2
"""The same for the newest level, which cannot have lasted longer yet."""

_MOST_MEMORY = 0.9


_MEDIAN_ERROR = math.pi / 2
"""Standard error of a median of n normal values, in mean absolute deviations over sqrt(n).

The median's is sqrt(pi / 2) standard deviations, and a deviation sqrt(pi / 2) mean absolute ones.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of a time between two commits."""

    kind: Literal["step", "difference"]
    """``step`` from the detector; ``difference`` where the intervals of neighbours are apart."""
    before: int
    """Index of the last point at the old level."""
    after: int
    """Index of the first point at the new level."""
    old: float
    """Seconds: median of the old level."""
    new: float
    """Seconds: median of the new level."""
    low: float = 0.0
    """Lower end of the interval of ``factor``; 0 when unknown."""
    high: float = math.inf
    """Upper end of the interval of ``factor``; ``inf`` when unknown."""

    @property
    def factor(self) -> float:
        """Old time over new time: above 1 it became faster."""
        return self.old / self.new

    @property
    def ratio(self) -> Speedup:
        """``factor`` with its interval."""
        return Speedup(self.factor, self.low, self.high)

    @property
    def slower(self) -> bool:
        return self.new > self.old

    @property
    def size(self) -> float:
        """How many times faster or slower; at least 1."""
        return max(self.factor, 1 / self.factor)


def find_changes(timings: Sequence[Timing | None]) -> tuple[Change, ...]:
    """Changes in one case's times over commits, oldest first; ``None`` where there is no time."""
    missing = (math.nan, math.nan, math.nan)
    rows = [(t.median, t.low, t.high) if t else missing for t in timings]
    return changes_in(np.array(rows, np.float64).reshape(-1, 3).T, SettledFits())


def changes_in(times: Values, fits: SettledFits) -> tuple[Change, ...]:
    """Changes in one case's times over commits, oldest first.

    ``times`` are medians and both ends of their intervals, shape (3, commits), NaN where there is
    no time. From ten measured points on, steps of asv's fit on the logarithm of the times, so that
    a doubling and a halving weigh the same. A step is claimed where both levels hold for three
    commits (in long histories four, the newest two) and the interval of their ratio excludes 1x; a
    level of the newest commit alone is a ``difference``, if the two intervals do not overlap. With
    fewer than ten points, each measured commit is held against the one before it in that way.
    Changes under 5 % are left out in all of them.
    """
    measured = np.flatnonzero(~np.isnan(times[0]))
    found: Iterable[Change | None]
    if len(measured) >= FEWEST_POINTS:
        found = _lasting_changes(times, measured, fits)
    else:
        found = (_difference(times, *pair) for pair in pairwise(measured.tolist()))
    return tuple(change for change in found if change and change.size >= THRESHOLD)


def _lasting_changes(times: Values, measured: NDArray[np.intp], fits: SettledFits) -> list[Change]:
    values = np.log(times[0, measured])
    newest = _difference(times, int(measured[-2]), int(measured[-1]))
    if not may_hold_a_step(values) and newest is None:
        return []
    levels = fit(values, fits)
    least = LASTING + (len(values) >= LONG)
    lasting = [level for level in levels[:-1] if level.length >= least]
    lasting += [level for level in levels[-1:] if level.length >= LASTING_NEWEST]
    found: list[Change] = []
    if len(lasting) > 1:
        scatter = _scatter(values, levels)
        steps = [_step(old, new, scatter, measured) for old, new in pairwise(lasting)]
        found = [step for step in steps if step.ratio.verdict != "unclear"]
    alone = len(levels) > 1 and levels[-1].length < LASTING_NEWEST
    return [*found, newest] if alone and newest else found


def may_hold_a_step(values: Values) -> bool:
    """Whether two levels of two or more neighbours can be apart by ``THRESHOLD``; values are logs.

    Most short series hold no step, and this test costs a tenth of the fit. It cannot lose one: two
    neighbours' mean and three neighbours' median are levels themselves, every longer stretch can
    be cut into those, and the median of a stretch is never above the largest, nor below the
    smallest, of the medians of its parts. So no level lies outside the range looked at here.
    """
    pairs = (values[1:] + values[:-1]) / 2
    low, high = np.minimum(values[1:], values[:-1]), np.maximum(values[1:], values[:-1])
    threes = np.maximum(low[:-1], np.minimum(high[:-1], values[2:]))
    medians = np.concatenate([pairs, threes])
    return medians.size > 0 and float(np.ptp(medians)) >= math.log(THRESHOLD)


def _scatter(values: Values, levels: Sequence[Level]) -> float:
    """Mean absolute deviation of commits from their levels, for use in a standard error.

    Where neighbours deviate alike, levels are known less well than their length says, and a fit
    takes slow noise for levels. So the scatter is told from the differences of neighbours too,
    and raised as for noise with a memory (autoregressive of order one).
    """
    fitted = np.repeat([level.value for level in levels], [level.length for level in levels])
    left = values - fitted
    freedom = max(len(values) - len(levels), 1)
    memory = min((_memory_left(left) + _memory(values)) / 2, _MOST_MEMORY)
    near = quick_scatter(values) / math.sqrt(1 - memory)
    spread = max(float(np.abs(left).sum()) / freedom, near)
    return spread * math.sqrt((1 + memory) / (1 - memory))


def _memory_left(left: Values) -> float:
    """Correlation of neighbours in what a fit leaves; too low where it fitted slow noise."""
    squares, product = float(left @ left), float(left[1:] @ left[:-1])
    return max(product / squares, 0.0) if squares > 0 else 0.0


def _memory(values: Values) -> float:
    """Correlation r of neighbours, without knowing the levels; too high by chance in short series.

    Noise with a memory differs by sqrt(1 - r) from one commit to the next and by sqrt(1 - r * r)
    over two, so that the squared ratio is 1 + r; a step counts in one difference or two.
    """
    near, far = (_usual_square(values, lag) for lag in (1, 2))
    chance = 1 / math.sqrt(len(values))
    return min(max(far / near - 1 - chance, 0.0), _MOST_MEMORY) if near > 0 else 0.0


def _usual_square(values: Values, lag: int) -> float:
    """Mean of the squared differences without the largest fifth, where steps and outliers are."""
    squares = (values[lag:] - values[:-lag]) ** 2
    usual = max(4 * len(squares) // 5, 1)
    return float(np.partition(squares, usual - 1)[:usual].mean())


def _step(old: Level, new: Level, scatter: float, measured: NDArray[np.intp]) -> Change:
    """A step with the 99 % interval of its factor.

    The interval comes from the scatter by the standard error of a median. The fit chose the place
    among all commits: Bonferroni's correction for that keeps it honest after the choice.
    """
    quantile = NormalDist().inv_cdf(1 - 0.005 / len(measured))
    error = _MEDIAN_ERROR * scatter * math.sqrt(1 / old.length + 1 / new.length)
    ratio, half = old.value - new.value, quantile * error
    return Change(
        kind="step",
        before=int(measured[old.stop - 1]),
        after=int(measured[new.start]),
        old=math.exp(old.value),
        new=math.exp(new.value),
        low=math.exp(ratio - half),
        high=math.exp(ratio + half),
    )


def _difference(times: Values, before: int, after: int) -> Change | None:
    old, new = (Timing(*times[:, index].tolist()) for index in (before, after))
    if not (old.has_interval and new.has_interval):
        return None
    if old.low <= new.high and new.low <= old.high:
        return None
    ratio = speedup(old, new)
    return Change("difference", before, after, old.median, new.median, ratio.low, ratio.high)


def undone_by(changes: Sequence[Change], index: int) -> int | None:
    """Index of the later change that brought a time back to where ``changes[index]`` took it from.

    Back means within ``THRESHOLD`` of the old level, or beyond. ``None`` while it lasts.
    """
    change = changes[index]
    for later in range(index + 1, len(changes)):
        new = changes[later].new
        back = new <= change.old * THRESHOLD if change.slower else new >= change.old / THRESHOLD
        if back:
            return later
    return None
