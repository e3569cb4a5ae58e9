"""Where a time changed: levels of a long history, differences between neighbours of a short one.

asv's stepwise fit proposes where levels end (``levels_of``); ranks decide which of them are real
(``gpubench.analysis.steps``).
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.steps import (
    FINEST,
    MIN_LEVEL,
    MIN_NEWEST_LEVEL,
    find_levels,
    rank_interval,
    scatter_of,
)
from gpubench.results import CaseHistories, CaseName, Ratio, Times
from gpubench.results.ratio import VERDICT_ERROR, quotient

MIN_POINTS = 10
"""Measured commits from which steps are sought; below, neighbours are held against each other."""

THRESHOLD = 1.05
"""Smallest factor that is reported; asv's own default for regressions, 5 %."""

PENALTY = 3.0
"""Cost of a jump in the fit, in scatters of one value times the logarithm of their number.

That of ``asv.step_detect.solve_potts_approx``, where it is not given.
"""

MAX_PIECE_VALUES = 20
"""Most values of a piece, before pieces are merged into levels: that of asv's approximate fit."""

MOVED = 10
"""Commits to either side over which the end of a level is moved to where it fits best, once pieces
are merged. asv takes as many as a piece has, which gave the same steps in 11,000 series and takes a
quarter more time."""

MAX_SERIES_TOGETHER = 32
"""Series that are fitted at once: more hardly save time, and each takes 160 KB for 1,000 values."""

_PER_DIFFERENCE = math.sqrt(1 / math.pi) / 0.6745
"""Mean absolute deviation of normal values over the median absolute difference of two of them."""

MIN_GAP_IN_RANGES = 3.0
"""Gap between the newest commit alone and its level, in ranges of the level, that is claimed."""

MIN_COMMITS_FOR_RANGE = 20
"""Commits from which the range of a level stands for the interval that files do not have."""

MAX_INTERVAL_COMMITS = 150
"""Commits to either side of a step that its interval is of: more take longer and tell the same."""

MAX_SCATTER = math.log(2) / 3
"""Scatter above which a case is unstable: steps of three scatters are found, so that one that takes
twice as long could go unseen."""

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
    commits: int = 0
    """Measured commits at the shorter of the two levels; 0 of a difference, which has none."""
    basis: Literal["time", "speedup"] = "time"
    """Which series decided: its times alone, or its speedups over a baseline."""

    @property
    def slower(self) -> bool:
        return self.new > self.old


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the history of one case says."""

    changes: tuple[Change, ...]
    """Oldest first."""
    scatter: float
    """Scatter within levels, a logarithm: of normal noise the standard deviation. 0 where the
    history is short, or too quiet to hold a change."""

    @property
    def is_unstable(self) -> bool:
        """Whether the noise lets nothing be said: no change, and one of 2x could go unseen."""
        return not self.changes and self.scatter > MAX_SCATTER


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
    """Return the changes of every case's times, oldest first."""
    return dict(zip(history.names, changes_in(history.judged), strict=True))


def changes_in(times: Times) -> list[tuple[Change, ...]]:
    """Return the changes in each case's times, oldest first.

    ``times`` has shape (3, cases, snapshots), NaN where there is none that counts.
    """
    return [verdict.changes for verdict in verdicts_in(times)]


def verdicts_in(times: Times, least: Sequence[float] | None = None) -> list[Verdict]:
    """Return what each case's times say; ``times`` as for ``changes_in``, and ``least`` the factor
    of each case from which a change counts (``THRESHOLD`` without).

    From ten measured commits on, the levels of ``gpubench.analysis.steps`` on the logarithm of the
    times, so that a doubling and a halving weigh the same. The newest commit alone is a
    ``difference``, if it is far from its level. With fewer than ten commits, each is a difference
    to the one before it if their intervals do not overlap. Smaller changes are left out.
    """
    least = [THRESHOLD] * times.shape[1] if least is None else least
    measured = [np.flatnonzero(~np.isnan(medians)) for medians in times[0]]
    verdicts = [
        Verdict(_noticed(_differences(times[:, case], places), least[case]), 0.0)
        if len(places) < MIN_POINTS
        else Verdict((), 0.0)
        for case, places in enumerate(measured)
    ]
    series = {
        case: values
        for case, places in enumerate(measured)
        if len(places) >= MIN_POINTS
        and may_hold_a_step(values := np.log(times[0, case, places]), least[case])
    }
    proposed = levels_of([*series.values()], [least[case] for case in series])
    for case, levels in zip(series, proposed, strict=True):
        steps, scatter = _steps(times[:, case], measured[case], levels, least[case])
        verdicts[case] = Verdict(_noticed(steps, least[case]), scatter)
    return verdicts


def _noticed(changes: Iterable[Change], least: float) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.ratio.factor >= least)


