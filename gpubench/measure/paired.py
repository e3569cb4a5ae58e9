"""Paired mode: samples of two cases in turn, in one process, so that what drifts meets both.

Even pairs begin with the other case and odd ones with this case (the order ABBA), so that what
changes steadily cancels over two pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time

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

BRIEF_PAIRS = 3
"""Pairs for each sample where the suite does not ask for pairs. With three of a tenth of a sample,
in twenty rounds, ratios of processes that follow each other scatter by 0.4 % (arithmetic) and 0.9 %
(memory), with ten by 0.5 % and 0.8 %, and medians by 2 % and 8 % (``docs/measurements.md``)."""

BRIEF = 1.0
"""Seconds that a sample of each side in every round may take where the suite does not ask for
pairs: as many as the suites of the library give to a case's own samples."""

BRIEF_BYTES = 2**28
"""Arrays of a case for which those of the other side may lie beside them without being asked for:
256 MiB, of which a laptop has room for a second."""

ONE_THREAD = 1.1
"""Processor time of a sample over its time up to which one thread did the work. Threads that wait
for their next region spin or sleep while the other side runs: on two cores a matrix product of
Numba's threads in turn with one of NumPy's took three times as long as alone, and a histogram
beside one thread five times."""

CLOCKS = 1e-4
"""Seconds that the two clocks may be apart besides."""

LEAST_ROUNDS = 8
"""Rounds of all processes together that have an interval (``results.ratio.LEAST_PAIRS``)."""

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


def opponent_of(case: Case, time: str, other: Case | None = None) -> Case | None:
    """The baseline, or that ``other`` in its place, where the time is compared and the suite asks
    for pairs, or says nothing and both are on the CPU and can take turns."""
    asked, other = case.kernel.sampling.paired, other or case.baseline()
    if other is None or asked is False or time not in PAIRED_TIMES:
        return None
    at_hand = time == "kernel" and case.device == other.device == "cpu"
    return other if asked or (at_hand and not _pool_set_twice(case, other)) else None


def _pool_set_twice(case: Case, other: Case) -> bool:
    return case.backend == other.backend and case.threads != other.threads


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
    if _pool_set_twice(case, other):
        reason = (
            f"not paired: {case.implementation_name} runs on {_threads(case)} and "
            f"{other.implementation_name} on {_threads(other)} of the same pool, "
            "which a process sets once"
        )
        return Pairs(warnings=(reason,))
    brief = declared.paired is None
    if brief and not (
        inputs.nbytes <= BRIEF_BYTES and _fits(mine.sample_seconds, plan) and _in_one_thread(mine)
    ):
        return Pairs()
    with opened(other, inputs) as execution:
        if execution.session.simulated:
            reason = f"not paired: {other.implementation_name} runs on {NAME}, without times"
            return Pairs(warnings=(reason,))
        theirs = kernel(execution)
        theirs.look = mine.look and partial(look, execution)
        theirs.size(declared)
        seconds = mine.sample_seconds + theirs.sample_seconds
        if brief and not (_fits(seconds, plan) and _in_one_thread(theirs)):
            return Pairs()
        if not brief:
            theirs.warm_up(plan.warm_up)
        pairs = in_turn(mine, theirs, plan, brief=brief)
        look(execution, theirs.timed_runs)
        return pairs


def _in_one_thread(measurement: Measurement) -> bool:
    """Whether a sample keeps no more than one thread busy."""
    processor, start = process_time(), perf_counter()
    measurement.restored_sample()
    processor, seconds = process_time() - processor, perf_counter() - start
    return processor <= ONE_THREAD * seconds + CLOCKS


def _fits(seconds: float, plan: SamplePlan) -> bool:
    """Whether enough rounds for an interval are planned, and fit into ``BRIEF`` with so many
    seconds each."""
    rounds = min(ROUNDS, plan.samples(seconds))
    return rounds * plan.processes >= LEAST_ROUNDS and rounds * seconds <= BRIEF


def in_turn(
    mine: Measurement, theirs: Measurement, plan: SamplePlan, *, brief: bool = False
) -> Pairs:
    """Ratios of samples that are a part of each side's usual one, in as many rounds as there would
    be samples; ``brief``: few of them. A pair whose own half shows no time is left out."""
    samples = plan.samples(mine.sample_seconds + theirs.sample_seconds)
    parts = min(PARTS, mine.runs, theirs.runs)
    rounds = min(ROUNDS, samples)
    size = min(parts, BRIEF_PAIRS) if brief else max(LEAST_PAIRS, samples * parts // rounds)
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
                    own = mine.warmed_sample()
                    other = theirs.warmed_sample()
                else:
                    other = theirs.warmed_sample()
                    own = mine.warmed_sample()
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
