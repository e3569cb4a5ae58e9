"""What backends on the CPU share: their clock, and a session over NumPy arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpubench.backends.managed import ManagedSession
from gpubench.backends.processor import cpu, last_level_cache_bytes
from gpubench.backends.protocol import Call, DeviceFacts, Launch, Native, Sampler, Target
from gpubench.backends.sampler import LoopSampler
from gpubench.errors import BackendError, KernelError
from gpubench.names import Value

DEVICE = "cpu"


class HostClock:
    """The host's monotonic clock, for work that blocks its caller. Seconds."""

    start = staticmethod(time.perf_counter)
    stop = staticmethod(time.perf_counter)


class HostSession(ManagedSession):
    """A session whose native arrays are NumPy arrays and whose calls return when they are done."""

    simulated = False

    def __init__(self, backend: str) -> None:
        self.clock = HostClock()
        self._backend = backend
        self._scratch: np.ndarray[Any, Any] | None = None

    def close(self) -> None:
        """Give back what was set for this session."""
        self._scratch = None

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy with the same memory layout."""
        return array.copy(order="K")

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        """Copy an array or a scalar that a function returned."""
        return np.array(native)

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        """The array itself."""
        return np.asarray(native)

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        """The array itself."""
        return array

    def restore(self, native: Native, pristine: Native) -> None:
        np.copyto(native, pristine)

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind the arguments; ``partial`` is the call with the least overhead (0.06 µs)."""
        return partial(function_of(target, self._backend), *arguments)

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(self.clock, call, "host loop")

    def empty(self) -> Call:
        """A call that does nothing: its time is the floor under all others."""
        return self.bind(Target(function=nothing), None, ())

    def synchronize(self) -> None:
        """Nothing is ever queued."""

    def flush(self) -> None:
        """Evict the last-level cache by writing a buffer of twice its size."""
        if self._scratch is None:
            self._scratch = np.zeros(2 * last_level_cache_bytes(), np.uint8)
        self._scratch += 1

    def facts(self) -> Mapping[str, Value]:
        return {"numpy": np.__version__}


def nothing() -> None:
    """Does nothing."""


def function_of(target: Target, backend: str) -> Callable[..., Any]:
    """Function of a target; ``KernelError`` for a launcher or source, which need a device."""
    if target.function is None:
        kind = "launcher" if target.launcher is not None else "source"
        raise KernelError(
            f"the backend {backend} runs functions and got a {kind}; "
            "name a 'function:' or a 'factory:', or another 'backend:'"
        )
    function: Callable[..., Any] = target.function
    return function


def require_host(backend: str, device: str) -> None:
    """Raise ``BackendError`` for another device than the CPU."""
    if reason := unavailable_off_host(backend, device):
        raise BackendError(reason)


def unavailable_off_host(backend: str, device: str) -> str | None:
    """Why a backend of the CPU cannot run on this device; ``None`` for the CPU."""
    if device == DEVICE:
        return None
    return f"{device}: the backend {backend} runs on cpu only; list cpu under 'devices'"


def beyond_the_machine(threads: int) -> str | None:
    """Why this many threads cannot be measured here; ``None`` where each has a processor."""
    most = cpu().threads
    if threads <= most:
        return None
    return (
        f"threads of {threads}: this process may use {most} of the machine's hardware threads; "
        "use fewer, or measure on a larger machine"
    )


def host_facts() -> DeviceFacts:
    """Facts of the CPU; it has no limits on a launch."""
    return DeviceFacts(name=cpu().name, scope={"device": DEVICE})
