"""Measures cases at once, without asv and without commits, with the same preparation.

Rounds take turns as asv's do: every time of a kernel once, then all of them again in the opposite
order, so that what drifts favours none. In each round a case is prepared anew, as in a process of
asv's, and only one case is on a device at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from gpubench.measure.paired import Opponent
from gpubench.measure.preparation import Preparation, case_record, cause, known_baseline, told_once
from gpubench.measure.recorder import Recorder
from gpubench.measure.repeats import TIMEOUT, Repeats, repeated, repeats
from gpubench.plan.case import Case
from gpubench.plan.group import compiled_apart
from gpubench.record import CaseRecord, RunRecord

LEAST_ROUNDS = 6
"""Samples of one round share its buffers and its moment, so that they may all be slow together.

Where nothing but that differs, twelve rounds fall into six slow ones of the first case and six
quick ones of the second, or the other way round, once in 462 times (2 of 924); with two rounds each
it would be once in three. See ``gpubench.analysis.rounds``.
"""

PAIRED_ROUNDS = 20
"""A pair's halves share a moment and not their buffers, so that rounds are what is counted: of
twenty, three may fall on the wrong side without hiding a difference."""


@dataclass(frozen=True, slots=True)
class Job:
    """One labelled time of one case, to be measured."""

    case: Case
    time: str = "kernel"
    opponent: Opponent | None = None
    """What it is paired with in place of its baseline."""
    samples: int | None = None
    """Samples over all rounds, in place of what the suite says."""

    @property
    def plan(self) -> Repeats:
        """Rounds and samples: the suite's, over enough rounds."""
        sampling = self.case.kernel.sampling
        plan = repeats(sampling, self.time)
        if self.time != "compile":
            plan = plan.spread(PAIRED_ROUNDS if sampling.paired else LEAST_ROUNDS)
        return plan if self.samples is None else plan.with_samples(self.samples)

    @property
    def timeout(self) -> float:
        """Seconds after which a round is given up, where it runs in a process of its own."""
        return self.case.kernel.sampling.timeout or TIMEOUT


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a job: its record, and seconds of one run for each sample."""

    record: CaseRecord
    samples: tuple[float, ...] = ()
    rounds: tuple[int, ...] = ()
    """How many of ``samples`` each round gave; empty where they are all of one round."""

    @property
    def by_round(self) -> list[tuple[float, ...]]:
        """Samples of each round."""
        ends = accumulate(self._counts)
        return [self.samples[end - n : end] for n, end in zip(self._counts, ends, strict=True)]

    def joined(self, after: Measured) -> Measured:
        """This and a later one that succeeded, as one."""
        samples = (*self.samples, *after.samples)
        return Measured(after.record, samples, (*self._counts, *after._counts))

    @property
    def _counts(self) -> tuple[int, ...]:
        return self.rounds or ((len(self.samples),) if self.samples else ())


Measure = Callable[[Job], Measured]
"""Takes one round of a job: here, or in another process."""


class Memory(Recorder):
    """A recorder that keeps a case's last line in memory."""

    def __init__(self) -> None:
        super().__init__(None)
        self.last: CaseRecord | None = None

    def write(self, record: RunRecord | CaseRecord) -> None:
        if isinstance(record, CaseRecord):
            self.last = record


def jobs(cases: Iterable[Case], samples: int | None = None) -> list[Job]:
    """Every labelled time of these cases and of the baselines that they are measured against;
    compilation once of those that are compiled alike."""
    wanted: dict[tuple[str, str], Case] = {}
    for case in cases:
        baseline = known_baseline(case) if case.fault is None else None
        for each in (baseline, case) if baseline is not None else (case,):
            wanted.setdefault((each.benchmark("kernel").asv_name, each.identity), each)
    compiled = set(map(id, compiled_apart(wanted.values())))
    return [
        Job(case, time, samples=samples)
        for case in wanted.values()
        for time in case.subject.times
        if time != "compile" or id(case) in compiled
    ]


def measure(work: Sequence[Job], take: Measure) -> Iterator[tuple[int, Measured]]:
    """Rounds of all jobs, kernel by kernel; ``take`` measures one.

    Yields a job's place in ``work`` and what is known of it so far, after each of its rounds. A
    job that did not succeed has no further round.
    """
    numbered = list(enumerate(work))
    for _, group in groupby(numbered, key=lambda item: _kernel(item[1].case)):
        yield from _rounds(list(group), take)


def rounds_of(work: Iterable[Job]) -> int:
    """Number of rounds of these jobs together: what progress is counted in."""
    return sum(job.plan.rounds for job in work)


def take_round(job: Job) -> Measured:
    """Prepare, check and sample in this process. What goes wrong is in the record."""
    memory = Memory()
    preparation = Preparation(job.case, job.time, memory, job.timeout, job.opponent, job.plan)
    try:
        return _sampled(job, preparation, memory)
    except Exception as error:
        preparation.close(error)
        return Measured(_outcome(job, memory, error))
    finally:
        preparation.close()


def _rounds(work: list[tuple[int, Job]], take: Measure) -> Iterator[tuple[int, Measured]]:
    found: dict[int, Measured] = {}
    for number in range(max(job.plan.rounds for _, job in work)):
        for index, job in reversed(work) if number % 2 else work:
            before = found.get(index)
            if number < job.plan.rounds and (before is None or before.record.status == "ok"):
                found[index] = _joined(before, take(job))
                yield index, found[index]


def _sampled(job: Job, preparation: Preparation, memory: Memory) -> Measured:
    sampling = preparation.prepare()
    samples = tuple(repeated(lambda _: sampling.restored_sample(), job.plan))
    preparation.synchronize()
    preparation.note(sampling)
    assert memory.last is not None
    return Measured(memory.last, samples)


def _outcome(job: Job, memory: Memory, error: Exception) -> CaseRecord:
    """The record as the preparation left it, unless the failure came after it."""
    record = memory.last or case_record(job.case, job.time, "failed")
    if record.status in ("ok", "started"):
        return replace(record, status="failed", reason=cause(error))
    return record


def _joined(before: Measured | None, after: Measured) -> Measured:
    """One outcome of two rounds; where the later one failed, that is the outcome."""
    if before is None or after.record.status != "ok":
        return after
    record = replace(
        after.record,
        warnings=told_once((*before.record.warnings, *after.record.warnings)),
        pair_ratios=(*before.record.pair_ratios, *after.record.pair_ratios),
        pair_rounds=(*_pair_rounds(before.record), *_pair_rounds(after.record)),
    )
    return before.joined(replace(after, record=record))


def _pair_rounds(record: CaseRecord) -> tuple[int, ...]:
    return record.pair_rounds or ((len(record.pair_ratios),) if record.pair_ratios else ())


def _kernel(case: Case) -> tuple[str, str]:
    return case.suite.suite, case.kernel_name
