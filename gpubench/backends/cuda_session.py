"""A session on a CUDA device, written to the facade: it knows no library for CUDA."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gpubench.backends.ceilings import Ceilings
from gpubench.backends.cuda_ceilings import measured_ceilings
from gpubench.backends.cuda_facade import Cuda
from gpubench.backends.cuda_sampler import CudaSampler, Floors
from gpubench.backends.device_errors import DeviceError
from gpubench.backends.limits import launch_fault
from gpubench.backends.managed import ManagedSession
from gpubench.backends.protocol import Call, Clock, Launch, Limits, Native, Sampler, Target
from gpubench.names import Value


class EventClock:
    """Reads a device's own time through two events on a stream; a running total in seconds."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._total = 0.0

    @cached_property
    def _events(self) -> tuple[Any, Any]:
        """Made by the first start: most sessions check results and read no clock."""
        return self._cuda.event(), self._cuda.event()

    def start(self) -> float:
        """Mark the stream's present end, once everything before it has run."""
        begin, _ = self._events
        self._cuda.synchronize()
        self._cuda.record(begin)
        return self._total

    def stop(self) -> float:
        """Wait for what was queued since ``start`` and add the time between the two events."""
        begin, end = self._events
        self._cuda.record(end)
        self._total += self._cuda.seconds(begin, end)
        return self._total


class CudaSession(ManagedSession):
    """A CUDA device with a stream of its own; every copy and launch goes through that stream."""

    simulated = False
    clock: Clock

    def __init__(
        self, cuda: Cuda, limits: Limits, host_time: Callable[[], float] = time.perf_counter
    ) -> None:
        self._cuda, self._limits, self._host_time = cuda, limits, host_time
        self._flushed: tuple[Native, Native] | None = None
        self._floors = Floors(cuda, host_time)
        self.clock = self._own_clock()

    def _own_clock(self) -> Clock:
        return EventClock(self._cuda)

    def close(self) -> None:
        """Wait, then free what is no longer referenced. A lost device has nothing left to free."""
        self._flushed = None
        self._cuda.close()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy to the device with the same layout; one that is not contiguous becomes C."""
        flags = array.flags
        contiguous = flags.c_contiguous or flags.f_contiguous
        return self._cuda.to_device(array if contiguous else np.ascontiguousarray(array))

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        return self._cuda.to_host(native)

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from device memory to device memory."""
        self._cuda.copy(native, pristine)

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Configure a kernel once, or hand a launcher its stream and shape; nothing runs yet.

        Raises ``DeviceError`` for a launch over the device's limits, ``KernelError`` for a kernel
        without a launch or a target that the library cannot run.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        run, translated = self._cuda.runner(target, launch, arguments), self._cuda.translated

        def call() -> Any:
            try:
                return run()
            except Exception as error:
                if said := translated(error):
                    raise said from error
                raise

        return call

    def sampler(self, call: Call) -> Sampler:
        """Runs the call until it is warm, and finds the best way to time it."""
        return CudaSampler(self._cuda, call, self._floors, self._host_time)

    def synchronize(self) -> None:
        self._cuda.synchronize()

    def flush(self) -> None:
        """Queue a copy between two buffers that fill the L2 cache each."""
        if self._flushed is None:
            size = -(-self._cuda.l2_bytes // 8) * 8
            self._flushed = self._cuda.allocate(size), self._cuda.allocate(size)
        self._cuda.copy(*self._flushed)

    def ceilings(self) -> Ceilings:
        """What the device's memory reaches with kernels that do nothing but move data."""
        return measured_ceilings(self._cuda, self._host_time)

    def facts(self) -> Mapping[str, Value]:
        """The library's and the device's, the size of L2, and the floor where one was measured."""
        own: dict[str, Value] = {"l2_bytes": self._cuda.l2_bytes}
        if self._floors.last is not None:
            own["floor_seconds"] = self._floors.last
        return {**self._cuda.facts(), **own}
