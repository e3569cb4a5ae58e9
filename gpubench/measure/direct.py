"""Measures cases at once, without asv and without commits, by the same run of a case.

Only one case is on a device at any moment. The cases of a kernel are prepared and sampled one
after another in a process of their own, and what ends there ends one case. Where the suite says
``rounds``, they take so many turns, each in another process and every second one in the opposite
order, so that what drifts favours none.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby
from statistics import median

from gpubench.collecting import without_collecting
from gpubench.measure.asv_settings import TIMEOUT
from gpubench.measure.caches import caches_of_sources
from gpubench.measure.case_run import CaseRun, State
from gpubench.measure.conditions import changes_process, why_ended, why_stopped
from gpubench.measure.observers.pairs import opponent_of
from gpubench.measure.outcomes import baseline_of, case_record, one_of_each
from gpubench.measure.recorder import Recorder
from gpubench.measure.sampling import SamplePlan, sample_plan
from gpubench.measure.worker import Unanswered, Worker, get_ready
from gpubench.names import FRESH_TIMES
from gpubench.plan.case import Case
from gpubench.plan.expansion import compiled_apart
from gpubench.record import CaseRecord, Disturbance


@dataclass(frozen=True, slots=True)
class Job:
    """One labelled time of one case, to be measured."""

    case: Case
    time: str = "kernel"
    opponent: Case | None = None
    """What it is paired with in place of its baseline."""
    samples: int | None = None
    """Samples in all, in place of what the suite says."""

    @property
    def plan(self) -> SamplePlan:
        sampling = self.case.kernel.sampling
        if sampling.rounds is None:  # asv's default is two processes, which prepare a case twice
            sampling = sampling.model_copy(update={"rounds": 1})
        plan = sample_plan(sampling, self.time)
        return plan if self.samples is None else plan.with_samples(self.samples)

    @property
    def timeout(self) -> float:
        """Seconds after which a turn of it is given up, as with asv."""
        return self.case.kernel.sampling.timeout or TIMEOUT


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a job."""

    record: CaseRecord
    processes: tuple[tuple[tuple[float, ...], ...], ...] = ()
    """Of each process, the samples of each of its rounds, as seconds of one run."""
    disturbances: tuple[Disturbance | None, ...] = ()
    """What others did to the samples of each process."""

    @property
    def medians(self) -> list[list[float]]:
        """Of the rounds of each process, as seconds of one run."""
        return [[median(samples) for samples in rounds] for rounds in self.processes]

    @property
    def samples(self) -> tuple[float, ...]:
        return tuple(chain.from_iterable(chain.from_iterable(self.processes)))

    def joined(self, after: Measured) -> Measured:
        """Return this and a later turn of the same job; where that failed, it is the outcome."""
        if after.record.status != "ok":
            return after
        before, record = self.record, after.record
        record = replace(
            record,
            warnings=one_of_each((*before.warnings, *record.warnings)),
            pair_ratios=(*before.pair_ratios, *record.pair_ratios),
            pair_rounds=(*before.pair_rounds, *record.pair_rounds),
        )
        return Measured(
            record,
            (*self.processes, *after.processes),
            (*self.disturbances, *after.disturbances),
        )


Take = Callable[[Job], Measured]
"""Takes one turn of a job: in another process (``bench``), or here (``take_turn``)."""


def jobs(cases: Iterable[Case], samples: int | None = None) -> list[Job]:
    """Return every labelled time of these cases and of the baselines that they are measured
    against; of cases that are compiled alike, one is compiled."""
    wanted: dict[tuple[str, str], Case] = {}
    for case in cases:
        baseline = baseline_of(case) if case.fault is None else None
        for one in filter(None, (baseline, case)):
            wanted.setdefault((one.benchmark("kernel").asv_name, one.identity), one)
    compiled = set(map(id, compiled_apart(wanted.values())))
    return [
        Job(case, time, samples=samples)
        for case in wanted.values()
        for time in case.group.times
        if time not in FRESH_TIMES or id(case) in compiled
    ]


def turns_of(work: Iterable[Job]) -> int:
    """Return the turns of these jobs together: what progress is counted in."""
    return sum(job.plan.processes for job in work)


