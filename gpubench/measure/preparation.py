"""From a case to something that can be timed: ready, checked, sized, and on record."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import NoReturn

from gpubench.backends import registry
from gpubench.backends.protocol import Session
from gpubench.backends.software import NAME
from gpubench.errors import BackendError, GpubenchError, KernelError
from gpubench.measure.conditions import bandwidth, fits_in_cache, floor, why_not
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.paired import Opponent, Pairs, opponent_of, take_pairs
from gpubench.measure.recorder import Recorder, now
from gpubench.measure.sampling import Measurement, SamplePlan, sample_plan
from gpubench.measure.targets import load_target
from gpubench.measure.times import LABELLED_TIMES
from gpubench.measure.verification import (
    expected_outputs,
    take_faults,
    verify,
    with_faults,
    wrong_reason,
)
from gpubench.plan.case import Case
from gpubench.record import CaseRecord, Status
from gpubench.suite.model import Sampling

NO_TIMES = (
    f"verified on {NAME}, a CUDA device in software, which has no times: "
    "run it on a machine with an NVIDIA GPU to measure"
)


class Skipped(GpubenchError):
    """The case cannot or must not be timed here; the message says why. Not a failure."""


class WrongResult(GpubenchError):
    """The implementation does not compute what the baseline computes."""


@dataclass
class Preparation:
    """Prepares one labelled time of one case and keeps its record.

    ``close`` frees the device.
    """

    case: Case
    time: str
    recorder: Recorder
    timeout: float | None = None
    """Seconds after which somebody ends the case; only put on record."""
    opponent: Opponent | None = None
    """What the case is paired with; absent: its baseline, where the suite asks for pairs."""
    plan: SamplePlan | None = None
    """How often it is paired; absent: as often as it is sampled."""
    declared: Sampling | None = None
    """How samples are taken where that is not as the suite says."""
    run: str = ""
    """Of which asv run it is."""
    record: CaseRecord | None = None
    """The case's last line on record."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _session: Session | None = None

    def prepare(self) -> Measurement:
        """Draw, check and size; raises ``Skipped``, ``WrongResult`` or what went wrong, each put on
        record first."""
        self.recorder.write_facts(self.run)
        self._write("started", timeout=self.timeout)
        try:
            return self._prepared()
        except (Skipped, WrongResult):
            self.close()
            raise
        except Exception as error:
            self.fail(error)

    def _prepared(self) -> Measurement:
        case, declared = self.case, self.declared or self.case.kernel.sampling
        if case.fault is not None:
            raise KernelError(case.fault)
        if reason := why_not(case):
            self._write("skipped", reason=reason)
            raise Skipped(reason)

        inputs = draw_inputs(case)
        is_baseline = case.baseline() is None
        expected = None if is_baseline else expected_outputs(case, inputs)
        # Before the session: what it imports may bring a BLAS whose threads the session sets.
        target = load_target(case)
        backend = registry.get(case.backend)
        session = self._stack.enter_context(backend.open(case.device, case.threads))
        self._session = session
        execution = Execution(session, case, target, inputs)

        checked = verify(execution, expected)
        del expected  # as large as the arrays
        errors = {"max_abs_error": checked.max_abs_error, "max_rel_error": checked.max_rel_error}
        if reason := wrong_reason(case, checked, take_faults()):
            self._write("wrong", reason=reason, **errors)
            raise WrongResult(reason)
        if session.simulated:
            facts, warnings = session.facts(), checked.warnings
            self._write("verified", reason=NO_TIMES, conditions=facts, warnings=warnings, **errors)
            raise Skipped(NO_TIMES)

        measurement = Measurement(LABELLED_TIMES[self.time](execution))
        measurement.size(declared)
        floor_condition, near_floor = floor(session, measurement, self.time)
        pairs = Pairs()
        if opponent := self.opponent or opponent_of(case, self.time):
            plan = self.plan or sample_plan(declared, self.time)
            pairs = take_pairs(measurement, case, opponent, inputs, plan, declared)
        facts = session.facts()
        attained = bandwidth(session, case.device, self.time, self.recorder)
        self._write(
            "ok",
            **errors,
            conditions={**facts, **floor_condition, **attained},
            method=measurement.method,
            runs_per_sample=measurement.runs,
            warnings=(
                *checked.warnings,
                *measurement.warnings,
                *near_floor,
                *fits_in_cache(self.time, inputs.nbytes, facts),
                *pairs.warnings,
            ),
            pair_ratios=pairs.ratios,
            pair_rounds=pairs.rounds,
        )
        return measurement

    def note(self, measurement: Measurement) -> None:
        """Put the case on record again when sampling has something new to warn of, or goes on in
        another way."""
        before = self.record
        if before is None or before.status != "ok":
            return
        warnings, method = (
            one_of_each((*before.warnings, *measurement.warnings)),
            measurement.method,
        )
        if (warnings, method) != (before.warnings, before.method):
            self.record = replace(before, at=now(), warnings=warnings, method=method)
            self.recorder.write(self.record)

    def synchronize(self) -> None:
        """Wait for what the timed runs queued; what failed on the device meanwhile is put on record
        and raised."""
        if self._session is None:
            return
        try:
            self._session.synchronize()
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> NoReturn:
        """Put a failure on record, with the faults behind it, free the device, and raise the
        failure again."""
        self._write("failed", reason=with_faults(cause(error), take_faults()))
        self.close(error)
        raise error

    def close(self, error: Exception | None = None) -> None:
        """Free the device and what the backend started; after an error nothing is waited for, as a
        lost device would only raise it again."""
        self._session = None
        self._stack.__exit__(*((type(error), error, None) if error else (None, None, None)))

    def _write(self, status: Status, **fields: object) -> None:
        record = case_record(self.case, self.time, status)
        self.record = replace(record, **fields)  # type: ignore[arg-type]
        self.recorder.write(self.record)


