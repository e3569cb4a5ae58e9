"""Where a time changed: steps of asv's fit over many commits, differences between neighbours.

Most of a long history is what it was a commit ago. So it is fitted up to a block before its end,
whatever comes after, and the newest blocks are fitted with the last one of that part. A fit of the
first part that was kept holds for the next commits as well, and comes out as if it were made anew.
Where nothing was added, both parts are at hand.

What the constants decide, as ``scripts/steps_found.py 10 NAME=VALUE`` counts it in 3,200 series of
24 to 500 commits, of which 1,198 hold a step of six standard deviations or more and 1,280 none:

======================= ====== ========
constant                missed invented
======================= ====== ========
as they are                  0        0
``PENALTY`` 0.75             0        2
``PENALTY`` 1.5              0        2
``PENALTY`` 6                0        1
``PENALTY`` 12               2        0
``LASTING`` 2                0        9
``LASTING_NEWEST`` 1         0        2
``LONG`` 10000               0        2
``BLOCK`` 16 or 64           0        0
======================= ====== ========
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpubench.parallel import in_processes
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

BLOCK = 32
"""Values that are settled at once: more cost more time for each new commit, fewer hide more of a
level from the fit of the newest blocks."""

PIECE = 20
"""Most values of a piece, before pieces are merged into levels: that of asv's approximate fit."""

FEW = 100
"""Values that are sorted faster as a list than as an array."""

TOGETHER = 64
"""Series that are fitted at once: more do not save time, and each takes 160 KB for 1,000 values."""

MUCH = 500_000
"""Times without a kept fit from which more than one process looks for changes.

That many take more than a second, 2 to 3 us each; a process is ready after 0.4 s.
"""

IN_PART = 100_000
"""Times that a process is given at once, some 2.4 MB; it looks through them in a few tenths of a
second."""

_PER_DIFFERENCE = math.sqrt(1 / math.pi) / 0.6745
"""Mean absolute deviation of normal values over the median absolute difference of two of them."""

_MEDIAN_ERROR = math.pi / 2
"""Standard error of a median of n normal values, in mean absolute deviations over sqrt(n).

The median's is sqrt(pi / 2) standard deviations, and a deviation sqrt(pi / 2) mean absolute ones.
"""

Logarithms = NDArray[np.float64]
"""Of the medians of one case at the commits that measured it, oldest first."""

Stops = tuple[int, ...]
"""Where levels end: index of the first value after each; the last is the number of values."""

Kept = Mapping[bytes, Stops]
"""Fits by a digest of what they are of, so that they are never out of date."""


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

    @property
    def size(self) -> float:
        """How many times faster or slower; at least 1."""
        return max(self.ratio.value, 1 / self.ratio.value)


class Level(NamedTuple):
    """One stretch of a fit."""

    start: int
    stop: int
    value: float
    """Median over the stretch."""

    @property
    def length(self) -> int:
        return self.stop - self.start


def changes_of(
    history: CaseHistories, kept: Kept
) -> tuple[dict[CaseName, tuple[Change, ...]], dict[bytes, Stops]]:
    """Changes of every case of a setup, oldest first, and the fits to keep for the next time.

    ``kept`` are those of the last time.
    """
    return changes_of_parts([history], kept)


