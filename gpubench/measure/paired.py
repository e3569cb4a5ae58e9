"""Paired mode: samples of two cases in turn, in one process, so that what drifts meets both.

Even pairs begin with the other case and odd ones with this case (the order ABBA), so that what
changes steadily cancels over two pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from gpubench.backends import registry
from gpubench.backends.software import NAME
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs
from gpubench.measure.repeats import Repeats, repeated
from gpubench.measure.sampling import Sampling, sized
from gpubench.measure.targets import load_target
from gpubench.measure.times import LABELLED_TIMES
from gpubench.plan.case import Case

if TYPE_CHECKING:
    from gpubench.suite.model import Sampling as DeclaredSampling

PAIRED_TIMES = ("kernel", "end_to_end", "cold")
"""Times that a speedup is stated for."""

PARTS = 10
"""Pairs for each sample of the suite's: short ones meet less of what else the machine does."""

LEAST_PAIRS = 3
"""In a round: its median then does not depend on one sample. Runs too long to be shared among
``PARTS`` pairs would else give one."""

DIGITS = 7
"""Significant digits of a ratio on record."""


@dataclass(frozen=True, slots=True)
class Opponent:
    """What a case is paired with: another case, and which of its times."""

    case: Case
    time: str = "kernel"


def opponent_of(case: Case, time: str) -> Opponent | None:
    """The baseline's ``kernel`` time, where the suite asks for pairs and the time is compared."""
    baseline = case.baseline()
    if baseline is None or not case.kernel.sampling.paired or time not in PAIRED_TIMES:
        return None
    return Opponent(baseline)


def unpaired_reason(case: Case, opponent: Opponent) -> str | None:
    """Why the two cannot take turns in one process; ``None`` when they can."""
    other = opponent.case
    if case.backend != other.backend or case.threads == other.threads:
        return None
    return (
        f"not paired: {case.implementation_name} runs on {_threads(case)} and "
        f"{other.implementation_name} on {_threads(other)} of the same pool, "
        "which a process sets once"
    )


def pair_ratios(
    own: Sampling, opponent: Opponent, inputs: Inputs, plan: Repeats, declared: DeclaredSampling
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The opponent's seconds over the case's own, for each pair of one round; or, where it is on a
    device in software, none and a warning that says so.

    ``declared`` sizes the opponent's samples, as it has sized the case's.
    """
    other = opponent.case
    with registry.get(other.backend).open(other.device, other.threads) as session:
        if session.simulated:
            return (), (f"not paired: {other.implementation_name} runs on {NAME}, without times",)
        execution = Execution(session, other, load_target(other), inputs)
        theirs = sized(LABELLED_TIMES[opponent.time](execution), declared)
        return take_pairs(*_in_parts(own, theirs, plan)), ()


def _in_parts(own: Sampling, theirs: Sampling, plan: Repeats) -> tuple[Sampling, Sampling, Repeats]:
    """More pairs of shorter samples, as far as both have runs to share."""
    parts = min(PARTS, own.runs, theirs.runs)
    least, most = (max(LEAST_PAIRS, count * parts) for count in (plan.least, plan.most))
    more = replace(plan, least=least, most=most)
    return own.of(own.runs // parts), theirs.of(theirs.runs // parts), more


class Side(Protocol):
    """What gives samples; a ``Sampling`` does."""

    def restored_sample(self) -> float: ...


def take_pairs(own: Side, theirs: Side, plan: Repeats) -> tuple[float, ...]:
    """Their seconds over one's own; a pair whose own half shows no time is left out."""

    def turn(number: int) -> tuple[float, float]:
        if number % 2:
            mine = own.restored_sample()
            return theirs.restored_sample(), mine
        return theirs.restored_sample(), own.restored_sample()

    pairs = repeated(turn, plan)
    return tuple(float(f"{their / mine:.{DIGITS}g}") for their, mine in pairs if mine > 0)


def _threads(case: Case) -> str:
    count = case.threads
    if count is None:
        return "the threads of the machine"
    return "1 thread" if count == 1 else f"{count} threads"
