"""Cases computed once and compared with their baselines, side by side in processes of their own.

No time is taken. A process works through the cases of one kernel, so that what they compile and
what their baseline computes is made once. One that crashes, hangs or loses its device is named with
its case, and another goes on with the rest.
"""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from gpubench.backends import registry
from gpubench.backends.software import switched_on
from gpubench.errors import KernelError
from gpubench.measure.check import Comparison
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs, draw_inputs
from gpubench.measure.inspection import set_order, set_sanitize, take_faults, with_faults
from gpubench.measure.preparation import cause, known_baseline, wrong_reason
from gpubench.measure.readiness import why_not
from gpubench.measure.targets import load_target
from gpubench.measure.verification import expected_outputs, verify, verify_baseline
from gpubench.parallel import processors
from gpubench.plan.case import Case
from gpubench.plan.machine import is_cuda
from gpubench.plan.subject import HOME

if TYPE_CHECKING:
    from gpubench.softcuda import Report

START_UP = 60.0
"""Seconds that a process may take to start, before its first case's limit begins."""
LIMIT = 300.0
"""Seconds after which a case is given up: a device in software takes long over large arrays, and a
kernel that hangs takes longer."""

READY = "ready"

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
    """What the device in software has found."""


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
    shares = _by_kernel(cases)
    waiting = list(reversed(shares))
    count = min(manner.processes or processors(), len(shares))
    with ExitStack() as stack:
        in_software = manner.in_software and any(map(_uses_cuda, cases))
        crew = [_Worker(manner, in_software) for _ in range(count)]
        for worker in crew:  # all begin to start before the first is given something
            stack.callback(worker.end)
            worker.start()
        while waiting or any(worker.share for worker in crew):
            for worker in crew:
                if not worker.share and waiting:
                    worker.give(waiting.pop(), cases)
            for worker in _first_to_speak(crew):
                yield worker.answer()


def verify_case(case: Case, manner: Manner, expected: Expected) -> Verified:
    """Verify one case in this process; what goes wrong is in the answer."""
    take_faults()  # what ran before has been told of
    try:
        if case.fault is not None:
            raise KernelError(case.fault)
        if reason := why_not(case):
            return Verified("skipped", reason)
        if manner.sanitize:
            for backend in case.subject.backends:
                _compile_with_lines(backend)
        comparison = _compared(case, manner, expected)
    except Exception as error:
        faults = take_faults()
        return Verified("failed", with_faults(cause(error), faults), faults=faults)
    faults = take_faults()
    reason = wrong_reason(case, comparison, faults)
    found = Verified("right" if reason is None else "wrong", reason)
    found = replace(found, warnings=comparison.warnings, faults=faults)
    if case.baseline() is None:
        return found
    errors = comparison.max_abs_error, comparison.max_rel_error
    return replace(found, max_abs_error=errors[0], max_rel_error=errors[1])


class Expected:
    """Inputs and the baseline's outputs, kept from one case of a kernel to the next."""

    def __init__(self) -> None:
        self._key: object = None
        self._kept: tuple[Inputs, Mapping[str, np.ndarray[Any, Any]]] | None = None

    def of(self, case: Case) -> tuple[Inputs, Mapping[str, np.ndarray[Any, Any]]]:
        """Those of one case, which is no baseline."""
        key = (case.suite.suite, case.kernel_name, case.data_values(), str(case.baseline()))
        if self._kept is None or key != self._key:
            inputs = draw_inputs(case)
            self._kept = inputs, expected_outputs(case, inputs)
            self._key = key
        return self._kept


@runtime_checkable
class TellsLines(Protocol):
    """A backend whose kernels can be compiled so that faults name lines of their source."""

    def compile_with_lines(self) -> None: ...


@cache
def _compile_with_lines(name: str) -> None:
    backend = registry.get(name)
    if isinstance(backend, TellsLines):
        backend.compile_with_lines()


def _compared(case: Case, manner: Manner, expected: Expected) -> Comparison:
    first, *others = manner.orders or ("ascending",)
    set_order(first)
    if case.baseline() is None:
        inputs, reference = draw_inputs(case), None
    else:
        inputs, reference = expected.of(case)
    target = load_target(case)
    with registry.get(case.backend).open(case.device, case.threads) as session:
        execution = Execution(session, case, target, inputs)
        tried = others if session.simulated else ()
        if reference is None:
            return verify_baseline(execution, tried)
        return verify(execution, reference, tried)


