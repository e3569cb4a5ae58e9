"""How often is measured, and how: samples of many runs, shared among rounds.

A *sample* is a batch of runs between two readings of a clock. A *round* is the samples that are
taken on the same arrays: where arrays lie in memory can double a time, and samples on the same
arrays do not show it. So the arrays are moved before each round (``LabelledTime.move``). A process
of asv's takes one *plan* of samples, and asv may start several (its ``rounds``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from gpubench.collecting import without_collecting
from gpubench.measure.times import LabelledTime
from gpubench.suite.model import Sampling

SAMPLE_TIME = 0.01
"""Seconds that a sample should last at least, as in asv."""
PROCESSES = 2
"""Processes for one case, asv's default for its ``rounds``."""
MOST = 10
"""Samples of one process where there is no other; asv shares them where there are two."""
SECONDS = 20.0
"""Most seconds for these, shared too."""
WARM_UP = 0.1
"""Seconds before the first sample, asv's default; the runs that size a sample count."""
TIMEOUT = 60.0
"""Seconds for one case, asv's default."""
COMPILATIONS = (2, 3, 10.0)
"""Fewest and most samples of ``compile``, and seconds after which the fewest are enough: each is a
process that compiles, which takes seconds and varies little."""

ROUNDS = 20
"""Most rounds in one process.

With a sample in each, two times that differ by 5 % are told apart in 99 of 100 comparisons, and two
that do not differ in 0.2, where samples scatter by 2 % and rounds by 1 % (``docs/measurement.md``
has the other numbers). More rounds cost more and tell little more.
"""


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """How often one case is measured. Each process prepares it anew and takes ``most`` samples,
    fewer (``least``) where they would take longer than ``seconds``."""

    processes: int
    least: int
    most: int
    seconds: float
    warm_up: float = WARM_UP
    """Seconds before the first sample in which samples are taken and dropped."""

    def with_samples(self, samples: int) -> SamplePlan:
        """So many samples over all processes, however long they take: over as many of these as can
        share them evenly."""
        processes = next(n for n in range(self.processes, 0, -1) if samples % n == 0)
        share = samples // processes
        return replace(self, processes=processes, least=share, most=share)

    def samples(self, seconds: float) -> int:
        """Samples of one process where one takes so many seconds, with all that is done before it.

        asv would go on until the time is over; that the number is settled before the first sample
        lets the rounds be shared out.
        """
        fitting = self.most if seconds <= 0 else math.ceil(self.seconds / seconds)
        return max(self.least, min(self.most, fitting), 1)


def sample_plan(sampling: Sampling, time: str = "kernel") -> SamplePlan:
    """What asv does with this ``sampling`` (``asv_runner.benchmarks.time``), its defaults too.

    Each sample of ``compile`` is a process, which nothing warms up.
    """
    if time == "compile":
        return SamplePlan(1, *COMPILATIONS, warm_up=0.0)
    processes = sampling.rounds or PROCESSES
    share = 2 if processes > 1 else 1
    least, most, seconds = 1, MOST // share, SECONDS / share
    if isinstance(sampling.repeat, tuple):
        least, most, seconds = sampling.repeat
    elif sampling.repeat:
        least, most, seconds = sampling.repeat, sampling.repeat, sampling.timeout or TIMEOUT
    warm_up = WARM_UP if sampling.warmup_time is None else sampling.warmup_time
    return SamplePlan(processes, least, most, seconds, warm_up)


def with_attributes(sampling: Sampling, attributes: Mapping[str, Any]) -> Sampling:
    """The same with what asv's command line sets (``-a sample_time=0.1``).

    Not its ``number``: of asv's calls each is a sample of ours, and ``--quick`` asks for one call.
    """
    names = ("rounds", "repeat", "sample_time", "warmup_time")
    update = {name: attributes[name] for name in names if name in attributes}
    if isinstance(update.get("repeat"), list):  # from JSON
        update["repeat"] = tuple(update["repeat"])
    return sampling.model_copy(update=update)


