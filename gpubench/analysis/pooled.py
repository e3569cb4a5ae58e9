"""Whether a commit left the level before it, where too few commits follow for ranks to tell.

The rule of a series: a commit is held against the level since the last step, pooled over up to
``POOLED_COMMITS`` commits, by the moderated t (``gpubench.analysis.moderated``). The scatter is
that of the level itself, shrunk towards that of all series that are judged together. So a commit is
in no scatter that it is judged by.

One commit beyond everything that its level holds is *to be checked*: it may be the run. Two that
follow each other and agree are a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.moderated import MIN_VARIANCE, Prior, fit_prior, t_quantile

Floats = NDArray[np.float64]

POOLED_COMMITS = 10
"""Newest commits of a level that count: older ones were often measured by another machine in all
but name."""

STEP_CHANCE = 0.002
"""Chance of each of two neighbours that agree."""

CHECK_CHANCE = 0.01
"""Chance of a commit that is to be checked, and of what its interval leaves out."""

MIN_SERIES = 5
"""Series from which what they have in common says how one of them scatters."""

MIN_POOLED = 2
"""Commits of a level from which a step can leave it: a single one may itself be off."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Where a series left its level, as an index into its commits."""

    place: int
    commits: int
    """1: to be checked; 2: a step."""
    level: float
    """Logarithm: median of the level that it left."""
    error: float
    """How far the interval of the difference reaches to either side, a logarithm."""


class PooledLevels:
    """What is known of the scatter of series that are judged together."""

    def __init__(self, series: Iterable[Floats]) -> None:
        pooled = [values[-POOLED_COMMITS - 1 :] for values in series if len(values) > 1]
        # Without the newest, which may be changed, where enough are left.
        pooled = [values[:-1] if len(values) > MIN_POOLED + 1 else values for values in pooled]
        self.prior: Prior | None = None
        if len(pooled) >= MIN_SERIES:
            variances = [values.var(ddof=1) for values in pooled]
            self.prior = fit_prior(variances, [len(values) - 1 for values in pooled])
        self._prior_freedom = round(self.prior.freedom, 1) if self.prior else 0.0

    def reach(self, level: Floats, chance: float, width: float = 0.0) -> float:
        """Return how far from its level a commit has to be, a logarithm; infinite where nothing
        tells.

        Args:
            level: logarithms of the level's commits.
            chance: of an unchanged commit to be that far.
            width: half the width of the 99 % interval of the commit itself, a logarithm.
        """
        values = level[-POOLED_COMMITS:]
        freedom, variance = len(values) - 1, 0.0
        if freedom:
            variance = float(values.var(ddof=1)) * freedom
        if self.prior:
            variance += self.prior.freedom * self.prior.variance
            variance /= self.prior.freedom + freedom
        elif freedom:
            variance /= freedom
        else:
            return math.inf
        error = max(variance, MIN_VARIANCE) * (1 + 1 / len(values))
        # 2.576: normal quantile of the 99 % interval that files have.
        quantile = _quantile(chance, freedom + self._prior_freedom)
        return quantile * math.sqrt(error + (width / 2.576) ** 2)

    def departures(
        self, values: Floats, widths: Sequence[float], start: int, first: int
    ) -> list[Departure]:
        """Return where a series left its level, from its commit ``first`` on, oldest first.

        Args:
            values: logarithms, shape (commits,).
            widths: half widths of their 99 % intervals; 0 where files have none.
            start: first commit of the level before ``first``.
        """
        found, place = [], first
        while place < len(values):
            level = values[start:place]
            off = self._departs(level, values[place], widths[place], CHECK_CHANCE)
            commits = 1
            if off and place + 1 < len(values):
                commits = 2 if self._agree(level, values, widths, place) else 0
            if off and commits:
                middle = float(np.median(level[-POOLED_COMMITS:]))
                error = self.reach(level, CHECK_CHANCE, widths[place])
                found.append(Departure(place, commits, middle, error))
                start = place if commits > 1 else start
            place += max(commits, 1) if off else 1
        return found

    def _departs(self, level: Floats, value: float, width: float, chance: float) -> bool:
        """Return whether a value is beyond all of its level, and beyond chance."""
        if not len(level) or level.min() <= value <= level.max():
            return False
        middle = float(np.median(level[-POOLED_COMMITS:]))
        return abs(value - middle) > self.reach(level, chance, width)

    def _agree(self, level: Floats, values: Floats, widths: Sequence[float], place: int) -> bool:
        """Return whether a commit and the next one left a level to the same side, nearer to each
        other than to it."""
        if len(level) < MIN_POOLED:
            return False
        both = values[place : place + 2]
        gaps = both - float(np.median(level[-POOLED_COMMITS:]))
        near = abs(gaps[1] - gaps[0]) < min(abs(gaps[0]), abs(gaps[1]))
        return (
            gaps[0] * gaps[1] > 0
            and near
            and all(
                self._departs(level, value, width, STEP_CHANCE)
                for value, width in zip(both.tolist(), widths[place : place + 2], strict=True)
            )
        )


@lru_cache(maxsize=2**12)
def _quantile(chance: float, freedom: float) -> float:
    return float(t_quantile(chance, freedom))
