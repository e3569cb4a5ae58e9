"""Paired mode: samples of two cases in turn, in one process, so that what drifts meets both.

Pairs begin by turns with the baseline and with this case (the order ABBA), so that a steady drift
cancels over two pairs. The first pairs of rounds alternate too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import get_native_id
from time import process_time, sleep
from typing import TYPE_CHECKING

from gpubench.backends.software import NAME
from gpubench.collecting import without_collecting
from gpubench.measure.bound_case import BoundCase, opened
from gpubench.measure.conditions import changes_process
from gpubench.measure.disturbance import Crowding, counters, ran, waited
from gpubench.measure.observers.protocol import Observer
from gpubench.measure.retaking import watch_samples
from gpubench.measure.sampling import (
    ROUNDS,
    SAMPLE_TIME,
    TRIES,
    CaseSampler,
    SamplePlan,
    begin_rounds,
)
from gpubench.measure.times import kernel
from gpubench.names import COMPARED_TIMES, CPU
from gpubench.plan.case import Case

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun

PARTS = 10
"""Pairs for each sample of the suite's: short ones meet less of what else the machine does."""

MIN_PAIRS = 3
"""In a round: its median then does not depend on one sample. Runs too long to be shared among
``PARTS`` pairs would else give one."""

BRIEF_PAIRS = 3
"""Pairs in a round where the suite does not ask for pairs. With three of a tenth of a sample, in
twenty rounds, ratios of processes that follow each other scatter by 0.4 % (arithmetic) and 0.9 %
(memory), with ten by 0.5 % and 0.8 %, and medians by 2 % and 8 % (``docs/measurements.md``)."""

BRIEF_ROUNDS = 40
"""Rounds of these, two for each sample at most. With twenty, the interval of a ratio over memory
was 1 to 3 % wide to either side, by the hour, and in a bad one 63 of 100 commits that were 5 %
slower were found; with forty it is narrower by a quarter."""

BRIEF = 0.3
"""Seconds that these may take in all processes where the case's own samples take less, as those of
small arrays do (0.2 s); else as long as these."""

BRIEF_BYTES = 2**28
"""Arrays of a case for which those of the other side may lie beside them without being asked for:
256 MiB, of which a laptop has room for a second."""

ONE_THREAD = 1.1
"""Processor time of a sample, with what its threads waited for a core, over its time up to which
one thread did the work. Threads that wait for their next region spin or sleep while the other side
runs: on two cores a matrix product of Numba's threads in turn with one of NumPy's took three times
as long as alone, and a histogram beside one thread five times."""

PAUSE = 0.03
"""Seconds after which threads of the other side sleep that spun while they waited for work: those
of OpenBLAS do so for 2**26 cycles (``THREAD_TIMEOUT``), which is 27 ms at 2.5 GHz."""

TICKS = 0.012
"""Seconds of work that tell of a thread on another core: Linux adds its time a tick at a time, of
10 ms at most (``CONFIG_HZ``)."""

MIN_ROUNDS = 9
"""Rounds of all processes together that have an interval, as ``MIN_PAIRS_FOR_INTERVAL`` of
``results/ratio.py`` says."""

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


class PairsObserver(Observer):
    """Pair a case with its opponent, where the suite asks for that or where it costs little."""

    _opponent: Case | None = None
    _crowding: Crowding | None = None

    def on_verify(self, run: CaseRun) -> None:
        """Watch from now on whether other work crowds the machine, where there is an opponent."""
        self._opponent = run.opponent or opponent_of(run.case, run.time)
        if self._opponent is not None:
            self._crowding = Crowding()

    def on_size(self, run: CaseRun) -> None:
        """Put the ratios on record, or why there are none."""
        if self._opponent is None or self._crowding is None:
            return
        pairs = take_pairs(run, self._opponent, self._crowding)
        run.put(warnings=pairs.warnings, pair_ratios=pairs.ratios, pair_rounds=pairs.rounds)


