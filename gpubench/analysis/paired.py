"""The speedup of pairs: samples of baseline and candidate that were taken in turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median

from asv_runner.statistics import quantile_ci

from gpubench.analysis.speedup import Speedup

CONFIDENCE = 0.99

LEAST = 8
"""With fewer ratios no two of them enclose the median with 99 %: 2 / 2**7 is above 1 %."""


def paired_speedup(ratios: Sequence[float], rounds: Sequence[int] = ()) -> Speedup | None:
    """Median of the ratios, baseline over candidate, with a 99 % interval; ``None`` of none.

    ``rounds`` says how many of the ratios each round gave. The pairs of one round share their
    buffers and are not independent: from ``LEAST`` rounds on, each counts once, by its median.

    The interval lies between two order statistics, chosen by the binomial distribution (the sign
    test turned round; Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2). It
    assumes that what it counts is independent, and nothing of its distribution: outliers, skew and
    drift that meets both halves of a pair do no harm. The Hodges-Lehmann estimate with Wilcoxon's
    interval is a little narrower, but assumes that the ratios lie symmetrically on a log scale.
    With fewer than ``LEAST`` ratios the ends are unknown.
    """
    if not ratios:
        return None
    counted = _by_round(ratios, rounds) if len(rounds) >= LEAST else list(ratios)
    middle, (low, high) = quantile_ci(counted, 0.5, 1 - CONFIDENCE)
    return Speedup(middle, max(low, 0.0), high)


def _by_round(ratios: Sequence[float], rounds: Sequence[int]) -> list[float]:
    """Median of the ratios of each round."""
    ends = list(accumulate(rounds))
    return [median(ratios[end - count : end]) for count, end in zip(rounds, ends, strict=True)]
