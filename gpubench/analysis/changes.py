"""Where a time changed: steps of asv's fit over many commits, differences between neighbours.

What the constants decide, as ``scripts/steps_found.py 10 NAME=VALUE`` counts it in 3,200 series of
24 to 500 commits, of which 1,198 hold a step of six standard deviations or more and 1,280 none:

======================= ====== ========
constant                missed invented
======================= ====== ========
as they are                  0        0
``PENALTY`` 0.75             0        3
``PENALTY`` 1.5              0        2
``PENALTY`` 6                0        1
``PENALTY`` 12               4        0
``LASTING`` 2                0        9
``LASTING_NEWEST`` 1         0        2
``LONG`` 10000               0        2
======================= ====== ========
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpubench.results import CaseHistories, CaseName, Ratio, Times
from gpubench.results.ratio import ERROR, quotient

FEWEST_POINTS = 10
"""Measured commits from which steps are sought; below, neighbours are held against each other.

The rule for steps finds one of six standard deviations in 17 % of series of 6 commits, 55 % of 8,
67 % of 10 and 89 % of 16 (1,500 simulated series of each length, normal noise).
"""

THRESHOLD = 1.05
"""Smallest factor that is reported; asv's own default for regressions, 5 %."""

LASTING = 3
"""Fewest measured commits at a level that is called one: two outliers in a row do occur."""

LONG = 200
"""Measured commits from which a level has to last one more: three outliers in a row do occur."""

LASTING_NEWEST = 2
"""The same for the newest level, which cannot have lasted longer yet."""

FAR = 1000
"""Scatters between a level and its neighbours from which any level counts that two commits are at:
where two branches were measured in turn, one of a project's was 690 times as fast, with a scatter
of 0.3 %. Outliers are not that far."""

FINEST = 0.001
"""Least scatter for that: times that repeat exactly are not known better than to 0.1 %."""

PENALTY = 3.0
"""Cost of a jump in the fit, in scatters of one value times the logarithm of their number.

That of ``asv.step_detect.solve_potts_approx``, where it is not given.
"""

PIECE = 20
"""Most values of a piece, before pieces are merged into levels: that of asv's approximate fit."""

MOVED = 10
"""Commits to either side over which the end of a level is moved to where it fits best, once pieces
are merged. asv takes as many as a piece has, which gave the same steps in 11,000 series and takes a
quarter more time."""

TOGETHER = 32
"""Series that are fitted at once: more hardly save time, and each takes 160 KB for 1,000 values."""

_PER_DIFFERENCE = math.sqrt(1 / math.pi) / 0.6745
"""Mean absolute deviation of normal values over the median absolute difference of two of them."""

_MEDIAN_ERROR = math.pi / 2
"""Standard error of a median of n normal values, in mean absolute deviations over sqrt(n).

The median's is sqrt(pi / 2) standard deviations, and a deviation sqrt(pi / 2) mean absolute ones.
"""

Logarithms = NDArray[np.float64]
"""Of the medians of one case at the commits that measured it, oldest first."""


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of one case's time between two snapshots of a history."""

    kind: Literal["step", "difference"]
    """``step`` from the detector; ``difference`` where the intervals of neighbours are apart."""
    before: int
    """Index of the last snapshot with a time at the old level."""
    after: int
    """Index of the first snapshot with a time at the new level."""
    old: float
    """Seconds: median of the old level."""
    new: float
    """Seconds: median of the new level."""
    ratio: Ratio
    """Old time over new time: above 1 it became faster."""

    @property
    def slower(self) -> bool:
        return self.new > self.old


class Level(NamedTuple):
    """One stretch of a fit."""

    start: int
    stop: int
    value: float
    """Median over the stretch."""

    @property
    def length(self) -> int:
        return self.stop - self.start


def changes_of(history: CaseHistories) -> dict[CaseName, tuple[Change, ...]]:
    """Changes of every case, oldest first."""
    return dict(zip(history.names, changes_in(history.judged), strict=True))


def changes_in(times: Times) -> list[tuple[Change, ...]]:
    """Changes in each case's times, oldest first; ``times`` has shape (3, cases, snapshots), NaN
    where there is none that counts.

    From ten measured commits on, steps of asv's fit on the logarithm of the times, so that a
    doubling and a halving weigh the same. A step is claimed where both levels hold for three
    commits (in long histories four, the newest two, and any that is ``FAR`` off two) and the
    interval of their ratio excludes 1x; a level of the newest commit alone is a ``difference``, if
    the two intervals do not overlap. With fewer than ten commits, each is held against the one
    before it in that way. Changes under 5 % are left out in all of them.
    """
    measured = [np.flatnonzero(~np.isnan(medians)) for medians in times[0]]
    every = [
        _differences(times[:, case], places) if len(places) < FEWEST_POINTS else []
        for case, places in enumerate(measured)
    ]
    series = {
        case: values
        for case, places in enumerate(measured)
        if len(places) >= FEWEST_POINTS
        and may_hold_a_step(values := np.log(times[0, case, places]))
    }
    for case, levels in zip(series, levels_of([*series.values()]), strict=True):
        every[case] = _steps(times[:, case], measured[case], levels)
    return [tuple(one for one in changes if one.ratio.factor >= THRESHOLD) for changes in every]


