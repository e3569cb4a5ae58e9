"""The one rule for intervals: of a time from its rounds, and of a ratio from two times.

**A time.** Samples of one round share their arrays and their moment: any number of samples tells of
one round. A round therefore counts once, by its median, and the interval of the time reaches from
the ``k``-th smallest to the ``k``-th largest of them. ``k`` is the largest at which two times of so
many rounds that do not differ have intervals apart in 1 % of all orders of their rounds at most
(``rank``): 1 for five to eight rounds, 6 for twenty. It assumes that rounds could come in any
order, and nothing of the distribution of times. Fewer than five rounds have no interval. Times that
asv stored without our record keep the 99 % interval that asv gives them.

Rounds of one process are alike: processes that follow each other scatter by 1.5 % where rounds of
one scatter by 0.9 %. So from five processes on a process counts once, by the median of its rounds
(``rounds_of``): nine find 5 % in 98 of 100 comparisons with 0.1 % of false alarms, and five
find 84 with 0.4 % (simulated: processes scatter by 1.5 %, a change counts from 2 %).

**A disturbed time.** Rounds that waited for other work do not come in any order, and how long they
waited says nothing of the kernel. Where more than ``MAX_DISTURBED`` of the samples did, the time
has no interval, so that no ratio of two such times has one, nor a verdict.

**A ratio.** Its interval is the set of all ratios that the two intervals allow: ``low / high`` to
``high / low``. It lies on one side of 1 exactly when the two intervals are apart.

What differs from process to process is in neither of the two. So a ratio of two processes is a
verdict only from a factor of ``MIN_UNPAIRED_FACTOR`` on.

**A ratio of pairs.** Where samples of both were taken in turn, each pair gives a ratio, and their
middle and its interval come from all means of two of them (``paired_speedup``). What slows down a
process is in both halves, also other work: a disturbed ratio of pairs is a verdict from
``MIN_UNPAIRED_FACTOR`` on (``docs/measurements.md`` has how often, with one to four neighbours).

Everything here works on arrays too, so that it is the same rule for one time and for a million.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Verdict = Literal["faster", "slower", "unclear"]
VERDICTS: tuple[Verdict, ...] = ("faster", "slower", "unclear")

Times = NDArray[np.float64]
"""Median and both ends of its interval in seconds, shape (3, ...): NaN without a time; 0 or less
and ``inf`` for ends that are not known."""

MIN_PROCESSES = 5
"""From so many on processes count in place of rounds: five are the fewest that have an interval."""

MAX_DISTURBED = 0.5
"""Share of a time's samples that may be disturbed: most of them had the machine to themselves."""

MIN_UNPAIRED_FACTOR = 1.1
"""Least factor between two times of different processes for a verdict. Medians of processes that
follow each other scatter by 1.5 % (arithmetic), so that chance hardly takes the ratio of two beyond
it; over memory by 2 % to 20 %, on a virtual machine whose neighbours use the same memory
(``docs/measurements.md``). Of such kernels no verdict can be trusted that is not from pairs."""

MIN_PAIRED_FACTOR = 1.01
"""The same of samples that were taken in turn in one process: ratios of processes that follow each
other scatter by 0.3 % (arithmetic) to 0.9 % (memory), which no interval of one process holds."""

VERDICT_ERROR = 0.01
"""Chance of two times that do not differ to be called apart; the usual 99 %."""

PAIRED_ERROR = 0.005
"""The same of pairs. Half, so that of a hundred kernels that are compared with themselves at most
one gets a verdict, in 91 of 100 such hundreds (binomial distribution); with ``VERDICT_ERROR`` in
74."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times faster one is than the other; a pure number."""

    value: float
    low: float
    """Lower end of the interval, 0 when unknown."""
    high: float
    """Upper end of the interval, ``inf`` when unknown."""
    least: float = MIN_UNPAIRED_FACTOR
    """Factor from which it is a verdict."""

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.low > 0 and math.isfinite(self.high)

    @property
    def factor(self) -> float:
        """How many times faster or slower; at least 1."""
        return max(self.value, 1 / self.value)

    @property
    def verdict(self) -> Verdict:
        """``unclear`` where the interval allows 1x or is not known, and within ``least`` of 1x."""
        if not self.has_interval:
            return "unclear"
        if self.low > 1 and self.value >= self.least:
            return "faster"
        return "slower" if self.high < 1 and self.value <= 1 / self.least else "unclear"


