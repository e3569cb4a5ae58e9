"""Which levels of a series are real: a rank test that every kind of noise has the same chance in.

A fit proposes where levels end. A proposal stands where the commits on one side rank above those
on the other (Wilcoxon, Biometrics Bulletin 1, 1945; Mann and Whitney, Annals of Mathematical
Statistics 18, 1947). Ranks do not depend on the distribution: two processors that take turns, heavy
tails and rare outliers have the same error as normal noise. The weakest proposal falls first, until
all that remain are beyond chance; the others are then tested again with longer levels. That is
the merging of E-divisive's successor Hunter (Fleming and others, ICPE 2023), with ranks in place of
Student's t.

The chance is corrected for the choice of the place (Bonferroni), and for commits that deviate as
the one before did (Bayley and Hammersley, Supplement to the JRSS 8, 1946): ``n`` such commits tell
as much as ``n (1 - r) / (1 + r)`` others.

``scripts/detection_rates.py`` counts on stored histories what these rules find and invent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_FALSE_SHARE = 0.05
"""Chance of a step in a series without one. Bonferroni's correction keeps well below: shuffled
windows of eight public stores have one in 0 to 0.8 %. With 0.02 two planted steps in a hundred less
are found."""

MIN_SEPARATION = 0.75
"""Least share of pairs of a commit before and one after in which the later is slower (or in which
it is faster). A run of commits on the slower of two processors that take turns has 0.75; a step of
three scatters 0.98."""

MIN_LEVEL = 3
"""Fewest commits of a level."""

MIN_NEWEST_LEVEL = 2
"""Fewest commits of the newest level, which cannot have lasted longer yet."""

MAX_SHORT_COMMITS = 60
"""Commits below which ranks alone are hardly beyond chance where a history has several levels."""

MIN_GAP_IN_JUMPS = 4.0
"""Gap between the nearest values of two levels from which a step counts in a short history though
ranks cannot tell: in the difference of neighbours that four of five stay below. Two processors that
take turns differ in more than a fifth of the commits, where the rarer one has more than 11 %."""

USUAL_JUMPS = 80.0
"""Percentile of the differences of neighbours for that."""

FAR = 1000.0
"""Gap, in mean differences of neighbours, from which any level counts that two commits are at:
where two branches were measured in turn, one of a project's was 690 times as fast, with a scatter
of 0.3 %. Outliers are not that far."""

FINEST = 0.001
"""Least range and least difference of neighbours: times that repeat exactly are not known better
than to 0.1 %."""

MAX_MEMORY = 0.9
"""Largest correlation of neighbours that is assumed: noise that lasts longer looks like levels."""

CLEAR_SCATTERS = 6.0
"""Scatters of a level, in the geometric mean of the two, from which the memory of the noise does
not count: what wanders within levels is in their scatter."""

MIN_CLEAR_SCATTERS = 3.0
"""The same of the wider level alone."""

ONE_SCATTER = (15.87, 84.13)
"""Percentiles that are two standard deviations apart, of normal noise."""

MIN_MIXED_LEVEL = 15
"""Commits of both levels from which another mix of processors is told from a step."""

MODES = (10, 90)
"""Percentiles that have to move with the median: where one stays, commits ran on the same
processors in another proportion."""

MIN_MODE_SHARE = 0.1
"""Share of the median's step by which both have to move."""

_CERTAIN = 1e6
"""Evidence of a step that is accepted whatever its ranks say."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Stretches of a series that are apart beyond chance."""

    bounds: tuple[int, ...]
    """Where they begin, and last the length of the series."""
    memory: float
    """Correlation of neighbouring commits within levels, by ranks; at least 0."""


