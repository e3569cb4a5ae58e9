"""What becomes of a case: what ends it without a time, why, and its line of the record."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from gpubench.backends import registry
from gpubench.backends.protocol import LaunchLimitError, LayoutError
from gpubench.errors import BackendError, GpubenchError, describe_error
from gpubench.measure.check import CheckResult
from gpubench.measure.memory import exceeded
from gpubench.measure.recorder import now
from gpubench.measure.targets import place_in_module
from gpubench.plan.case import Case
from gpubench.plan.source import reference_of
from gpubench.record import CaseRecord
from gpubench.statuses import RecordedStatus


class Skipped(GpubenchError):
    """The case cannot or must not be timed here; the message says why. Not a failure."""

    def __init__(self, reason: str, status: RecordedStatus = "skipped", **fields: object) -> None:
        """``status`` and ``fields``: what goes on record besides."""
        super().__init__(reason)
        self.status, self.fields = status, fields


class Refused(GpubenchError):
    """The code is not that of the commit; the message says what to change."""


class WrongResult(GpubenchError):
    """The implementation does not compute what the baseline computes."""

    status: RecordedStatus = "wrong"

    def __init__(self, reason: str, checked: CheckResult | None = None) -> None:
        super().__init__(reason)
        self.fields = {} if checked is None else errors_and_score(checked)


def errors_and_score(result: CheckResult) -> dict[str, float | None]:
    """Return what a check found, as fields of the record."""
    names = ("max_abs_error", "max_rel_error", "score")
    return {name: getattr(result, name) for name in names}


def case_record(case: Case, time: str, status: RecordedStatus) -> CaseRecord:
    """Return what can be said of a case before it runs, as a line of the record; without launch and
    work where the suite's formulas fail, which the status then says."""
    baseline, compiled, capabilities = baseline_of(case), None, None
    with suppress(BackendError):  # one that cannot be had
        backend = registry.get(case.backend)
        compiled, capabilities = "compile" in backend.times, backend.capabilities
    record = CaseRecord(
        benchmark=case.benchmark(time).asv_name,
        case=case.identity,
        status=status,
        at=now(),
        backend=case.backend,
        device=case.device,
        values=case.values,
        sizes=case.group.axes.size_names,
        title=case.implementation.title,
        tags=case.suite.tags,
        baseline_benchmark=baseline.benchmark("kernel").asv_name if baseline else None,
        baseline_case=baseline.identity if baseline else None,
        threads=case.threads,
        compiled=compiled,
        capabilities=capabilities,
    )
    if status == "started":
        return record
    with suppress(GpubenchError):
        launch, (nbytes, flops) = case.launch, case.work()
        record = replace(record, bytes=nbytes, flops=flops)
        if launch is not None:
            block, grid, shared = launch.block, launch.grid, launch.shared_bytes
            record = replace(record, block=block, grid=grid, shared_bytes=shared)
    return record


def baseline_of(case: Case) -> Case | None:
    """Return the case's baseline; ``None`` too where a formula of the suite gives it no shape: the
    case then fails of that."""
    try:
        return case.baseline()
    except GpubenchError:
        return None


def devices_of(case: Case) -> set[str]:
    """Return where the case, its baseline and its parts run."""
    of_parts = {d for part in case.group.parts for d in part.devices if part.serves(d)}
    return {one.device for one in (case, baseline_of(case)) if one is not None} | of_parts


def one_of_each(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the first warning of each kind, which is the words before its colon."""
    kinds: dict[str, str] = {}
    for warning in warnings:
        kinds.setdefault(warning.partition(":")[0], warning)
    return tuple(kinds.values())


def why_unfit(case: Case, error: BaseException) -> str | None:
    """Return why a case cannot run here, as its preparation found out: its memory limit, the
    layout of an array, or a launch over a limit. ``None`` where the error is another one."""
    is_limit = isinstance(error, LayoutError | LaunchLimitError)
    return str(error) if is_limit else exceeded(case, error)


def cause(error: BaseException, case: Case | None = None) -> str:
    """Return why a case failed, for its record: other libraries' errors with their kind, and with
    the line of the module that the case names, where one of its lines was at work."""
    if isinstance(error, GpubenchError):
        return str(error).strip() or "no message"
    if case is None:
        return describe_error(error)
    place = place_in_module(error, reference_of(case.implementation))
    hint = registry.get(case.backend).hint(error)
    return f"{describe_error(error)}{place}{f'; {hint}' if hint else ''}"
