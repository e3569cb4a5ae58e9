"""Find the commit that changed a case by noisy measurements: probabilistic bisection.

Each measurement is a pair of processes, one of the good end and one of a commit of the line behind
it. Its logarithm is ``theta`` plus noise where the commit is the changed one or behind it, and
noise alone before. The posterior is over place x change x scatter: places alike, changes and
scatters as in ``analysis.sequential``. The next commit is the one for which *before or behind?* is
most open, near the posterior's median. See Horstein, *Sequential transmission using noiseless
feedback*, IEEE Transactions on Information Theory 9, 1963, and Waeber, Frazier and Henderson,
*Bisection search with noisy responses*, SIAM Journal on Control and Optimization 51, 2013.

A commit that cannot be measured is never distinguished from the next one that can: their
probabilities are one, and the answer is a range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from gpubench.analysis.moderated import Floats
from gpubench.analysis.sequential import (
    CHANGES,
    CaseEvidence,
    default_prior,
    log_likelihood,
    ratio_of,
)
from gpubench.results.ratio import Ratio

_NONE: Floats = np.zeros(1)


@dataclass(frozen=True, slots=True)
class Range:
    """Commits of the line, of which one made the change."""

    first: int
    last: int
    """Its place; that of ``first`` where it is one commit."""
    probability: float


@dataclass(slots=True)
class Bisection:
    """What is known of the place of a change among the commits behind the good one.

    Places count from 0, the first commit behind the good end, to ``commits - 1``, the bad end.
    """

    commits: int
    prior: Floats = field(default_factory=default_prior)
    """Log prior of the scatter."""
    sure: float = 0.95
    """Probability at which a range is the answer."""
    logs: dict[int, list[float]] = field(default_factory=dict)
    """Of the pairs of each measured place: the logarithm of the good end's time over its time."""
    skipped: set[int] = field(default_factory=set)
    """Places that cannot be measured."""

    def add(self, place: int, log: float) -> None:
        """Add a pair of a commit and the good end."""
        self.logs.setdefault(place, []).append(log)

    @property
    def pairs(self) -> int:
        """How many pairs were measured."""
        return sum(map(len, self.logs.values()))

    def probabilities(self) -> Floats:
        """Return how likely each place is, shape (commits,)."""
        measured = sorted(self.logs)
        before = [log_likelihood(self.logs[place], _NONE)[0] for place in measured]
        behind = [log_likelihood(self.logs[place], CHANGES) for place in measured]
        weights = np.empty(self.commits)
        starts = [0, *(place + 1 for place in measured), self.commits]
        for count in range(len(measured) + 1):  # of the measured ones are before the change
            first, end = starts[count], starts[count + 1]
            joint = sum(before[:count], self.prior) + sum(behind[count:], np.zeros((1, 1)))
            weights[first:end] = np.logaddexp.reduce(joint, axis=None)
        weights = np.exp(weights - weights.max())
        return np.asarray(weights / weights.sum())

    def ranges(self) -> list[Range]:
        """Return the ranges that measurements can tell apart, each of one commit or of several of
        which only the last can be measured."""
        probabilities = self.probabilities()
        ranges, first = [], 0
        for place in range(self.commits):
            if place in self.skipped and place < self.commits - 1:
                continue
            share = float(probabilities[first : place + 1].sum())
            ranges.append(Range(first, place, share))
            first = place + 1
        return ranges

    def likeliest(self) -> Range:
        """Return the range with the largest probability."""
        return max(self.ranges(), key=lambda one: one.probability)

    def narrowest(self, sure: float) -> Range:
        """Return the shortest range of neighbours that holds ``sure``; of equals the likeliest."""
        ranges = self.ranges()
        found = []
        for start, one in enumerate(ranges):
            total = 0.0
            for last in ranges[start:]:
                total += last.probability
                if total >= sure:
                    found.append(Range(one.first, last.last, total))
                    break
        whole = Range(0, self.commits - 1, 1.0)
        return min(found, key=lambda one: (one.last - one.first, -one.probability), default=whole)

    def choose(self, at: int | None = None, move_cost: float = 0.0) -> int | None:
        """Return the place to measure next; ``None`` where no place would tell anything.

        Where the answer is sure, the place gets ``MIN_PAIRS_FOR_FACTOR`` pairs, which say by how
        much it differs. ``at`` is the place that is installed, and ``move_cost`` what another
        costs, in pairs. A place is worth the bits that its pair can tell at most, over its cost.
        """
        likeliest = self.likeliest()
        if likeliest.probability >= self.sure:
            pairs = len(self.logs.get(likeliest.last, ()))
            is_end = likeliest.last == self.commits - 1
            return likeliest.last if pairs < MIN_PAIRS_FOR_FACTOR and not is_end else None
        behind = self.probabilities().cumsum()
        open_places = [place for place in range(self.commits - 1) if place not in self.skipped]
        if not open_places:
            return None

        def worth(place: int) -> float:
            return _bits(float(behind[place])) / (1 if place == at else 1 + move_cost)

        best = max(open_places, key=worth)
        return best if worth(best) > 0 else None

    def factor_of(self, place: int) -> Ratio | None:
        """Return by how much a place differs from the good end, by the nearest measured commit at
        or behind it that has several pairs, else by all of these; ``None`` without any."""
        behind = [its for at, its in sorted(self.logs.items()) if at >= place]
        enough = [its for its in behind if len(its) >= MIN_PAIRS_FOR_FACTOR]
        logs = enough[0] if enough else [*chain.from_iterable(behind)]
        return ratio_of(logs, self.prior) if logs else None

    def changes_elsewhere(self, found: Range) -> tuple[bool, bool]:
        """Return whether the case changed before the range too, and whether behind it."""
        logs = [log for at, its in self.logs.items() if at < found.first for log in its]
        before = CaseEvidence(logs=logs, prior=self.prior)
        here, end = self.factor_of(found.last), self.factor_of(self.commits - 1)
        behind = bool(here and end and (here.high < end.low or end.high < here.low))
        return before.is_called, behind


MIN_PAIRS_FOR_FACTOR = 3
"""Pairs of one commit that its factor is stated by; of fewer all commits behind the change are."""


def _bits(share: float) -> float:
    """Return the entropy of yes and no, in bits."""
    return -sum(p * math.log2(p) for p in (share, 1 - share) if p > 0)
