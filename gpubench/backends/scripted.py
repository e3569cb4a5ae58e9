"""Given durations, outputs and faults: the whole pipeline can be tried without measuring.

A function decorated with ``script`` computes as it is written, while the session's clock advances
by what the script says::

    @script(seconds=lambda n, **values: 1e-9 * n)
    def double(a, n):
        a *= 2
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from itertools import count
from typing import Any, Literal

import numpy as np

from gpubench.backends.device_errors import DeviceLostError, DeviceMemoryError
from gpubench.backends.host import DEVICE, function_of, nothing
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.managed import ManagedSession
from gpubench.backends.protocol import Call, DeviceFacts, Launch, Native, Sampler, Target
from gpubench.backends.sampler import LoopSampler
from gpubench.errors import BackendError
from gpubench.names import TIMES, Value

Seconds = float | Sequence[float] | Callable[..., float]
Fault = Literal["out of memory", "illegal address", "hang"]

FAULTS: tuple[Fault, ...] = ("out of memory", "illegal address", "hang")

FLOOR = 1e-8
"""Seconds of an empty call."""

_DEVICE = re.compile(r"scripted:\d+")


@dataclass(frozen=True)
class Script:
    """How a scripted function behaves."""

    seconds: Seconds = 0.0
    """Of one run: a number, a cycle of numbers, or a function of the call's arguments by name
    (and of ``block``, ``grid`` and ``threads`` where they are given)."""
    noise: float = 0.0
    """Relative standard deviation of a normal factor on ``seconds``."""
    seed: int = 0
    """Of the noise; every binding draws the same."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Values that array arguments get, by name, instead of what the function computes."""
    fails: Fault | None = None
    """What happens when the work runs. ``hang`` never returns."""
    fails_at: int = 0
    """First run, from 0, that fails; the later ones fail too."""
    asynchronous: bool = False
    """Work runs only when the session synchronises: a forgotten synchronisation shows."""

    def __post_init__(self) -> None:
        if self.fails is not None and self.fails not in FAULTS:
            raise BackendError(f"unknown fault {self.fails!r}; allowed: {', '.join(FAULTS)}")

    def durations(self, values: Mapping[str, Any]) -> Callable[[int], float]:
        """Seconds of run 0, 1 ... of one binding."""
        generator = np.random.default_rng(self.seed)

        def duration(run: int) -> float:
            factor = 1 + self.noise * generator.standard_normal() if self.noise else 1.0
            return max(0.0, self._given(run, values) * factor)

        return duration

    def _given(self, run: int, values: Mapping[str, Any]) -> float:
        if callable(self.seconds):
            return self.seconds(**values)
        if isinstance(self.seconds, Sequence):
            return self.seconds[run % len(self.seconds)]
        return self.seconds


