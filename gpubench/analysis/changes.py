"""Where a time changed: steps of asv's fit over many commits, differences between neighbours.

Most of a long history is what it was a commit ago. So it is fitted up to a block before its end,
whatever comes after, and the newest blocks are fitted with the last one of that part. A fit of the
first part that was kept holds for the next commits as well, and comes out as if it were made anew.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.parallel import spread
from gpubench.results import CaseName, History, Ratio, Times
from gpubench.results.ratio import quotient

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

PENALTY = 3.0
"""Cost of a jump in the fit, in scatters of one value times the logarithm of their number.

That of ``asv.step_detect.solve_potts_approx``, where it is not given.
"""

BLOCK = 32
"""Values that are settled at once: more cost more time for each new commit, fewer hide more of a
level from the fit of the newest blocks."""

MUCH = 200_000
"""Times without a kept fit from which more than one process looks for changes.

That many take some two seconds, 9 to 15 us each; a process is ready after 0.4 s.
"""

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

Fits = Mapping[bytes, Stops]
"""Stops of settled values by a digest of the values, so that they are never out of date."""


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


@dataclass(frozen=True, slots=True)
class Level:
    """One stretch of a fit."""

    start: int
    stop: int
    value: float
    """Median over the stretch."""

    @property
    def length(self) -> int:
        return self.stop - self.start


def changes_of(
    history: History, kept: Fits
) -> tuple[dict[CaseName, tuple[Change, ...]], dict[bytes, Stops]]:
    """Changes of every case of a setup, oldest first, and the fits to keep for the next time.

    ``kept`` are those of the last time. Much without them is spread over several processes.
    """
    series = [history.times[:, index] for index in range(len(history.names))]
    is_much = not kept and history.times[0].size >= MUCH
    outcomes = list(spread(partial(_changes_of, kept=kept), series, None if is_much else 1))
    changes = {name: outcome[0] for name, outcome in zip(history.names, outcomes, strict=True)}
    return changes, {key: stops for _, used in outcomes for key, stops in used.items()}


def _changes_of(
    series: Iterable[Times], kept: Fits
) -> list[tuple[tuple[Change, ...], dict[bytes, Stops]]]:
    outcomes = []
    for times in series:
        fits = SettledFits(kept)
        outcomes.append((changes_in(times, fits), fits.used))
    return outcomes


def changes_in(times: Times, fits: SettledFits) -> tuple[Change, ...]:
    """Changes in one case's times, oldest first; ``times`` has shape (3, snapshots).

    From ten measured commits on, steps of asv's fit on the logarithm of the times, so that a
    doubling and a halving weigh the same. A step is claimed where both levels hold for three
    commits (in long histories four, the newest two) and the interval of their ratio excludes 1x; a
    level of the newest commit alone is a ``difference``, if the two intervals do not overlap. With
    fewer than ten commits, each is held against the one before it in that way. Changes under 5 %
    are left out in all of them.
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


def _steps(times: Times, measured: NDArray[np.intp], fits: SettledFits) -> list[Change]:
    """Steps between levels that last, and the newest commit where it stands alone."""
    values = np.log(times[0, measured])
    newest = _differences(times, measured[-2:])
    if not newest and not may_hold_a_step(values):
        return []
    levels = fit(values, fits)
    least = LASTING + (len(values) >= LONG)
    lasting = [level for level in levels[:-1] if level.length >= least]
    lasting += [level for level in levels[-1:] if level.length >= LASTING_NEWEST]
    steps = []
    if len(lasting) > 1:
        scatter = _scatter(values, levels)
        steps = [_step(old, new, scatter, measured) for old, new in pairwise(lasting)]
    clear = [step for step in steps if step.ratio.verdict != "unclear"]
    newest_is_alone = len(levels) > 1 and levels[-1].length < LASTING_NEWEST
    return clear + newest if newest_is_alone else clear