def measure(work: Sequence[Job], take: Take) -> Iterator[tuple[int, Measured]]:
    """Measure all jobs, kernel by kernel; yields a job's place in ``work`` and what is measured of
    it so far, after each of its turns. A job that did not succeed has no further turn."""
    for _, group in groupby(enumerate(work), lambda item: _kernel_of(item[1])):
        kernel = list(group)
        measured: dict[int, Measured] = {}
        for turn in range(max(job.plan.processes for _, job in kernel)):
            for place, job in reversed(kernel) if turn % 2 else kernel:
                before = measured.get(place)
                if turn < job.plan.processes and (before is None or before.record.status == "ok"):
                    after = take(job)
                    measured[place] = after if before is None else before.joined(after)
                    yield place, measured[place]


def _kernel_of(job: Job) -> tuple[str, str]:
    return job.case.suite.suite, job.case.kernel_name


def take_turn(job: Job) -> Measured:
    """Prepare, verify and sample in this process. What goes wrong is in the record."""
    recorder = Recorder(None)
    run = CaseRun(job.case, job.time, recorder, job.timeout, opponent=job.opponent, plan=job.plan)
    try:
        run.advance(State.PREPARED)
        with without_collecting():  # as in ``timeit``
            while not run.is_sampled:
                run.advance(State.SAMPLED)
        run.advance(State.CLOSED)
    except Exception:
        return Measured(run.record)
    finally:
        run.close()
    rounds = tuple(map(tuple, run.rounds))
    return Measured(run.record, (rounds,), (run.disturbance,))


@contextmanager
def bench(backends: Iterable[str] = (), warned: Counter[str] | None = None) -> Iterator[Take]:
    """Take turns in processes of their own, on every device.

    A process measures the cases of one kernel, each once, and compiles for all of them. A case that
    changes its process permanently has a process alone, and after a case that failed the next case
    gets a new process. ``backends`` are imported before processes are forked, and ``warned`` counts
    Python's warnings.
    """
    stack = ExitStack()
    stack.enter_context(caches_of_sources())
    backends = tuple(backends)
    get_ready(backends)
    taken: list[Job] = []
    """In the present process."""

    @cache
    def make_worker() -> Worker:
        worker = Worker(take_turn, backends=backends, warned=warned)
        stack.callback(worker.end)
        return worker

    def take(job: Job) -> Measured:
        worker = make_worker()
        if taken and (
            _kernel_of(job) != _kernel_of(taken[-1])
            or any(job is one for one in taken)
            or any(changes_process(one.case) for one in (taken[-1], job))
        ):
            worker.replace()
            taken.clear()
        taken.append(job)
        try:
            worker.give(job, job.timeout)
            measured: Measured = worker.answer()
        except Unanswered as error:
            taken.clear()
            reason = f"{error}{why_ended(job.case) if error.status == 'killed' else ''}"
            if error.status == "timed_out":
                reason = why_stopped(job.timeout, error.likely_cause)
            return Measured(replace(case_record(job.case, job.time, error.status), reason=reason))
        # A device may be lost to it, or its allocator another one (`memory.peak_bytes`).
        if measured.record.status in ("failed", "wrong") or job.case.kernel.sampling.memory:
            worker.replace()
            taken.clear()
        return measured

    with stack:
        yield take


@dataclass(frozen=True, slots=True)
class Twins:
    """One comparison of a case with itself: the A/A control."""

    case: Case
    first: Measured
    second: Measured | None
    """Not measured where the first has pairs and one turn, as these tell."""

    @property
    def succeeded(self) -> bool:
        """Whether there is something to compare."""
        sides = filter(None, (self.first, self.second))
        return all(measured.record.status == "ok" for measured in sides)


def twins(
    cases: Iterable[Case], comparisons: int, take: Take, samples: int | None = None
) -> Iterator[Twins]:
    """Yield so many comparisons, in turn over the ``kernel`` times of these cases, each measured as
    against its baseline. One that cannot be measured is told once, not counted and not tried again.
    """
    waiting: deque[list[Job]] = deque()
    for case in cases:
        if "kernel" in case.group.times:
            job = Job(case, "kernel", opponent_of(case, "kernel", case), samples)
            # Two that differ, so that both are measured in one process, as of two cases.
            waiting.append([job, replace(job)])
    done = 0
    while waiting and done < comparisons:
        work = waiting.popleft()
        sides: dict[int, Measured] = {}
        for place, measured in measure(work, take):
            sides[place] = measured
            if measured.record.pair_ratios and work[0].plan.processes == 1:
                break
        comparison = Twins(work[0].case, sides[0], sides.get(1))
        yield comparison
        if comparison.succeeded:
            done += 1
            waiting.append(work)
