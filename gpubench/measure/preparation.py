"""From a case to something that can be timed: ready, checked, sized, and on record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

from gpubench.backends import registry
from gpubench.backends.protocol import Session
from gpubench.backends.software import NAME
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.caches import fits_in_cache
from gpubench.measure.ceilings import device_ceilings
from gpubench.measure.check import Comparison
from gpubench.measure.execution import Execution
from gpubench.measure.facts import run_facts, run_id
from gpubench.measure.floor import floor_of
from gpubench.measure.inputs import Inputs, draw_inputs
from gpubench.measure.inspection import take_faults, with_faults
from gpubench.measure.paired import Opponent, opponent_of, pair_ratios, unpaired_reason
from gpubench.measure.readiness import why_not
from gpubench.measure.recorder import Recorder, now
from gpubench.measure.repeats import Repeats, repeats
from gpubench.measure.sampling import Sampling, sized
from gpubench.measure.targets import load_target
from gpubench.measure.times import LABELLED_TIMES
from gpubench.measure.verification import expected_outputs, verify, verify_baseline
from gpubench.plan.case import Case
from gpubench.record import CaseRecord, Status

if TYPE_CHECKING:
    from gpubench.softcuda import Report
    from gpubench.suite.model import Sampling as DeclaredSampling


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
    opponent: Opponent | None = None
    """What the case is paired with; absent: its baseline, where the suite asks for pairs."""
    pairs: Repeats | None = None
    """How often it is paired; absent: as often as asv samples in a round."""
    declared: DeclaredSampling | None = None
    """How samples are taken where that is not as the suite says."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _told: CaseRecord | None = None
    """The case's last line on record."""
    _session: Session | None = None

    def prepare(self) -> Sampling:
        """Draw, check and size; raises ``Skipped``, ``WrongResult`` or what went wrong, each put on
        record first."""
        self.recorder.write_facts(run_facts, run_id())
        self._write("started", timeout=self.timeout)
        try:
            return self._prepare()
        except (Skipped, WrongResult):
            self.close()
            raise
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> NoReturn:
        """Put a failure on record, with the fault behind it where that is known, free the device,
        and raise the failure again."""
        self._write("failed", reason=with_faults(cause(error), take_faults()))
        self.close(error)
        raise error

    def note(self, sampling: Sampling) -> None:
        """Put the case on record again when sampling has found something new to warn of, or goes on
        in another way."""
        if self._told is None or self._told.status != "ok":
            return
        warnings = told_once((*self._told.warnings, *sampling.warnings))
        if warnings != self._told.warnings or sampling.method != self._told.method:
            self._told = replace(self._told, at=now(), warnings=warnings, method=sampling.method)
            self.recorder.write(self._told)

    def synchronize(self) -> None:
        """Wait for what the timed runs queued; what failed on the device meanwhile is put on record
        and raised."""
        if self._session is None:
            return
        try:
            self._session.synchronize()
        except Exception as error:
            self.fail(error)

    def close(self, error: Exception | None = None) -> None:
        """Free the device and what the backend started; after an error nothing is waited for, as a
        lost device would only raise it again."""
        self._session = None
        self._stack.__exit__(*((type(error), error, None) if error else (None, None, None)))

    def _prepare(self) -> Sampling:
        if self.case.fault is not None:
            raise KernelError(self.case.fault)
        reason = why_not(self.case)
        if reason is not None:
            self._write("skipped", reason=reason)
            raise Skipped(reason)
        execution, comparison = self._checked()
        if execution.session.simulated:
            self._skip_verified(execution, comparison)
        return self._sampling(execution, comparison)

    def _checked(self) -> tuple[Execution, Comparison]:
        """Ready to be timed, and right. What the check alone needs is freed on return."""
        inputs = draw_inputs(self.case)
        is_baseline = self.case.baseline() is None
        expected = None if is_baseline else expected_outputs(self.case, inputs)
        target = load_target(self.case)  # first: what it imports may bring a BLAS of its own
        session = self._stack.enter_context(
            registry.get(self.case.backend).open(self.case.device, self.case.threads)
        )
        self._session = session
        execution = Execution(session, self.case, target, inputs)
        comparison = verify_baseline(execution) if expected is None else verify(execution, expected)
        self._require_right(comparison)
        return execution, comparison

    def _sampling(self, execution: Execution, comparison: Comparison) -> Sampling:
        """Size a sample, put the case's conditions on record, and hand over."""
        sampling = sized(LABELLED_TIMES[self.time](execution), self._declared)
        floor = floor_of(execution.session, sampling, self.time)
        ratios, unpaired = self._pairs(sampling, execution.inputs)
        facts = execution.session.facts()
        ceilings = device_ceilings(execution.session, self.case.device, self.time, self.recorder)
        cached = fits_in_cache(self.time, execution.inputs.nbytes, facts)
        self._write(
            "ok",
            comparison,
            conditions={**facts, **floor.conditions, **ceilings},
            method=sampling.method,
            runs_per_sample=sampling.runs,
            warnings=(
                *comparison.warnings,
                *sampling.warnings,
                *floor.warnings,
                *cached,
                *unpaired,
            ),
            pair_ratios=ratios,
        )
        return sampling

    def _pairs(
        self, sampling: Sampling, inputs: Inputs
    ) -> tuple[tuple[float, ...], tuple[str, ...]]:
        """Ratios of paired mode, or the warning that says why there are none."""
        opponent = self.opponent or opponent_of(self.case, self.time)
        if opponent is None:
            return (), ()
        if reason := unpaired_reason(self.case, opponent):
            return (), (reason,)
        plan = self.pairs or repeats(self._declared)
        return pair_ratios(sampling, opponent, inputs, plan, self._declared)

    @property
    def _declared(self) -> DeclaredSampling:
        return self.declared or self.case.kernel.sampling

    def _require_right(self, comparison: Comparison) -> None:
        reason = wrong_reason(self.case, comparison, take_faults())
        if reason is None:
            return
        self._write("wrong", comparison, reason=reason)
        raise WrongResult(reason)

    def _skip_verified(self, execution: Execution, comparison: Comparison) -> NoReturn:
        """Results on a device in software mean something, and no time is taken there."""
        facts = execution.session.facts()
        self._write(
            "verified", comparison, reason=NO_TIMES, conditions=facts, warnings=comparison.warnings
        )
        raise Skipped(NO_TIMES)

    def _write(self, status: Status, comparison: Comparison | None = None, **what: object) -> None:
        record = case_record(self.case, self.time, status)
        if comparison is not None:
            record = replace(
                record,
                max_abs_error=comparison.max_abs_error,
                max_rel_error=comparison.max_rel_error,
            )
        self._told = replace(record, **what)  # type: ignore[arg-type]
        self.recorder.write(self._told)


