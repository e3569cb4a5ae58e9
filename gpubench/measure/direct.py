"""Measures cases at once, without asv and without commits, with the same preparation.

Only one case is on a device at any moment. Where a suite asks for several processes (asv's
``rounds``), the cases of a kernel take turns: each is prepared and sampled once, then all again in
the opposite order, so that what drifts favours none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gpubench.measure.paired import Opponent
from gpubench.measure.preparation import (
    Preparation,
    baseline_of,
    case_record,
    cause,
    one_of_each,
)
from gpubench.measure.recorder import Recorder
from gpubench.measure.sampling import TIMEOUT, SamplePlan, by_round, sample_plan, take_samples
from gpubench.plan.case import Case
from gpubench.plan.group import compiled_apart
from gpubench.record import CaseRecord


@dataclass(frozen=True, slots=True)
class Job:
    """One labelled time of one case, to be measured."""

    case: Case
    time: str = "kernel"
    opponent: Opponent | None = None
    """What it is paired with in place of its baseline."""
    samples: int | None = None
    """Samples in all, in place of what the suite says."""

    @property
    def plan(self) -> SamplePlan:
        plan = sample_plan(self.case.kernel.sampling, self.time)
        return plan if self.samples is None else plan.with_samples(self.samples)

    @property
    def timeout(self) -> float:
        """Seconds after which it is given up, where it runs in a process of its own."""
        return self.case.kernel.sampling.timeout or TIMEOUT


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a job: its record, and seconds of one run for each sample."""

    record: CaseRecord
    samples: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()
    """How many of ``samples`` each round gave."""

    @property
    def by_round(self) -> list[tuple[float, ...]]:
        """Samples of each round."""
        return by_round(self.samples, self.sizes)

    def joined(self, after: Measured) -> Measured:
        """This and a later turn of the same job; where that failed, it is the outcome."""
        if after.record.status != "ok":
            return after
        before, record = self.record, after.record
        record = replace(
            record,
            warnings=one_of_each((*before.warnings, *record.warnings)),
            pair_ratios=(*before.pair_ratios, *record.pair_ratios),
            pair_rounds=(*before.pair_rounds, *record.pair_rounds),
        )
        samples, sizes = (*self.samples, *after.samples), (*self.sizes, *after.sizes)
        return Measured(record, samples, sizes)


Take = Callable[[Job], Measured]
"""Takes one turn of a job: here, or in another process."""


def jobs(cases: Iterable[Case], samples: int | None = None) -> list[Job]:
    """Every labelled time of these cases and of the baselines that they are measured against;
    compilation once of those that are compiled alike."""
    wanted: dict[tuple[str, str], Case] = {}
    for case in cases:
        baseline = baseline_of(case) if case.fault is None else None
        for one in (baseline, case) if baseline is not None else (case,):
            wanted.setdefault((one.benchmark("kernel").asv_name, one.identity), one)
    compiled = set(map(id, compiled_apart(wanted.values())))
    return [
        Job(case, time, samples=samples)
        for case in wanted.values()
        for time in case.group.times
        if time != "compile" or id(case) in compiled
    ]


def turns_of(work: Iterable[Job]) -> int:
    """Turns of these jobs together: what progress is counted in."""
    return sum(job.plan.processes for job in work)


def measure(work: Sequence[Job], take: Take) -> Iterator[tuple[int, Measured]]:
    """Measure all jobs, kernel by kernel; ``take`` takes one turn.

    Yields a job's place in ``work`` and what is measured of it so far, after each of its turns. A
    job that did not succeed has no further turn.
    """
    numbered = list(enumerate(work))
    for _, group in groupby(numbered, key=lambda item: _kernel(item[1].case)):
        kernel = list(group)
        measured: dict[int, Measured] = {}
        for turn in range(max(job.plan.processes for _, job in kernel)):
            for place, job in reversed(kernel) if turn % 2 else kernel:
                before = measured.get(place)
                if turn < job.plan.processes and (before is None or before.record.status == "ok"):
                    after = take(job)
                    measured[place] = after if before is None else before.joined(after)
                    yield place, measured[place]


def take_turn(job: Job) -> Measured:
    """Prepare, check and sample in this process. What goes wrong is in the record."""
    preparation = Preparation(
        job.case, job.time, Recorder(None), job.timeout, job.opponent, job.plan
    )
    try:
        measurement = preparation.prepare()
        samples, sizes = take_samples(measurement, job.plan)
        preparation.synchronize()
        preparation.note(measurement)
    except Exception as error:
        preparation.close(error)
        record = preparation.record or case_record(job.case, job.time, "failed")
        if record.status in ("ok", "started"):  # it failed after that was written
            record = replace(record, status="failed", reason=cause(error))
        return Measured(record)
    finally:
        preparation.close()
    assert preparation.record is not None
    return Measured(preparation.record, tuple(samples), tuple(sizes))


@dataclass(frozen=True, slots=True)
class Twins:
    """One comparison of a case with itself: the A/A control."""

    case: Case
    first: Measured
    second: Measured | None
    """``None`` in paired mode, where the first has the ratios of both."""

    @property
    def succeeded(self) -> bool:
        """Whether there is something to compare."""
        sides = (self.first,) if self.second is None else (self.first, self.second)
        return all(measured.record.status == "ok" for measured in sides)


def twins(
    cases: Iterable[Case], comparisons: int, take: Take, samples: int | None = None
) -> Iterator[Twins]:
    """So many comparisons, in turn over the ``kernel`` times of these cases, each measured as
    against its baseline.

    A case that cannot be measured is told once, not counted and not tried again.
    """
    waiting = deque(case for case in cases if "kernel" in case.group.times)
    done = 0
    while waiting and done < comparisons:
        case = waiting.popleft()
        paired = case.kernel.sampling.paired
        job = Job(case, "kernel", Opponent(case) if paired else None, samples)
        sides = dict(measure([job] if paired else [job, job], take))
        comparison = Twins(case, sides[0], None if paired else sides[1])
        yield comparison
        if comparison.succeeded:
            done += 1
            waiting.append(case)


def _kernel(case: Case) -> tuple[str, str]:
    return case.suite.suite, case.kernel_name
