"""From a case to something that can be timed: ready, checked, sized, and on record."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import NoReturn

from gpubench.backends import registry
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.check import Comparison
from gpubench.measure.execution import Execution
from gpubench.measure.facts import run_facts
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.readiness import why_not
from gpubench.measure.recorder import Recorder, now
from gpubench.measure.sampling import SAMPLE_TIME, Sampling, runs_per_sample
from gpubench.measure.targets import load_target
from gpubench.measure.times import LABELLED_TIMES
from gpubench.measure.verification import expected_outputs, verify
from gpubench.plan.case import Case
from gpubench.record import CaseRecord, Status


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
    _stack: ExitStack = field(default_factory=ExitStack)

    def prepare(self) -> Sampling:
        """Draw, check and size; raises ``Skipped``, ``WrongResult`` or what went wrong, each put on
        record first."""
        self.recorder.write_facts(run_facts)
        self._write("started", timeout=self.timeout)
        try:
            return self._prepare()
        except (Skipped, WrongResult):
            self.close()
            raise
        except Exception as error:
            self.close()
            self.fail(error)

    def fail(self, error: Exception) -> NoReturn:
        """Put a failure on record and raise it again."""
        self._write("failed", reason=_cause(error))
        raise error

    def close(self) -> None:
        """Free the device and what the backend started."""
        self._stack.close()

    def _prepare(self) -> Sampling:
        if self.case.fault is not None:
            raise KernelError(self.case.fault)
        reason = why_not(self.case)
        if reason is not None:
            self._write("skipped", reason=reason)
            raise Skipped(reason)
        inputs = draw_inputs(self.case)
        expected = expected_outputs(self.case, inputs)
        session = self._stack.enter_context(
            registry.get(self.case.backend).open(self.case.device, self.case.threads)
        )
        execution = Execution(session, self.case, load_target(self.case), inputs)
        comparison = verify(execution, expected)
        self._require_right(comparison)
        if session.simulated:
            self._skip_simulated(execution, comparison)
        return self._sampling(execution, comparison)

    def _sampling(self, execution: Execution, comparison: Comparison) -> Sampling:
        """Size a sample, put the case's conditions on record, and hand over."""
        given = self.case.kernel.sampling
        labelled = LABELLED_TIMES[self.time](execution)
        runs = given.number or runs_per_sample(
            labelled.sampler,
            labelled.restore,
            given.sample_time or SAMPLE_TIME,
            labelled.most_runs,
        )
        labelled.restore()
        self._write(
            "ok",
            comparison,
            conditions=execution.session.facts(),
            method=labelled.sampler.method,
            runs_per_sample=runs,
            warnings=labelled.sampler.warnings,
        )
        return Sampling(labelled.sampler, labelled.restore, runs)

    def _require_right(self, comparison: Comparison) -> None:
        if comparison.fault is None:
            return
        baseline = self.case.kernel.baseline
        reason = f"differs from the baseline {baseline!r}: {comparison.fault}"
        self._write("wrong", comparison, reason=reason)
        raise WrongResult(reason)

    def _skip_simulated(self, execution: Execution, comparison: Comparison) -> NoReturn:
        """Results on the simulator mean something and its times do not."""
        reason = (
            "checked on the simulator, which has no times: run it on a machine with an NVIDIA GPU"
        )
        facts = execution.session.facts()
        self._write("ok", comparison, reason=reason, simulated=True, conditions=facts)
        raise Skipped(reason)

    def _write(
        self, status: Status, comparison: Comparison | None = None, **what: object
    ) -> None:
        record = case_record(self.case, self.time, status)
        if comparison is not None:
            record = replace(
                record,
                max_abs_error=comparison.max_abs_error,
                max_rel_error=comparison.max_rel_error,
            )
        self.recorder.write(replace(record, **what))  # type: ignore[arg-type]


def case_record(case: Case, time: str, status: Status) -> CaseRecord:
    """What is known of a case before it runs, as a line of the record."""
    baseline = case.baseline()
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
    return replace(
        record, block=launch.block, grid=launch.grid, shared_bytes=launch.shared_bytes
    )


def _cause(error: Exception) -> str:
    text = str(error).strip() or "no message"
    return text if isinstance(error, GpubenchError) else f"{type(error).__name__}: {text}"
