"""How a sample is taken: a batch of runs, sized once for a case; asv gets the time of one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.backends.protocol import Sampler
from gpubench.measure.times import LabelledTime

if TYPE_CHECKING:
    from gpubench.suite.model import Sampling as DeclaredSampling

SAMPLE_TIME = 0.01
"""Seconds that a sample should last at least, as in asv."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What sizing found."""

    runs: int
    """Runs in one sample."""
    seconds: float | None
    """Of one run in the last batch tried; ``None`` where nothing was tried."""


class Sampling:
    """Takes one sample after another and counts the seconds of one run of each.

    asv calls a benchmark that has a setup once a sample (``number`` is 1), which is too short for
    kernels of microseconds. So a sample is a batch of runs, and ``elapsed``, asv's timer, advances
    by the batch's time divided by the number of its runs.
    """

    def __init__(self, sampler: Sampler, restore: Callable[[], None], runs: int) -> None:
        self._sampler = sampler
        self._elapsed = 0.0
        self.restore = restore
        self.runs = runs
        self.run_seconds: float | None = None
        """Seconds of one run when the sample was sized; ``None`` where nothing was tried."""
        self.warmed = 0.0
        """Seconds for which it ran already, to find the number of runs."""

    def sample(self) -> float:
        """Seconds of one run, from one batch."""
        seconds = self._sampler.seconds(self.runs) / self.runs
        self._elapsed += seconds
        return seconds

    def restored_sample(self) -> float:
        """The same, after undoing what runs before it did."""
        self.restore()
        return self.sample()

    def of(self, runs: int) -> Sampling:
        """The same with another number of runs in a sample."""
        return Sampling(self._sampler, self.restore, runs)

    def elapsed(self) -> float:
        """Sum of all samples so far, in seconds: a timer that asv reads before and after each."""
        return self._elapsed

    @property
    def method(self) -> str:
        return self._sampler.method

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._sampler.warnings


def sized(labelled: LabelledTime, declared: DeclaredSampling) -> Sampling:
    """One labelled time with as many runs in a sample as the suite says or time allows.

    Where a sample has to be one run (``cold``, ``compile``), the suite's ``number`` is not asked.
    """
    start = time.perf_counter()
    if declared.number is None:
        tried = size_sample(
            labelled.sampler,
            labelled.restore,
            declared.sample_time or SAMPLE_TIME,
            labelled.most_runs,
        )
    else:
        tried = _as_declared(labelled, declared.number)
    labelled.restore()
    sampling = Sampling(labelled.sampler, labelled.restore, tried.runs)
    sampling.run_seconds = tried.seconds
    sampling.warmed = time.perf_counter() - start
    return sampling


def _as_declared(labelled: LabelledTime, number: int) -> Trial:
    runs = min(number, labelled.most_runs)
    if labelled.most_runs == 1:
        return Trial(runs, None)
    labelled.restore()  # what the sampler says of itself is then about such a batch
    return Trial(runs, labelled.sampler.seconds(runs) / runs)


def size_sample(
    sampler: Sampler,
    restore: Callable[[], None],
    sample_time: float = SAMPLE_TIME,
    most: int = 1_000_000,
) -> Trial:
    """Number of runs that fill ``sample_time`` seconds, at least 1 and at most ``most``.

    Grows as ``timeit.Timer.autorange`` does, tenfold at most, so that an early slow run does not
    decide.
    """
    runs, seconds = 1, None
    while runs < most:
        restore()
        elapsed = sampler.seconds(runs)
        seconds = elapsed / runs
        if elapsed >= sample_time:
            break
        growth = sample_time / elapsed if elapsed > 0 else 10.0
        runs = min(most, math.ceil(runs * min(10.0, max(1.2, growth))))
    return Trial(runs, seconds)
