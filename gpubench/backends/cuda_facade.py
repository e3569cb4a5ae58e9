"""What a library for CUDA has to offer, so that the rest of the CUDA path needs no library.

The session and the samplers are written to this file. Numba's target is one implementation of it
(``numba_cuda.NumbaCuda``), its successor would be another, and the tests have one that keeps time
itself. A facade is one device with one stream of its own on it; "queue" means: on that stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from gpubench.backends.protocol import Call, Launch, Native, Target
from gpubench.names import Value

KernelName = Literal["empty", "copy", "triad"]
"""Kernels that every facade brings: ``empty()``, ``copy(target, source)`` and
``triad(target, one, other)``, which is ``target[i] = one[i] + 3 * other[i]`` on float64."""


@dataclass(frozen=True, slots=True)
class ClockState:
    """The clock of the device's multiprocessors at one moment, in MHz."""

    now: int
    normal: int
    """What it reaches while nothing slows it down."""
    reasons: tuple[str, ...] = ()
    """Why the driver slows it down: ``software power cap`` ..."""


class CannotCapture(Exception):
    """Work that a CUDA graph cannot hold, or a library or driver that makes none."""


class Graph(Protocol):
    """A CUDA graph that was captured: replayed, it runs what the calls queued, in their order."""

    nodes: int
    """Kernels, copies and fills in it."""
    replayable: bool
    """False where a replay could touch memory of the host or memory that is given back: the graph
    then only shows that the calls queue and never wait."""

    def replay(self) -> None:
        """Queue the whole graph."""

    def close(self) -> None: ...


class Cuda(Protocol):
    """One CUDA device and a stream of its own; errors of the library come as ``DeviceError``."""

    device: str
    """``cuda:1``"""
    l2_bytes: int

    @property
    def can_hold(self) -> bool:
        """Whether the library and the driver can hold the stream back."""

    def to_device(self, array: np.ndarray[Any, Any]) -> Native:
        """A copy of a contiguous array with its layout, complete when this returns."""

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        """A copy of a device array, complete when this returns."""

    def copy(self, target: Native, source: Native) -> None:
        """Queue a copy from device memory to device memory."""

    def allocate(self, nbytes: int) -> Native:
        """Device memory whose contents do not matter, as float64; ``nbytes`` divides by 8."""

    def free_bytes(self) -> int:
        """Device memory that is free now."""

    def runner(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """What runs a target once, everything bound; ``KernelError`` for what is no kernel."""

    def kernel(self, name: KernelName, launch: Launch, arguments: Sequence[Native] = ()) -> Call:
        """One of the kernels that every facade brings, bound."""

    def translated(self, error: Exception) -> Exception | None:
        """The library's own errors as ``DeviceError``; ``None`` for any other."""

    def synchronize(self) -> None:
        """Wait for everything that is queued."""

    def event(self) -> Any:
        """An event that keeps time."""

    def record(self, event: Any) -> None:
        """Queue an event: it takes the time when all before it has run."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Wait for ``end``; seconds between the two events on the device's own clock."""

    def capture(self, call: Call, runs: int) -> Graph:
        """Capture so many runs of a call into a graph; none of them runs.

        Refuses what waits for the device or takes or gives back memory. Raises ``CannotCapture``;
        the stream is then as usable as before.
        """

    def held(self) -> AbstractContextManager[Callable[[], None]]:
        """Hold back all that is queued from here on, until what the context gives is called.

        Leaving the context releases too. Calling it twice, or from another thread, is allowed.
        """

    def clock_state(self) -> ClockState | None:
        """The clock now; ``None`` where the driver does not tell."""

    def facts(self) -> Mapping[str, Value]:
        """Versions, and the device's name, driver, clocks, temperature and throttling now."""

    def close(self) -> None:
        """Wait, then free what is no longer referenced; silent on a lost device."""
