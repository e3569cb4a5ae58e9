"""How often is measured, and how: samples of many runs, shared among rounds.

A *sample* is a batch of runs between two readings of a clock, or single runs on fresh inputs where
a run takes another time on what the one before left (``times.leftover_ratio``). A *round* is the
samples that are taken on the same arrays: where arrays lie in memory can double a time, and samples
on the same arrays do not show it. So the arrays are moved before each round (``BoundCase.move``). A
process of asv's takes one *plan* of samples, and asv may start several (its ``rounds``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gpubench.backends.protocol import Sampler
from gpubench.measure.asv_settings import TIMEOUT
from gpubench.measure.disturbance import WAITED, counters, waited
from gpubench.names import FRESH_TIMES
from gpubench.suite.sampling import Sampling

SAMPLE_TIME = 0.01
"""Seconds that a sample should last at least, as in asv."""
ON_THE_HOST = ("host loop", "event loop", "plain events")
"""Methods whose times contain what the host waits for; a device's own events do not."""
PROCESSES = 2
"""Processes for one case, asv's default for its ``rounds``."""
MOST = 10
"""Samples of one process where there is no other; asv shares them where there are two."""
MAX_SHARED_SECONDS = 20.0
"""Most seconds for these, shared too."""
WARM_UP = 0.1
"""Seconds before the first sample, asv's default; the runs that size a sample count."""
TRIES = 5
"""Samples that size one, while each had to wait for a core: five of 10 ms are half a warm-up."""
MOST_RUNS = 1_000_000
"""Runs in one sample of a call that takes next to no time."""
LONG = 0.25
"""Seconds from which a round on the host begins without an untimed run. What such a run gets ready
are caches: the last-level one, of some 32 MiB, is filled at 10 GB/s in 3 ms, about 1 % of this."""
COMPILATIONS = (2, 3, 10.0)
"""Fewest and most samples of ``compile``, and seconds after which the fewest are enough: each is a
process that compiles, which takes seconds and varies little."""

FRESH_RUNS = ", fresh inputs for each run"
"""What the record adds to the method of samples that are single runs."""

FRESH_WARNING = "fresh inputs for each run: on what the runs before left, a run takes"
"""How the warning of such samples begins."""

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
        """Return so many samples, however long they take, over as many processes as can share them
        evenly."""
        processes = next(n for n in range(self.processes, 0, -1) if samples % n == 0)
        share = samples // processes
        return replace(self, processes=processes, least=share, most=share)

    def samples(self, seconds: float) -> int:
        """Return the samples of one process where one takes so many seconds, with all that is done
        before it: settled before the first, so that rounds can be shared out, where asv goes on
        until the time is over."""
        fitting = self.most if seconds <= 0 else math.ceil(self.seconds / seconds)
        return max(self.least, min(self.most, fitting), 1)

    def schedule(self, sampler: CaseSampler) -> Schedule:
        """Return the samples of one process."""
        sizes = split_into_rounds(self.samples(sampler.sample_seconds))
        return Schedule(tuple(sizes), self.warm_up)


@dataclass(frozen=True, slots=True)
class Sized:
    """How a process sizes samples; another of the same run takes it over."""

    runs: int
    """In one sample."""
    fresh_runs: tuple[str, ...] = ()
    """The warning that each run gets fresh inputs, where it does."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which samples one process takes of a case that is ready."""

    sizes: tuple[int, ...]
    """Samples of each round."""
    warm_up: float = 0.0
    """Seconds in which samples are taken and dropped first."""
    outer_warm_up: float = 0.0
    """Seconds after that in which who steps the run drops samples itself, as asv may."""
    may_end_from: int | None = None
    """Samples from which outputs are verified after each, as no other may come; absent: all."""
    enough: int | None = None
    """Samples that are enough once ``seconds`` are over; absent: all."""
    seconds: float = math.inf
    samples: int = field(init=False)
    """Samples of all rounds."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", sum(self.sizes))

    def is_over(self, taken: int, seconds: float) -> bool:
        """Return whether so many samples, taken in so many ``seconds``, are all."""
        is_enough = self.enough is not None and seconds > self.seconds and taken >= self.enough
        return is_enough or taken >= self.samples

    def may_end(self, taken: int) -> bool:
        """Return whether no other sample may come after so many."""
        return taken >= (self.samples if self.may_end_from is None else self.may_end_from)


def sample_plan(sampling: Sampling, time: str = "kernel") -> SamplePlan:
    """Return what asv does with this ``sampling`` (``asv_runner.benchmarks.time``), its defaults
    too."""
    if time in FRESH_TIMES:  # each sample is a process, which nothing warms up
        return SamplePlan(1, *COMPILATIONS, warm_up=0.0)
    processes = sampling.rounds or PROCESSES
    share = 2 if processes > 1 else 1
    least, most, seconds = 1, MOST // share, MAX_SHARED_SECONDS / share
    if isinstance(sampling.repeat, tuple):
        least, most, seconds = sampling.repeat
    elif sampling.repeat:
        least, most, seconds = sampling.repeat, sampling.repeat, sampling.timeout or TIMEOUT
    warm_up = WARM_UP if sampling.warmup_time is None else sampling.warmup_time
    return SamplePlan(processes, least, most, seconds, warm_up)


def apply_asv_attributes(sampling: Sampling, attributes: Mapping[str, Any]) -> Sampling:
    """Return the same with what asv's command line sets (``-a sample_time=0.1``), but for its
    ``number``: of asv's calls each is a sample of ours, and ``--quick`` asks for one call."""
    names = ("rounds", "repeat", "sample_time", "warmup_time")
    update = {name: attributes[name] for name in names if name in attributes}
    if isinstance(update.get("repeat"), list):  # from JSON
        update["repeat"] = tuple(update["repeat"])
    return sampling.model_copy(update=update)


