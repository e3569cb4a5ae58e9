"""The CUDA session with time that it keeps itself: one host, one device, one stream, no GPU.

The host's clock advances by what launches and replays cost it, the device's by what kernels take;
an operation starts when it has been queued, the stream is not held back and the one before it has
ended. What would wait for ever on a device says so here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

from gpubench.backends import cuda_sampling
from gpubench.backends.cuda_driver import CannotCapture
from gpubench.backends.devices import ClockState
from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.numba_cuda import NumbaCudaSession
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    Target,
)

FLOOR = 1e-6
"""Seconds of the empty kernel."""

BANDWIDTH = 4e12
"""Bytes per second of every copy and of the kernels that move data."""

QUEUE = 1024
"""Operations that a driver's queue takes."""


@dataclass
class Kernel:
    """What a call does: ``launches`` kernels of ``seconds`` (of each run, or a function of it)."""

    seconds: float | Callable[[int], float] = 1e-3
    launches: int = 1
    waits: bool = False
    """Waits for the device in each run."""
    nodes: str = "kernel"
    lost_at: int | None = None
    """Run whose work crashes on the device."""
    runs: Any = field(default_factory=count)


@dataclass
class Event:
    at: float = float("nan")


@dataclass
class Array:
    data: np.ndarray[Any, Any]


class ScriptedGraph:
    def __init__(self, cuda: ScriptedCuda, operations: list[Callable[[], None]], good: bool):
        self.cuda, self.operations = cuda, operations
        self.nodes, self.replayable, self.closed = len(operations), good, False

    def replay(self) -> None:
        assert not self.closed
        self.cuda.host += self.cuda.replay_cost
        self.cuda.replays += 1
        for operation in self.operations:
            self.cuda.queue(operation, 0)

    def close(self) -> None:
        self.closed = True