def may_hold_a_step(values: Logarithms, least: float = THRESHOLD) -> bool:
    """Return whether two levels can be apart by ``least``. Most series hold no step, and this
    test costs a tenth of the fit.

    It cannot lose one: two neighbours' mean and three neighbours' median are levels themselves,
    every longer stretch can be cut into those, and the median of a stretch is never above the
    largest, nor below the smallest, of the medians of its parts. So no level lies outside the
    range looked at here. The newest commits may be levels alone.
    """
    pairs = (values[1:] + values[:-1]) / 2
    low, high = np.minimum(values[1:], values[:-1]), np.maximum(values[1:], values[:-1])
    threes = np.maximum(low[:-1], np.minimum(high[:-1], values[2:]))
    medians = np.concatenate([pairs, threes, values[-2:]])
    return float(np.ptp(medians)) >= math.log(least)


def undone_by(changes: Sequence[Change], index: int) -> int | None:
    """Index of the later change that brought a time back to where ``changes[index]`` took it from.

    Back means within ``THRESHOLD`` of the old level, or beyond; of a smaller change, half of the
    way. ``None`` while it lasts.
    """
    change = changes[index]
    near = min(THRESHOLD, math.sqrt(change.ratio.factor))
    for later in range(index + 1, len(changes)):
        new = changes[later].new
        back = new <= change.old * near if change.slower else new >= change.old / near
        if back:
            return later
    return None


def slower_than_best(changes: Sequence[Change], least: float = THRESHOLD) -> Change | None:
    """Return how much slower a case is now than at its best level, as one change; ``None`` where
    the newest level is the best, or within the factor ``least`` of it.

    It goes from the last snapshot of the best level to the first of the next one.
    """
    worst = Ratio(1.0, 1.0, 1.0)
    first = last = None
    ratio = worst
    for change in reversed(changes):
        ratio = Ratio(*(a * b for a, b in zip(_ends(ratio), _ends(change.ratio), strict=True)))
        last = last or change
        if ratio.value < worst.value:
            worst, first = ratio, change
    if first is None or last is None or worst.factor < least:
        return None
    if first is last:
        return first
    ends = first.before, first.after, first.old, last.new
    basis = first.basis if first.basis == last.basis else "time"
    return Change(first.kind, *ends, worst, min(first.commits, last.commits), basis)


def _ends(ratio: Ratio) -> tuple[float, float, float]:
    return ratio.value, ratio.low, ratio.high


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


def _steps(
    times: Times, measured: NDArray[np.intp], proposed: Sequence[Level], least: float
) -> tuple[list[Change], float]:
    """Return the steps between levels that hold, the newest commit where it stands alone, and the
    scatter.

    The 99 % interval of a step's factor is that of the rank test, corrected for the choice of the
    place among all commits (Bonferroni) and for the memory of the noise.
    """
    values = np.log(times[0, measured])
    levels = find_levels(values, [level.stop for level in proposed[:-1]], math.log(least))
    bounds = levels.bounds
    quantile = NormalDist().inv_cdf(1 - VERDICT_ERROR / 2 / len(values))
    quantile *= math.sqrt((1 + levels.memory) / (1 - levels.memory))
    steps = []
    for start, place, stop in zip(bounds, bounds[1:], bounds[2:], strict=False):
        old, new = values[start:place], values[place:stop]
        ends = float(np.median(old)), float(np.median(new))
        low, high = rank_interval(old[-MAX_INTERVAL_COMMITS:], new[:MAX_INTERVAL_COMMITS], quantile)
        factor = ends[0] - ends[1]
        ratio = Ratio(math.exp(factor), math.exp(min(-high, factor)), math.exp(max(-low, factor)))
        before, after = int(measured[place - 1]), int(measured[place])
        levels_in_seconds = math.exp(ends[0]), math.exp(ends[1])
        commits = min(len(old), len(new))
        steps.append(Change("step", before, after, *levels_in_seconds, ratio, commits))
    if not steps or steps[-1].after != measured[-MIN_NEWEST_LEVEL]:
        level = values[bounds[-2] :]
        steps += _newest_step(measured, level) or _newest_difference(times, measured, level)
    left = values - np.repeat(
        [np.median(values[i:j]) for i, j in pairwise(bounds)], np.diff(bounds)
    )
    return steps, scatter_of(left)


def _newest_step(measured: NDArray[np.intp], level: Logarithms) -> list[Change]:
    """Return the newest two commits as a step, where both lie further from the level before them
    than any that it holds, as ``_newest_difference`` has it of one: ranks cannot tell that of less
    than eighty commits."""
    rest, newest = level[:-MIN_NEWEST_LEVEL], level[-MIN_NEWEST_LEVEL:]
    if len(rest) < MIN_LEVEL:
        return []
    low, high = float(rest.min()), float(rest.max())
    far = MIN_GAP_IN_RANGES * max(high - low, FINEST)
    if newest.min() < high + far and newest.max() > low - far:
        return []
    old, new = float(np.median(rest)), float(np.median(newest))
    ratio = Ratio(*(math.exp(end - new) for end in (old, low, high)))
    before, after = measured[-MIN_NEWEST_LEVEL - 1 :][:2].tolist()
    return [Change("step", before, after, math.exp(old), math.exp(new), ratio, MIN_NEWEST_LEVEL)]