def case_record(case: Case, time: str, status: Status) -> CaseRecord:
    """What is known of a case before it runs, as a line of the record."""
    baseline = known_baseline(case)
    record = CaseRecord(
        benchmark=case.benchmark(time).asv_name,
        case=case.identity,
        status=status,
        at=now(),
        backend=case.backend,
        device=case.device,
        values=case.values,
        sizes=case.sizes,
        title=case.implementation.title,
        baseline_benchmark=baseline.benchmark("kernel").asv_name if baseline else None,
        baseline_case=baseline.identity if baseline else None,
        threads=case.threads,
    )
    if status == "started":
        return record
    return _with_shape(record, case)


def wrong_reason(case: Case, comparison: Comparison, faults: Sequence[Report]) -> str | None:
    """Why a case is not right: its results, or what its device has found; ``None`` where it is."""
    reason = comparison.fault
    if reason is None:
        return with_faults("its results are right, and it has a fault", faults) if faults else None
    if case.baseline() is not None:
        reason = f"differs from the baseline {case.kernel.baseline!r}: {reason}"
    return with_faults(reason, faults)


def known_baseline(case: Case) -> Case | None:
    """The case's baseline; ``None`` too where a formula of the suite gives it no shape: the case
    then fails of that."""
    try:
        return case.baseline()
    except GpubenchError:
        return None


def _with_shape(record: CaseRecord, case: Case) -> CaseRecord:
    """Launch and work; left out where the suite's formulas fail, which the status then says."""
    try:
        launch = case.launch
        nbytes, flops = case.work()
    except GpubenchError:
        return record
    record = replace(record, bytes=nbytes, flops=flops)
    if launch is None:
        return record
    return replace(record, block=launch.block, grid=launch.grid, shared_bytes=launch.shared_bytes)


def told_once(warnings: Iterable[str]) -> tuple[str, ...]:
    """The first warning of each kind, which is the words before its colon."""
    kinds: dict[str, str] = {}
    for warning in warnings:
        kinds.setdefault(warning.partition(":")[0], warning)
    return tuple(kinds.values())


def cause(error: Exception) -> str:
    """Why a case failed, for its record: other libraries' errors with their type."""
    text = str(error).strip() or "no message"
    return text if isinstance(error, GpubenchError) else f"{type(error).__name__}: {text}"
