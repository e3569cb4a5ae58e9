"""Where a time changed: steps by asv's own detector, or two commits set side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from asv.step_detect import detect_steps

from gpubench.results import Timing

FEWEST_POINTS = 10
"""Below, the detector claims steps that are not there (precision 0.37 at 6 points, 0.97 at 10)."""

THRESHOLD = 1.05
"""Smallest factor that is reported; asv's own default for regressions, 5 %."""


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

    @property
    def factor(self) -> float:
        """Old time over new time: above 1 it became faster."""
        return self.old / self.new

    @property
    def slower(self) -> bool:
        return self.new > self.old

    @property
    def size(self) -> float:
        """How many times faster or slower; at least 1."""
        return max(self.factor, 1 / self.factor)


def find_changes(timings: Sequence[Timing | None]) -> tuple[Change, ...]:
    """Changes in one case's times over commits, oldest first; ``None`` where there is no time.

    From ten measured points on, steps of ``asv.step_detect`` on the logarithm of the times, so
    that a doubling and a halving weigh the same. With fewer, each measured commit is held
    against the one before it: their 99 % intervals must not overlap. Changes under 5 % are left
    out in both.
    """
    measured = [index for index, timing in enumerate(timings) if timing is not None]
    if not _spread_enough(timings):
        return ()
    if len(measured) >= FEWEST_POINTS:
        found = _steps(timings)
    else:
        found = [_difference(timings, *pair) for pair in pairwise(measured)]
    return tuple(change for change in found if change and change.size >= THRESHOLD)


def _spread_enough(timings: Sequence[Timing | None]) -> bool:
    """Whether any two times are apart by the threshold; the detector is slow and most are not."""
    medians = [timing.median for timing in timings if timing]
    return bool(medians) and max(medians) >= THRESHOLD * min(medians)


def _steps(timings: Sequence[Timing | None]) -> list[Change | None]:
    levels = detect_steps([math.log(t.median) if t else None for t in timings])
    return [
        Change("step", left[1] - 1, right[0], math.exp(left[2]), math.exp(right[2]))
        for left, right in pairwise(levels)
    ]


def _difference(timings: Sequence[Timing | None], before: int, after: int) -> Change | None:
    old, new = timings[before], timings[after]
    if old is None or new is None or not (old.has_interval and new.has_interval):
        return None
    if old.low <= new.high and new.low <= old.high:
        return None
    return Change("difference", before, after, old.median, new.median)