class Rounds(NamedTuple):
    """Medians of the rounds of a time, seconds."""

    counted: tuple[float, ...] = ()
    """What its interval is made of: the rounds of all processes, or from ``MIN_PROCESSES`` on the
    median of each process."""
    processes: tuple[float, ...] = ()
    """Median of the rounds of each process, in the order in which they ran."""


NO_ROUNDS = Rounds()


def rounds_of(processes: Iterable[Sequence[float]]) -> Rounds:
    """Join the rounds of each process of a time."""
    known = [rounds for rounds in processes if rounds]
    medians = tuple(map(median, known))
    if len(medians) >= MIN_PROCESSES:
        return Rounds(medians, medians)
    return Rounds(tuple(chain.from_iterable(known)), medians)


def quotient(baseline: Times, candidate: Times) -> Times:
    """Baseline's times over the candidate's, with their intervals; NaN where one of them is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(baseline[1], 0.0) / candidate[2]
        high = np.where(candidate[1] > 0, baseline[2] / candidate[1], math.inf)
        ratios: Times = np.stack([baseline[0] / candidate[0], low, high])
    ratios[:, np.isnan(ratios[0])] = math.nan
    return ratios


def independent_quotient(one: Ratio, other: Ratio) -> Ratio:
    """Divide one ratio by another, of samples that have nothing in common: two commits' speedups.

    Both errors at their worst at once are too much to ask. On the logarithm the interval's ends are
    as far from the middle as the two ends of these are, squared and added (Zou and Donner,
    Statistics in Medicine 27, 2008). Of arithmetic that was 5 % slower it finds 99 of 100 where
    ``low / high`` to ``high / low`` finds 80.
    """
    value = one.value / other.value
    if not (one.has_interval and other.has_interval):
        return Ratio(value, 0.0, math.inf)
    below = math.hypot(math.log(one.value / one.low), math.log(other.high / other.value))
    above = math.hypot(math.log(one.high / one.value), math.log(other.value / other.low))
    return Ratio(value, value * math.exp(-below), value * math.exp(above))


def verdicts(ratios: Times, in_turn: NDArray[np.bool_]) -> NDArray[np.int8]:
    """``Ratio.verdict`` of many at once, as indices into ``VERDICTS``; ``unclear`` too where there
    is no ratio. ``in_turn``: of pairs that nothing disturbed. An array of three takes a hundred
    times as long as the comparisons of one."""
    value, low, high = ratios
    least = np.where(in_turn, MIN_PAIRED_FACTOR, MIN_UNPAIRED_FACTOR)
    has_ends = (low > 0) & (high < math.inf)
    faster = has_ends & (low > 1) & (value >= least)
    decided = [faster, has_ends & (high < 1) & (value <= 1 / least)]
    return np.select(decided, [0, 1], 2).astype(np.int8)


def interval_of_rounds(rounds: Times) -> Times:
    """Return the ends of the intervals of times, shape (2, ...), from the medians of their rounds,
    which are along the last axis; ``-inf`` and ``inf`` where these are too few."""
    k = rank(rounds.shape[-1])
    ordered = np.sort(rounds, axis=-1)
    low, high = (ordered[..., k - 1], ordered[..., -k]) if k else (-math.inf, math.inf)
    return np.stack(np.broadcast_arrays(low, high, ordered[..., 0])[:2])


@lru_cache(maxsize=256)
def rank(rounds: int) -> int:
    """Return the largest ``k`` for so many rounds on either side; 0 where none will do."""
    # The chance grows with k, and a record may hold thousands of rounds.
    return bisect_right(
        range(1, rounds + 1), VERDICT_ERROR, key=lambda k: 2 * _chance_apart(rounds, rounds, k)
    )


def _chance_apart(one: int, other: int, k: int) -> float:
    """Chance that the ``k``-th smallest of so many values is above the ``k``-th largest of the
    ``other`` values, where all orders of them together are alike.

    That is: before the ``k``-th largest of the others come ``k - 1`` of the first at most. The
    orders are counted by how many these are (a precedence test; Balakrishnan and Ng, *Precedence-
    Type Tests and Applications*, 2006, chapter 2), as logarithms: the numbers have thousands of
    digits.
    """
    orders = _log_comb(one + other, one)
    return math.fsum(
        math.exp(_log_comb(j + other - k, j) + _log_comb(one - j + k - 1, k - 1) - orders)
        for j in range(k)
    )


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


MIN_PAIRS_FOR_INTERVAL = 9
"""Of fewer no interval of 99.5 % can be given: 2 / 2**8 is 0.8 %."""

MAX_COUNTED_RATIOS = 500
"""Ratios that are counted one by one; of more, neighbours are joined. 500 have 125,250 means of
two, and more would tell nothing more."""


def paired_speedup(ratios: Sequence[float], rounds: Sequence[int] = ()) -> Ratio | None:
    """Middle of the ratios, baseline over candidate, with a 99.5 % interval; ``None`` of none.

    ``rounds`` says how many of the ratios each round gave. The pairs of one round share their
    arrays and are not independent: from ``MIN_PAIRS_FOR_INTERVAL`` rounds on, each counts once, by
    its median.

    The middle is the median of all geometric means of two (Hodges and Lehmann, Annals of
    Mathematical Statistics 34, 1963), and the interval lies between two of these means: Wilcoxon's
    signed-rank test turned round (Conover, *Practical Nonparametric Statistics*, 3rd edition,
    section 5.7). It assumes that what it counts is independent, and that the logarithms lie alike
    on both sides of their middle. They do where the two halves differ by a factor and take turns to
    begin: which is which, a pair then does not show. A round that was disturbed can make the
    interval wide on its side, and moves the middle little. The sign test, which needs no such
    assumption, gives wider ones: over memory, in twenty rounds at 99 %, it found 49 of 60 kernels
    that were 5 % slower, and this one 56 (``docs/measurements.yaml``). With fewer than
    ``MIN_PAIRS_FOR_INTERVAL`` ratios the ends are unknown.
    """
    counted = np.asarray(ratios, np.float64)
    if len(rounds) >= MIN_PAIRS_FOR_INTERVAL:
        ends = accumulate(rounds)
        parts = (counted[end - n : end] for n, end in zip(rounds, ends, strict=True))
        counted = np.array([np.median(part) for part in parts if part.size])
    counted = counted[(counted > 0) & (counted < math.inf)]
    if not counted.size:
        return None
    value, low, high = signed_rank_interval(np.log(counted), PAIRED_ERROR)
    return Ratio(math.exp(value), math.exp(low), math.exp(high), least=MIN_PAIRED_FACTOR)


def signed_rank_interval(logs: NDArray[np.float64], error: float) -> tuple[float, float, float]:
    """Return the middle of logarithms of ratios, and both ends of its interval at this ``error``,
    infinite where there are too few; see ``paired_speedup``."""
    if logs.size > MAX_COUNTED_RATIOS:
        logs = np.array([np.median(part) for part in np.array_split(logs, MAX_COUNTED_RATIOS)])
    one, other = np.triu_indices(logs.size)
    means = np.sort(logs[one] + logs[other]) / 2
    k = _signed_rank(logs.size, error)
    low, high = means[[k - 1, -k]].tolist() if k else (-math.inf, math.inf)
    return float(np.median(means)), low, high


@lru_cache(maxsize=256)
def _signed_rank(count: int, error: float) -> int:
    """Return the largest ``k`` for which the ``k``-th means of two from either end, of so many
    values, enclose the middle but for a chance of ``error``; 0 where none do.

    The test's statistic is the sum of the ranks, 1 to ``count``, that a fair coin picks.
    """
    chances = np.zeros(count * (count + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, count + 1):
        without = chances / 2
        chances = without.copy()
        chances[rank:] += without[:-rank]
    return int(np.searchsorted(2 * np.cumsum(chances), error, side="right"))


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio | None:
    """Geometric mean; ``None`` of nothing. In that of many, processes' moments cancel.

    The right mean of ratios (Fleming and Wallace, CACM 29(3), 1986). Its interval is that of the
    ends' geometric means: as if all errors had the same sign, so it is never too narrow. An end
    that one of the ratios lacks, the mean lacks too.
    """
    if not ratios:
        return None
    return Ratio(
        _mean(ratio.value for ratio in ratios),
        _mean(ratio.low for ratio in ratios),
        _mean(ratio.high for ratio in ratios),
        least=1.0,
    )


def _mean(values: Iterable[float]) -> float:
    factors = list(values)
    if 0 in factors:
        return 0.0
    return math.exp(math.fsum(map(math.log, factors)) / len(factors))
