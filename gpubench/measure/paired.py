"""Paired mode: samples of two cases in turn, in one process, so that what drifts meets both.

Even pairs begin with the other case and odd ones with this case (the order ABBA), so that what
changes steadily cancels over two pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpubench.backends.software import NAME
from gpubench.collecting import without_collecting
from gpubench.measure.execution import Execution, opened
from gpubench.measure.inputs import Inputs
from gpubench.measure.sampling import ROUNDS, Measurement, SamplePlan, looked_at
from gpubench.measure.times import kernel
from gpubench.plan.case import Case
from gpubench.suite.model import Sampling

PAIRED_TIMES = ("kernel", "end_to_end", "cold")
"""Times that a speedup is stated for."""

PARTS = 10
"""Pairs for each sample of the suite's: short ones meet less of what else the machine does."""

LEAST_PAIRS = 3
"""In a round: its median then does not depend on one sample. Runs too long to be shared among
``PARTS`` pairs would else give one."""

DIGITS = 7
"""Significant digits of a ratio on record: far more than clocks tell, and half the file."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What came of pairing."""

    ratios: tuple[float, ...] = ()
    """The opponent's seconds over the case's, for each pair."""
    rounds: tuple[int, ...] = ()
    """How many of ``ratios`` each round gave."""
    warnings: tuple[str, ...] = ()
    """Why there are none."""


def opponent_of(case: Case, time: str) -> Case | None:
    """The baseline, where the suite asks for pairs and the time is compared."""
    return case.baseline() if case.kernel.sampling.paired and time in PAIRED_TIMES else None


def take_pairs(
    mine: Measurement,
    case: Case,
    other: Case,
    inputs: Inputs,
    plan: SamplePlan,
    declared: Sampling,
    look: Callable[[Execution, int], None],
) -> Pairs:
    """Pair a case that can be sampled with the ``kernel`` time of another, its opponent, which is
    opened on the same inputs. ``look`` raises where one more run of the opponent, after so many
    that were timed, is wrong."""
    if case.backend == other.backend and case.threads != other.threads:
        reason = (
            f"not paired: {case.implementation_name} runs on {_threads(case)} and "
            f"{other.implementation_name} on {_threads(other)} of the same pool, "
            "which a process sets once"
        )
        return Pairs(warnings=(reason,))
    with opened(other, inputs) as execution:
        if execution.session.simulated:
            reason = f"not paired: {other.implementation_name} runs on {NAME}, without times"
            return Pairs(warnings=(reason,))
        theirs = kernel(execution)
        theirs.look = mine.look and partial(look, execution)
        theirs.size(declared)
        theirs.warm_up(plan.warm_up)
        pairs = in_turn(mine, theirs, plan)
        look(execution, theirs.timed_runs)
        return pairs


def in_turn(mine: Measurement, theirs: Measurement, plan: SamplePlan) -> Pairs:
    """Ratios of samples that are a part of each side's usual one, in as many rounds as there would
    be samples. A pair whose own half shows no time is left out."""
    samples = plan.samples(mine.sample_seconds + theirs.sample_seconds)
    parts = min(PARTS, mine.runs, theirs.runs)
    rounds = min(ROUNDS, samples)
    size = max(LEAST_PAIRS, samples * parts // rounds)
    whole, mine.runs = mine.runs, mine.runs // parts
    theirs.runs //= parts
    ratios: list[float] = []
    counts: list[int] = []
    with without_collecting():
        for number in range(rounds):
            if number:
                compared = number in looked_at(rounds)
                mine.begin_round(compared=compared)
                theirs.begin_round(compared=compared)
            before = len(ratios)
            for turn in range(size):
                if turn % 2:
                    own = mine.restored_sample()
                    other = theirs.restored_sample()
                else:
                    other = theirs.restored_sample()
                    own = mine.restored_sample()
                if own > 0:
                    ratios.append(float(f"{other / own:.{DIGITS}g}"))
            counts.append(len(ratios) - before)
    mine.runs = whole
    return Pairs(tuple(ratios), tuple(filter(None, counts)))


def _threads(case: Case) -> str:
    count = case.threads
    if count is None:
        return "the threads of the machine"
    return "1 thread" if count == 1 else f"{count} threads"
