"""The speedup of pairs: samples of baseline and candidate that were taken in turn."""

from __future__ import annotations

from collections.abc import Sequence

from asv_runner.statistics import quantile_ci

from gpubench.analysis.speedup import Speedup

CONFIDENCE = 0.99

LEAST_PAIRS = 8
"""With fewer, no order statistics enclose the median with 99 %: 2 / 2**7 is above 1 %."""


def paired_speedup(ratios: Sequence[float]) -> Speedup | None:
    """Median of the ratios, baseline over candidate, with a 99 % interval; ``None`` of none.

    The interval lies between two order statistics, chosen by the binomial distribution (the sign
    test turned round; Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2). It
    assumes that pairs are independent and nothing of their distribution: outliers, skew and drift
    that meets both halves of a pair do no harm. The Hodges-Lehmann estimate with Wilcoxon's
    interval is a little narrower, but assumes that the ratios lie symmetrically on a log scale.
    With fewer than ``LEAST_PAIRS`` the ends are unknown.
    """
    if not ratios:
        return None
    median, (low, high) = quantile_ci(list(ratios), 0.5, 1 - CONFIDENCE)
    return Speedup(median, max(low, 0.0), high)
