"""From a case to something that can be timed: ready, checked, sized, and on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from gpubench.backends.software import NAME, count_launches, take_faults
from gpubench.errors import KernelError
from gpubench.measure.bound_case import SMALL, BoundCase, opened
from gpubench.measure.conditions import bandwidth, fits_in_cache, floor, why_not
from gpubench.measure.counting import counts_of
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.memory import peak_bytes
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
from gpubench.measure.paired import Pairs, opponent_of, take_pairs
from gpubench.measure.provenance import NOBODY_LOOKED, Provenance
from gpubench.measure.recorder import Recorder, now
from gpubench.measure.sampling import (
    FRESH_WARNING,
    CaseSampler,
    SamplePlan,
    Sized,
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
from gpubench.names import FRESH_TIMES
from gpubench.plan.case import Case
from gpubench.record import CaseRecord, CountsRecord, RecordedStatus
from gpubench.suite.model import Sampling

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


@dataclass
class CaseRun:
    """Prepares one labelled time of one case and keeps its record; ``close`` frees the device."""

    case: Case
    time: str
    recorder: Recorder
    timeout: float | None = None
    """Seconds after which somebody ends the case; only put on record."""
    opponent: Case | None = None
    """What the case is paired with; absent: its baseline, where the suite asks for pairs."""
    plan: SamplePlan | None = None
    """How often it is paired; absent: as often as it is sampled."""
    declared: Sampling | None = None
    """How samples are taken where that is not as the suite says."""
    run: str = ""
    """Of which asv run it is."""
    version: str | None = None
    """Of the asv benchmark."""
    provenance: Provenance = NOBODY_LOOKED
    """Which code it is."""
    count: bool = False
    """Whether the device in software counts what a run does."""
    earlier: CaseRecord | None = None
    """What became of the case in another process of the same run."""
    counts: CountsRecord | None = field(default=None, init=False)
    """What a run of a case that is right counted there; on record too."""
    record: CaseRecord = field(init=False)
    """The case's last line on record, from ``prepare`` on."""
    _layouts: Mapping[str, str] = field(default_factory=dict)
    """How its arrays lie in memory, once they are drawn."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _execution: BoundCase | None = None

    def prepare(self) -> CaseSampler:
        """Draw, check and size; raises ``Skipped``, ``WrongResult`` or what went wrong, each put on
        record first."""
        self.recorder.write_facts(self.run, self.provenance.facts())
        self._write("started", timeout=self.timeout)
        with self.recording():
            if self.provenance.refusal:
                raise Refused(self.provenance.refusal)
            try:
                return self._prepared()
            except (KernelError, TypeError) as error:
                suite, missing = self.case.suite.suite, self.case.group.missing_code
                if reason := self.provenance.explain_misfit(suite, error, missing):
                    raise Skipped(reason) from error
                raise

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Put what ends the case inside on record, with the faults behind it, frees the device
        and is raised again; where the case cannot run here, as ``Skipped``."""
        try:
            yield
        except (Skipped, WrongResult) as error:
            self._write(error.status, reason=str(error), **error.fields)
            self.close()
            raise
        except (Exception, SystemExit) as error:  # a kernel may call sys.exit()
            unfit = why_unfit(self.case, error)
            status: RecordedStatus = "skipped" if unfit else "failed"
            self._write(status, reason=with_faults(unfit or cause(error, self.case), take_faults()))
            self.close(None if unfit else error)
            if unfit:
                raise Skipped(unfit) from error
            raise

    def _prepared(self) -> CaseSampler:
        case, declared = self.case, self.declared or self.case.kernel.sampling
        if reason := why_not(case):
            raise Skipped(reason)
        if self.run:  # another of its processes may have found it wrong: asv would keep this time
            mine = self.record.benchmark, self.record.case
            for record in self.recorder.cases_of_run('"status": "wrong"'):
                if (record.benchmark, record.case) == mine:
                    raise WrongResult(record.reason or record.status)

        count_launches(self.count)
        inputs = draw_inputs(case)
        self._layouts = inputs.layouts
        expected = None if case.baseline() is None else expected_outputs(case, inputs)
        execution = self._stack.enter_context(opened(case, inputs))
        self._execution = execution
        self._layouts = execution.inputs.layouts
        session = execution.session
        checked = verify(execution, expected)
        is_small = sum(array.nbytes for array in execution.expected.values()) <= SMALL
        if is_small and checked.fault is None and not session.simulated:
            checked = verify_often(execution, checked, LOOKING)
        if reason := wrong_reason(case, checked, take_faults()):
            raise WrongResult(reason, checked)
        errors = errors_and_score(checked)
        if session.simulated:
            self.counts = counts_of(execution)
            if self.counts is not None:
                self.recorder.write(self.counts)
            facts, warnings = session.facts(), checked.warnings
            raise Skipped(NO_TIMES, "verified", conditions=facts, warnings=warnings, **errors)

        measurement = LABELLED_TIMES[self.time](execution)
        if is_small:
            measurement.look = partial(self._look, execution)
        tried = execution.run_seconds if self.time == "kernel" else None
        measurement.size(declared, tried, self._sized_before(declared))
        floor_condition, near_floor = floor(session, measurement, self.time)
        pairs = Pairs()
        if opponent := self.opponent or opponent_of(case, self.time):
            plan = self.plan or sample_plan(declared, self.time)
            pairs = take_pairs(measurement, case, opponent, inputs, plan, declared, self._look)
        facts = session.facts()
        attained = bandwidth(session, case.device, self.time, self.recorder)
        held = {"array_bytes": execution.inputs.nbytes}
        limit = {"memory_limit_bytes": case.memory_limit} if case.memory_limit else {}
        self._write(
            "ok",
            **errors,
            conditions={**facts, **floor_condition, **attained, **held, **limit},
            method=measurement.method,
            runs_per_sample=measurement.runs,
            warnings=(
                *checked.warnings,
                *measurement.warnings,
                *near_floor,
                *fits_in_cache(self.time, execution.inputs.nbytes, facts),
                *pairs.warnings,
            ),
            pair_ratios=pairs.ratios,
            pair_rounds=pairs.rounds,
        )
        return measurement

    def _sized_before(self, declared: Sampling) -> Sized | None:
        """Return how an earlier process of the run sized its samples: to find that takes as long as
        several samples, and each process would find another number."""
        earlier = self.earlier
        if earlier is None or earlier.runs_per_sample is None or declared.number is not None:
            return None
        fresh = tuple(one for one in earlier.warnings if one.startswith(FRESH_WARNING))
        return Sized(earlier.runs_per_sample, fresh)

    def look(self, measurement: CaseSampler) -> None:
        """After the last sample: see that a run is right even now, on fresh inputs and, where a run
        does not work in place, on what the runs before it left. A last sample of a single run was
        on fresh inputs, and is itself looked at where it does not work in place.

        Raises ``WrongResult`` where it is not.
        """
        execution = self._execution
        if execution is None or self.time in FRESH_TIMES:  # that runs elsewhere
            return
        # Other times work on arrays of their own, or do not wait for the run.
        on_its_arrays = self.time in ("kernel", "cold") and not self.case.returns
        if on_its_arrays and measurement.runs == 1 and not execution.in_place:
            self._look(execution, measurement.timed_runs, execution.fetched({}, seen=True))
        else:
            if not execution.in_place:
                self._look(execution, measurement.timed_runs, execution.outputs(seen=True))
            self._look(execution, measurement.timed_runs)
        # Who keeps results is not long; and a score is a score on any inputs.
        has_score = self.case.kernel.check.score is not None
        if measurement.is_long or has_score or execution.inputs.nbytes > REDRAWN:
            return
        if remembers(execution):
            raise WrongResult(REMEMBERS)

    def watch_memory(self) -> None:
        """After the last sample, where the suite asks: put on record how much memory a run holds,
        by some that are not timed."""
        execution = self._execution
        wanted = self.time == "kernel" and self.case.kernel.sampling.memory
        if execution is None or not wanted:
            return

        def run() -> None:
            execution.call()
            execution.session.synchronize()

        with self.recording():
            execution.refresh()
            peak = execution.session.peak_bytes(run)
            if peak is None:
                peak = peak_bytes(self.case, run)
        self.record = replace(self.record, peak_bytes=peak, at=now())
        self.recorder.write(self.record)

    def _look(self, execution: BoundCase, timed_runs: int, outputs: Outputs | None = None) -> None:
        """Do the same with the outputs of one run after so many that were timed, by default of one
        more; ``execution`` may be that of the opponent."""
        assert self._execution is not None
        result = verify_again(execution, self._execution.expected, outputs)
        if result.fault is None:
            return
        of = execution.case
        whose = "" if of is self.case else f"{of.implementation_name}, with which it is paired, is "
        reason = f"{whose}right at first, wrong after {timed_runs:,} timed runs: {result.fault}"
        raise WrongResult(with_faults(reason, take_faults()), result)

    def run_inside(self, around: Callable[[], AbstractContextManager[None]]) -> None:
        """Run the case once on fresh inputs, and nothing else inside what ``around`` opens."""
        execution = self._execution
        if execution is None:
            return
        with self.recording():
            execution.restore()
            with around():
                execution.call()
                execution.session.synchronize()

    def note(self, measurement: CaseSampler) -> None:
        """Put the case on record again when sampling has something new to warn of, or goes on in
        another way."""
        before = self.record
        warnings = one_of_each((*before.warnings, *measurement.warnings))
        after = replace(before, warnings=warnings, method=measurement.method)
        if after != before:
            self.record = replace(after, at=now())
            self.recorder.write(self.record)

    def synchronize(self) -> None:
        """Wait for what the timed runs queued; what failed on the device meanwhile is put on record
        and raised."""
        execution = self._execution
        if execution is not None:
            with self.recording():
                execution.session.synchronize()

    def close(self, error: BaseException | None = None) -> None:
        """Free the device and what the backend started; after an error nothing is waited for, as a
        lost device would only raise it again."""
        self._execution = None
        how = (type(error), error, error.__traceback__) if error else (None, None, None)
        self._stack.__exit__(*how)

    def _write(self, status: RecordedStatus, **fields: object) -> None:
        record = replace(case_record(self.case, self.time, status), layouts=self._layouts)
        self.record = replace(record, version=self.version, **fields)  # type: ignore[arg-type]
        self.recorder.write(self.record)
