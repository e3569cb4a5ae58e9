"""How sure a difference is while it is still measured: intervals that hold however often somebody
looks.

Two commits are measured in turn, a process each, and a *pair* of processes gives the logarithm of
their ratio. Where the commits do not differ, which of the two was slower is a fair coin, whatever
times look like: heavy tails, two modes, or a machine that is busy for a while. So the interval of
the middle is that of Wilcoxon's signed-rank test (``results.ratio.signed_rank_interval``), which
assumes no more than that pairs are independent and lie alike on both sides of their middle.

Looks are planned, and the error is spent on them (alpha spending: Lan and DeMets, *Discrete
sequential boundaries for clinical trials*, Biometrika 70, 1983): of an error, look ``k`` has the
share ``1 / (k (k + 1))``. All shares together are 1, so that by the union bound an interval of
*any* look misses the middle with at most that chance, and nothing ends the plan but the time that a
user gives. The first look comes as soon as pairs that all agree are enough for its share,
``2 / 2**pairs``; the others come each with a fifth more pairs.

Over several cases the error is divided by their number (Bonferroni): with a chance of ``ERROR`` at
most, one case or more of all of a comparison is called slower or faster and is not. This needs no
independence: cases that share a moment may err together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np

from gpubench.analysis.comparison import SAME, ComparisonVerdict
from gpubench.results.ratio import Ratio, signed_rank_interval

ERROR = 0.01
"""Chance that a comparison calls any of its unchanged cases slower or faster, and that the interval
of one case misses its middle: the usual 99 %."""

GROWTH = 1.2
"""Pairs at a look over those at the look before. With less the shares of the error shrink faster
than pairs are won; with more a case that is nearly sure waits long for its next look."""


MIN_CHANGE_FACTOR = 1.02
"""Least factor of what is called slower or faster: two environments that asv made alike may differ
by a few per mille, in where files and code lie, and nobody looks for so little."""

TINY = 1e-9
"""Doubt that is left where pairs of a script are all alike."""


def plan_looks(error: float) -> Iterator[tuple[int, float]]:
    """Yield for each look the pairs that it is due at, and its share of the error; without end."""
    pairs = 0
    look = 1
    while True:
        share = error / (look * (look + 1))
        # All pairs agree by chance, on either side: the least that any order of them can have.
        fewest = math.ceil(1 - math.log2(share))
        pairs = max(fewest, math.ceil(GROWTH * pairs), pairs + 1)
        yield pairs, share
        look += 1


def interval_at_last_look(logs: Sequence[float], error: float) -> Ratio:
    """Return the middle of all pairs, as a ratio, with the interval of the last look that these
    pairs have reached; its ends are not known before the first.

    ``logs``: logarithm of the ratio of each pair, in the order in which they were measured.
    """
    reached = [*takewhile(lambda look: look[0] <= len(logs), plan_looks(error))]
    low, high = -math.inf, math.inf
    if reached:
        pairs, share = reached[-1]
        _, low, high = signed_rank_interval(np.asarray(logs[:pairs], np.float64), share)
    middle = signed_rank_interval(np.asarray(logs, np.float64), ERROR)[0] if logs else math.nan
    return Ratio(math.exp(middle), math.exp(low), math.exp(high), least=MIN_CHANGE_FACTOR)


def doubt_of(logs: Sequence[float], cases: int, factor: float = 1.0) -> float:
    """Return how unsure the verdict of one of so many cases is: 0 where it is sure, else the width
    that an interval of its pairs has about, of too few endless."""
    if verdict_in_turn(logs, cases, factor)[0] != "unclear":
        return 0.0
    return float(np.std(logs, ddof=1)) / math.sqrt(len(logs)) + TINY if len(logs) > 1 else math.inf


def verdict_in_turn(
    logs: Sequence[float], cases: int, factor: float = 1.0
) -> tuple[ComparisonVerdict, Ratio]:
    """Return the verdict of one of so many cases, and its ratio with the interval it rests on.

    ``faster``, ``slower``: the interval that is corrected for all cases excludes 1x, and the middle
    is ``MIN_CHANGE_FACTOR`` from it, and beyond ``factor``. ``same``: the case's own interval at
    99 % lies within ``SAME`` of 1x, or within a larger ``factor``, and the case is not on the way
    to be called slower or faster. Everything else: ``unclear``.
    """
    ratio = interval_at_last_look(logs, ERROR)
    if not logs:
        return "unclear", ratio
    least = max(MIN_CHANGE_FACTOR, factor)
    if ratio.factor >= least and not ratio.low <= 1 <= ratio.high:
        corrected = interval_at_last_look(logs, ERROR / cases)
        if not corrected.low <= 1 <= corrected.high:
            return ("faster" if corrected.low > 1 else "slower"), corrected
        return "unclear", ratio
    same = max(SAME, factor)
    return ("same" if 1 / same <= ratio.low and ratio.high <= same else "unclear"), ratio
