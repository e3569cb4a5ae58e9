"""How often a machine sees a difference where there is none: the A/A control."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp, lgamma, log, log1p

from gpubench.results import Ratio
from gpubench.results.ratio import VERDICT_ERROR

PROBABILITY_STEPS = 2**50
"""Of probabilities, whose ends are then known to 15 digits."""


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Comparisons of an implementation with itself that called it faster or slower."""

    comparisons: int
    alarms: int
    low: float
    """Lower end of the 99 % interval of ``rate``."""
    high: float

    @property
    def rate(self) -> float:
        """Share of the comparisons, 0 to 1; 0 of none."""
        return self.alarms / self.comparisons if self.comparisons else 0.0


def false_alarms(ratios: Iterable[Ratio]) -> FalseAlarms:
    """Count the verdicts that are not ``unclear``: each of them is false."""
    verdicts = [ratio.verdict for ratio in ratios]
    alarms = sum(verdict != "unclear" for verdict in verdicts)
    low, high = proportion_interval(alarms, len(verdicts))
    return FalseAlarms(len(verdicts), alarms, low, high)


def proportion_interval(count: int, total: int) -> tuple[float, float]:
    """Exact 99 % interval of a probability (Clopper and Pearson, Biometrika 26, 1934); 0 to 1 of
    none.

    Its ends are the probabilities at which ``count`` or more, and ``count`` or fewer, have a chance
    of half of ``VERDICT_ERROR``.
    """

    def up_to(successes: int, probability: float) -> float:
        """Chance of so many successes or fewer."""
        return sum(_binomial(total, k, probability) for k in range(successes + 1))

    def least(holds: Callable[[float], bool]) -> float:
        """Return the least probability for which it holds."""
        return (
            bisect_left(
                range(PROBABILITY_STEPS), True, key=lambda step: holds(step / PROBABILITY_STEPS)
            )
            / PROBABILITY_STEPS
        )

    low = 0.0 if count == 0 else least(lambda p: 1 - up_to(count - 1, p) > VERDICT_ERROR / 2)
    high = 1.0 if count == total else least(lambda p: up_to(count, p) <= VERDICT_ERROR / 2)
    return low, high


def _binomial(total: int, count: int, probability: float) -> float:
    """Return the chance of ``count`` successes in ``total`` trials."""
    if probability in (0, 1):
        return float(count == total * probability)
    ways = lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)
    return exp(ways + count * log(probability) + (total - count) * log1p(-probability))
