"""Levels of a series of values: asv's stepwise fit, whose settled part new commits leave alone.

Most of a long history is what it was a commit ago. So it is fitted up to a block before its end,
whatever comes after, and the newest blocks are fitted with the last one of that part: a fit that is
at hand holds for the next commits as well, and comes out the same as if it were made anew.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

Stops = tuple[int, ...]
"""Where levels end: index of the first value after each; the last is the number of values."""

BLOCK = 32
"""Values that are settled at once."""

PENALTY = 3.0
"""Cost of a jump in the fit, in scatters of one value times the logarithm of their number."""

_PER_DIFFERENCE = math.sqrt(1 / math.pi) / 0.6745
"""Mean absolute deviation of normal values over the median absolute difference of two of them."""

_LEAST_SCATTER = 0.0025
"""Logarithm of a factor; keeps times that repeat exactly from being fitted one by one."""


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


def settled_length(count: int) -> int:
    """How many of so many values, from the start, are fitted apart; 0 where there are too few."""
    settled = (count // BLOCK - 1) * BLOCK
    return settled if settled >= 2 * BLOCK else 0


class SettledFits:
    """Where the levels of settled values end, by the values."""

    def __init__(self, known: Mapping[bytes, Stops] | None = None) -> None:
        self._known = known or {}
        self.used: dict[bytes, Stops] = {}
        """What was asked for, whether it was known or had to be made."""

    def of(self, values: Values) -> Stops:
        """Of these values."""
        key = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
        stops = self._known.get(key)
        if stops is None or stops[-1:] != (len(values),):
            stops = _stops(values, _cost(values))
        self.used[key] = stops
        return stops


def fit(values: Values, fits: SettledFits) -> list[Level]:
    """Levels of a series; ``fits`` knows those of its settled part, or learns them."""
    length = settled_length(len(values))
    if length == 0:
        return _levels(values, _stops(values, _cost(values)))
    settled = fits.of(values[:length])
    start = _joint(settled, length - BLOCK)
    newest = _stops(values[start:], _cost(values))
    kept = (stop for stop in settled if stop <= start)
    return _levels(values, [*kept, *(start + stop for stop in newest)])


def _joint(settled: Stops, usual: int) -> int:
    """Where the fit of the newest values starts: at a level's end where there is one near.

    From a place shortly before that end the fit could not see it: a level of a few values costs
    more than it explains.
    """
    near = [stop for stop in settled if abs(stop - usual) < BLOCK // 2]
    return min(near, key=lambda stop: abs(stop - usual), default=usual)


def quick_scatter(values: Values) -> float:
    """Mean absolute deviation from the levels, told from the differences of neighbours.

    Steps, of which there are few, do not count in it.
    """
    return _median(np.abs(np.diff(values))) * _PER_DIFFERENCE


def _cost(values: Values) -> float:
    """What a jump costs: as much as ``PENALTY * log(n)`` values scatter.

    ``asv.step_detect.detect_steps`` seeks the cost by fitting about ten times instead: it takes
    eight times as long, and misses a few in a thousand clear steps, since it can explain one by
    noise that remembers.
    """
    return PENALTY * max(quick_scatter(values), _LEAST_SCATTER) * math.log(len(values))


def _stops(values: Values, cost: float) -> Stops:
    """Where the levels of asv's fit end (a Potts model with absolute deviations)."""
    from asv.step_detect import solve_potts_approx  # not at the top: asv imports its plugins

    stops, _, _ = solve_potts_approx(values.tolist(), [1.0] * len(values), gamma=cost)
    return tuple(stops)


def _levels(values: Values, stops: Sequence[int]) -> list[Level]:
    starts = (0, *stops[:-1])
    return [
        Level(start, stop, _median(values[start:stop]))
        for start, stop in zip(starts, stops, strict=True)
    ]


def _median(values: Values) -> float:
    """As ``np.median`` of values without NaN, in a fifth of the time for the few of a level."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    lower, upper = ordered[middle - 1 + len(ordered) % 2], ordered[middle]
    return float((lower + upper) / 2)