def shared(samples: int) -> list[int]:
    """Samples of each round: as many rounds as there may be, none with two more than another."""
    rounds = min(ROUNDS, samples)
    return [samples * (i + 1) // rounds - samples * i // rounds for i in range(rounds)]


def by_round(seconds: Sequence[float], sizes: Sequence[int]) -> list[tuple[float, ...]]:
    """Samples, in the order in which they were taken, of each round."""
    return [tuple(seconds[end - n : end]) for n, end in zip(sizes, accumulate(sizes), strict=True)]


class Measurement:
    """One labelled time of one case that can be sampled: counts the seconds of one run.

    asv calls a benchmark that has a setup once a sample (``number`` is 1), which is too short for
    kernels of microseconds. So a sample is a batch of runs, and ``elapsed``, asv's timer, advances
    by the batch's time divided by the number of its runs.
    """

    def __init__(self, labelled: LabelledTime) -> None:
        self._labelled = labelled
        self._sampler = labelled.sampler(False)
        self._began = time.perf_counter()
        self._elapsed = 0.0
        self.restore = labelled.restore
        self.runs = 1
        """In one sample."""
        self.run_seconds: float | None = None
        """Seconds of one run when the sample was sized; ``None`` where nothing was tried."""
        self.sample_seconds = math.inf
        """Seconds that a sample in a round of its own takes, with all that comes before it; endless
        where nothing was tried, so that the fewest samples are taken."""

    @property
    def method(self) -> str:
        """How the last sample was taken."""
        return self._sampler.method

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._sampler.warnings

    def size(self, declared: Sampling) -> None:
        """Find as many runs for a sample as the suite says, or as fill its time.

        Where a sample has to be one run (``cold``), the suite's ``number`` is not asked. Grows as
        ``timeit.Timer.autorange`` does, tenfold at most, so that an early slow run does not decide.
        """
        labelled = self._labelled
        if labelled.dear:
            return
        wanted = declared.sample_time or SAMPLE_TIME
        if declared.number is not None:
            self.runs, wanted = min(declared.number, labelled.most_runs), 0.0
        while True:
            seconds = self.restored_sample() * self.runs
            if seconds >= wanted or self.runs >= labelled.most_runs:
                break
            growth = wanted / seconds if seconds > 0 else 10.0
            runs = math.ceil(self.runs * min(10.0, max(1.2, growth)))
            self.runs = min(runs, labelled.most_runs)
        self.run_seconds = seconds / self.runs
        start = time.perf_counter()
        self.begin_round()
        self.sample_seconds = seconds + time.perf_counter() - start

    def begin_round(self) -> None:
        """Move the arrays. The sampler knows those of the round before, so that it goes first."""
        del self._sampler
        self._labelled.move()
        self._sampler = self._labelled.sampler(True)
        self.restore()

    def warm_up(self, seconds: float) -> None:
        """Take samples that nobody counts until so many seconds are over since it began; then
        everything is ready for the first that counts."""
        while time.perf_counter() < self._began + seconds:
            self.restored_sample()
        self.restore()

    def restored_sample(self) -> float:
        """A sample, after undoing what runs before it did."""
        self.restore()
        return self.sample()

    def sample(self) -> float:
        """Seconds of one run, from one batch."""
        seconds = self._sampler.seconds(self.runs) / self.runs
        self._elapsed += seconds
        return seconds

    def elapsed(self) -> float:
        """Sum of all samples so far, in seconds: a timer that asv reads before and after each."""
        return self._elapsed


def take_samples(measurement: Measurement, plan: SamplePlan) -> tuple[list[float], list[int]]:
    """Seconds of one run for each sample of one process, and how many samples each round has.

    Garbage is not collected meanwhile, as in ``timeit``.
    """
    sizes = shared(plan.samples(measurement.sample_seconds))
    seconds = []
    with without_collecting():
        measurement.warm_up(plan.warm_up)
        for number, size in enumerate(sizes):
            if number:
                measurement.begin_round()
            seconds += [measurement.restored_sample() for _ in range(size)]
    return seconds, sizes
