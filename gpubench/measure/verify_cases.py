"""Cases computed once and compared with their baselines, side by side in processes of their own.

No time is taken. A process works through the cases of one kernel, so that compiled code and the
baseline's outputs are made once. A process that crashes, hangs or loses its device is named with
the case, and another process goes on with the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import (
    add_lines,
    count_launches,
    limit_kernels,
    set_option,
    take_faults,
)
from gpubench.counts.numpy_calls import NumpyCounts
from gpubench.counts.processor import counting_variables
from gpubench.environment import environment
from gpubench.errors import NoDeviceError
from gpubench.measure.bound_case import opened
from gpubench.measure.caches import caches_of_sources
from gpubench.measure.check import CheckResult
from gpubench.measure.conditions import changes_process, why_ended, why_not, why_stopped
from gpubench.measure.counting import code_of, counts_of
from gpubench.measure.cpu_counting import CaseCounter, CounterName, CpuCode, why_not_with_one_thread
from gpubench.measure.inputs import Inputs, draw_inputs
from gpubench.measure.outcomes import cause, devices_of, why_unfit
from gpubench.measure.verification import expected_outputs, verify, with_faults, wrong_reason
from gpubench.measure.worker import Unanswered, Worker, answering
from gpubench.names import CPU
from gpubench.parallel import processors
from gpubench.plan.case import Case
from gpubench.record import CountsRecord
from gpubench.statuses import VerifiedStatus
from gpubench.work.counting import MachineCode

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from softcuda import Report

LIMIT = 300.0
"""Seconds after which a case is given up whose suite has no ``timeout``: a device in software takes
long over large arrays, and a kernel that hangs takes longer."""
COMPILE_SECONDS = 30.0
"""More seconds for a case on the device in software: its kernels are compiled there with a C
compiler, and the device names the line of one that never ends before the process is ended."""

TIME_OUT = "time-out"
"""The kind of the fault that the device in software reports of a kernel that it has ended."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What became of one case."""

    status: VerifiedStatus
    reason: str | None = None
    """Why it is not right: where and by how much it is wrong, what failed, why it cannot run."""
    max_abs_error: float | None = None
    """Largest absolute difference from the baseline's outputs; absent where nothing was compared,
    and for the baseline itself."""
    max_rel_error: float | None = None
    score: float | None = None
    """What its outputs are worth, by the suite's score; absent where outputs are compared."""
    warnings: tuple[str, ...] = ()
    faults: tuple[Report, ...] = ()
    """What the device in software saw."""
    counts: CountsRecord | None = None
    """What one run did on the device in software; absent where it is not right or not counted."""
    code: MachineCode | None = None
    """The machine code of its kernels; absent where nobody asked for it, or without counts."""
    lacks_device: bool = False
    """Whether its module asks for a CUDA device that its process has not."""
    cpu_code: CpuCode | NumpyCounts | None = None
    """What is said of the code of a case that was counted on the CPU, or what NumPy did; absent
    elsewhere."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How cases are verified."""

    in_software: bool = False
    """CUDA runs on the device in software; else on what this machine has."""
    orders: tuple[str, ...] = ()
    """Orders of threads and blocks that are tried on the device in software: ``ascending``,
    ``descending``, seeds."""
    sanitize: bool = False
    """The device in software watches every access."""
    count: bool = False
    """The device in software counts what one run of a case does."""
    code: bool = False
    """With ``count``: the machine code of kernels is disassembled too. With ``count_on_cpu``: LLVM
    says why loops are not vectorized."""
    count_on_cpu: bool = False
    """Numba's code on the CPU counts what one run does, with one thread and for one named
    processor."""
    counter: CounterName = "code"
    """With ``count_on_cpu``: what counts."""
    processes: int | None = None
    """Absent: one for each processor."""
    limit: float | None = None
    """Seconds for one case, in place of what its suite says."""
    default_limit: float = LIMIT
    """Seconds for a case whose suite does not say."""

    def limit_of(self, case: Case) -> float:
        """Return the seconds after which this case is given up."""
        return self.limit or case.kernel.sampling.timeout or self.default_limit


def orders(count: int) -> tuple[str, ...]:
    """Return so many orders of threads and blocks: both straight ones, then permutations by a
    seed."""
    return ("ascending", "descending", *map(str, range(1, count - 1)))[:count]