def split_into_rounds(samples: int) -> list[int]:
    """Return the samples of each round: as many rounds as there may be, none with two more than
    another."""
    rounds = min(ROUNDS, samples)
    return [samples * (i + 1) // rounds - samples * i // rounds for i in range(rounds)]


def rounds_to_verify(rounds: int) -> set[int]:
    """Return the rounds, by number from 0, whose first outputs are verified: the first, before
    anything counts; the one in the middle and the last, so that what is wrong at times, as a race
    is, has more than one chance to show. After the last sample outputs are verified again."""
    return {0, rounds // 2, rounds - 1}


class CaseSampler:
    """One labelled time of one case, which can be sampled: counts the seconds of one run.

    asv calls a benchmark that has a setup once a sample (``number`` is 1), which is too short for
    kernels of microseconds. So a sample is a batch of runs, and ``elapsed``, asv's timer, advances
    by the batch's time divided by the number of its runs.
    """

    def __init__(
        self,
        sampler: Callable[[bool], Sampler],
        restore: Callable[[], None],
        move: Callable[..., None] = lambda *verify, **how: None,
        *,
        refresh: Callable[[], None] | None = None,
        leftover_ratio: Callable[[Sampler, int], float | None] = lambda sampler, runs: None,
        most_runs: int = MOST_RUNS,
        dear: bool = False,
    ) -> None:
        """``sampler`` makes one for the arrays as they lie now (``True``: not the first one of the
        case). Untimed, ``restore`` undoes what runs did before every batch, ``refresh`` (absent:
        the same) does so before every single run, and ``move`` puts the arrays elsewhere before
        every round. ``leftover_ratio`` tells, for a batch of so many runs, by what factor a run
        takes longer on what a batch left, ``None`` where it does not. ``most_runs`` in one sample;
        ``dear`` is a run that takes so long that none is tried before the first sample."""
        self._new_sampler, self._restore, self._move = sampler, restore, move
        self._refresh, self._leftover_ratio = refresh or restore, leftover_ratio
        self._most_runs, self._dear = most_runs, dear
        self._sampler = sampler(False)
        self._began = time.perf_counter()
        self._elapsed = 0.0
        self._fresh_runs: tuple[str, ...] = ()
        """Why each run gets fresh inputs, as a warning; empty where it does not."""
        self.take: Callable[[Callable[[], float], Callable[[], None]], float] | None = None
        """Takes a batch that the host times, and may take it again after restoring; returns what
        counts. ``None``: each batch counts."""
        self.verify: Callable[[int, Mapping[str, Any]], None] | None = None
        """Verifies outputs after so many timed runs, where some rounds begin; raises where they are
        wrong. ``None``: they are not verified there."""
        self.timed_runs = 0
        """So far, warm-up and sizing included."""
        self.runs = 1
        """In one sample."""
        self.run_seconds: float | None = None
        """Seconds of one run when the sample was sized; ``None`` where nothing was tried."""
        self.move_seconds = 0.0
        """Seconds that a round takes before its first sample, once the sample was sized."""
        self.sample_seconds = math.inf
        """Seconds that a sample in a round of its own takes, with all that comes before it; endless
        where nothing was tried, so that the fewest samples are taken."""

    @property
    def method(self) -> str:
        """How the last sample was taken."""
        return f"{self._sampler.method}{FRESH_RUNS if self._fresh_runs else ''}"

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self._fresh_runs, *self._sampler.warnings)

    @property
    def is_on_the_host(self) -> bool:
        """Whether samples contain what the host waits for."""
        return self._sampler.method in ON_THE_HOST

    @property
    def is_long(self) -> bool:
        """Whether a run on the host takes so long that none is spent on anything but samples."""
        seconds = self.run_seconds
        return self.is_on_the_host and seconds is not None and seconds >= LONG

    def size(
        self, declared: Sampling, tried: float | None = None, earlier: Sized | None = None
    ) -> None:
        """Find as many runs for a sample as the suite says, or as fill its time.

        Where a sample has to be one run (``cold``), the suite's ``number`` is not asked. Where a
        run takes another time on what a batch left, samples are single runs from here on.
        ``tried``: seconds of a run before, so that a long one need not be tried again. ``earlier``:
        what another process of the same run found, which is not sought again.
        """
        if self._dear:
            return
        wanted = max(LONG, declared.sample_time or SAMPLE_TIME)
        self.run_seconds = tried
        if earlier is not None:
            declared = declared.model_copy(update={"number": earlier.runs})
            self._fresh_runs = earlier.fresh_runs
        if declared.number in (None, 1) and tried is not None and tried >= wanted and self.is_long:
            seconds = tried
        else:
            seconds = self._find_runs(declared, tried)
        if earlier is None and self.runs > 1:
            ratio = self._leftover_ratio(self._sampler, self.runs)
            if ratio is not None:
                self._fresh_runs = (f"{FRESH_WARNING} {ratio:.2g} times as long",)
                seconds = self._find_runs(declared)
        start = time.perf_counter()
        self.begin_round(verified=True)
        self.move_seconds = time.perf_counter() - start
        self.sample_seconds = seconds + self.move_seconds

    def _find_runs(self, declared: Sampling, tried: float | None = None) -> float:
        """Set ``runs``; returns the seconds of such a sample. ``tried``: of a run before.

        Grows as ``timeit.Timer.autorange`` does, tenfold at most, so that an early slow run does
        not decide. Of single runs on fresh inputs, what is done between them counts too: the inputs
        may take far longer than the run.
        """
        wanted, self.runs = declared.sample_time or SAMPLE_TIME, 1
        if declared.number is not None:
            self.runs, wanted = min(declared.number, self._most_runs), 0.0
        while True:
            start = time.perf_counter()
            seconds = self._undisturbed()
            is_first = self.runs == 1 and (tried is None or tried < wanted)
            if is_first and wanted <= seconds < LONG:
                # Long enough by itself, or it had to wait for a core: another one tells.
                seconds = min(seconds, self.restored_sample())
            self.run_seconds = seconds / self.runs
            if self._fresh_runs:
                seconds = max(seconds, time.perf_counter() - start)
            if seconds >= wanted or self.runs >= self._most_runs:
                return seconds
            growth = wanted / seconds if seconds > 0 else 10.0
            runs = math.ceil(self.runs * min(10.0, max(1.2, growth)))
            self.runs = min(runs, self._most_runs)

    def _undisturbed(self) -> float:
        """Seconds of a sample, the least of a few while it has to wait for a core: waiting would
        fill the sample's time in place of runs."""
        least = math.inf
        for _ in range(TRIES):
            before = counters()
            least = min(least, self.restored_sample() * self.runs)
            if (waited(before, counters()) or 0.0) <= WAITED * least:
                break
        return least

    def begin_round(self, *, verified: bool = False) -> None:
        """Move the arrays. Each round begins with a run on fresh inputs, whose outputs may be
        ``verified``; not where a run takes ``LONG`` on the host: the outputs after the last sample
        are verified anyway."""
        is_long = self.is_long
        del self._sampler  # which knows the arrays of the round before
        if is_long:
            self._move(run=False)
        elif verified and self.verify is not None:
            self._move(partial(self.verify, self.timed_runs))
        else:
            self._move()
        self._sampler = self._new_sampler(True)
        self.restore()

    def restore(self) -> None:
        """Before every sample: undo what runs did."""
        if not self._fresh_runs:  # else each run does
            (self._restore if self.runs > 1 else self._refresh)()

    def warm_up(self, seconds: float) -> None:
        """Take samples that nobody counts until so many seconds are over since it began; then
        everything is ready for the first that counts."""
        while time.perf_counter() < self._began + seconds:
            self.restore()
            self._batch()
        self.restore()

    def warmed_sample(self) -> float:
        """Return a sample after something else has run: a run before it brings its arrays back into
        the caches, as the one before does in a row of samples. Not where a run is long."""
        if not self.is_long:
            self.restore()
            self._sampler.seconds(1)
        return self.restored_sample()

    def restored_sample(self) -> float:
        """Return a sample, after undoing what runs before it did."""
        self.restore()
        return self.sample()

    def sample(self) -> float:
        """Take a sample; return seconds of one run."""
        if self.take is not None and self.is_on_the_host:
            seconds = self.take(self._batch, self.restore)
        else:
            seconds = self._batch()
        self._elapsed += seconds
        return seconds

    def _batch(self) -> float:
        self.timed_runs += self.runs
        if not self._fresh_runs:
            return self._sampler.seconds(self.runs) / self.runs
        seconds = 0.0
        for _ in range(self.runs):
            self._refresh()
            seconds += self._sampler.seconds(1)
        return seconds / self.runs

    def elapsed(self) -> float:
        """Sum of all samples so far, in seconds: a timer that asv reads before and after each."""
        return self._elapsed


def begin_rounds(samplers: Sequence[CaseSampler], rounds: int) -> Iterator[int]:
    """Yield the number of each round, from 0, once the arrays of all ``samplers`` lie in their
    places for it. Those of the first round lie there already."""
    verified = rounds_to_verify(rounds)
    for number in range(rounds):
        if number:
            for sampler in samplers:
                sampler.begin_round(verified=number in verified)
        yield number
