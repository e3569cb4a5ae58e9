"""CUDA cases of one ``asv run`` on the device in software, verified side by side before asv asks.

asv starts a process for each case, one after another. Each would compile the kernels of its case
again, and the device in software has no times for which it would have to run alone. So worker
processes prepare the cases of a kernel one after another, on all processors, and put on record what
a process of asv's would. That then reads its outcome there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import cast

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import counts_wanted, limit_kernels, requested, take_faults
from gpubench.errors import GpubenchError
from gpubench.measure.asv_settings import AsvSettings, asv_settings
from gpubench.measure.case_run import CaseRun
from gpubench.measure.outcomes import Skipped, WrongResult, case_record, cause
from gpubench.measure.provenance import Provenance
from gpubench.measure.recorder import Recorder
from gpubench.measure.verify_cases import Manner, Verified, verified
from gpubench.plan.case import Case
from gpubench.plan.version import benchmark_version
from gpubench.statuses import VerifiedStatus
from gpubench.work.costs import TRACKED_COSTS, TRACKED_CPU_COSTS


def verify_ahead(cases: Iterable[Case], provenance: Provenance) -> None:
    """Record the status of each CUDA case of this ``asv run``.

    Does nothing where the device in software is not asked for, and where asv keeps no results or
    skips stored results. Nor does it where the code is not the commit's: asv's processes say so.
    """
    settings = asv_settings()
    record = settings.record
    if not requested() or record is None or provenance.refusal:
        return
    if settings.skip_successful or settings.skip_failed:
        return
    asked = [case for case in cases if is_cuda(case.device) and is_asked(case, settings)]
    if not asked:
        return
    manner = Manner(in_software=True, default_limit=settings.timeout)
    with suppress(GpubenchError, OSError):  # asv's processes do what is left, and say what is wrong
        for place, outcome in verified(asked, manner, do=Preparer(provenance)):
            if outcome.status in ("killed", "timed_out"):
                lost = case_record(asked[place], _label(asked[place]), outcome.status)
                line = replace(lost, version=_version(asked[place]), reason=outcome.reason)
                Recorder(record).write(line)


def is_asked(case: Case, settings: AsvSettings) -> bool:
    """Return whether a time or a count of the case was asked for.

    asv searches the names of benchmarks with their parameters (``asv.benchmarks.Benchmarks``).
    """
    if not case.group.times:
        return False
    benchmark = case.benchmark(_label(case)).asv_name
    costs = TRACKED_COSTS if is_cuda(case.device) else TRACKED_CPU_COSTS
    tracked = (f"{benchmark.rpartition('.')[0]}.track_{cost}" for cost in costs)
    names = [f"{name}({case.identity!r})" for name in (benchmark, *tracked)]
    patterns = settings.benchmarks
    return not patterns or any(re.search(text, name) for text in patterns for name in names)


def _label(case: Case) -> str:
    """Return the labelled time under which a case is verified; others of it do that themselves."""
    return case.group.times[0]


def _version(case: Case) -> str:
    return benchmark_version(case.kernel, case.implementation_name, _label(case))


class Preparer:
    """Prepares one case after another in a process of its own, as a process of asv's does."""

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance

    def __call__(self, item: tuple[int, Case]) -> Verified:
        """Record the outcome of the case of this item, and return it."""
        _, case = item
        settings = asv_settings()
        timeout = case.kernel.sampling.timeout or settings.timeout
        take_faults()  # those of the case before stand with it
        limit_kernels(timeout)
        run = CaseRun(
            case,
            _label(case),
            Recorder(settings.record),
            timeout,
            asv_run=settings.run,
            version=_version(case),
            provenance=self._provenance,
            count=counts_wanted(),
        )
        try:
            run.prepare()
        except (Skipped, WrongResult) as error:
            status = "right" if error.status == "verified" else error.status
            return Verified(cast(VerifiedStatus, status), str(error))
        except Exception as error:
            return Verified("failed", cause(error, case))
        run.close()
        return Verified("failed", "no device in software answered")