def _uses_cuda(case: Case) -> bool:
    """Whether the case or its baseline is for CUDA."""
    baseline = known_baseline(case) if case.fault is None else None
    return is_cuda(case.device) or (baseline is not None and is_cuda(baseline.device))


def _by_kernel(cases: Sequence[Case]) -> list[list[int]]:
    """Places of the cases of each kernel, those on the same data one after another."""
    kernels: dict[tuple[str, str], list[int]] = {}
    for place, case in enumerate(cases):
        kernels.setdefault((case.suite.suite, case.kernel_name), []).append(place)
    return [sorted(own, key=lambda place: _data(cases[place])) for own in kernels.values()]


def _data(case: Case) -> str:
    return repr(sorted(case.data_values().items()))


@dataclass(eq=False)
class _Worker:
    """A process that verifies the cases that it is given."""

    manner: Manner
    in_software: bool
    """Whether it starts the device in software: not where no case is for CUDA."""
    share: list[int] = field(default_factory=list)
    """Places of the cases that it has still to answer for, the present one first."""
    cases: Sequence[Case] = ()
    deadline: float = 0.0
    starting: bool = False
    """Whether it has not yet said that it is ready."""
    connection: Connection | None = None
    process: BaseProcess | None = None

    def start(self) -> None:
        """Begin to start the process."""
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, self.manner, self.in_software)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        with switched_on() if self.in_software else nullcontext():
            self.process.start()
        theirs.close()
        self.starting = True

    def give(self, share: list[int], cases: Sequence[Case]) -> None:
        """Let it verify the cases at these places."""
        if self.connection is None:
            self.start()
        self.share, self.cases = list(share), cases
        assert self.connection is not None
        with suppress(OSError, EOFError):  # it has ended, which reading from it tells
            if self.starting and self.connection.poll(START_UP):
                self.starting = self.connection.recv() != READY
            if not self.starting:
                self.connection.send([(place, cases[place]) for place in share])
        self.deadline = monotonic() + self.manner.limit

    def answer(self) -> tuple[int, Verified]:
        """What became of the case at the head of its share, once it has spoken or is overdue."""
        place = self.share[0]
        assert self.connection is not None
        try:
            if self.connection.poll(max(0.0, self.deadline - monotonic())):
                told, found = self.connection.recv()
                assert told == place
            else:
                found = Verified("timed_out", f"it took longer than {self.manner.limit:g} s")
        except (EOFError, OSError):
            found = Verified("killed", f"its process ended without an outcome ({self._exit()})")
        del self.share[0]
        self.deadline = monotonic() + self.manner.limit
        if _may_be_lost(found, self.cases[place]):
            self._replace()
        return place, found

    def end(self) -> None:
        """End the process, whatever it is doing."""
        if self.process is not None and self.connection is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
        self.process = self.connection = None

    def _replace(self) -> None:
        self.end()
        if self.share:
            self.give(self.share, self.cases)

    def _exit(self) -> str:
        assert self.process is not None
        self.process.join(timeout=1)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"


def _may_be_lost(found: Verified, case: Case) -> bool:
    """Whether later cases should not run in the same process: a device may be lost to it."""
    if found.status in ("timed_out", "killed"):
        return True
    return found.status == "failed" and case.device != HOME


def _first_to_speak(crew: Iterable[_Worker]) -> list[_Worker]:
    """Workers that have spoken, ended or run out of time; waits for the first."""
    busy = [worker for worker in crew if worker.share and worker.connection is not None]
    soonest = min(worker.deadline for worker in busy)
    ready = wait([w.connection for w in busy if w.connection], max(0.0, soonest - monotonic()))
    now = monotonic()
    return [w for w in busy if w.connection in ready or w.deadline <= now]


def _serve(connection: Connection, manner: Manner, in_software: bool) -> None:
    """The worker: verifies until nobody asks any more. Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What Numba says of small grids is about speed, and launchers make grids of their own.
    warnings.filterwarnings("ignore", message="Grid size .* GPU under-utilization")
    if in_software:
        _start_in_software(manner)
    connection.send(READY)
    while True:
        try:
            share: list[tuple[int, Case]] = connection.recv()
        except EOFError:
            return
        expected = Expected()
        for place, case in share:
            connection.send((place, verify_case(case, manner, expected)))


def _start_in_software(manner: Manner) -> None:
    """Start the device before anything of CUDA is imported; where it cannot be had, the cases say
    why."""
    from gpubench.backends.devices import gpu_count

    if gpu_count():
        set_sanitize(manner.sanitize)
