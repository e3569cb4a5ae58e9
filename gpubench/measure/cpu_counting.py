"""Counts of cases on the CPU: what a verified run of Numba's code did, ready for the record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from gpubench.counts.caches import CacheCounter
from gpubench.counts.cpu import CPU_MODEL, CpuCounter, CpuCounts
from gpubench.counts.hooks import NotCountable, Values, versions
from gpubench.counts.ir import Place
from gpubench.counts.machine import MachineCounter
from gpubench.counts.numpy_calls import NumpyCounter, NumpyCounts, UnseenWork, WatchedArray
from gpubench.counts.remarks import LoopRemark
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.check import CheckResult
from gpubench.names import CPU
from gpubench.plan.case import Case
from gpubench.record import CountsRecord, LaunchRecord, LineRecord
from gpubench.work.counting import difference_between, import_path

if TYPE_CHECKING:  # which imports this module
    from gpubench.measure.verify_cases import Verified

COUNTED_BACKEND = "numba"
"""Name of the backend whose code has counters."""

NUMPY_BACKEND = "numpy"
"""Name of the backend whose calls are watched."""

CounterName = Literal["code", "machine", "caches"]
"""What is counted: LLVM's code, machine instructions, or lines and misses of modelled caches."""

_COUNTED_WORDS: Mapping[CounterName, str] = {
    "code": "LLVM's code is",
    "machine": "machine instructions are",
    "caches": "caches are",
}

VARYING = "two runs on the same inputs differ"
"""Beginning of the reason why a case has no counts, where its runs do different work."""


class Counter(Protocol):
    """Counts calls in a process in which Numba has compiled nothing before."""

    def count(self, call: Callable[[], Any]) -> tuple[Any, Values]:
        """Call once; return what it returns, and what was counted."""

    def read(self, values: Values) -> CpuCounts:
        """Add up what a call counted."""


@dataclass(frozen=True, slots=True)
class CpuCode:
    """What is said of the code of a case beside its counts."""

    called: Mapping[str, int]
    """How often functions were called that were not inlined, by their names in the code."""
    loops: tuple[LoopRemark, ...]
    """What LLVM says of loops that ran, files as in ``LineRecord``."""


def is_counted_on_cpu(case: Case) -> bool:
    """Return whether a case runs code of Numba's on the CPU."""
    return case.device == CPU and case.backend == COUNTED_BACKEND


def why_not_with_one_thread(case: Case) -> str | None:
    """Return why a case cannot run in a process that counts; ``None`` where it can."""
    if case.threads in (None, 1):
        return None
    return f"it runs with {case.threads} threads, and counts are taken with one"