def case_record(case: Case, time: str, status: Status) -> CaseRecord:
    """What can be said of a case before it runs, as a line of the record.

    Launch and work are left out where the suite's formulas fail, which the status then says.
    """
    baseline = baseline_of(case)
    record = CaseRecord(
        benchmark=case.benchmark(time).asv_name,
        case=case.identity,
        status=status,
        at=now(),
        backend=case.backend,
        device=case.device,
        values=case.values,
        sizes=case.group.size_names,
        title=case.implementation.title,
        baseline_benchmark=baseline.benchmark("kernel").asv_name if baseline else None,
        baseline_case=baseline.identity if baseline else None,
        threads=case.threads,
        compiled=_compiles(case.backend),
    )
    if status == "started":
        return record
    try:
        launch = case.launch
        nbytes, flops = case.work()
    except GpubenchError:
        return record
    record = replace(record, bytes=nbytes, flops=flops)
    if launch is None:
        return record
    return replace(record, block=launch.block, grid=launch.grid, shared_bytes=launch.shared_bytes)


def _compiles(backend: str) -> bool | None:
    """Whether ``compile`` means something of a backend; ``None`` of one that cannot be had."""
    try:
        return "compile" in registry.get(backend).times
    except BackendError:
        return None


def baseline_of(case: Case) -> Case | None:
    """The case's baseline; ``None`` too where a formula of the suite gives it no shape: the case
    then fails of that."""
    try:
        return case.baseline()
    except GpubenchError:
        return None


def one_of_each(warnings: Iterable[str]) -> tuple[str, ...]:
    """The first warning of each kind, which is the words before its colon."""
    kinds: dict[str, str] = {}
    for warning in warnings:
        kinds.setdefault(warning.partition(":")[0], warning)
    return tuple(kinds.values())


def cause(error: Exception) -> str:
    """Why a case failed, for its record: other libraries' errors with their type."""
    text = str(error).strip() or "no message"
    return text if isinstance(error, GpubenchError) else f"{type(error).__name__}: {text}"
