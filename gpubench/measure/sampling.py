"""How a sample is taken: a batch of runs, sized once for a case; asv gets the time of one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpubench.backends.protocol import Sampler
from gpubench.measure.times import LabelledTime

if TYPE_CHECKING:
    from gpubench.suite.model import Sampling as DeclaredSampling

SAMPLE_TIME = 0.01
"""Seconds that a sample should last at least, as in asv."""

PROBED_RUNS = 100


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

    def probe(self) -> float:
        """Seconds of one run from a short batch that does not count."""
        runs = min(self.runs, PROBED_RUNS)
        seconds = self._sampler.seconds(runs) / runs
        self.restore()
        return seconds

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
        runs = runs_per_sample(
            labelled.sampler,
            labelled.restore,
            declared.sample_time or SAMPLE_TIME,
            labelled.most_runs,
        )
    else:
        runs = min(declared.number, labelled.most_runs)
        if labelled.most_runs > 1:  # what the sampler says of itself is then about such a batch
            labelled.restore()
            labelled.sampler.seconds(runs)
    labelled.restore()
    sampling = Sampling(labelled.sampler, labelled.restore, runs)
    sampling.warmed = time.perf_counter() - start
    return sampling


def runs_per_sample(
    sampler: Sampler,
    restore: Callable[[], None],
    sample_time: float = SAMPLE_TIME,
    most: int = 1_000_000,
) -> int:
    """Number of runs that fill ``sample_time`` seconds, at least 1 and at most ``most``.

    Grows as ``timeit.Timer.autorange`` does, tenfold at most, so that an early slow run does not
    decide.
    """
    runs = 1
    while runs < most:
        restore()
        elapsed = sampler.seconds(runs)
        if elapsed >= sample_time:
            break
        growth = sample_time / elapsed if elapsed > 0 else 10.0
        runs = min(most, math.ceil(runs * min(10.0, max(1.2, growth))))
    return runs