def _newest_difference(times: Times, measured: NDArray[np.intp], level: Logarithms) -> list[Change]:
    """Return the newest commit, where it lies further from the level before it than any that the
    level holds: ``MIN_GAP_IN_RANGES`` of their range. One value in a hundred is the largest by
    chance.

    Its interval must not overlap that of the commit before. Without intervals, as in files of asv
    before 0.6, the range of the level stands for them.
    """
    *rest, newest = level.tolist()
    if len(rest) < MIN_LEVEL:
        return []
    low, high = min(rest), max(rest)
    far = MIN_GAP_IN_RANGES * max(high - low, FINEST)
    if low - far < newest < high + far:
        return []
    ends = times[1:, measured[-2:]]
    if np.isfinite(ends).all() and (ends > 0).all():
        return _differences(times, measured[-2:])
    if len(rest) < MIN_COMMITS_FOR_RANGE:
        return []
    usual = float(np.median(rest))
    ratio = Ratio(*(math.exp(end - newest) for end in (usual, low, high)))
    before, after = measured[-2:].tolist()
    return [Change("difference", before, after, math.exp(usual), math.exp(newest), ratio)]


def _quick_scatter(values: Logarithms) -> float:
    """Mean absolute deviation from the levels, told from the differences of neighbours.

    Steps, of which there are few, do not count in it.
    """
    return float(np.median(np.abs(np.diff(values)))) * _PER_DIFFERENCE


def jump_cost(values: Logarithms, least: float = THRESHOLD) -> float:
    """Return what a jump costs a fit: as much as ``PENALTY * log(n)`` values scatter.

    At least the smallest change that is reported: times that repeat exactly would be fitted one by
    one, and a level that lasts two commits explains more than that.

    ``asv.step_detect.detect_steps`` seeks the cost by fitting about ten times instead: it takes
    eight times as long, and misses a few in a thousand clear steps, since it can explain one by
    noise that remembers.
    """
    return max(PENALTY * _quick_scatter(values) * math.log(len(values)), math.log(least))


def levels_of(
    series: Sequence[Logarithms], least: Sequence[float] | None = None
) -> list[list[Level]]:
    """Levels of each series by ``asv.step_detect.solve_potts_approx``, a Potts model with absolute
    deviations. asv finds the best pieces of one series at a time, which takes eight times as long.
    """
    if not series:
        return []
    fit = _import_step_detection()
    least = [THRESHOLD] * len(series) if least is None else least
    jump_costs = np.array([*map(jump_cost, series, least)])
    levels = []
    for first in range(0, len(series), MAX_SERIES_TOGETHER):
        several = series[first : first + MAX_SERIES_TOGETHER]
        costs = jump_costs[first : first + MAX_SERIES_TOGETHER]
        pieces = best_pieces(several, costs)
        for values, cost, stops in zip(several, costs.tolist(), pieces, strict=True):
            deviations = fit.get_mu_dist(values.tolist(), [1.0] * len(values))
            stops, medians, _ = fit.merge_pieces(cost, stops, None, None, deviations, MOVED)
            ends = zip((0, *stops[:-1]), stops, medians, strict=True)
            levels.append([Level(*level) for level in ends])
    return levels


@cache
def _import_step_detection() -> Any:
    """Return ``asv.step_detect``, without the commands and plugins that ``asv`` itself imports:
    these take longer than the changes of a small store."""
    package = importlib.util.find_spec("asv")
    if "asv" in sys.modules or package is None:
        return importlib.import_module("asv.step_detect")
    sys.modules["asv"] = importlib.util.module_from_spec(package)  # which executes nothing
    try:
        return importlib.import_module("asv.step_detect")
    finally:
        del sys.modules["asv"]


def best_pieces(series: Sequence[Logarithms], costs: NDArray[np.float64]) -> list[list[int]]:
    """Return where pieces of at most ``MAX_PIECE_VALUES`` values end, so that the deviations from
    their medians and the cost of each jump are least in sum: ``asv.step_detect.solve_potts``, for
    each series."""
    length = max(map(len, series))
    values = np.zeros((length, len(series)))  # what follows a series does not count for it
    for place, each in enumerate(series):
        values[: len(each), place] = each
    # Of the piece that ends at a value, by its size less one.
    deviations = np.full((length, MAX_PIECE_VALUES, len(series)), math.inf)
    deviations[:, 0] = 0
    ordered = [values]  # the values of each piece of one size, the least first
    for size in range(2, MAX_PIECE_VALUES + 1):
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
        longest = min(last + 1, MAX_PIECE_VALUES)
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
