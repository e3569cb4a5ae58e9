"""Cases computed once and compared with their baselines, side by side in processes of their own.

No time is taken. A process works through the cases of one kernel, so that what they compile and
what their baseline computes is made once. One that crashes, hangs or loses its device is named with
its case, and another goes on with the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.connection import wait
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpubench.backends import registry
from gpubench.backends.software import set_sanitize, software_device
from gpubench.errors import BackendError, KernelError
from gpubench.measure.check import CheckResult
from gpubench.measure.conditions import why_not
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs, draw_inputs
from gpubench.measure.preparation import baseline_of, cause
from gpubench.measure.targets import load_target
from gpubench.measure.verification import (
    expected_outputs,
    set_order,
    take_faults,
    verify,
    with_faults,
    wrong_reason,
)
from gpubench.measure.worker import Ended, Worker
from gpubench.parallel import processors
from gpubench.plan.case import HOME, Case
from gpubench.plan.group import is_cuda

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from gpubench.softcuda import Report

LIMIT = 300.0
"""Seconds after which a case is given up: a device in software takes long over large arrays, and a
kernel that hangs takes longer."""

Status = Literal["right", "wrong", "skipped", "failed", "timed_out", "killed"]


@dataclass(frozen=True, slots=True)
class Verified:
    """What became of one case."""

    status: Status
    reason: str | None = None
    """Why it is not right: where and by how much it is wrong, what failed, why it cannot run."""
    max_abs_error: float | None = None
    """Largest absolute difference from the baseline's outputs; absent where nothing was compared,
    and for the baseline itself."""
    max_rel_error: float | None = None
    warnings: tuple[str, ...] = ()
    faults: tuple[Report, ...] = ()
    """What the device in software saw."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How cases are verified."""

    in_software: bool = False
    """CUDA runs on the device in software; else on what this machine has."""
    orders: tuple[str, ...] = ()
    """Orders of threads and blocks that are tried on the device in software: ``ascending``,
    ``descending``, seeds."""
    sanitize: bool = False
    """The device in software watches every access, and kernels are compiled with their lines."""
    processes: int | None = None
    """Absent: one for each processor."""
    limit: float = LIMIT
    """Seconds for one case."""


def orders(count: int) -> tuple[str, ...]:
    """So many orders of threads and blocks: both straight ones, then permutations by a seed."""
    return ("ascending", "descending", *map(str, range(1, count - 1)))[:count]


def verified(cases: Sequence[Case], manner: Manner) -> Iterator[tuple[int, Verified]]:
    """Verify all cases; yields a case's place in ``cases`` and what became of it, as each is done.

    Kernels are shared among the processes; closing the iterator ends these.
    """
    kernels: dict[tuple[str, str], list[int]] = {}
    for place, case in enumerate(cases):
        kernels.setdefault((case.suite.suite, case.kernel_name), []).append(place)
    # Cases on the same data stand together, so that what is expected of them is computed once.
    waiting = [sorted(places, key=lambda place: _data(cases[place])) for places in kernels.values()]
    waiting.reverse()
    in_software = manner.in_software and any(map(_uses_cuda, cases))
    count = min(manner.processes or processors(), len(waiting))
    with ExitStack() as stack:
        crew = [_Share(cases, manner, in_software) for _ in range(count)]
        for share in crew:  # all have begun to start before the first is given something
            stack.callback(share.end)
        while waiting or any(share.places for share in crew):
            for share in crew:
                if not share.places and waiting:
                    share.give(waiting.pop())
            busy = [share for share in crew if share.places]
            soonest = min(share.deadline for share in busy) - monotonic()
            ready = wait([share.worker.connection for share in busy], max(0.0, soonest))
            for share in busy:
                if share.worker.connection in ready or share.deadline <= monotonic():
                    yield share.answer()


