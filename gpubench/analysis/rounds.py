"""The speedup of two times that were taken in rounds, each round a process or a preparation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import comb
from statistics import median

from gpubench.analysis.speedup import Speedup

ERROR = 0.01
"""Chance of an interval that does not hold the ratio."""

Rounds = Sequence[Sequence[float]]
"""Samples of each round, in seconds."""


def speedup_of_rounds(baseline: Rounds, candidate: Rounds) -> Speedup:
    """Ratio of the medians of all samples, baseline over candidate, with a 99 % interval.

    Samples of one round share buffers, caches and a moment, and are not independent: however many
    there are, they tell of one round. So a round counts once, by its median. Of these the interval
    takes the ``k``-th from below and from above on both sides, with the largest ``k`` at which two
    sides that do not differ lie that far apart in 1 % of all orders of their rounds at most
    (``apart``). It assumes that rounds could come in any order, and that the two sides differ by a
    factor; nothing of the distribution of times. With fewer than five rounds a side the ends are
    unknown.
    """
    theirs, own = (sorted(map(median, side)) for side in (baseline, candidate))
    value = median(_all(baseline)) / median(_all(candidate))
    k = rank(len(theirs), len(own))
    if k == 0:
        return Speedup(value, 0.0, math.inf)
    low, high = theirs[k - 1] / own[-k], theirs[-k] / own[k - 1]
    return Speedup(value, min(low, value), max(high, value))


def rank(one: int, other: int) -> int:
    """The largest ``k`` for so many rounds a side; 0 where none will do."""
    k = 0
    while k < min(one, other) and 2 * apart(one, other, k + 1) <= ERROR:
        k += 1
    return k


def apart(one: int, other: int, k: int) -> float:
    """Chance that the ``k``-th smallest of so many values is above the ``k``-th largest of the
    ``other`` values, where all orders of them together are alike.

    That is: before the ``k``-th largest of the others come ``k - 1`` of the first at most. The
    orders are counted by how many these are (a precedence test; Balakrishnan and Ng, *Precedence-
    Type Tests and Applications*, 2006, chapter 2).
    """
    orders = sum(comb(j + other - k, j) * comb(one - j + k - 1, k - 1) for j in range(k))
    return orders / comb(one + other, one)


def _all(rounds: Rounds) -> list[float]:
    return [sample for samples in rounds for sample in samples]