def _step(old: Level, new: Level, scatter: float, measured: NDArray[np.intp]) -> Change:
    """A step with the 99 % interval of its factor.

    The interval comes from the scatter by the standard error of a median. The fit chose the place
    among all commits: Bonferroni's correction for that keeps it honest after the choice.
    """
    quantile = NormalDist().inv_cdf(1 - 0.005 / len(measured))
    error = _MEDIAN_ERROR * scatter * math.sqrt(1 / old.length + 1 / new.length)
    factor, half = old.value - new.value, quantile * error
    return Change(
        "step",
        before=int(measured[old.stop - 1]),
        after=int(measured[new.start]),
        old=math.exp(old.value),
        new=math.exp(new.value),
        ratio=Ratio(math.exp(factor), math.exp(factor - half), math.exp(factor + half)),
    )


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
    and raised as for noise with a memory (autoregressive of order one).

    Two estimates of the memory count alike. What the fit leaves, alone, gives twice as many steps
    in noise with a memory of 0.9 that has none; the differences alone miss one planted step in
    eighty.
    """
    fitted = np.repeat([level.value for level in levels], [level.length for level in levels])
    left = values - fitted
    freedom = max(len(values) - len(levels), 1)
    # Noise that remembers longer than the history lasts cannot be told from a level.
    most = 1 - 1 / len(values)
    memory = min((_memory_left(left) + _memory(values)) / 2, most)
    from_neighbours = quick_scatter(values) / math.sqrt(1 - memory)
    scatter = max(float(np.abs(left).sum()) / freedom, from_neighbours)
    return scatter * math.sqrt((1 + memory) / (1 - memory))


def _memory_left(left: Logarithms) -> float:
    """Correlation of neighbours in what a fit leaves; too low where it fitted slow noise."""
    squares, product = float(left @ left), float(left[1:] @ left[:-1])
    return max(product / squares, 0.0) if squares > 0 else 0.0


def _memory(values: Logarithms) -> float:
    """Correlation r of neighbours, without knowing the levels; too high by chance in short series.

    Noise with a memory differs by sqrt(1 - r) from one commit to the next and by sqrt(1 - r * r)
    over two, so that the squared ratio is 1 + r; a step counts in one difference or two.
    """
    near, far = (_usual_square(values, lag) for lag in (1, 2))
    chance = 1 / math.sqrt(len(values))
    return min(max(far / near - 1 - chance, 0.0), 1.0) if near > 0 else 0.0


def _usual_square(values: Logarithms, lag: int) -> float:
    """Mean of the squared differences without the largest fifth, where steps and outliers are."""
    squares = (values[lag:] - values[:-lag]) ** 2
    usual = max(4 * len(squares) // 5, 1)
    return float(np.partition(squares, usual - 1)[:usual].mean())


class SettledFits:
    """Where the levels of settled values end, by the values."""

    def __init__(self, kept: Fits | None = None) -> None:
        self._kept = kept or {}
        self.used: dict[bytes, Stops] = {}
        """What was asked for, whether it was kept or had to be made."""

    def of(self, values: Logarithms) -> Stops:
        """Of these values."""
        key = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
        stops = self._kept.get(key)
        if stops is None or stops[-1:] != (len(values),):
            stops = _stops(values, _cost(values))
        self.used[key] = stops
        return stops


def fit(values: Logarithms, fits: SettledFits) -> list[Level]:
    """Levels of a series; ``fits`` has those of its settled part, or learns them."""
    length = settled_length(len(values))
    if length == 0:
        return _levels(values, _stops(values, _cost(values)))
    settled = fits.of(values[:length])
    start = _joint(settled, length - BLOCK)
    newest = _stops(values[start:], _cost(values))
    lasting = (stop for stop in settled if stop <= start)
    return _levels(values, [*lasting, *(start + stop for stop in newest)])


def settled_length(count: int) -> int:
    """How many of so many values, from the start, are fitted apart; 0 where there are too few."""
    settled = (count // BLOCK - 1) * BLOCK
    return settled if settled >= 2 * BLOCK else 0


def _joint(settled: Stops, usual: int) -> int:
    """Where the fit of the newest values starts: at a level's end where there is one near.

    From a place shortly before that end the fit could not see it: a level of a few values costs
    more than it explains.
    """
    near = [stop for stop in settled if abs(stop - usual) < BLOCK // 2]
    return min(near, key=lambda stop: abs(stop - usual), default=usual)


def quick_scatter(values: Logarithms) -> float:
    """Mean absolute deviation from the levels, told from the differences of neighbours.

    Steps, of which there are few, do not count in it.
    """
    return _median(np.abs(np.diff(values))) * _PER_DIFFERENCE


def _cost(values: Logarithms) -> float:
    """What a jump costs: as much as ``PENALTY * log(n)`` values scatter.

    At least the smallest change that is reported: times that repeat exactly would be fitted one by
    one, and a level that lasts two commits explains more than that.

    ``asv.step_detect.detect_steps`` seeks the cost by fitting about ten times instead: it takes
    eight times as long, and misses a few in a thousand clear steps, since it can explain one by
    noise that remembers.
    """
    return max(PENALTY * quick_scatter(values) * math.log(len(values)), math.log(THRESHOLD))


def _stops(values: Logarithms, cost: float) -> Stops:
    """Where the levels of asv's fit end (a Potts model with absolute deviations)."""
    from asv.step_detect import solve_potts_approx  # not at the top: asv imports its plugins

    stops, _, _ = solve_potts_approx(values.tolist(), [1.0] * len(values), gamma=cost)
    return tuple(stops)


def _levels(values: Logarithms, stops: Sequence[int]) -> list[Level]:
    starts = (0, *stops[:-1])
    return [
        Level(start, stop, _median(values[start:stop]))
        for start, stop in zip(starts, stops, strict=True)
    ]


def _median(values: Logarithms) -> float:
    """As ``np.median`` of values without NaN, in a fifth of the time for the few of a level."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    lower, upper = ordered[middle - 1 + len(ordered) % 2], ordered[middle]
    return float((lower + upper) / 2)