@dataclass
class _Share:
    """Cases of one kernel at a time, and the process that verifies them."""

    cases: Sequence[Case]
    manner: Manner
    in_software: bool
    """Whether the process starts the device in software: not where no case is for CUDA."""

    def __post_init__(self) -> None:
        self.places: list[int] = []
        """Of the cases that it has still to answer for, the present one first."""
        self.deadline = 0.0
        self._start()

    def _start(self) -> None:
        arguments = self.manner, self.in_software
        self.worker = Worker(_verifier, *arguments, in_software=self.in_software)

    def give(self, places: list[int]) -> None:
        """Let the process verify the cases at these places."""
        self.places = places
        self.worker.ask([self.cases[place] for place in places])
        self.deadline = monotonic() + self.manner.limit

    def answer(self) -> tuple[int, Verified]:
        """What became of the present case, once it has been told or is overdue."""
        place, *rest = self.places
        try:
            outcome: Verified = self.worker.answer(self.deadline - monotonic())
        except Ended as error:
            outcome = Verified("killed", str(error))
        except TimeoutError:
            outcome = Verified("timed_out", f"it took longer than {self.manner.limit:g} s")
        self.places, self.deadline = rest, monotonic() + self.manner.limit
        on_device = self.cases[place].device != HOME
        if outcome.status in ("timed_out", "killed") or (outcome.status == "failed" and on_device):
            self.end()  # a device may be lost to it
            self._start()
            if rest:
                self.give(rest)
        return place, outcome

    def end(self) -> None:
        self.worker.end()


def _verifier(manner: Manner, in_software: bool) -> Callable[[Sequence[Case]], Iterator[Verified]]:
    """What a process does: verifies the cases that it is given."""
    # What Numba says of small grids is about speed, and launchers make grids of their own.
    warnings.filterwarnings("ignore", message="Grid size .* GPU under-utilization")
    if in_software:  # before anything of CUDA is imported
        with suppress(BackendError):  # the cases say why
            software_device()
        set_sanitize(manner.sanitize)

    def verify_all(cases: Sequence[Case]) -> Iterator[Verified]:
        kept: Kept = {}
        for case in cases:
            yield verify_case(case, manner, kept)

    return verify_all


Kept = dict[str, tuple[Inputs, Mapping[str, np.ndarray[Any, Any]]]]
"""Inputs and the baseline's outputs, by the case's data and baseline: those of the last case alone,
as they may be large."""


def verify_case(case: Case, manner: Manner, kept: Kept) -> Verified:
    """Verify one case in this process; what goes wrong is in the answer."""
    take_faults()  # those of the case before stand with it
    is_baseline = case.fault is None and baseline_of(case) is None
    try:
        if case.fault is not None:
            raise KernelError(case.fault)
        if reason := why_not(case):
            return Verified("skipped", reason)
        if manner.sanitize:
            for backend in case.group.backends:
                _compile_with_lines(backend)
        result = _compared(case, manner, kept)
    except Exception as error:
        faults = take_faults()
        return Verified("failed", with_faults(cause(error), faults), faults=faults)
    faults = take_faults()
    reason = wrong_reason(case, result, faults)
    outcome = Verified(
        "right" if reason is None else "wrong", reason, warnings=result.warnings, faults=faults
    )
    if is_baseline:
        return outcome
    errors = result.max_abs_error, result.max_rel_error
    return replace(outcome, max_abs_error=errors[0], max_rel_error=errors[1])


@cache
def _compile_with_lines(backend: str) -> None:
    registry.get(backend).compile_with_lines()


def _compared(case: Case, manner: Manner, kept: Kept) -> CheckResult:
    first, *others = manner.orders or ("ascending",)
    set_order(first)
    baseline, expected = case.baseline(), None
    if baseline is None:
        inputs = draw_inputs(case)
    else:
        key = f"{_data(case)} {baseline.benchmark('kernel').asv_name} {baseline.identity}"
        if key not in kept:
            kept.clear()
            inputs = draw_inputs(case)
            kept[key] = inputs, expected_outputs(case, inputs)
        inputs, expected = kept[key]
    target = load_target(case)
    with registry.get(case.backend).open(case.device, case.threads) as session:
        execution = Execution(session, case, target, inputs)
        return verify(execution, expected, others if session.simulated else ())


def _uses_cuda(case: Case) -> bool:
    """Whether the case or its baseline is for CUDA."""
    baseline = baseline_of(case) if case.fault is None else None
    return is_cuda(case.device) or (baseline is not None and is_cuda(baseline.device))


def _data(case: Case) -> str:
    return repr(sorted(case.data_values().items()))