def may_hold_a_step(values: Logarithms) -> bool:
    """Whether two levels can be apart by ``THRESHOLD``. Most series hold no step, and this test
    costs a tenth of the fit.

    It cannot lose one: two neighbours' mean and three neighbours' median are levels themselves,
    every longer stretch can be cut into those, and the median of a stretch is never above the
    largest, nor below the smallest, of the medians of its parts. So no level lies outside the
    range looked at here. The newest commits may be levels alone.
    """
    pairs = (values[1:] + values[:-1]) / 2
    low, high = np.minimum(values[1:], values[:-1]), np.maximum(values[1:], values[:-1])
    threes = np.maximum(low[:-1], np.minimum(high[:-1], values[2:]))
    medians = np.concatenate([pairs, threes, values[-2:]])
    return float(np.ptp(medians)) >= math.log(THRESHOLD)


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


def _differences(times: Times, measured: NDArray[np.intp]) -> list[Change]:
    """Neighbours whose intervals do not overlap."""
    before, after = measured[:-1], measured[1:]
    values, lows, highs = quotient(times[:, before], times[:, after])
    return [
        Change(
            "difference",
            int(before[i]),
            int(after[i]),
            float(times[0, before[i]]),
            float(times[0, after[i]]),
            Ratio(float(values[i]), float(lows[i]), float(highs[i])),
        )
        for i in np.flatnonzero((lows > 1) | (highs < 1))
    ]


def _steps(times: Times, measured: NDArray[np.intp], levels: Sequence[Level]) -> list[Change]:
    """Steps between levels that last, and the newest commit where it stands alone.

    The 99 % interval of a step's factor comes from the scatter by the standard error of a median.
    The fit chose the place among all commits: Bonferroni's correction for that keeps it honest
    after the choice.
    """
    if len(levels) == 1:
        return []
    values = np.log(times[0, measured])
    scatter = _scatter(values, levels)
    least, far = LASTING + (len(values) >= LONG), FAR * max(scatter, FINEST)
    gaps = [math.inf, *(abs(new.value - old.value) for old, new in pairwise(levels)), math.inf]
    lasting = []
    for level, near in zip(levels, pairwise(gaps), strict=True):
        may_be_short = level is levels[-1] or min(near) >= far
        if level.length >= (LASTING_NEWEST if may_be_short else least):
            lasting.append(level)
    steps = []
    quantile = NormalDist().inv_cdf(1 - ERROR / 2 / len(values))
    for old, new in pairwise(lasting):
        factor = old.value - new.value
        error = _MEDIAN_ERROR * scatter * math.sqrt(1 / old.length + 1 / new.length)
        half = quantile * error
        if abs(factor) > half:
            ratio = Ratio(*(math.exp(end) for end in (factor, factor - half, factor + half)))
            before, after = int(measured[old.stop - 1]), int(measured[new.start])
            ends = math.exp(old.value), math.exp(new.value)
            steps.append(Change("step", before, after, *ends, ratio))
    if levels[-1].length < LASTING_NEWEST:
        steps += _differences(times, measured[-2:])
    return steps


def _scatter(values: Logarithms, levels: Sequence[Level]) -> float:
    """Mean absolute deviation of commits from their levels, for use in a standard error.

    Where neighbours deviate alike, levels are known less well than their length says, and a fit
    takes slow noise for levels. So the scatter is estimated from the differences of neighbours too,
    and raised as for noise with a memory (autoregressive of order one; Bayley and Hammersley,
    Supplement to the JRSS 8, 1946: n values of it tell as much as ``n (1 - r) / (1 + r)`` others).

    Two estimates of the memory r count alike. What the fit leaves, alone, gives twice as many steps
    in noise with a memory of 0.9 that has none; the differences alone miss one planted step in
    eighty.
    """
    left = values - np.repeat([level.value for level in levels], [level.length for level in levels])
    squares = float(left @ left)
    # Too low where the fit took slow noise for levels.
    of_fit = max(float(left[1:] @ left[:-1]) / squares, 0.0) if squares > 0 else 0.0
    # Values with a memory differ by sqrt(1 - r) from one commit to the next and by sqrt(1 - r * r)
    # over two, so that the squared ratio is 1 + r; a step counts in one difference or two. In
    # short series it is too high by chance, by about a standard error of a correlation.
    near, far = (_usual_square(values, lag) for lag in (1, 2))
    chance = 1 / math.sqrt(len(values))
    of_differences = min(max(far / near - 1 - chance, 0.0), 1.0) if near > 0 else 0.0
    # Noise that remembers longer than the history lasts cannot be told from a level.
    memory = min((of_fit + of_differences) / 2, 1 - 1 / len(values))
    from_fit = float(np.abs(left).sum()) / max(len(values) - len(levels), 1)
    scatter = max(from_fit, _quick_scatter(values) / math.sqrt(1 - memory))
    return scatter * math.sqrt((1 + memory) / (1 - memory))