class CaseCounter:
    """Counts the runs of one case after another in a process."""

    def __init__(self, counter: CounterName, *, remarks: bool) -> None:
        """Prepare this process, in which Numba must not have compiled anything before."""
        self._missing: str | None = None
        self._runs: list[Values] = []
        self._counter: Counter | None = None
        self._numpy: NumpyCounter | None = None
        try:
            match counter:
                case "code":
                    self._counter = CpuCounter(remarks=remarks)
                case "machine":
                    self._counter = MachineCounter()
                case "caches":
                    self._counter = CacheCounter()
        except NotCountable as error:
            self._missing = str(error)

    def count_numpy(self, bound: BoundCase) -> NumpyCounts | None:
        """Count a right case of NumPy's on fresh arrays; ``None`` where another counter is asked
        for than that of code."""
        if not isinstance(self._counter, CpuCounter):
            return None
        counter = self._counter
        if self._numpy is None:
            self._numpy = NumpyCounter()
        given, watched = bound.upload(), bound.upload()
        arrays = {
            name: one.view(WatchedArray)
            for name, one in watched.items()
            if isinstance(one, np.ndarray)
        }
        as_it_is, call = bound.bind(given), bound.bind({**watched, **arrays})

        def within(run: Callable[[], None]) -> None:
            if len(arrays) < len(watched):
                raise UnseenWork("it works on tables")
            _, values = counter.count(run)
            if any(one.any() for one in values):
                raise UnseenWork("it calls what Numba compiled")

        return self._numpy.count(as_it_is, call, within)

    def watch(self, bound: BoundCase) -> None:
        """Count each run of a case from now on."""
        self._runs.clear()
        counter, call = self._counter, bound.call
        if counter is None or not is_counted_on_cpu(bound.case):
            return

        def counted_call() -> Any:
            result, values = counter.count(call)
            self._runs = [*self._runs[-1:], values]
            return result

        bound.call = counted_call

    def counts_of(
        self, bound: BoundCase, result: CheckResult
    ) -> tuple[CountsRecord | None, CpuCode | NumpyCounts | None]:
        """Return what the last run did, and what is said of its code, or what NumPy did; nothing
        for a case of another backend, or that is wrong.

        A case whose last two runs did different work has the difference as the reason.
        """
        case = bound.case
        if result.fault is not None:
            return None, None
        if case.device == CPU and case.backend == NUMPY_BACKEND:
            return None, self.count_numpy(bound)
        if not is_counted_on_cpu(case):
            return None, None
        benchmark = case.benchmark("kernel").asv_name
        if self._counter is None:
            return _missing_record(benchmark, case, str(self._missing), None), None
        made_by = versions()
        try:
            before, counts = map(self._counter.read, self._runs)
        except NotCountable as error:
            return _missing_record(benchmark, case, str(error), made_by), None
        if difference := difference_between(before.totals, counts.totals):
            return _missing_record(benchmark, case, f"{VARYING}: {difference}", made_by), None
        reasons = _reasons_by_place(counts)
        lines = tuple(
            LineRecord(import_path(place.file), place.line, counts.lines[place], reasons.get(place))
            for place in sorted(counts.lines, key=lambda place: (place.file, place.line))
        )
        launch = LaunchRecord(
            kernel=_function_name(case),
            grid=(1, 1, 1),
            block=(1, 1, 1),
            counts=counts.totals,
            lines=lines,
        )
        record = CountsRecord(
            benchmark, case.identity, CPU_MODEL, None, (launch,), target="cpu", made_by=made_by
        )
        loops = (replace(loop, file=import_path(loop.file)) for loop in counts.remarks)
        return record, CpuCode(counts.called, tuple(loops))


def with_more_counts(
    rows: Sequence[tuple[Case, Verified]],
    others: Sequence[tuple[Case, Verified]],
    counter: CounterName,
) -> list[tuple[Case, Verified]]:
    """Add what another counter counted of the same cases, or a warning why it did not."""
    more = {id(case): one for case, one in others}
    joined = []
    for case, outcome in rows:
        other = more.get(id(case))
        if other is not None and outcome.counts is not None and outcome.counts.launches:
            (launch,) = outcome.counts.launches
            totals = other.counts.totals if other.counts is not None else {}
            both = replace(launch, counts={**launch.counts, **totals})
            outcome = replace(outcome, counts=replace(outcome.counts, launches=(both,)))
            if not totals:
                why = other.reason or (other.counts and other.counts.missing) or other.status
                warning = f"{_COUNTED_WORDS[counter]} not counted: {why}"
                outcome = replace(outcome, warnings=(*outcome.warnings, warning))
        joined.append((case, outcome))
    return joined


def _reasons_by_place(counts: CpuCounts) -> dict[Place, str]:
    """Return LLVM's reasons at the lines of loops, or where these have no counts at the lines that
    the reasons are about."""
    reasons: dict[Place, list[str]] = defaultdict(list)
    for loop in counts.remarks:
        if loop.reason is not None:
            places = [Place(loop.file, line) for line in (loop.line, loop.reason_line or loop.line)]
            place = next((one for one in places if one in counts.lines), places[0])
            reasons[place].append(loop.reason)
    return {place: "; ".join(dict.fromkeys(its)) for place, its in reasons.items()}


def _missing_record(benchmark: str, case: Case, reason: str, made_by: str | None) -> CountsRecord:
    return CountsRecord(benchmark, case.identity, CPU_MODEL, reason, target="cpu", made_by=made_by)


def _function_name(case: Case) -> str:
    return (case.implementation.function or case.implementation_name).replace(":", ".")
