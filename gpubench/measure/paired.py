"""Paired mode: samples of two cases in turn, in one process, so that what drifts meets both.

Even pairs begin with the other case and odd ones with this case (the order ABBA), so that what
changes steadily cancels over two pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpubench.backends import registry
from gpubench.backends.software import NAME
from gpubench.collecting import without_collecting
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs
from gpubench.measure.sampling import ROUNDS, Measurement, SamplePlan
from gpubench.measure.targets import load_target
from gpubench.measure.times import LABELLED_TIMES
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
class Opponent:
    """What a case is paired with: another case, and which of its times."""

    case: Case
    time: str = "kernel"


@dataclass(frozen=True, slots=True)
class Pairs:
    """What came of pairing."""

    ratios: tuple[float, ...] = ()
    """The opponent's seconds over the case's, for each pair."""
    rounds: tuple[int, ...] = ()
    """How many of ``ratios`` each round gave."""
    warnings: tuple[str, ...] = ()
    """Why there are none."""


def opponent_of(case: Case, time: str) -> Opponent | None:
    """The baseline's ``kernel`` time, where the suite asks for pairs and the time is compared."""
    baseline = case.baseline()
    if baseline is None or not case.kernel.sampling.paired or time not in PAIRED_TIMES:
        return None
    return Opponent(baseline)


def take_pairs(
    mine: Measurement,
    case: Case,
    opponent: Opponent,
    inputs: Inputs,
    plan: SamplePlan,
    declared: Sampling,
) -> Pairs:
    """Pair a case that can be sampled with its opponent, which is opened on the same inputs."""
    other = opponent.case
    if case.backend == other.backend and case.threads != other.threads:
        reason = (
            f"not paired: {case.implementation_name} runs on {_threads(case)} and "
            f"{other.implementation_name} on {_threads(other)} of the same pool, "
            "which a process sets once"
        )
        return Pairs(warnings=(reason,))
    with registry.get(other.backend).open(other.device, other.threads) as session:
        if session.simulated:
            reason = f"not paired: {other.implementation_name} runs on {NAME}, without times"
            return Pairs(warnings=(reason,))
        execution = Execution(session, other, load_target(other), inputs)
        theirs = Measurement(LABELLED_TIMES[opponent.time](execution))
        theirs.size(declared)
        theirs.warm_up(plan.warm_up)
        return in_turn(mine, theirs, plan)


def in_turn(mine: Measurement, theirs: Measurement, plan: SamplePlan) -> Pairs:
    """Ratios of samples that are a part of each side's usual one, in as many rounds as there would
    be samples. A pair whose own half shows no time is left out."""
    samples = plan.samples(mine.sample_seconds + theirs.sample_seconds)
    parts = min(PARTS, mine.runs, theirs.runs)
    rounds = min(ROUNDS, samples)
    size = max(LEAST_PAIRS, samples * parts // rounds)
    whole, mine.runs = mine.runs, mine.runs // parts
    theirs.runs //= parts
    ratios, counts = [], []
    with without_collecting():
        for number in range(rounds):
            if number:
                mine.begin_round()
                theirs.begin_round()
            pairs = [_pair(mine, theirs, turn) for turn in range(size)]
            ratios += [float(f"{b / a:.{DIGITS}g}") for a, b in pairs if a > 0]
            counts.append(sum(a > 0 for a, _ in pairs))
    mine.runs = whole
    return Pairs(tuple(ratios), tuple(filter(None, counts)))


def _pair(mine: Measurement, theirs: Measurement, turn: int) -> tuple[float, float]:
    """Seconds of both, in the order of this turn."""
    if turn % 2:
        own = mine.restored_sample()
        return own, theirs.restored_sample()
    other = theirs.restored_sample()
    return mine.restored_sample(), other


def _threads(case: Case) -> str:
    count = case.threads
    if count is None:
        return "the threads of the machine"
    return "1 thread" if count == 1 else f"{count} threads"
