"""Where a time changed: levels of a long history, and the newest commits of any.

asv's stepwise fit proposes where levels end (``levels_of``); ranks decide which of them are real
(``gpubench.analysis.steps``). Where too few commits follow for ranks, each is held against the
level before it (``gpubench.analysis.pooled``).
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.pooled import CHECK_CHANCE, Departure, PooledLevels
from gpubench.analysis.steps import (
    MIN_NEWEST_LEVEL,
    Levels,
    find_levels,
    rank_interval,
    scatter_of,
)
from gpubench.results import CaseHistories, CaseName, Ratio, Times
from gpubench.results.ratio import VERDICT_ERROR

MIN_POINTS = 10
"""Measured commits from which ranks tell steps; below, each commit is held against those before."""

TAIL_COMMITS = 30
"""Newest commits of a longer history that are also judged by themselves: what was long ago does not
hide a level at the end."""

TAIL_BOUNDS = 10
"""Newest commits among which that finds where levels begin."""

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

    kind: Literal["step", "check"]
    """``check``: the newest commit alone is beyond its level, which is to be checked."""
    before: int
    """Index of the last snapshot with a time at the old level."""
    after: int
    """Index of the first snapshot with a time at the new level."""
    old: float
    """Seconds: median of the old level."""
    new: float
    """Seconds: median of the new level."""
    ratio: Ratio
    """Old time over new time, of a rate the new over the old one: above 1 it became better."""
    commits: int = 0
    """Measured commits at the shorter of the two levels."""
    basis: Literal["time", "speedup"] = "time"
    """Which series decided: its times alone, or its speedups over a baseline."""
    is_rate: bool = False
    """Whether more is better."""

    @property
    def slower(self) -> bool:
        """Whether it became worse: slower, larger, or of a rate lower."""
        return (self.new > self.old) != self.is_rate

    @property
    def of_rate(self) -> Change:
        """The change as that of a value of which more is better."""
        ratio = Ratio(1 / self.ratio.value, 1 / self.ratio.high, 1 / self.ratio.low)
        return replace(self, ratio=ratio, is_rate=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the history of one case says."""

    changes: tuple[Change, ...]
    """Oldest first."""
    scatter: float
    """Scatter within levels, a logarithm: of normal noise the standard deviation. 0 where it is
    too small to hold a change."""
    is_judged: bool | None = True
    """Whether anything could be told: not of one commit, nor of two without company; ``None``
    where no commit has a value."""

    @property
    def is_unstable(self) -> bool:
        """Whether the noise lets nothing be said: no change, and one of 2x could go unseen."""
        return not self.changes and self.scatter > MAX_SCATTER


@dataclass(frozen=True, slots=True)
class Regression:
    """How much slower a case is now than at its best level."""

    ratio: Ratio
    """Value of the best level over that of the newest one: below 1."""
    chain: tuple[Change, ...]
    """The steps from the best level to the newest, oldest first."""

    @property
    def largest(self) -> Change:
        """The step that explains most of it."""
        return min(self.chain, key=lambda change: change.ratio.value)


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


def verdicts_in(
    times: Times,
    least: Sequence[float] | None = None,
    company: Sequence[PooledLevels] | None = None,
) -> list[Verdict]:
    """Return what each case's times say; ``times`` as for ``changes_in``, and ``least`` the factor
    of each case from which a change counts (``THRESHOLD`` without). ``company``: what the cases of
    its kind tell of the scatter of each; without, these cases do.

    From ten measured commits on, the levels of ``gpubench.analysis.steps`` on the logarithm of the
    times, so that a doubling and a halving weigh the same. The newest commits, and all of a short
    history, are held against the level before them (``gpubench.analysis.pooled``). Smaller changes
    are left out.
    """
    least = [THRESHOLD] * times.shape[1] if least is None else least
    measured = [np.flatnonzero(~np.isnan(medians)) for medians in times[0]]
    series = {
        case: np.log(times[0, case, places]) for case, places in enumerate(measured) if len(places)
    }
    if company is None:
        company = [PooledLevels(series.values())] * times.shape[1]
    verdicts = [
        Verdict((), 0.0, is_judged=False if has_value else None)
        for has_value in np.isfinite(times[0]).any(axis=1)
    ]
    fitted = {
        case: values
        for case, values in series.items()
        if len(values) >= MIN_POINTS and may_hold_a_step(values, least[case])
    }
    proposed = levels_of([*fitted.values()], [least[case] for case in fitted])
    levels = dict(zip(fitted, proposed, strict=True))
    for case, values in series.items():
        pooled = company[case]
        if len(values) < 2 or not math.isfinite(pooled.reach(values[:-1], CHECK_CHANCE)):
            continue
        verdicts[case] = Verdict((), 0.0)
        if len(values) < MIN_POINTS or case in levels:
            stops = [level.stop for level in levels[case][:-1]] if case in levels else []
            one = times[:, case], measured[case]
            changes, scatter = _changes(*one, stops, least[case], pooled)
            verdicts[case] = Verdict(_noticed(changes, least[case]), scatter)
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
        is_more = change.new > change.old
        back = new <= change.old * near if is_more else new >= change.old / near
        if back:
            return later
    return None