def verified(
    cases: Sequence[Case],
    manner: Manner,
    warned: Counter[str] | None = None,
    do: Callable[[tuple[int, Case]], Verified] | None = None,
) -> Iterator[tuple[int, Verified]]:
    """Verify all cases; yields a case's place in ``cases`` and what became of it, as each is done.

    Kernels are shared among the processes; closing the iterator ends these. ``warned`` counts
    Python's warnings. ``do`` verifies one case in a process, by default a ``Verifier``.
    """
    kernels: dict[tuple[str, str], list[tuple[int, Case]]] = {}
    for place, case in enumerate(cases):
        kernels.setdefault((case.suite.suite, case.kernel_name), []).append((place, case))
    # Cases on the same data stand together, so that what is expected of them is computed once.
    waiting = [sorted(items, key=lambda item: _data(item[1])) for items in kernels.values()]
    waiting.reverse()
    backends = {case.backend for case in cases}
    in_software = manner.in_software and any(map(is_cuda, chain(*map(devices_of, cases))))
    count = min(manner.processes or processors(), len(waiting))
    with ExitStack() as stack:
        stack.enter_context(caches_of_sources())
        if manner.count_on_cpu:
            stack.enter_context(environment(counting_variables()))
        crew: dict[Worker, list[tuple[int, Case]]] = {}
        """What each has still to verify of a kernel, the present case first."""
        for _ in range(count):  # all begin to start before the first is given something
            worker = Worker(
                do or Verifier(manner),
                backends=backends,
                in_software=in_software,
                is_fresh=manner.count_on_cpu,
                warned=warned,
            )
            stack.callback(worker.end)
            crew[worker] = []
        idle = list(crew)
        while idle:
            for worker in idle:
                if not crew[worker] and waiting:
                    crew[worker] = waiting.pop()
                if crew[worker]:
                    case = crew[worker][0][1]
                    compiles = in_software and any(map(is_cuda, devices_of(case)))
                    more = COMPILE_SECONDS if compiles else 0.0
                    worker.give(crew[worker][0], manner.limit_of(case) + more)
            busy = [worker for worker, items in crew.items() if items]
            idle = answering(busy) if busy else []
            for worker in idle:
                place, case = crew[worker].pop(0)
                try:
                    outcome: Verified = worker.answer()
                except Unanswered as error:
                    reason = f"{error}{why_ended(case) if error.status == 'killed' else ''}"
                    if error.status == "timed_out":
                        reason = why_stopped(manner.limit_of(case), error.likely_cause)
                    outcome = Verified(error.status, reason)
                if outcome.lacks_device and manner.in_software and not in_software:
                    worker.replace_in_software()  # as it would be with a CUDA case beside it
                    crew[worker].insert(0, (place, case))
                    continue
                # The device is lost to a process in which work on it failed, or was ended by it.
                ended = outcome.status == "timed_out" and outcome.faults
                lost = (ended or outcome.status == "failed") and devices_of(case) != {CPU}
                if lost or changes_process(case):
                    worker.replace()
                yield place, outcome


class Verifier:
    """Verifies one case after another in a process of its own."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._expected: tuple[str, Inputs, Mapping[str, np.ndarray[Any, Any]]] | None = None
        """Data and baseline of the last case that has one, its inputs and the baseline's outputs.
        Those of the cases before are not kept: they may be large."""
        self._cpu_counter: CaseCounter | None = None
        """Made in the process that counts, before anything is compiled there."""

    def __call__(self, item: tuple[int, Case]) -> Verified:
        """Verify the case of this item; what goes wrong is in the answer."""
        _, case = item
        take_faults()  # those of the case before stand with it
        limit = limit_kernels(self._manner.limit_of(case))
        try:
            if reason := self._why_not(case):
                return Verified("skipped", reason)
            result, counts, code, cpu_code = self._compared(case)
        except Exception as error:
            if reason := why_unfit(case, error):
                return Verified("skipped", reason)
            faults = take_faults()
            if any(fault.kind == TIME_OUT for fault in faults):
                return Verified("timed_out", with_faults(why_stopped(limit), faults), faults=faults)
            reason, lacks_device = cause(error, case), isinstance(error, NoDeviceError)
            reason = with_faults(reason, faults)
            return Verified("failed", reason, faults=faults, lacks_device=lacks_device)
        faults = take_faults()
        reason = wrong_reason(case, result, faults)
        is_baseline = case.baseline() is None
        return Verified(
            "wrong" if reason else "right",
            reason,
            None if is_baseline else result.max_abs_error,
            None if is_baseline else result.max_rel_error,
            result.score,
            result.warnings,
            faults,
            None if reason else counts,
            None if reason else code,
            cpu_code=None if reason else cpu_code,
        )

    def _why_not(self, case: Case) -> str | None:
        if self._manner.count_on_cpu and (reason := why_not_with_one_thread(case)):
            return reason
        return why_not(case)

    def _compared(
        self, case: Case
    ) -> tuple[CheckResult, CountsRecord | None, MachineCode | None, CpuCode | NumpyCounts | None]:
        first, *others = self._manner.orders or ("ascending",)
        set_option("order", first)
        set_option("sanitize", str(int(self._manner.sanitize)))
        add_lines()
        count_launches(self._manner.count)
        if self._manner.count_on_cpu and self._cpu_counter is None:
            self._cpu_counter = CaseCounter(self._manner.counter, remarks=self._manner.code)
        baseline, expected = case.baseline(), None
        if baseline is None:
            self._expected = None  # mostly of other data, as a baseline comes first
            inputs = draw_inputs(case)
        else:
            key = f"{_data(case)} {baseline.benchmark('kernel').asv_name} {baseline.identity}"
            if self._expected is None or self._expected[0] != key:
                self._expected = None  # before there is another, as both may not fit in memory
                inputs = draw_inputs(case)
                self._expected = key, inputs, expected_outputs(case, inputs)
            _, inputs, expected = self._expected
        with opened(case, inputs) as bound:
            if self._cpu_counter is not None:
                self._cpu_counter.watch(bound)
            result = verify(bound, expected, others if bound.session.simulated else ())
            if self._cpu_counter is not None:
                counts, cpu_code = self._cpu_counter.counts_of(bound, result)
                return result, counts, None, cpu_code
            counts = counts_of(bound)
            is_asked = self._manner.code and counts is not None
            return result, counts, code_of(bound) if is_asked else None, None


def _data(case: Case) -> str:
    return repr(sorted(case.data_values().items()))
