"""Two sides, two commits mostly, measured process by process in turn.

One *pair* is a process of each side: both alive and their samples alternating where the bench can,
else one right after the other. Every second pair of a case has the other order (ABBA), so that a
drift favours no side. Each case gets ``first_pairs`` of the judge. Then each round measures the
quarter of the undecided cases that is likeliest to be decided.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Protocol

from gpubench.measure.direct import Job, Measured
from gpubench.names import FRESH_TIMES
from gpubench.plan.case import Case

SIDES = (0, 1)
"""Before and after."""

LIKELIEST_SHARE = 1 / 4
"""Part of the undecided cases that a round measures. All would give a change that shows soon as
many pairs as the rest; one alone would wait for new servers after each pair."""


class Bench(Protocol):
    """Takes processes of both sides: asv's environments, or a script in tests."""

    is_alternating: bool = False
    """Whether a pair is measured by ``take_together``."""

    def begin_round(self) -> None:
        """Have the processes from here on share nothing with the ones before."""

    def take(self, side: int, job: Job, seconds_left: float) -> Measured | None:
        """Measure a job in a process of its own; what goes wrong is in the record. ``None`` where
        the time that is left ended the process."""

    def take_together(
        self, job: Job, is_reversed: bool, seconds_left: float
    ) -> list[Measured] | None:
        """Measure a job in a process of each side, both alive, whose samples alternate."""
        raise NotImplementedError


class Judge(Protocol):
    """Says of each case, by its place, whether more pairs are needed."""

    first_pairs: int
    """Pairs that every case gets before the likeliest come first."""

    def add(self, place: int, turns: Turns) -> None:
        """Look at a case after each pair."""

    def is_decided(self, place: int) -> bool:
        """Return whether a case needs no more pairs."""

    def likelihood(self, place: int) -> float:
        """Return by what cases are ordered: the largest are measured first."""


@dataclass
class Turns:
    """What is measured of one job so far."""

    job: Job
    sides: list[Measured | None] = field(default_factory=lambda: [None, None])
    """Before and after, the processes of each joined; ``None`` before the first."""
    logs: list[float] = field(default_factory=list)
    """Of each pair, the logarithm of the old time over the new one."""
    pair_seconds: float = 0.0
    """That the last pair took, with all that is done in its processes."""

    def add(self, outcomes: Sequence[Measured]) -> None:
        """Add a pair of processes, the old side's first."""
        for side, after in zip(SIDES, outcomes, strict=True):
            before = self.sides[side]
            self.sides[side] = after if before is None else before.joined(after)
        if all(map(process_seconds, outcomes)):
            self.logs.append(log_ratio(outcomes))

    @property
    def has_failed(self) -> bool:
        """Whether a side has no time, by its last process."""
        return any(side is not None and side.record.status != "ok" for side in self.sides)


def process_seconds(measured: Measured) -> float:
    """Return the time of one process, the median of its rounds, in seconds; 0 without one."""
    medians = [middle for rounds in measured.medians for middle in rounds]
    return median(medians) if medians and measured.record.status == "ok" else 0.0


def log_ratio(outcomes: Sequence[Measured]) -> float:
    """Return the logarithm of a pair's ratio, old time over new time: the median over its rounds.
    Rounds of one number lie next to each other where processes alternate."""
    old, new = ([middle for rounds in one.medians for middle in rounds] for one in outcomes)
    return median(math.log(a / b) for a, b in zip(old, new, strict=False))


def jobs_in_turn(cases: Iterable[Case]) -> list[Job]:
    """Return every labelled time of these cases, but for those whose samples are processes."""
    return [
        Job(case, time) for case in cases for time in case.group.times if time not in FRESH_TIMES
    ]


def measure_in_turn(
    work: Sequence[Job],
    bench: Bench,
    judge: Judge,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[int, Turns]]:
    """Measure pairs until each job is decided or so many seconds are over; yields a job's place in
    ``work`` and what is measured of it, after each pair.

    A pair that would not fit into what is left is not begun: a job's last pair says how long one
    takes, and before its first the mean of all pairs. A pair that takes longer nevertheless is
    ended when the time is over, and does not count. A side that has no time ends its job.
    """
    end = clock() + seconds
    round_seconds = 0.0
    turns = [Turns(job) for job in work]
    taken: list[float] = []

    def fits(place: int, before: float = 0.0) -> bool:
        mean_seconds = sum(taken) / len(taken) if taken else 0.0
        return clock() + before + (turns[place].pair_seconds or mean_seconds) < end

    while chosen := [
        place for place in choose_places(turns, judge) if fits(place, before=round_seconds)
    ]:
        began = clock()
        bench.begin_round()
        round_seconds = clock() - began
        for place in filter(fits, chosen):
            its = turns[place]
            began = clock()
            outcomes = take_pair(bench, work[place], bool(len(its.logs) % 2), end, clock)
            if outcomes is None:
                return
            its.add(outcomes)
            its.pair_seconds = clock() - began
            taken.append(its.pair_seconds)
            judge.add(place, its)
            yield place, replace(its, sides=[*its.sides], logs=[*its.logs])


def choose_places(turns: Sequence[Turns], judge: Judge) -> list[int]:
    """Return the places of the jobs that the next round measures, the likeliest first."""
    undecided = [
        place
        for place, its in enumerate(turns)
        if not its.has_failed and not judge.is_decided(place)
    ]
    undecided.sort(key=judge.likelihood, reverse=True)
    few = [place for place in undecided if len(turns[place].logs) < judge.first_pairs]
    return few or undecided[: math.ceil(len(undecided) * LIKELIEST_SHARE)]


def take_pair(
    bench: Bench, job: Job, is_reversed: bool, end: float, clock: Callable[[], float]
) -> list[Measured] | None:
    """Measure one pair of a job, reversed with the new side first; return the old side's outcome
    first, or ``None`` where the time ended it."""
    if bench.is_alternating:
        return bench.take_together(job, is_reversed, end - clock())
    outcomes: dict[int, Measured] = {}
    for side in SIDES[::-1] if is_reversed else SIDES:
        outcome = bench.take(side, job, end - clock())
        if outcome is None:
            return None
        outcomes[side] = outcome
    return [outcomes[side] for side in SIDES]
