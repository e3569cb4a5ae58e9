"""What a backend is: the seam between a case and a way to run it.

A backend is looked up by name, asked which devices it serves, and opened on one of them. Opening
may start an executor, a context or a thread pool; nothing before that may. The open session turns
host arrays into the backend's own, binds a call, waits for the device, reads its clock and brings
outputs back. Backends for other systems (CuPy, PyCUDA, PyOpenCL, Dask, Ray, data frames ...) are
written to this file and need no change in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from gpubench.names import Value

Native = Any
"""An array, data frame or handle of the backend's own kind."""

Call = Callable[[], Any]
"""One run of the kernel with everything bound; returns what the function returns (native)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Shape of one launch, checked against the device's limits before it happens."""

    block: tuple[int, int, int]
    """Threads in a block, x first."""
    grid: tuple[int, int, int]
    """Blocks in the grid, x first."""
    shared_bytes: int = 0
    """Dynamic shared memory for each block."""
    cooperative: bool = False

    @property
    def threads_per_block(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def blocks(self) -> int:
        x, y, z = self.grid
        return x * y * z


@dataclass(frozen=True, slots=True)
class Target:
    """What an implementation names, loaded: exactly one of the three kinds."""

    function: Any = None
    """A function or compiled dispatcher, or what a factory returned."""
    launcher: Callable[..., Any] | None = None
    """Called as ``launcher(context, *arguments)``; queues all its launches."""
    source: str | None = None
    """Text of a program in the backend's own language, with ``entry`` inside it."""
    entry: str | None = None
    constants: Mapping[str, Value] = field(default_factory=dict)
    """Of a ``source``, by name: values that are known when it is compiled."""


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a launcher is told: where to queue its work and in which shape."""

    stream: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a device on one launch; counts and bytes."""

    threads_per_block: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes_per_block: int
    source: str
    """Where they come from: ``NVIDIA H200 (compute capability 9.0)`` for example."""
    total_threads: int | None = None
    """Most threads of a whole launch, where something less than the grid limits it."""
    cooperative_blocks: int | None = None
    """Most blocks of a cooperative launch, where that is known before compiling."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What is known about a device without running on it; ``None`` where it is not known."""

    name: str
    limits: Limits | None = None
    scope: Mapping[str, Value] = field(default_factory=dict)
    """Names that ``skip`` rules may use: ``sm_count``, ``shared_memory_per_block``,
    ``global_memory`` (bytes), ``compute_capability`` (9.0 as a float) and ``device``."""


class Clock(Protocol):
    """Reads time on a device, called in pairs around the work: ``stop() - start()`` in seconds."""

    def start(self) -> float: ...
    def stop(self) -> float: ...


class Sampler(Protocol):
    """Takes samples of one bound call: a batch of runs, back to back, by the device's own time."""

    method: str
    """How: ``host loop``, ``event loop``, ``graph replay``, ``held-back stream`` ..."""
    warnings: tuple[str, ...]
    """What a reader of the time has to know, found while sampling."""

    def seconds(self, runs: int) -> float:
        """Seconds that ``runs`` runs take together, first start to last end."""


class Session(Protocol):
    """A backend opened on one device; a context manager that cleans up whatever happened."""

    clock: Clock
    """Reads the device's own time (events), or the host's for work that blocks the caller."""
    simulated: bool
    """True where results mean something and times do not."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy a host array to the device; the copy is the backend's own, never an alias."""

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        """Copy back to a new host array; waits for the work that writes it."""

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        """Its values on the host, to be read before anything else runs: no copy where the device's
        memory is the host's."""

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        """What ``restore`` takes: a copy on the device, or the array itself where its memory is the
        host's."""

    def restore(self, native: Native, pristine: Native) -> None:
        """Overwrite ``native`` with ``pristine`` (same shape, dtype) without leaving the device."""

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind native arrays and scalars once; the returned call only queues or runs the work.

        Runs nothing. Raises ``KernelError`` for a target that is not this backend's, and
        ``DeviceError`` (see ``device_errors``) for a launch that the device does not allow.
        """

    def sampler(self, call: Call) -> Sampler:
        """The best way that the device has to time this call without the host in the time."""

    def synchronize(self) -> None:
        """Wait until everything queued has run; raises what went wrong on the device, as a
        ``DeviceError``."""

    def flush(self) -> None:
        """Evict the device's last-level cache (used, untimed, before each ``cold`` run)."""

    def facts(self) -> Mapping[str, Value]:
        """Conditions for the record: versions, device name, driver, threads in use."""


class Backend(Protocol):
    """One way to run kernels. Constructed without arguments; importing its module must be cheap and
    must start nothing (no context, no platform, no thread pool)."""

    name: str
    title: str
    """For people: ``Numba on the CPU``."""
    requires: tuple[str, ...]
    """Distributions that it needs, named in the message when an import fails."""
    times: tuple[str, ...]
    """Labelled times that mean something here (``gpubench.names.TIMES``): work in host memory has
    no ``transfer``, a function that is not compiled has no ``compile``."""

    def serves(self, device: str) -> bool:
        """Whether ``cpu``, ``cuda:1`` ... is a device for this backend, by name alone."""

    def recognises(self, function: Any) -> bool:
        """Whether a loaded function is this backend's kind (for when ``backend:`` is left out)."""

    def unavailable(self, device: str) -> str | None:
        """Why it cannot run there on this machine, and what to do; ``None`` when it can. Starts
        nothing: devices are counted, not opened."""

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits and facts, from the device where there is one, else from the architecture."""

    def open(self, device: str, threads: int | None = None) -> Session:
        """Choose the device, start what must be started; ``threads`` where an implementation sets
        it, given back when the session closes. Raises ``BackendError`` where it cannot run."""