class ScriptedFunction:
    """A function and its script. Called directly, it computes and takes the time that it takes."""

    def __init__(self, function: Callable[..., Any], script: Script) -> None:
        update_wrapper(self, function)
        self.function = function
        self.script = script
        self._signature = inspect.signature(function)

    def __call__(self, *arguments: Any) -> Any:
        if not self.script.outputs:
            return self.function(*arguments)
        named = self.named(arguments)
        for name, value in self.script.outputs.items():
            np.copyto(named[name], value)
        return None

    def named(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The arguments of a call by parameter name."""
        return dict(self._signature.bind(*arguments).arguments)


def script(
    seconds: Seconds = 0.0,
    *,
    noise: float = 0.0,
    seed: int = 0,
    outputs: Mapping[str, Any] | None = None,
    fails: Fault | None = None,
    fails_at: int = 0,
    asynchronous: bool = False,
) -> Callable[[Callable[..., Any]], ScriptedFunction]:
    """Decorate a function with a ``Script``; raises ``BackendError`` for an unknown fault."""
    made = Script(seconds, noise, seed, outputs or {}, fails, fails_at, asynchronous)
    return partial(_decorate, made)


def _decorate(made: Script, function: Callable[..., Any]) -> ScriptedFunction:
    return ScriptedFunction(function, made)


class ScriptedClock:
    """Reads the session's time, which advances only by what scripts say. Seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def start(self) -> float:
        return self.now

    def stop(self) -> float:
        return self.now


class ScriptedSession(ManagedSession):
    """Runs scripted functions on NumPy arrays, in the order in which they were queued."""

    simulated = False

    def __init__(self, device: str, threads: int | None) -> None:
        self.clock = ScriptedClock()
        self._device = device
        self._threads = threads
        self._queue: list[Call] = []

    def close(self) -> None:
        """Drop what was queued and never waited for."""
        self._queue.clear()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        return array.copy(order="K")

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        self.synchronize()
        return np.array(native)

    def restore(self, native: Native, pristine: Native) -> None:
        """Copy after the work that is queued, as a stream would."""
        self._submit(partial(np.copyto, native, pristine), asynchronous=bool(self._queue))

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        function = function_of(target, "scripted")
        if not isinstance(function, ScriptedFunction):
            raise BackendError(
                f"{function!r} has no script; "
                "decorate it with gpubench.backends.scripted.script(seconds=...)"
            )
        run = self._run(function, launch, tuple(arguments))
        return partial(self._submit, run, function.script.asynchronous)

    def _run(
        self, function: ScriptedFunction, launch: Launch | None, arguments: tuple[Any, ...]
    ) -> Call:
        made = function.script
        values = {**function.named(arguments), **_conditions(launch, self._threads)}
        duration, runs = made.durations(values), count()

        def run() -> Any:
            number = next(runs)
            if made.fails is not None and number >= made.fails_at:
                _fail(made.fails, self._device)
            self.clock.now += duration(number)
            return function(*arguments)

        return run

    def _submit(self, run: Call, asynchronous: bool) -> Any:
        if not asynchronous:
            return run()
        self._queue.append(run)
        return None

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(self.clock, call, "scripted")

    def empty(self) -> Call:
        """A call that takes ``FLOOR``."""
        return self.bind(Target(function=script(FLOOR)(nothing)), None, ())

    def synchronize(self) -> None:
        while self._queue:
            self._queue.pop(0)()

    def flush(self) -> None:
        """Scripted work has no cache."""

    def facts(self) -> Mapping[str, Value]:
        facts: dict[str, Value] = {"scripted": True, "numpy": np.__version__}
        return facts if self._threads is None else {**facts, "threads": self._threads}


class ScriptedBackend:
    """Runs functions that carry a script, on ``cpu`` and on any ``scripted:N``."""

    name = "scripted"
    title = "Scripted durations"
    requires = ()
    times = TIMES

    def serves(self, device: str) -> bool:
        return device == DEVICE or _DEVICE.fullmatch(device) is not None

    def recognises(self, function: Any) -> bool:
        return isinstance(function, ScriptedFunction)

    def unavailable(self, device: str) -> str | None:
        if self.serves(device):
            return None
        return f"{device}: the backend {self.name} runs on cpu, scripted:0, scripted:1 ..."

    def device_facts(self, device: str) -> DeviceFacts:
        """A device with the limits of every CUDA architecture and round numbers."""
        if device == DEVICE:
            return DeviceFacts("scripted CPU", scope={"device": device})
        return DeviceFacts(
            "scripted device",
            ARCHITECTURE_LIMITS,
            {
                "device": device,
                "sm_count": 100,
                "shared_memory_per_block": ARCHITECTURE_LIMITS.shared_bytes_per_block,
                "global_memory": 10 * 2**30,
                "compute_capability": 9.0,
            },
        )

    def open(self, device: str, threads: int | None = None) -> ScriptedSession:
        """Raises ``BackendError`` for a device that is not this backend's."""
        if reason := self.unavailable(device):
            raise BackendError(reason)
        return ScriptedSession(device, threads)


def _conditions(launch: Launch | None, threads: int | None) -> dict[str, Any]:
    conditions: dict[str, Any] = {} if threads is None else {"threads": threads}
    return conditions if launch is None else {**conditions, **_shape(launch)}


def _shape(launch: Launch) -> dict[str, Any]:
    return {
        "block": launch.block,
        "grid": launch.grid,
        "threads_per_block": launch.threads_per_block,
        "blocks": launch.blocks,
    }


def _fail(fault: Fault, device: str) -> None:
    if fault == "out of memory":
        raise DeviceMemoryError(f"{device} is out of memory, as its script says")
    if fault == "illegal address":
        raise DeviceLostError(f"the work crashed on {device}, as its script says")
    while True:
        time.sleep(3600)
