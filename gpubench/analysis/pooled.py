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
from statistics import NormalDist

import numpy as np

from gpubench.analysis.moderated import (
    Floats,
    Prior,
    fit_prior,
    moderate,
    standard_errors,
    t_quantile,
)

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


_INTERVAL_QUANTILE = 2.576
"""Normal quantile of the 99 % interval that files have."""

_NO_PRIOR = Prior(0.0, 0.0)
"""Of too few series: each has its own scatter alone."""


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
        self._prior = _NO_PRIOR
        if len(pooled) >= MIN_SERIES:
            variances = [values.var(ddof=1) for values in pooled]
            self._prior = fit_prior(variances, [len(values) - 1 for values in pooled])

    def reach(self, level: Floats, chance: float, width: float = 0.0) -> float:
        """Return how far from its level a commit has to be, a logarithm; infinite where nothing
        tells.

        Args:
            level: logarithms of the level's commits.
            chance: of an unchanged commit to be that far.
            width: half the width of the 99 % interval of the commit itself, a logarithm.
        """
        values = level[-POOLED_COMMITS:]
        freedom = len(values) - 1
        if not freedom + self._prior.freedom:
            return math.inf
        own = values.var(ddof=1) if freedom else 0.0
        variance, freedoms = (float(one) for one in moderate(own, freedom, self._prior))
        error = float(standard_errors(variance, len(values), 1))
        # The samples of one commit are many: its own interval needs no t.
        own_reach = width * NormalDist().inv_cdf(1 - chance / 2) / _INTERVAL_QUANTILE
        return math.hypot(_quantile(chance, round(freedoms, 1)) * error, own_reach)

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
            level, is_newest = values[start:place], place + 1 == len(values)
            is_off = self._departs(level, values[place], widths[place], CHECK_CHANCE)
            commits = 1
            if is_off and (is_newest or self._agree(level, values, widths, place)):
                commits = 1 if is_newest else 2
                error = self.reach(level, CHECK_CHANCE, widths[place])
                found.append(Departure(place, commits, _middle_of(level), error))
                start = place
            place += commits
        return found

    def _departs(self, level: Floats, value: float, width: float, chance: float) -> bool:
        """Return whether a value is beyond all of its level, and beyond chance."""
        if not len(level) or level.min() <= value <= level.max():
            return False
        return abs(value - _middle_of(level)) > self.reach(level, chance, width)

    def _agree(self, level: Floats, values: Floats, widths: Sequence[float], place: int) -> bool:
        """Return whether a commit and the next one left a level to the same side, nearer to each
        other than to it."""
        if len(level) < MIN_POOLED:
            return False
        both = values[place : place + 2]
        gaps = both - _middle_of(level)
        near = abs(gaps[1] - gaps[0]) < min(abs(gaps[0]), abs(gaps[1]))
        return (
            gaps[0] * gaps[1] > 0
            and near
            and all(
                self._departs(level, value, width, STEP_CHANCE)
                for value, width in zip(both.tolist(), widths[place : place + 2], strict=True)
            )
        )


def _middle_of(level: Floats) -> float:
    """Return the median of the commits of a level that count."""
    return float(np.median(level[-POOLED_COMMITS:]))


@lru_cache(maxsize=2**12)  # of few freedoms, rounded: finding one takes thirty halvings
def _quantile(chance: float, freedom: float) -> float:
    return float(t_quantile(chance, freedom))
