"""One labelled time of one case in one process, from nothing to a closed device.

``CaseRun`` is the only place that says what follows what: open, verify, size, warm up, and in each
round move the arrays, restore and sample; then verify again, and close. ``asv run`` and ``gpubench
time`` advance it alike. Observers (``measure/observers``) see each event: they measure what else is
measured of a case, and write what is written of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from time import perf_counter
from typing import Any

from gpubench.backends.protocol import Session
from gpubench.backends.software import NAME, count_launches, take_faults
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.bound_case import SMALL, BoundCase, opened
from gpubench.measure.conditions import why_not
from gpubench.measure.counting import counts_of
from gpubench.measure.inputs import Inputs, draw_inputs
from gpubench.measure.observers.protocol import EVENTS, Observer
from gpubench.measure.observers.record import RecordObserver
from gpubench.measure.observers.registry import make_built_in, make_installed
from gpubench.measure.outcomes import (
    Refused,
    Skipped,
    WrongResult,
    case_record,
    cause,
    errors_and_score,
    one_of_each,
    why_unfit,
)
from gpubench.measure.provenance import NOBODY_LOOKED, Provenance
from gpubench.measure.recorder import Recorder, now
from gpubench.measure.sampling import (
    FRESH_WARNING,
    CaseSampler,
    SamplePlan,
    Schedule,
    Sized,
    begin_rounds,
    sample_plan,
)
from gpubench.measure.scores import Outputs
from gpubench.measure.times import LABELLED_TIMES
from gpubench.measure.verification import (
    expected_outputs,
    remembers,
    verify,
    verify_again,
    verify_often,
    with_faults,
    wrong_reason,
)
from gpubench.names import FRESH_TIMES, Value
from gpubench.plan.case import Case
from gpubench.record import CaseRecord, CountsRecord, Disturbance
from gpubench.statuses import RecordedStatus
from gpubench.suite.sampling import Sampling

NO_TIMES = (
    f"verified on {NAME}, a CUDA device in software, which has no times: "
    "run it on a machine with an NVIDIA GPU to measure"
)

REMEMBERS = (
    "remembers its results: with other inputs in the same place it gives the outputs of those "
    "before"
)

LOOKING = 0.02
"""Seconds of runs that are each compared before the first sample: two samples."""

REDRAWN = 2**26
"""Bytes of inputs for which others are drawn after the last sample, to see that outputs follow
them: 64 MiB of float64 take 0.1 s."""


class State(Enum):
    """Where a run can be left and gone on with later."""

    BEGUN = auto()
    """Nothing is done yet."""
    PREPARED = auto()
    """Outputs are right, a sample has its number of runs, and the case is on record."""
    WARMED_UP = auto()
    """The first sample comes next."""
    READY = auto()
    """The arrays are restored, or moved for a new round: only the sample is missing."""
    SAMPLED = auto()
    """A sample is taken; on a device something of it may still run."""
    SETTLED = auto()
    """It runs no more, and where no other sample may come the outputs were right again."""
    CLOSED = auto()
    """The run is over, or has failed: the device is free."""


class CaseRun:
    """Runs one labelled time of one case: ``advance`` goes on with it, ``close`` ends it."""

    def __init__(
        self,
        case: Case,
        time: str,
        recorder: Recorder,
        timeout: float | None = None,
        *,
        opponent: Case | None = None,
        plan: SamplePlan | None = None,
        sampling: Sampling | None = None,
        schedule: Callable[[CaseRun], Schedule] | None = None,
        asv_run: str = "",
        version: str | None = None,
        provenance: Provenance = NOBODY_LOOKED,
        count: bool = False,
        earlier: CaseRecord | None = None,
    ) -> None:
        """Run a case; ``recorder`` has what this run of asv wrote before, and writes more.

        ``timeout``: seconds after which the caller ends the case; only put on record.
        ``opponent``: what the case is paired with in place of its baseline. ``sampling`` and
        ``plan``: how, and how often, it is sampled where that is not as the suite says.
        ``schedule``: the samples of a run that is ready, where these are not the plan's.
        ``asv_run`` and ``version``: of which run of asv it is, and of the asv benchmark.
        ``count``: whether the device in software counts what a run does. ``earlier``: the outcome
        of the case in another process of the same run.
        """
        self.case, self.time, self.recorder = case, time, recorder
        self.opponent, self.asv_run, self.provenance = opponent, asv_run, provenance
        self.sampling = sampling or case.kernel.sampling
        self.plan = plan or sample_plan(self.sampling, time)
        self.state = State.BEGUN
        """Where the run is."""
        self.record: CaseRecord
        """The case's last line on record, once the run has begun."""
        self.counts: CountsRecord | None = None
        """What a run of a case that is right counted on the device in software."""
        self.facts: Mapping[str, Value] = {}
        """What the session says of itself, once the sample is sized."""
        self.rounds: list[list[float]] = []
        """Samples of each round so far, in seconds of one run."""
        self.is_sampled = False
        """Whether all samples are taken."""
        self.disturbance: Disturbance | None = None
        """What other work did to the samples, once all are taken; ``None``: not known."""
        self._timeout, self._version = timeout, version
        self._count, self._earlier, self._schedule = count, earlier, schedule
        self._layouts: Mapping[str, str] = {}
        self._inputs: Inputs | None = None
        self._bound: BoundCase | None = None
        self._sampler: CaseSampler | None = None
        # What observers put before the case is on record as ready:
        self._conditions: Mapping[str, Value] = {}
        self._warnings: tuple[str, ...] = ()
        self._fields: dict[str, object] = {}
        self._noted: tuple[str, tuple[str, ...]] | None = None
        """Method and warnings of the sampler that are on record."""
        self._stack = ExitStack()
        self._fault: GpubenchError | None = None
        """Why observers of other packages cannot be had."""
        self._observe()
        self._states = self._walk()

    def advance(self, state: State) -> None:
        """Go on until this state is reached; raise what ended the case before, which is on record.

        Raises ``GpubenchError`` where the run is over.
        """
        for reached in self._states:
            self.state = reached
            if reached is state:
                return
        raise GpubenchError(
            f"the run of {self.case.identity} is over: it is never {state.name} again"
        )

    def prepare(self) -> CaseSampler:
        """Draw, verify and size; raises ``Skipped``, ``WrongResult`` or what went wrong."""
        self.advance(State.PREPARED)
        return self.sampler

    def close(self, error: BaseException | None = None) -> None:
        """Free the device and what the backend started; after an error nothing is waited for, as a
        lost device would only raise it again."""
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self._bound = self._sampler = None  # and with them the arrays
        how = (type(error), error, error.__traceback__) if error else (None, None, None)
        try:
            self._stack.__exit__(*how)
        finally:
            self._tell("on_close")

    # What observers ask.

    @property
    def bound(self) -> BoundCase:
        """The case on its session, from its verification until the device is free."""
        assert self._bound is not None
        return self._bound

    @property
    def session(self) -> Session:
        """The session that the case runs on."""
        return self.bound.session

    @property
    def inputs(self) -> Inputs:
        """The inputs as they were drawn, until the sample is sized."""
        assert self._inputs is not None
        return self._inputs

    @property
    def nbytes(self) -> int:
        """Bytes of the case's inputs and ``out`` arrays."""
        return self.bound.inputs.nbytes

    @property
    def sampler(self) -> CaseSampler:
        """What takes the samples, from its sizing until the device is free."""
        assert self._sampler is not None
        return self._sampler

    def put(
        self,
        *,
        conditions: Mapping[str, Value] | None = None,
        warnings: Iterable[str] = (),
        **fields: object,
    ) -> None:
        """Put on record what was found: conditions by name, warnings ("kind: what"), and other
        ``fields`` of ``CaseRecord``. Of the warnings of a kind the first stays."""
        is_ready = self.record.status == "ok"
        if is_ready:
            before, warned = self.record.conditions, self.record.warnings
        else:
            before, warned = self._conditions, self._warnings
        merged = {**before, **(conditions or {})}
        all_warnings = (*warned, *warnings)
        if not is_ready:
            self._conditions, self._warnings = merged, all_warnings
            self._fields |= fields
            return
        one_each = one_of_each(all_warnings)
        changed: Any = {**fields, "conditions": merged, "warnings": one_each}
        after = replace(self.record, **changed)
        if after != self.record:
            self.record = replace(after, at=now())
            self._tell("on_record_change")

    # The walk.

    def _walk(self) -> Iterator[State]:
        """Yield each state once it is reached: this is the order of every run."""
        with self._recording():
            record = case_record(self.case, self.time, "started")
            self.record = replace(record, version=self._version, timeout=self._timeout)
            self._tell("on_begin")
            self._tell("on_record_change")
            if self._fault is not None:
                raise self._fault
            self._prepare()
            yield State.PREPARED
            yield from self._sample_all()
            self._tell("on_finish")
            self.close()
        yield State.CLOSED

    def _prepare(self) -> None:
        if self.provenance.refusal:
            raise Refused(self.provenance.refusal)
        try:
            errors, warnings = self._verify()
            self._size(errors, warnings)
        except (KernelError, TypeError) as error:
            suite, missing = self.case.suite.suite, self.case.group.missing_code
            if reason := self.provenance.explain_misfit(suite, error, missing):
                raise Skipped(reason) from error
            raise

    def _verify(self) -> tuple[Mapping[str, float | None], tuple[str, ...]]:
        """Open the case, and return the errors of its outputs and what its check warns of; raises
        ``Skipped`` and ``WrongResult``."""
        case = self.case
        if reason := why_not(case):
            raise Skipped(reason)
        self._refuse_if_found_wrong()
        count_launches(self._count)
        self._inputs = inputs = draw_inputs(case)
        self._layouts = inputs.layouts
        expected = None if case.baseline() is None else expected_outputs(case, inputs)
        self._bound = bound = self._stack.enter_context(opened(case, inputs))
        self._layouts = bound.inputs.layouts
        session = bound.session
        checked = verify(bound, expected)
        if self._is_small and checked.fault is None and not session.simulated:
            checked = verify_often(bound, checked, LOOKING)
        if reason := wrong_reason(case, checked, take_faults()):
            raise WrongResult(reason, checked)
        errors = errors_and_score(checked)
        if session.simulated:
            self.counts = counts_of(bound)
            facts, warnings = session.facts(), checked.warnings
            raise Skipped(NO_TIMES, "verified", conditions=facts, warnings=warnings, **errors)
        return errors, checked.warnings

    def _refuse_if_found_wrong(self) -> None:
        """Raise ``WrongResult`` where another process of this run of asv found the case wrong: asv
        would keep this process's time."""
        if not self.asv_run:
            return
        mine = self.record.benchmark, self.record.case
        for record in self.recorder.cases_of_run('"status": "wrong"'):
            if (record.benchmark, record.case) == mine:
                raise WrongResult(record.reason or record.status)

    @property
    def _is_small(self) -> bool:
        """Whether outputs may be verified often."""
        return sum(array.nbytes for array in self.bound.expected.values()) <= SMALL

    def _size(self, errors: Mapping[str, float | None], warnings: tuple[str, ...]) -> None:
        """Size the sample, let observers measure what stands beside it, and put the case on record
        as ready."""
        self._tell("on_verify")
        bound = self.bound
        self._sampler = sampler = LABELLED_TIMES[self.time](bound)
        if self._is_small:
            sampler.verify = partial(self.verify_outputs, bound)
        tried = bound.run_seconds if self.time == "kernel" else None
        sampler.size(self.sampling, tried, self._sized_before())
        self._tell("on_size")
        self._inputs = None
        self.facts = bound.session.facts()
        self._conditions = {**self.facts, **self._conditions}
        self._tell("on_prepare")
        self._change_record(
            "ok",
            **errors,
            conditions=self._conditions,
            method=sampler.method,
            runs_per_sample=sampler.runs,
            warnings=(*warnings, *sampler.warnings, *self._warnings),
            **self._fields,
        )

    def _sized_before(self) -> Sized | None:
        """Return how an earlier process of the run sized its samples: to find that takes as long as
        several samples, and each process would find another number."""
        earlier = self._earlier
        if earlier is None or earlier.runs_per_sample is None or self.sampling.number is not None:
            return None
        fresh = tuple(one for one in earlier.warnings if one.startswith(FRESH_WARNING))
        return Sized(earlier.runs_per_sample, fresh)

    def _sample_all(self) -> Iterator[State]:
        """Warm up, and take the samples of all rounds."""
        schedule = self._schedule(self) if self._schedule else self.plan.schedule(self.sampler)
        self.sampler.warm_up(schedule.warm_up)
        self._tell("on_warm_up")
        yield State.WARMED_UP
        yield from self._warm_up_outside(schedule.outer_warm_up)
        sampler, session = self.sampler, self.session
        taken, began = 0, perf_counter()
        for number in begin_rounds([sampler], len(schedule.sizes)):
            samples: list[float] = []
            self.rounds.append(samples)
            self._tell("on_round_begin", number)
            for place in range(schedule.sizes[number]):
                if place:
                    sampler.restore()
                yield State.READY
                self._tell("on_sample_begin")
                seconds = sampler.sample()
                samples.append(seconds)
                taken += 1
                self.is_sampled = schedule.is_over(taken, perf_counter() - began)
                self._note()
                self._tell("on_sample_end", seconds)
                yield State.SAMPLED
                session.synchronize()
                if self.is_sampled or place + 1 == schedule.sizes[number]:
                    self._tell("on_round_end", number)
                if self.is_sampled or schedule.may_end(taken):
                    self.verify_at_last()
                    self._tell("on_check")
                yield State.SETTLED
                if self.is_sampled:
                    return

    def _warm_up_outside(self, seconds: float) -> Iterator[State]:
        """Take samples that do not count, until so many seconds are over."""
        end = perf_counter() + seconds
        while seconds:
            yield State.READY
            self.sampler.sample()
            is_over = perf_counter() >= end
            yield State.SAMPLED
            self.session.synchronize()
            yield State.SETTLED
            self.sampler.restore()
            if is_over:  # as asv's loop ends (asv_runner)
                return

    def _note(self) -> None:
        """Put on record what the sampler has new to warn of, and where it goes on in another
        way."""
        sampler = self.sampler
        now_known = sampler.method, sampler.warnings
        if now_known != self._noted:
            self._noted = now_known
            self.put(warnings=sampler.warnings, method=sampler.method)

    def verify_at_last(self) -> None:
        """See that a run is right even now, on fresh inputs and, where a run does not work in
        place, on what the runs before it left. A last sample of a single run was on fresh inputs,
        and is itself verified where it does not work in place.

        Raises ``WrongResult`` where it is not.
        """
        if self.time in FRESH_TIMES:  # that runs elsewhere
            return
        bound, sampler = self.bound, self.sampler
        # Other times work on arrays of their own, or do not wait for the run.
        on_its_arrays = self.time in ("kernel", "cold") and not self.case.returns
        if on_its_arrays and sampler.runs == 1 and not bound.in_place:
            self.verify_outputs(bound, sampler.timed_runs, bound.fetched({}, seen=True))
        else:
            if not bound.in_place:
                self.verify_outputs(bound, sampler.timed_runs, bound.outputs(seen=True))
            self.verify_outputs(bound, sampler.timed_runs)
        # Who keeps results is not long; and a score is a score on any inputs.
        has_score = self.case.kernel.check.score is not None
        if sampler.is_long or has_score or bound.inputs.nbytes > REDRAWN:
            return
        if remembers(bound):
            raise WrongResult(REMEMBERS)

    def verify_outputs(
        self, bound: BoundCase, timed_runs: int, outputs: Outputs | None = None
    ) -> None:
        """Compare the outputs of one run after so many that were timed, by default of one more;
        ``bound`` may be the opponent. Raises ``WrongResult``."""
        result = verify_again(bound, self.bound.expected, outputs)
        if result.fault is None:
            return
        of = bound.case
        whose = "" if of is self.case else f"{of.implementation_name}, with which it is paired, is "
        reason = f"{whose}right at first, wrong after {timed_runs:,} timed runs: {result.fault}"
        raise WrongResult(with_faults(reason, take_faults()), result)

    def run_inside(self, around: Callable[[], AbstractContextManager[None]]) -> None:
        """Run the case once on fresh inputs, and nothing else inside what ``around`` opens."""
        with self._recording():
            self.bound.restore()
            with around():
                self.bound.call()
                self.session.synchronize()

    def _change_record(self, status: RecordedStatus, **fields: object) -> None:
        record = replace(case_record(self.case, self.time, status), layouts=self._layouts)
        self.record = replace(record, version=self._version, **fields)  # type: ignore[arg-type]
        self._tell("on_record_change")

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Put what ends the case inside on record, with the faults behind it, frees the device
        and is raised again; where the case cannot run here, as ``Skipped``."""
        try:
            yield
        except (Skipped, WrongResult) as error:
            self._change_record(error.status, reason=str(error), **error.fields)
            self.close()
            raise
        except (Exception, SystemExit) as error:  # a kernel may call sys.exit()
            unfit = why_unfit(self.case, error)
            status: RecordedStatus = "skipped" if unfit else "failed"
            reason = with_faults(unfit or cause(error, self.case), take_faults())
            self._change_record(status, reason=reason)
            self.close(None if unfit else error)
            if unfit:
                raise Skipped(unfit) from error
            raise

    def _observe(self) -> None:
        installed: list[Observer] = []
        try:
            installed = make_installed()
        except GpubenchError as error:
            self._fault = error
        observers = [*make_built_in(), *installed, RecordObserver()]
        nothing = vars(Observer)
        self._observers: dict[str, list[Observer]] = {
            event: [one for one in observers if getattr(type(one), event) is not nothing[event]]
            for event in EVENTS
        }

    def _tell(self, event: str, *what: object) -> None:
        for observer in self._observers[event]:
            try:
                getattr(observer, event)(self, *what)
            except Exception as error:
                if observer.origin is None or isinstance(error, GpubenchError):
                    raise
                raise GpubenchError(
                    f"{observer.origin} failed in {event}: {type(error).__name__}: {error}; "
                    "fix or uninstall it"
                ) from error
