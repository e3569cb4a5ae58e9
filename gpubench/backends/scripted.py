"""Given durations and faults: the whole pipeline can be tried without measuring.

A function decorated with ``script`` computes as it is written, while the session's clock advances
by what the script says::

    @script(seconds=lambda n, **values: 1e-9 * n)
    def double(a, n):
        a *= 2
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from itertools import count
from typing import Any, Literal, get_args

import numpy as np

from gpubench.backends.host import function_of, nothing
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.protocol import (
    Backend,
    Call,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    LoopSampler,
    Native,
    Sampler,
    Session,
    Target,
)
from gpubench.errors import BackendError
from gpubench.layouts import ALL_LAYOUTS, copy_with_layout, overwrite
from gpubench.names import CPU, TIMES, Value

Seconds = float | Sequence[float] | Callable[..., float]
DeviceFault = Literal["out of memory", "illegal address", "hang"]

FAULTS: tuple[DeviceFault, ...] = get_args(DeviceFault)

FLOOR = 1e-8
"""Seconds of an empty call."""


@dataclass(eq=False)
class ScriptedFunction:
    """A function and its script. Called directly, it computes and takes the time that it takes.

    Raises ``BackendError`` for an unknown fault.
    """

    function: Callable[..., Any]
    seconds: Seconds = 0.0
    """Of one run: a number, a cycle of numbers, or a function of the call's arguments by name
    (and of ``block``, ``grid``, ``blocks``, ``threads_per_block`` and ``threads`` where they are
    given)."""
    fails: DeviceFault | None = None
    """What happens when the work runs. ``hang`` never returns."""
    fails_at: int = 0
    """First run, from 0, that fails; the later ones fail too."""
    asynchronous: bool = False
    """Work runs only when the session synchronises: a forgotten synchronisation shows."""

    def __post_init__(self) -> None:
        if self.fails is not None and self.fails not in FAULTS:
            raise BackendError(f"unknown fault {self.fails!r}; allowed: {', '.join(FAULTS)}")
        update_wrapper(self, self.function)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def script(
    seconds: Seconds = 0.0, **behaviour: Any
) -> Callable[[Callable[..., Any]], ScriptedFunction]:
    """Decorate a function with its script, the fields of ``ScriptedFunction``."""
    return lambda function: ScriptedFunction(function, seconds, **behaviour)


class ScriptedSession(Session):
    """Runs scripted functions on NumPy arrays, in the order in which they were queued."""

    layouts = ALL_LAYOUTS

    def __init__(self, device: str, threads: int | None) -> None:
        self.now = 0.0
        """Seconds: they advance only by what scripts say."""
        self._device = device
        self._threads = threads
        self._queue: list[Call] = []

    def close(self) -> None:
        self._queue.clear()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        return copy_with_layout(array)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        self.synchronize()
        return np.array(native)

    def restore(self, native: Native, pristine: Native) -> None:
        self._submit(partial(overwrite, native, pristine), asynchronous=bool(self._queue))

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        function = function_of(target, "scripted")
        if not isinstance(function, ScriptedFunction):
            raise BackendError(
                f"{function!r} has no script; "
                "decorate it with gpubench.backends.scripted.script(seconds=...)"
            )
        values = dict(inspect.signature(function.function).bind(*arguments).arguments)
        if self._threads is not None:
            values["threads"] = self._threads
        if launch is not None:
            for name in ("block", "grid", "blocks", "threads_per_block"):
                values[name] = getattr(launch, name)
        runs, seconds = count(), function.seconds

        def run() -> Any:
            number = next(runs)
            if number >= function.fails_at:
                self._fail(function.fails)
            if callable(seconds):
                self.now += seconds(**values)
            elif isinstance(seconds, Sequence):
                self.now += seconds[number % len(seconds)]
            else:
                self.now += seconds
            return function(*arguments)

        return partial(self._submit, run, function.asynchronous)

    def _fail(self, fault: DeviceFault | None) -> None:
        if fault == "out of memory":
            raise DeviceMemoryError(f"{self._device} is out of memory, as its script says")
        if fault == "illegal address":
            raise DeviceLostError(f"the work crashed on {self._device}, as its script says")
        while fault == "hang":
            time.sleep(3600)

    def _submit(self, run: Call, asynchronous: bool) -> Any:
        if not asynchronous:
            return run()
        self._queue.append(run)
        return None

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(lambda: self.now, call, "scripted")

    def empty(self) -> Call:
        return self.bind(Target(function=script(FLOOR)(nothing)), None, ())

    def synchronize(self) -> None:
        while self._queue:
            self._queue.pop(0)()

    def flush(self) -> None:
        """Scripted work has no cache."""

    def facts(self) -> Mapping[str, Value]:
        threads = {} if self._threads is None else {"threads": self._threads}
        return {"scripted": True, **super().facts(), **threads}


class ScriptedBackend(Backend):
    name = "scripted"
    title = "Scripted durations"
    times = TIMES
    device_names = r"cpu|scripted:\d+"
    runs_on = "cpu, scripted:0, scripted:1 ..."

    def device_facts(self, device: str) -> DeviceFacts:
        if device == CPU:
            return DeviceFacts("scripted CPU", scope={"device": device})
        scope: dict[str, Value] = {
            "device": device,
            "sm_count": 100,
            "shared_memory_per_block": ARCHITECTURE_LIMITS.shared_bytes_per_block,
            "global_memory": 10 * 2**30,
            "compute_capability": 9.0,
        }
        return DeviceFacts("scripted device", ARCHITECTURE_LIMITS, scope)

    def start(self, device: str, threads: int | None) -> ScriptedSession:
        return ScriptedSession(device, threads)