def opponent_of(case: Case, time: str, other: Case | None = None) -> Case | None:
    """Return the baseline, or that ``other`` in its place, where the time is compared and the suite
    asks for pairs, or says nothing and both are on the CPU and can take turns."""
    asked, other = case.kernel.sampling.paired, other or case.baseline()
    if other is None or asked is False or time not in COMPARED_TIMES:
        return None
    at_hand = time == "kernel" and case.device == other.device == CPU
    return other if asked or (at_hand and not _why_not(case, other)) else None


def _why_not(case: Case, other: Case) -> str | None:
    """Return why the two cannot take turns in one process; ``None`` where they can."""
    names = f"{case.implementation_name} and {other.implementation_name}"
    if changes_process(case):
        return f"{names} cannot share a process, which one of them changes for good"
    if case.backend == other.backend and case.threads != other.threads:
        return (
            f"{case.implementation_name} runs on {_threads(case)} and {other.implementation_name} "
            f"on {_threads(other)} of the same pool, which a process sets once"
        )
    return None


def take_pairs(run: CaseRun, other: Case, crowding: Crowding) -> Pairs:
    """Pair a run whose sample is sized with the ``kernel`` time of its opponent, which is opened on
    the same inputs. ``crowding`` is watched since before the run's sample was sized. Raises
    ``WrongResult`` where a later run of the opponent is wrong."""
    case, mine, plan = run.case, run.sampler, run.plan
    if reason := _why_not(case, other):
        return Pairs(warnings=(f"not paired: {reason}",))
    if run.sampling.paired is None:
        return _brief_pairs(run, other, crowding)
    with opened(other, run.inputs) as bound:
        if bound.session.simulated:
            reason = f"not paired: {other.implementation_name} runs on {NAME}, without times"
            return Pairs(warnings=(reason,))
        of_theirs = Crowding()
        theirs = _sampler_of(bound, run)
        theirs.size(run.sampling)
        theirs.warm_up(plan.warm_up)
        samples = plan.samples(mine.sample_seconds + theirs.sample_seconds)
        rounds, size, parts = divided(samples, min(mine.runs, theirs.runs))
        theirs.runs //= parts
        with _runs_of(mine, mine.runs // parts):
            pairs = _watched(mine, theirs, plan, rounds, size, (crowding, of_theirs))
            crowded = crowding.is_crowded or of_theirs.is_crowded
            if crowded and _in_one_thread(mine) != _in_one_thread(theirs, rested=True):
                reason = (
                    f"not paired: others kept the cores busy, and of {case.implementation_name} "
                    f"and {other.implementation_name} one works on several threads, which waited "
                    "for them; end the other work, or measure later"
                )
                pairs = Pairs(warnings=(reason,))
        run.verify_outputs(bound, theirs.timed_runs)
        return pairs


def _brief_pairs(run: CaseRun, other: Case, crowding: Crowding) -> Pairs:
    """Return a few automatic pairs, of short samples, where they cost little: else none."""
    mine, plan, declared = run.sampler, run.plan, run.sampling
    if run.inputs.nbytes > BRIEF_BYTES or plan.most * plan.processes < MIN_ROUNDS:
        return Pairs()
    own = plan.samples(mine.sample_seconds) * mine.sample_seconds
    allowed = max(BRIEF / plan.processes, own)
    number = declared.number and _part(declared.number)
    seconds = (declared.sample_time or SAMPLE_TIME) / PARTS
    brief = declared.model_copy(update={"number": number, "sample_time": seconds})
    with _runs_of(mine, _part(mine.runs)):
        # As if the other took as long: it is not ready yet.
        fits = _fitting((mine, mine), plan, allowed) is not None
        if mine.is_long or not fits or not _in_one_thread(mine):
            return Pairs()
        with opened(other, run.inputs) as bound:
            of_theirs = Crowding()
            theirs = _sampler_of(bound, run)
            theirs.size(brief)
            rounds = _fitting((mine, theirs), plan, allowed)
            if rounds is None or not _in_one_thread(theirs, rested=crowding.is_crowded):
                return Pairs()
            pairs = _watched(mine, theirs, plan, *rounds, (crowding, of_theirs))
            if pairs.ratios:
                run.verify_outputs(bound, theirs.timed_runs)
            return pairs


def _ratio(own: float, other: float) -> float:
    return float(f"{other / own:.{DIGITS}g}")


def divided(samples: int, runs: int) -> tuple[int, int, int]:
    """Return rounds, pairs in each, and the parts that a sample is cut into, in place of so many
    samples of so many runs at least."""
    rounds, parts = min(ROUNDS, samples), min(PARTS, runs)
    return rounds, max(MIN_PAIRS, samples * parts // rounds), parts


def _sampler_of(bound: BoundCase, run: CaseRun) -> CaseSampler:
    """Return the opponent's sampler, whose outputs are verified where the run's own are."""
    theirs = kernel(bound)
    theirs.verify = run.sampler.verify and partial(run.verify_outputs, bound)
    return theirs


@contextmanager
def _runs_of(sampler: CaseSampler, runs: int) -> Iterator[None]:
    """With so many runs in a sample."""
    whole, sampler.runs = sampler.runs, runs
    try:
        yield
    finally:
        sampler.runs = whole


def _part(runs: int) -> int:
    return max(1, runs // PARTS)


def _in_one_thread(sampler: CaseSampler, *, rested: bool = False) -> bool:
    """Return whether samples keep no more than one thread busy, or waiting for a core. ``rested``:
    once threads of the other side sleep, which may spin for long where they wait for cores too."""
    for _ in range(TRIES if rested else 0):
        before = counters()
        sleep(PAUSE)
        if not {*ran(before, counters())} - {get_native_id()}:
            break
    before, began = counters(), process_time()
    after, busy = before, 0.0
    # On a crowded machine that may take long, and a kernel that sleeps takes no processor time.
    while busy < TICKS and after.at < before.at + PARTS * TICKS:
        sampler.restored_sample()
        after, busy = counters(), process_time() - began
    busy += waited(before, after) or 0.0
    return busy <= ONE_THREAD * (after.at - before.at)


def _fitting(
    sides: tuple[CaseSampler, CaseSampler], plan: SamplePlan, allowed: float
) -> tuple[int, int] | None:
    """Return the rounds and pairs in each that take as many seconds as are allowed; ``None`` where
    that is too little for an interval. One pair in a round is better than none."""
    most = min(BRIEF_ROUNDS, 2 * plan.samples(sum(side.sample_seconds for side in sides)))
    for size in (BRIEF_PAIRS, 1):
        seconds = 0.0
        for side in sides:
            assert side.run_seconds is not None  # of kernels one is always tried
            half = (side.runs + 1) * side.run_seconds  # and a run that warms up
            seconds += side.move_seconds + size * half
        rounds = min(most, int(allowed / seconds))
        if rounds * plan.processes >= MIN_ROUNDS:
            return rounds, size
    return None


def _watched(
    mine: CaseSampler,
    theirs: CaseSampler,
    plan: SamplePlan,
    rounds: int,
    size: int,
    crowding: tuple[Crowding, Crowding],
) -> Pairs:
    """Pairs of which halves that others disturbed are taken again, as samples are."""
    for sampler, its in zip((mine, theirs), crowding, strict=True):
        watch_samples(sampler, plan, its.core_use)
    return in_turn(mine, theirs, rounds, size)


def in_turn(mine: CaseSampler, theirs: CaseSampler, rounds: int, size: int) -> Pairs:
    """Ratios of samples of the two, in so many rounds of so many pairs. A pair of which a half
    shows no time is left out."""
    ratios: list[float] = []
    counts: list[int] = []
    with without_collecting():
        for number in begin_rounds((mine, theirs), rounds):
            before = len(ratios)
            for turn in range(size):
                if (number + turn) % 2:
                    own = mine.warmed_sample()
                    other = theirs.warmed_sample()
                else:
                    other = theirs.warmed_sample()
                    own = mine.warmed_sample()
                if own > 0 and other > 0:
                    ratios.append(_ratio(own, other))
            counts.append(len(ratios) - before)
    return Pairs(tuple(ratios), tuple(filter(None, counts)))


def _threads(case: Case) -> str:
    count = case.threads
    if count is None:
        return "the threads of the machine"
    return "1 thread" if count == 1 else f"{count} threads"
