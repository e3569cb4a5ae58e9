"""A session on a CUDA device, whichever library runs the kernels.

What a library has to offer are the abstract methods of ``CudaSession``. Numba's target is one
implementation (``numba_cuda.NumbaCudaSession``), its successor would be another, and the tests have
one that keeps time itself.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, cast

import numpy as np

from gpubench.backends.ceilings import BLOCK, Seconds, array_bytes, memory_ceilings
from gpubench.backends.cuda_driver import Graph
from gpubench.backends.cuda_sampling import BestWay, CudaSampler, Floors
from gpubench.backends.devices import ClockState
from gpubench.backends.limits import launch_fault
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    Launch,
    Limits,
    Native,
    Sampler,
    Session,
    Target,
)
from gpubench.names import Value

KernelName = Literal["empty", "copy", "triad"]
"""Kernels that every library brings: ``empty()``, ``copy(target, source)`` and
``triad(target, one, other)``, which is ``target[i] = one[i] + 3 * other[i]`` on float64."""

TIMES_CACHE = 8
"""Size of an array of the ceilings, in L2 caches. STREAM asks for four; more leaves less in the
cache from one run to the next, and takes milliseconds here."""
PART_OF_FREE = 8
"""Each of its three arrays takes at most this part of the memory that is free."""
SAMPLES, RUNS = 7, 4
"""Tens of milliseconds together on a large GPU."""
ITEM = 8
"""Bytes of a float64."""


class CudaSession(Session):
    """A CUDA device with a stream of its own; every copy and launch goes through that stream.

    "Queue" means: on that stream. Errors of the library come as ``DeviceError``.
    """

    def __init__(
        self, limits: Limits, l2_bytes: int, host_time: Callable[[], float] = time.perf_counter
    ) -> None:
        self.l2_bytes = l2_bytes
        self._limits, self._host_time = limits, host_time
        self._flushed: tuple[Native, Native] | None = None
        self._floors = Floors(self, host_time)

    # What a library has to offer, beside ``to_host``, ``restore``, ``synchronize`` and ``close``.

    @property
    @abstractmethod
    def can_hold(self) -> bool:
        """Whether the library and the driver can hold the stream back."""

    @abstractmethod
    def to_device(self, array: np.ndarray[Any, Any]) -> Native:
        """A copy of a contiguous array with its layout, complete when this returns."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Native:
        """Device memory whose contents do not matter, as float64; ``nbytes`` divides by 8."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Device memory that is free now."""

    @abstractmethod
    def runner(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """What runs a target once, everything bound; ``KernelError`` for what is no kernel."""

    @abstractmethod
    def kernel(self, name: KernelName, launch: Launch, arguments: Sequence[Native] = ()) -> Call:
        """One of the kernels that every library brings, bound."""

    @abstractmethod
    def translated(self, error: Exception) -> DeviceError | None:
        """The library's own errors as ``DeviceError``; ``None`` for any other."""

    @abstractmethod
    def event(self) -> Any:
        """An event that keeps time."""

    @abstractmethod
    def record(self, event: Any) -> None:
        """Queue an event: it takes the time when all before it has run."""

    @abstractmethod
    def seconds(self, begin: Any, end: Any) -> float:
        """Wait for ``end``; seconds between the two events on the device's own clock."""

    @abstractmethod
    def capture(self, call: Call, runs: int) -> Graph:
        """Capture so many runs of a call into a graph; none of them runs.

        Refuses what waits for the device or takes or gives back memory. Raises ``CannotCapture``;
        the stream is then as usable as before.
        """

    @abstractmethod
    def held(self) -> AbstractContextManager[Callable[[], None]]:
        """Hold back all that is queued from here on, until what the context gives is called.

        Leaving the context releases too. Calling it twice, or from another thread, is allowed.
        """

    @abstractmethod
    def clock_state(self) -> ClockState | None:
        """The clock now; ``None`` where the driver does not tell."""

    # What is the same for all.

    def close(self) -> None:
        """Free what is no longer referenced. A lost device has nothing left to free."""
        self._flushed = None

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy to the device with the same layout; one that is not contiguous becomes C."""
        flags = array.flags
        contiguous = flags.c_contiguous or flags.f_contiguous
        return self.to_device(array if contiguous else np.ascontiguousarray(array))

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Configure a kernel once, or hand a launcher its stream and shape; nothing runs yet.

        Raises ``DeviceError`` for a launch over the device's limits, ``KernelError`` for a kernel
        without a launch or a target that the library cannot run.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        run = self.runner(target, launch, arguments)

        def call() -> Any:
            try:
                return run()
            except Exception as error:
                if device_error := self.translated(error):
                    raise device_error from error
                raise

        return call

    def sampler(self, call: Call) -> Sampler:
        """Runs the call until it is warm, and finds the best way to time it."""
        return CudaSampler(self, call, self._floors, self._host_time)

    def sampler_again(self, call: Call) -> Sampler:
        return CudaSampler(self, call, self._floors, self._host_time, warm=True)

    def flush(self) -> None:
        """Queue a copy between two buffers that fill the L2 cache each."""
        if self._flushed is None:
            size = -(-self.l2_bytes // ITEM) * ITEM
            self._flushed = self.allocate(size), self.allocate(size)
        self.restore(*self._flushed)

    def ceiling_bytes(self) -> int:
        """Size of each array that the ceilings are measured on."""
        return array_bytes(self.l2_bytes, TIMES_CACHE, self.free_bytes() // PART_OF_FREE, ITEM)

    def ceilings(self) -> Mapping[str, float]:
        """What the device's memory reaches with kernels that do nothing but move data; takes tens
        of milliseconds and gives all memory back."""
        nbytes = self.ceiling_bytes()
        arrays = [self.allocate(nbytes) for _ in range(3)]
        launch = Launch(block=(BLOCK, 1, 1), grid=(-(-nbytes // ITEM // BLOCK), 1, 1))

        def timer(name: str, used: Sequence[Native]) -> Seconds:
            call = self.kernel(cast(KernelName, name), launch, used)
            call()  # compiles
            return BestWay(self, call, self._host_time).seconds

        return memory_ceilings(arrays, nbytes, timer, SAMPLES, RUNS)

    def facts(self) -> Mapping[str, Value]:
        """The size of L2, and the floor where one was measured; a library adds its own."""
        floor = self._floors.last
        floors: dict[str, Value] = {} if floor is None else {"floor_seconds": floor}
        return {**super().facts(), "l2_bytes": self.l2_bytes, **floors}
