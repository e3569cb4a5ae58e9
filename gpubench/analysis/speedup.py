"""Speedups as ratios of medians, with an interval from both times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.results import Timing

Verdict = Literal["faster", "slower", "unclear"]


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times faster a candidate is than its baseline; a pure number."""

    value: float
    low: float
    """Lower end of the interval, 0 when unknown."""
    high: float
    """Upper end of the interval, ``inf`` when unknown."""

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.low > 0 and math.isfinite(self.high)

    @property
    def verdict(self) -> Verdict:
        """``unclear`` where the interval allows 1x or is not known."""
        if not self.has_interval or self.low <= 1 <= self.high:
            return "unclear"
        return "faster" if self.low > 1 else "slower"


def speedup(baseline: Timing, candidate: Timing) -> Speedup:
    """Baseline median over candidate median.

    The interval is the set of all ratios that the two 99 % intervals allow:
    ``baseline.low / candidate.high`` to ``baseline.high / candidate.low``. By Bonferroni's
    inequality it covers the true ratio with at least 98 %, whatever the dependence between the
    two times; they are taken minutes apart on one machine, so that independence, which narrower
    intervals (propagation on the log scale, Fieller's) assume, is not given.
    """
    low = max(baseline.low, 0.0) / candidate.high
    high = baseline.high / candidate.low if candidate.low > 0 else math.inf
    return Speedup(baseline.median / candidate.median, low, high)


def ratios_of(baseline: NDArray[np.float64], candidate: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of many times at once: medians and both ends of their intervals, shape (3, times).

    Ratios and both ends of theirs; NaN where one of the times is.
    """
    low = np.maximum(baseline[1], 0.0) / candidate[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(candidate[1] > 0, baseline[2] / candidate[1], math.inf)
    ratios: NDArray[np.float64] = np.stack([baseline[0] / candidate[0], low, high])
    ratios[:, np.isnan(ratios[0])] = np.nan
    return ratios


def geometric_mean(speedups: Sequence[Speedup]) -> Speedup | None:
    """Geometric mean; ``None`` of nothing.

    The right mean of ratios (Fleming and Wallace, CACM 29(3), 1986). Its interval is that of the
    ends' geometric means: as if all errors had the same sign, so it is never too narrow. An end
    that one of the speedups lacks, the mean lacks too.
    """
    if not speedups:
        return None
    return Speedup(
        _mean(s.value for s in speedups),
        _mean(s.low for s in speedups),
        _mean(s.high for s in speedups),
    )


def _mean(ratios: Iterable[float]) -> float:
    values = list(ratios)
    if 0 in values:
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))
