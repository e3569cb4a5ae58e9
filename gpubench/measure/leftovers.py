"""Whether a run takes longer or shorter on what the runs before it left: then no batch is allowed.

In a batch, a kernel that sorts in place sorts from the second run on what is sorted, and one that
looks whether its output holds the result already has nothing left to do. So single runs are timed
in two states that differ in data alone: fresh inputs, with poison in ``out`` arrays, and what a
whole batch left in the arrays that are written.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from gpubench.backends.protocol import Sampler
from gpubench.measure.execution import Execution

MATTERS = 1.05
"""Factor between the two from which a batch is no time of the first run. It is the difference that
two commits have to show (``docs/measurement.md``). Where the arrays lie and what is left in cache
moves single runs by a few percent, however alike the two states are made."""

PAIRS = 20
"""Single runs in each state. So many are taken only where they agree: a few are enough to see that
they do not."""
DISSENT = 2
"""Pairs that may say otherwise. If half of all pairs lay on either side of 1, 18 of 20 would agree
in 0.04 % of cases (sign test: Conover, *Practical Nonparametric Statistics*, section 3.4). With 1 %
a suite of a thousand cases would have ten that are taken for something that they are not; the 11
pairs that 1 % needs bear no disturbed one."""


def leftover_ratio(execution: Execution, sampler: Sampler, runs: int) -> float | None:
    """Seconds of a run on what a batch of ``runs`` left, over those of one on fresh inputs.

    ``None`` where that is alike, or where nothing is written. Both
    states are put in place by the same copies right before the run, outside of its time, so that
    caches and transfers are alike. Which is first alternates.
    """
    if not execution.changing:
        return None
    fresh = execution.putter(execution.fresh())
    fresh()
    # An odd number: after an even one, a kernel that undoes itself has what it began with.
    sampler.seconds(runs + 1 - runs % 2)
    leftover = execution.putter(execution.left())

    def seconds(put: Callable[[], None]) -> float:
        put()
        return sampler.seconds(1)

    ratios: list[float] = []
    for pair in range(PAIRS):
        if pair % 2:
            first, later = seconds(fresh), seconds(leftover)
        else:
            later, first = seconds(leftover), seconds(fresh)
        ratios.append(later / first if first > 0 else 1.0)
        not_longer = sum(ratio < MATTERS for ratio in ratios)
        not_shorter = sum(ratio > 1 / MATTERS for ratio in ratios)
        if min(not_longer, not_shorter) > DISSENT:
            return None
    return median(ratios)