class ScriptedCuda(NumbaCudaSession):
    """One GPU whose times are what its script says; counts what it is asked. All that would call
    Numba or the driver is played."""

    can_hold = True

    def __init__(self, graphs: bool = True, can_hold: bool = True) -> None:
        self.graphs, self.can_hold = graphs, can_hold
        super().__init__("cuda:0", ARCHITECTURE_LIMITS)
        self.launch_cost, self.replay_cost = 5e-6, 10e-6
        self.host = self.ready = 0.0
        self.pending: list[Callable[[], None]] = []
        self.holding = False
        self.capturing: list[Callable[[], None]] | None = None
        self.captured_kinds: set[str] = set()
        self.most_pending = self.replays = self.captures = 0
        self.free = 10**9
        self.clock: ClockState | None = None
        self.failure: DeviceError | None = None
        self.watch: Callable[[], None] | None = None
        self.asked: list[str] = []
        self.made: list[ScriptedGraph] = []

    def _open(self) -> None:
        self.l2_bytes = 1000

    # Time

    def host_time(self) -> float:
        return self.host

    def queue(self, operation: Callable[[], None], most: int = 1) -> None:
        if self.holding:
            self.pending.append(operation)
            self.most_pending = max(self.most_pending, len(self.pending))
            if most and len(self.pending) > QUEUE:
                self.would_wait("the queue is full")
        else:
            self.ready = max(self.ready, self.host)
            operation()

    def submit(self, operation: Callable[[], None], kind: str) -> None:
        self.host += self.launch_cost
        if self.capturing is not None:
            self.capturing.append(operation)
            self.captured_kinds.add(kind)
        else:
            self.queue(operation)

    def run(self, kernel: Kernel) -> Callable[[], None]:
        def operation() -> None:
            number = next(kernel.runs)
            if kernel.lost_at is not None and number >= kernel.lost_at:
                self.failure = DeviceLostError("the work crashed")
            given = kernel.seconds
            self.ready += given(number) if callable(given) else given

        return operation

    def would_wait(self, why: str) -> None:
        """The host waits for a stream that waits for the host: only the watch can end it."""
        assert self.watch is not None, f"deadlock: {why}"
        self.host += cuda_sampling.HOLD_LIMIT
        self.watch()

    def let_go(self) -> None:
        if self.holding:
            self.holding = False
            self.ready = max(self.ready, self.host)
            while self.pending:
                self.pending.pop(0)()

    # What Numba and the driver do

    def call(self, kernel: Kernel) -> Call:
        def call() -> None:
            for _ in range(kernel.launches):
                self.submit(self.run(kernel), kernel.nodes)
            if kernel.waits:
                self.synchronize()

        return call

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        return self.call(target.function)

    def kernel(self, name: str, launch: Launch, arguments: Sequence[Any] = ()) -> Call:
        self.asked.append(f"kernel {name}")
        moved = sum(array.data.nbytes for array in arguments)
        return self.call(Kernel(FLOOR if name == "empty" else moved / BANDWIDTH))

    def to_native(self, array: np.ndarray[Any, Any]) -> Array:
        self.asked.append("to device")
        return Array(array.copy())

    def to_host(self, native: Array) -> np.ndarray[Any, Any]:
        self.synchronize()
        return native.data.copy()

    def restore(self, native: Array, pristine: Array) -> None:
        self.asked.append(f"copy {pristine.data.nbytes}")

        def operation() -> None:
            self.ready += 2 * pristine.data.nbytes / BANDWIDTH
            np.copyto(native.data, pristine.data)

        self.submit(operation, "copy")

    def allocate(self, nbytes: int) -> Array:
        self.asked.append(f"allocate {nbytes}")
        if nbytes > self.free:
            raise DeviceMemoryError(f"{self.device} is out of memory")
        return Array(np.zeros(nbytes // 8))

    def flush(self) -> None:
        self.restore(self.allocate(self.l2_bytes), self.allocate(self.l2_bytes))

    def free_bytes(self) -> int:
        return self.free

    def synchronize(self) -> None:
        if self.capturing is not None:
            raise DeviceError("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
        if self.holding:
            self.would_wait("it synchronises a stream that is held back")
        self.host = max(self.host, self.ready)
        if self.failure is not None:
            raise self.failure

    def event(self) -> Event:
        return Event()

    def record(self, event: Event) -> None:
        def stamp() -> None:
            event.at = self.ready

        self.queue(stamp)

    def seconds(self, begin: Event, end: Event) -> float:
        self.synchronize()
        return end.at - begin.at

    def capture(self, call: Call, runs: int) -> ScriptedGraph:
        if not self.graphs:
            raise CannotCapture("cuda.bindings is not installed")
        self.captures += 1
        self.capturing, self.captured_kinds = [], set()
        try:
            for _ in range(runs):
                call()
            self.made.append(ScriptedGraph(self, self.capturing, self.captured_kinds <= {"kernel"}))
            return self.made[-1]
        except DeviceError as error:
            raise CannotCapture(str(error)) from error
        finally:
            self.capturing = None

    @contextmanager
    def held(self) -> Iterator[Callable[[], None]]:
        assert self.can_hold and not self.holding
        self.holding = True
        try:
            yield self.let_go
        finally:
            self.let_go()

    def clock_state(self) -> ClockState | None:
        return self.clock

    def facts(self) -> Mapping[str, Any]:
        return {"gpu": "scripted", "l2_bytes": self.l2_bytes}

    def close(self) -> None:
        self.asked.append("close")


def watched(cuda: ScriptedCuda, patch: pytest.MonkeyPatch) -> None:
    """Let the watch on a held stream go off when the scripted host would wait for ever."""

    class Watch:
        def __init__(self, seconds: float, let_go: Callable[[], None]) -> None:
            self.let_go = let_go

        def start(self) -> None:
            cuda.watch = self.let_go

        def cancel(self) -> None:
            cuda.watch = None

        def join(self) -> None:
            assert cuda.watch is None

    patch.setattr(cuda_sampling.threading, "Timer", Watch)