def changes_of_parts(
    histories: Iterable[CaseHistories], kept: Kept, processes: int = 1
) -> tuple[dict[CaseName, tuple[Change, ...]], dict[bytes, Stops]]:
    """``changes_of`` a setup of which a part at a time is in memory."""
    waiting: deque[tuple[CaseName, ...]] = deque()

    def parts() -> Iterator[tuple[Times, Kept]]:
        for history in histories:
            size = max(IN_PART // len(history.snapshots), 1)
            for start in range(0, len(history.names), size):
                several = slice(start, start + size)
                waiting.append(history.names[several])
                yield history.undisturbed[:, several], kept

    changes: dict[CaseName, tuple[Change, ...]] = {}
    fits: dict[bytes, Stops] = {}
    for outcomes in in_processes(_changes_of, parts(), processes):
        for name, (of_case, used) in zip(waiting.popleft(), outcomes, strict=True):
            changes[name] = of_case
            fits |= used
    return changes, fits


def is_much(times: int, kept: Kept) -> bool:
    """Whether several processes look for changes in so many times."""
    return not kept and times >= MUCH


def _changes_of(
    part: tuple[Times, Kept],
) -> list[tuple[tuple[Change, ...], dict[bytes, Stops]]]:
    of_cases, kept = part
    each = [(of_cases[:, case], Fits(kept)) for case in range(of_cases.shape[1])]
    fit_together([(np.log(times[0, ~np.isnan(times[0])]), fits) for times, fits in each])
    return [(changes_in(times, fits), fits.used) for times, fits in each]


def changes_in(times: Times, fits: Fits) -> tuple[Change, ...]:
    """Changes in one case's times, oldest first; ``times`` has shape (3, snapshots), NaN where
    there is none that counts.

    From ten measured commits on, steps of asv's fit on the logarithm of the times, so that a
    doubling and a halving weigh the same. A step is claimed where both levels hold for three
    commits (in long histories four, the newest two, and any that is ``FAR`` off two) and the
    interval of their ratio excludes 1x; a level of the newest commit alone is a ``difference``, if
    the two intervals do not overlap. With fewer than ten commits, each is held against the one
    before it in that way. Changes under 5 % are left out in all of them.
    """
    measured = np.flatnonzero(~np.isnan(times[0]))
    if len(measured) < FEWEST_POINTS:
        changes = _differences(times, measured)
    else:
        changes = _steps(times, measured, fits)
    return tuple(change for change in changes if change.size >= THRESHOLD)


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


def _steps(times: Times, measured: NDArray[np.intp], fits: Fits) -> list[Change]:
    """Steps between levels that last, and the newest commit where it stands alone.

    The 99 % interval of a step's factor comes from the scatter by the standard error of a median.
    The fit chose the place among all commits: Bonferroni's correction for that keeps it honest
    after the choice.
    """
    values = np.log(times[0, measured])
    newest = _differences(times, measured[-2:])
    if not newest and not may_hold_a_step(values):
        return []
    levels = fit(values, fits)
    least = LASTING + (len(values) >= LONG)
    scatter = _scatter(values, levels) if len(levels) > 1 else 0.0
    lasting = []
    for place, level in enumerate(levels):
        near = [other.value for other in (*levels[:place][-1:], *levels[place + 1 :][:1])]
        apart = min((abs(level.value - value) for value in near), default=0.0)
        is_short = level is levels[-1] or apart >= FAR * max(scatter, FINEST)
        if level.length >= (LASTING_NEWEST if is_short else least):
            lasting.append(level)
    steps = []
    if len(lasting) > 1:
        quantile = NormalDist().inv_cdf(1 - ERROR / 2 / len(values))
        error = _MEDIAN_ERROR * scatter
        for old, new in pairwise(lasting):
            factor = old.value - new.value
            half = quantile * (error * math.sqrt(1 / old.length + 1 / new.length))
            if abs(factor) > half:
                ratio = Ratio(*(math.exp(end) for end in (factor, factor - half, factor + half)))
                before, after = int(measured[old.stop - 1]), int(measured[new.start])
                ends = math.exp(old.value), math.exp(new.value)
                steps.append(Change("step", before, after, *ends, ratio))
    is_alone = len(levels) > 1 and levels[-1].length < LASTING_NEWEST
    return steps + newest if is_alone else steps


def may_hold_a_step(values: Logarithms) -> bool:
    """Whether two levels of two or more neighbours can be apart by ``THRESHOLD``.

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
    return _median(np.abs(np.diff(values))) * _PER_DIFFERENCE


class Fits:
    """Where the levels of asv's fit end (a Potts model with absolute deviations), by the values."""

    def __init__(self, kept: Kept | None = None) -> None:
        self._kept = kept or {}
        self.used: dict[bytes, Stops] = {}
        """What was asked for, whether it was kept or had to be made."""

    def of(self, values: Logarithms, start: int = 0) -> Stops:
        """Of the values from ``start`` on, which follows from them; a jump costs what it does in
        all of them."""
        stops = self.at_hand(values)
        if stops is None:
            _fit([(values, start, self)])
            return self.used[_key(values)]
        self.keep(values, stops)
        return stops

    def at_hand(self, values: Logarithms) -> Stops | None:
        """What was kept or made before of these values."""
        key = _key(values)
        stops = self._kept.get(key) or self.used.get(key, ())
        return stops if stops[-1:] == (len(values),) else None

    def keep(self, values: Logarithms, stops: Stops) -> None:
        """Have them at hand."""
        self.used[_key(values)] = stops


def _key(values: Logarithms) -> bytes:
    # The constants belong to the key: kept fits must not outlive a change of them.
    made_with = f"{PENALTY} {THRESHOLD}".encode()
    return hashlib.blake2b(values.tobytes(), digest_size=16, key=made_with).digest()


def jump_cost(values: Logarithms) -> float:
    """What a jump costs a fit: as much as ``PENALTY * log(n)`` values scatter.

    At least the smallest change that is reported: times that repeat exactly would be fitted one by
    one, and a level that lasts two commits explains more than that.

    ``asv.step_detect.detect_steps`` seeks the cost by fitting about ten times instead: it takes
    eight times as long, and misses a few in a thousand clear steps, since it can explain one by
    noise that remembers.
    """
    return max(PENALTY * _quick_scatter(values) * math.log(len(values)), math.log(THRESHOLD))


def fit(values: Logarithms, fits: Fits) -> list[Level]:
    """Levels of a series; ``fits`` has those of its two parts, or learns them."""
    settled, start = before_newest(values, fits)
    stops = (*settled, *fits.of(values, start))
    starts = (0, *stops[:-1])
    return [
        Level(first, stop, _median(values[first:stop]))
        for first, stop in zip(starts, stops, strict=True)
    ]


def before_newest(values: Logarithms, fits: Fits) -> tuple[Stops, int]:
    """Where levels end before the newest values, and where these begin."""
    length = settled_length(len(values))
    if not length:
        return (), 0
    settled, usual = fits.of(values[:length]), length - BLOCK
    # The newest values begin at a level's end where there is one near. From a place shortly
    # before that end the fit could not see it: a level of a few values costs more than it
    # explains.
    near = [stop for stop in settled if abs(stop - usual) < BLOCK // 2]
    start = min(near, key=lambda stop: abs(stop - usual), default=usual)
    return tuple(stop for stop in settled if stop <= start), start


def fit_together(series: Iterable[tuple[Logarithms, Fits]]) -> None:
    """Fit both parts of the series that may hold a step, as ``fit`` does one after the other."""
    fitted = [
        (values, fits)
        for values, fits in series
        if len(values) >= FEWEST_POINTS and may_hold_a_step(values)
    ]
    fit_settled(fitted)
    _fit((values, before_newest(values, fits)[1], fits) for values, fits in fitted)


def fit_settled(series: Iterable[tuple[Logarithms, Fits]]) -> None:
    """Fit the settled parts of many series."""
    _fit(
        (settled, 0, fits)
        for values, fits in series
        if len(settled := values[: settled_length(len(values))])
    )


def _fit(parts: Iterable[tuple[Logarithms, int, Fits]]) -> None:
    """Fit values from a place on, unless that is at hand: ``asv.step_detect.solve_potts_approx``.

    Not by asv, which fits one series at a time: the best partition of many at once takes a sixth
    of its time, and lists of few values and arrays of many half of it.
    """
    lacking = [part for part in parts if part[2].at_hand(part[0]) is None]
    for first in range(0, len(lacking), TOGETHER):
        several = lacking[first : first + TOGETHER]
        costs = np.array([jump_cost(values) for values, _, _ in several])
        pieces_of = best_pieces([values[start:] for values, start, _ in several], costs)
        for part, cost, pieces in zip(several, costs.tolist(), pieces_of, strict=True):
            values, start, fits = part
            stops = joined_pieces(values[start:], cost, pieces)
            fits.keep(values, tuple(start + stop for stop in stops))


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


def joined_pieces(values: Logarithms, cost: float, stops: Sequence[int]) -> list[int]:
    """Where levels end: neighbouring pieces are joined while that costs less, then the ends are
    moved by ``PIECE`` values at most. ``asv.step_detect.merge_pieces``."""
    ends = [0, *stops]
    listed: list[float] = values.tolist()

    @cache
    def deviations(start: int, stop: int) -> float:
        """Sum of the deviations from the median."""
        half = (stop - start) // 2
        if stop - start < FEW:
            ordered = sorted(listed[start:stop])
            return sum(ordered[stop - start - half :]) - sum(ordered[:half])
        away = values[start:stop].copy()
        away.partition(half)
        return float(np.add.reduce(np.abs(away - away[half])))

    def added(place: int) -> float:
        """What it costs to join the two pieces that meet at an end."""
        start, end, stop = ends[place : place + 3]
        return deviations(start, stop) - (deviations(start, end) + deviations(end, stop) + cost)

    costs = [*map(added, range(len(ends) - 2))]
    # The first that costs less, or one after it, as long as the next one is better still.
    while (place := next((n for n, more in enumerate(costs) if more <= 0), -1)) >= 0:
        while place + 1 < len(costs) and costs[place + 1] <= costs[place]:
            place += 1
        del costs[place], ends[place + 1]
        for near in range(max(place - 1, 0), min(place + 1, len(costs))):
            costs[near] = added(near)
    for place in range(1, len(ends) - 1):
        start, end, stop = ends[place - 1 : place + 2]

        def apart(at: int, start: int = start, stop: int = stop) -> float:
            return deviations(start, at) + deviations(at, stop)

        best = min(range(max(end - PIECE, start + 1), min(end + PIECE + 1, stop)), key=apart)
        if apart(best) < apart(end):
            ends[place] = best
    return ends[1:]


def settled_length(count: int) -> int:
    """How many of so many values, from the start, are fitted apart; 0 where there are too few."""
    settled = (count // BLOCK - 1) * BLOCK
    return settled if settled >= 2 * BLOCK else 0


def _median(values: Logarithms) -> float:
    """As ``np.median`` of values without NaN, in a fifth of the time for the few of a level."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    lower, upper = ordered[middle - 1 + len(ordered) % 2], ordered[middle]
    return float((lower + upper) / 2)