def slower_than_best(changes: Sequence[Change], least: float = THRESHOLD) -> Regression | None:
    """Return how much slower a case is now than at its best level; ``None`` where the newest level
    is the best, or within the factor ``least`` of it. What is to be checked is no level."""
    steps = [change for change in changes if change.kind == "step"]
    worst = ratio = Ratio(1.0, 1.0, 1.0)
    first = len(steps)
    for place in reversed(range(len(steps))):
        ends = zip(_ends(ratio), _ends(steps[place].ratio), strict=True)
        ratio = Ratio(*(a * b for a, b in ends))
        if ratio.value < worst.value:
            worst, first = ratio, place
    if worst.factor < least:
        return None
    return Regression(worst, tuple(steps[first:]))


def _ends(ratio: Ratio) -> tuple[float, float, float]:
    return ratio.value, ratio.low, ratio.high


def _changes(
    times: Times,
    measured: NDArray[np.intp],
    proposed: Sequence[int],
    least: float,
    pooled: PooledLevels,
) -> tuple[list[Change], float]:
    """Return the steps between levels that hold, what the newest commits left, and the scatter."""
    values = np.log(times[0, measured])
    is_long = len(values) >= MIN_POINTS
    levels = (
        _levels(values, proposed, math.log(least)) if is_long else Levels((0, len(values)), 0.0)
    )
    bounds = [*levels.bounds]
    changes = [
        _step(values, measured, bounds[place - 1 : place + 2], levels.memory)
        for place in range(1, len(bounds) - 1)
    ]
    first = max(bounds[-2] + 1, len(values) - MIN_NEWEST_LEVEL) if is_long else 1
    left = pooled.departures(values, _widths(times[1:, measured]), bounds[-2], first)
    stops = [*(departure.place for departure in left[1:]), len(values)]
    for departure, stop in zip(left, stops, strict=False):
        changes.append(_departure(values, measured, departure, stop))
        bounds.insert(-1, departure.place)
    ends = [np.median(values[i:j]) for i, j in pairwise(bounds)]
    return changes, scatter_of(values - np.repeat(ends, np.diff(bounds)))


def _levels(values: Logarithms, proposed: Sequence[int], least: float) -> Levels:
    """Return the levels of a long series, with those that its newest commits alone show."""
    levels = find_levels(values, proposed, least)
    before = len(values) - TAIL_COMMITS
    if before <= 0:
        return levels
    near = [place - before for place in proposed if place > before]
    recent = find_levels(values[before:], near, least).bounds[1:-1]
    newest = max(levels.bounds[-2], len(values) - TAIL_BOUNDS - 1)
    more = [place + before for place in recent if place + before > newest]
    return Levels((*levels.bounds[:-1], *more, len(values)), levels.memory)


def _widths(ends: NDArray[np.float64]) -> list[float]:
    """Return half the widths of intervals, logarithms; 0 where a file has none."""
    known = (ends[0] > 0) & np.isfinite(ends[1])
    widths: list[float] = (
        (np.log(np.where(known, ends, 1.0)) * [[-0.5], [0.5]]).sum(axis=0).tolist()
    )
    return widths


def _step(
    values: Logarithms, measured: NDArray[np.intp], bounds: Sequence[int], memory: float
) -> Change:
    """Return the step between two levels.

    The 99 % interval of its factor is that of the rank test, corrected for the choice of the place
    among all commits (Bonferroni) and for the memory of the noise.
    """
    quantile = NormalDist().inv_cdf(1 - VERDICT_ERROR / 2 / len(values))
    quantile *= math.sqrt((1 + memory) / (1 - memory))
    start, place, stop = bounds
    old, new = values[start:place], values[place:stop]
    ends = float(np.median(old)), float(np.median(new))
    low, high = rank_interval(old[-MAX_INTERVAL_COMMITS:], new[:MAX_INTERVAL_COMMITS], quantile)
    factor = ends[0] - ends[1]
    ratio = Ratio(math.exp(factor), math.exp(min(-high, factor)), math.exp(max(-low, factor)))
    where = int(measured[place - 1]), int(measured[place])
    levels = math.exp(ends[0]), math.exp(ends[1])
    return Change("step", *where, *levels, ratio, min(len(old), len(new)))


def _departure(
    values: Logarithms, measured: NDArray[np.intp], left: Departure, stop: int
) -> Change:
    """Return what left its level as a change; ``stop`` is where the next one did."""
    new = float(np.median(values[left.place : stop]))
    factor = left.level - new
    ratio = Ratio(*(math.exp(factor + by) for by in (0.0, -left.error, left.error)))
    where = int(measured[left.place - 1]), int(measured[left.place])
    kind: Literal["step", "check"] = "step" if left.commits > 1 else "check"
    commits = stop - left.place
    return Change(kind, *where, math.exp(left.level), math.exp(new), ratio, commits)


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