def _usual_square(values: Logarithms, lag: int) -> float:
    """Mean of the squared differences without the largest fifth, where steps and outliers are."""
    squares = (values[lag:] - values[:-lag]) ** 2
    usual = max(4 * len(squares) // 5, 1)
    return float(np.partition(squares, usual - 1)[:usual].mean())


def _quick_scatter(values: Logarithms) -> float:
    """Mean absolute deviation from the levels, told from the differences of neighbours.

    Steps, of which there are few, do not count in it.
    """
    return float(np.median(np.abs(np.diff(values)))) * _PER_DIFFERENCE


def jump_cost(values: Logarithms) -> float:
    """What a jump costs a fit: as much as ``PENALTY * log(n)`` values scatter.

    At least the smallest change that is reported: times that repeat exactly would be fitted one by
    one, and a level that lasts two commits explains more than that.

    ``asv.step_detect.detect_steps`` seeks the cost by fitting about ten times instead: it takes
    eight times as long, and misses a few in a thousand clear steps, since it can explain one by
    noise that remembers.
    """
    return max(PENALTY * _quick_scatter(values) * math.log(len(values)), math.log(THRESHOLD))


def levels_of(series: Sequence[Logarithms]) -> list[list[Level]]:
    """Levels of each series by ``asv.step_detect.solve_potts_approx``, a Potts model with absolute
    deviations. asv finds the best pieces of one series at a time, which takes eight times as long.
    """
    if not series:
        return []
    # Not at the top: asv imports all of its commands and plugins.
    from asv.step_detect import get_mu_dist, merge_pieces

    levels = []
    for first in range(0, len(series), TOGETHER):
        several = series[first : first + TOGETHER]
        costs = np.array([jump_cost(values) for values in several])
        pieces = best_pieces(several, costs)
        for values, cost, stops in zip(several, costs.tolist(), pieces, strict=True):
            deviations = get_mu_dist(values.tolist(), [1.0] * len(values))
            stops, medians, _ = merge_pieces(cost, stops, None, None, deviations, MOVED)
            ends = zip((0, *stops[:-1]), stops, medians, strict=True)
            levels.append([Level(*level) for level in ends])
    return levels


def best_pieces(series: Sequence[Logarithms], costs: NDArray[np.float64]) -> list[list[int]]:
    """Where pieces of at most ``PIECE`` values end, so that the deviations from their medians and
    the cost of each jump are least in sum: ``asv.step_detect.solve_potts``, for each series."""
    length = max(map(len, series))
    values = np.zeros((length, len(series)))  # what follows a series does not count for it
    for place, each in enumerate(series):
        values[: len(each), place] = each
    # Of the piece that ends at a value, by its size less one.
    deviations = np.full((length, PIECE, len(series)), math.inf)
    deviations[:, 0] = 0
    ordered = [values]  # the values of each piece of one size, the least first
    for size in range(2, PIECE + 1):
        more = values[: max(length - size + 1, 0)]
        for rank, row in enumerate(ordered):
            ordered[rank], more = np.minimum(row[1:], more), np.maximum(row[1:], more)
        ordered.append(more)
        half = size // 2
        deviations[size - 1 :, size - 1] = sum(ordered[-half:]) - sum(ordered[:half])
    least = np.empty((length + 1, len(series)))  # sums, of so many values
    least[0] = -costs  # the first piece begins without a jump
    sizes = np.empty((length, len(series)), np.int_)  # of the last piece in them
    for last in range(length):
        longest = min(last + 1, PIECE)
        sums = least[last + 1 - longest : last + 1][::-1] + costs + deviations[last, :longest]
        sizes[last] = sums.argmin(axis=0) + 1
        least[last + 1] = sums.min(axis=0)
    pieces: list[list[int]] = []
    for place, each in enumerate(series):
        stops = [len(each)]
        while (start := stops[-1] - int(sizes[stops[-1] - 1, place])) > 0:
            stops.append(start)
        pieces.append(stops[::-1])
    return pieces