@dataclass(slots=True)
class _Series:
    """Logarithms of times with the evidence that was calculated for their boundaries."""

    values: Floats
    least_change: float
    memory: float = 0.0
    evidence: dict[tuple[int, int, int], tuple[float, bool]] = field(default_factory=dict)
    firm: set[int] = field(default_factory=set)
    """Boundaries that stand whatever their levels are merged with."""
    certain_gap: float = field(init=False)
    """Gap between two levels from which they are apart whatever their ranks say."""

    def __post_init__(self) -> None:
        self.certain_gap = math.inf
        if len(self.values) < MAX_SHORT_COMMITS:
            jumps = np.abs(np.diff(self.values))
            usual = max(float(np.percentile(jumps, USUAL_JUMPS)), FINEST)
            self.certain_gap = MIN_GAP_IN_JUMPS * usual

    def stands(self, start: int, place: int, stop: int) -> bool:
        return self.judge(start, place, stop) >= 1

    def judge(self, start: int, place: int, stop: int) -> float:
        """Return the evidence for a boundary at ``place`` in shares of what it needs.

        Negative where it is no step at all, by the length of the shorter level: of such
        boundaries, those of the shortest level fall first.
        """
        evidence, is_clear = self.evidence_of(start, place, stop)
        if place in self.firm and evidence >= 0:
            return _CERTAIN
        needed = math.log(len(self.values) / MAX_FALSE_SHARE)
        if not is_clear:
            needed *= (1 + self.memory) / (1 - self.memory)
        return evidence / needed

    def evidence_of(self, start: int, place: int, stop: int) -> tuple[float, bool]:
        key = start, place, stop
        if key not in self.evidence:
            self.evidence[key] = self._judge(*key)
        return self.evidence[key]

    def _judge(self, start: int, place: int, stop: int) -> tuple[float, bool]:
        """Return minus the logarithm of the chance, and whether the step is clear of the noise."""
        before, after = self.values[start:place], self.values[place:stop]
        shorter = min(len(before), len(after))
        gap = _gap(before, after)
        far = _is_far(gap, before, after)
        may_be_short = far or (stop == len(self.values) and len(before) >= MIN_LEVEL)
        if shorter < (MIN_NEWEST_LEVEL if may_be_short else MIN_LEVEL):
            return shorter - 1000.0, True
        size = abs(_median(after) - _median(before))
        if size < self.least_change:
            return -1.0, True
        if far or gap >= self.certain_gap:
            return _CERTAIN, True
        if is_another_mix(before, after):
            return 0.0, True
        separation, evidence = rank_evidence(before, after)
        if separation < MIN_SEPARATION:
            return 0.0, True
        return evidence, self._is_clear(size, before, after)

    def _is_clear(self, size: float, before: Floats, after: Floats) -> bool:
        narrow, wide = sorted(max(scatter_of(side), FINEST) for side in (before, after))
        is_far = size >= CLEAR_SCATTERS * math.sqrt(narrow * wide)
        return is_far and size >= MIN_CLEAR_SCATTERS * wide

    def is_firm(self, start: int, place: int, stop: int) -> bool:
        """Return whether a boundary stands whatever its levels are merged with: clear of the noise,
        and beyond chance for any choice of its place and of both ends."""
        evidence, is_clear = self.evidence_of(start, place, stop)
        needed = 3 * math.log(len(self.values)) - math.log(MAX_FALSE_SHARE)
        return is_clear and needed <= evidence < _CERTAIN


def find_levels(values: Floats, proposed: Iterable[int], least_change: float) -> Levels:
    """Return the levels of a series, oldest first.

    Args:
        values: logarithms of the times at the commits that measured them, shape (commits,).
        proposed: where a fit ends levels, ascending; neither 0 nor the length.
        least_change: difference of two levels' medians that counts, a logarithm.
    """
    series = _Series(values, least_change)
    bounds = [0, *proposed, len(values)]
    series.firm = {
        place for start, place, stop in _triples(bounds) if series.is_firm(start, place, stop)
    }
    _prune(series, bounds)
    _split(series, bounds)
    for index in range(1, len(bounds) - 1):
        start, place, stop = bounds[index - 1 : index + 2]
        moved = _best_place(values, start, place, stop)
        if moved != place and series.stands(start, moved, stop):
            bounds[index] = moved
    _prune(series, bounds)
    return Levels(tuple(bounds), series.memory)


def rank_evidence(before: Floats, after: Floats) -> tuple[float, float]:
    """Return how far two levels are separated, and minus the logarithm of the chance of that.

    The separation is the share of pairs in which the later one is slower, or faster where that is
    more: 0.5 to 1. The chance is two-sided, by the normal approximation; where no value of one
    level lies among the other's it is exact, ``2 / C(n + m, n)``.
    """
    ordered = np.sort(before)
    ranks = np.searchsorted(ordered, after, "left").sum()
    ranks += np.searchsorted(ordered, after, "right").sum()
    pairs = len(before) * len(after)
    share = float(ranks) / (2 * pairs)
    share = max(share, 1 - share)
    count = len(before) + len(after)
    score = (share - 0.5) * math.sqrt(12 * pairs / (count + 1))
    # Mills' ratio, Abramowitz and Stegun 7.1.13: good to a tenth in every tail.
    evidence = score**2 / 2 + math.log1p(score * math.sqrt(math.pi / 2))
    if share == 1:
        evidence = max(evidence, _log_choices(count, len(before)) - math.log(2))
    return share, evidence


def rank_interval(before: Floats, after: Floats, quantile: float) -> tuple[float, float]:
    """Return the interval of the difference of two levels, by ranks (Hodges and Lehmann, Annals of
    Mathematical Statistics 34, 1963): that of all differences of pairs, without as many at each end
    as the test allows."""
    differences = np.subtract.outer(after, before).ravel()
    pairs = len(differences)
    spread = quantile * math.sqrt(pairs * (len(before) + len(after) + 1) / 12)
    outside = max(int(pairs / 2 - spread), 0)
    ordered = np.partition(differences, (outside, pairs - 1 - outside))
    return float(ordered[outside]), float(ordered[pairs - 1 - outside])


def scatter_of(values: Floats) -> float:
    """Return the scatter: of normal noise its standard deviation, with few outliers the same."""
    last = len(values) - 1
    places = [round(last * percentile / 100) for percentile in ONE_SCATTER]
    low, high = np.partition(values, places)[places]
    return float(high - low) / 2


