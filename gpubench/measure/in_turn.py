"""Two sides, two commits mostly, measured process by process in turn.

One *pair* is a process of each side, one right after the other. In every second round the order is
the other way round (ABBA), so that what drifts favours none. A round has a pair of each case whose
verdict is not sure yet, the most unsure one first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import median
from typing import Protocol

from gpubench.measure.direct import Job, Measured
from gpubench.names import FRESH_TIMES
from gpubench.plan.case import Case

SIDES = (0, 1)
"""Before and after."""

Doubt = Callable[[Sequence[float]], float]
"""How unsure a verdict is by the logarithms of its pairs' ratios, old over new; 0: it is sure."""


class Bench(Protocol):
    """Takes one process of one side: asv's environments, or a script in tests."""

    def begin_round(self) -> None:
        """Have the processes from here on share nothing with the ones before."""

    def take(self, side: int, job: Job) -> Measured:
        """Measure a job in a process of its own; what goes wrong is in the record."""


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
    is_sure: bool = False
    """Whether nothing more is measured: the verdict is sure, or a side has no time."""

    def add(self, outcomes: Sequence[Measured]) -> None:
        """Add a pair of processes, the old side's first."""
        for side, after in zip(SIDES, outcomes, strict=True):
            before = self.sides[side]
            self.sides[side] = after if before is None else before.joined(after)
        seconds = [process_seconds(outcome) for outcome in outcomes]
        if all(seconds):
            self.logs.append(math.log(seconds[0] / seconds[1]))

    @property
    def has_failed(self) -> bool:
        """Whether a side has no time, by its last process."""
        return any(side is not None and side.record.status != "ok" for side in self.sides)


def process_seconds(measured: Measured) -> float:
    """Return the time of one process, the median of its rounds, in seconds; 0 without one."""
    medians = [middle for rounds in measured.medians for middle in rounds]
    return median(medians) if medians and measured.record.status == "ok" else 0.0


def jobs_in_turn(cases: Iterable[Case]) -> list[Job]:
    """Return every labelled time of these cases, but for those whose samples are processes."""
    return [
        Job(case, time) for case in cases for time in case.group.times if time not in FRESH_TIMES
    ]


def measure_in_turn(
    work: Sequence[Job],
    bench: Bench,
    doubt: Doubt,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[int, Turns]]:
    """Measure pairs until each job is sure or so many seconds are over; yields a job's place in
    ``work`` and what is measured of it, after each pair.

    A pair that took longer than what is left is not begun again, and every job gets one pair while
    there is time at all. A side that has no time ends its job.
    """
    end = clock() + seconds
    round_seconds = 0.0
    turns = [Turns(job) for job in work]
    unsure = [*range(len(work))]
    for number in count():
        unsure.sort(key=lambda place: doubt(turns[place].logs), reverse=True)
        began = clock()
        if all(began + round_seconds + turns[place].pair_seconds >= end for place in unsure):
            return
        bench.begin_round()
        round_seconds = clock() - began
        for place in unsure:
            job, its = work[place], turns[place]
            began = clock()
            if began + its.pair_seconds >= end:
                continue
            order = SIDES[::-1] if number % 2 else SIDES
            outcomes = {side: bench.take(side, job) for side in order}
            its.add([outcomes[side] for side in SIDES])
            its.pair_seconds = clock() - began
            its.is_sure = its.has_failed or doubt(its.logs) == 0
            yield place, replace(its, sides=[*its.sides], logs=[*its.logs])
        unsure = [place for place in unsure if not turns[place].is_sure]