def _median(values: Floats) -> float:
    """Return the median; ``numpy.median`` takes ten times as long for a few values."""
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    ordered = np.partition(values, (half - 1, half))
    return float(ordered[half - 1] + ordered[half]) / 2


def _log_choices(count: int, chosen: int) -> float:
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def _triples(bounds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield each boundary with its neighbours."""
    return zip(bounds, bounds[1:], bounds[2:], strict=False)


def _gap(before: Floats, after: Floats) -> float:
    """Return how far apart the nearest values of two levels are; negative where they overlap."""
    return float(max(after.min() - before.max(), before.min() - after.max()))


def is_another_mix(before: Floats, after: Floats) -> bool:
    """Return whether one of two modes stayed where it was, while the median moved.

    Processors take turns: a single stretch of commits in the other mode is a level that came back.
    """
    if min(len(before), len(after)) < MIN_MIXED_LEVEL:
        return False
    moved = np.percentile(after, MODES) - np.percentile(before, MODES)
    ends = _median(before), _median(after)
    step, middle = ends[1] - ends[0], sum(ends) / 2
    if not (moved * np.sign(step) < MIN_MODE_SHARE * abs(step)).any():
        return False
    return any(
        _stretches((side > middle) != (end > middle)) > 1
        for side, end in zip((before, after), ends, strict=True)
    )


def _stretches(marks: NDArray[np.bool_]) -> int:
    """Return how many stretches of neighbours are marked."""
    return int(marks[0]) + int((marks[1:] & ~marks[:-1]).sum())


def _is_far(gap: float, before: Floats, after: Floats) -> bool:
    if gap < FAR * FINEST or min(len(before), len(after)) < MIN_NEWEST_LEVEL:
        return False
    return gap >= FAR * max(float(np.abs(np.diff(level)).mean()) for level in (before, after))


def _prune(series: _Series, bounds: list[int]) -> None:
    """Take out the weakest boundary until every one stands, also against the memory of what is
    left."""
    while True:
        while len(bounds) > 2:
            evidence = [
                series.judge(*bounds[index - 1 : index + 2]) for index in range(1, len(bounds) - 1)
            ]
            weakest = min(evidence)
            if weakest >= 1:
                break
            del bounds[evidence.index(weakest) + 1]
        memory = _memory(series.values, bounds)
        if memory <= series.memory:
            return
        series.memory = memory
        if len(bounds) == 2:
            return


def _memory(values: Floats, bounds: Sequence[int]) -> float:
    """Return the correlation of neighbours within levels, by ranks."""
    left = np.empty(len(values))
    for start, stop in pairwise(bounds):
        level = values[start:stop]
        ordered = np.sort(level)  # equal values share a rank
        twice = np.searchsorted(ordered, level, "left") + np.searchsorted(ordered, level, "right")
        left[start:stop] = (twice - len(level)) / len(level)
    squares = float(left @ left)
    correlation = float(left[1:] @ left[:-1]) / squares if squares else 0.0
    return min(max(correlation, 0.0), MAX_MEMORY)


def _split(series: _Series, bounds: list[int]) -> None:
    """Add the best boundary within each level where it stands: absolute deviations, which the fit
    goes by, do not see a step in noise of two modes that are further apart."""
    levels = [*pairwise(bounds)]
    while levels:
        start, stop = levels.pop()
        if stop - start < 2 * MIN_LEVEL:
            continue
        place = _best_split(series.values[start:stop]) + start
        # A step that is not split off is in the memory of its level.
        series.memory = _memory(series.values, sorted([*bounds, place]))
        if series.stands(start, place, stop):
            bounds.append(place)
            levels += [(start, place), (place, stop)]
    bounds.sort()
    series.memory = _memory(series.values, bounds)


def _best_split(values: Floats) -> int:
    """Return the place where the ranks before and after differ most, in standard errors."""
    count = len(values)
    sums = (values.argsort().argsort() + (1 - count) / 2).cumsum()[:-1]
    sizes = np.arange(1, count)
    scores = np.abs(sums) / np.sqrt(sizes * (count - sizes))
    inner = scores[MIN_LEVEL - 1 : count - MIN_LEVEL]
    return int(inner.argmax()) + MIN_LEVEL


def _best_place(values: Floats, start: int, place: int, stop: int) -> int:
    """Return where a boundary fits best: each value votes for the level that it is nearer to, with
    at most one vote, so that an outlier moves nothing."""
    old, new = _median(values[start:place]), _median(values[place:stop])
    low, high = start + MIN_NEWEST_LEVEL, stop - MIN_NEWEST_LEVEL
    if old == new or low > high:
        return place
    votes = ((values[start:stop] - (old + new) / 2) / ((new - old) / 2)).clip(-1, 1)
    sums = votes.cumsum()[low - start - 1 : high - start]
    return low + int(sums.argmin())
