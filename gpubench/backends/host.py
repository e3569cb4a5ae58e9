"""What backends on the host's processor share: the processor, its clock, a session over NumPy
arrays."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gpubench import arrow
from gpubench.backends.devices import cuda_device_facts, facts_now, is_cuda, no_such_gpu
from gpubench.backends.protocol import (
    Backend,
    Call,
    Description,
    DeviceFacts,
    Launch,
    LoopSampler,
    Native,
    Sampler,
    Session,
    Target,
)
from gpubench.errors import KernelError
from gpubench.layouts import ALL_LAYOUTS, Layout, copy_with_layout, overwrite
from gpubench.names import CPU, Value

CPU_AND_CUDA, CUDA = r"cpu|cuda:\d+", r"cuda:\d+"
"""Device names of libraries that run on both, and on GPUs alone."""

UNKNOWN_CACHE = 64 * 2**20
"""Bytes that count as the last-level cache where the system does not tell: more than most
processors have. If that is too little, ``cold`` times are partly warm."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """The host's processor; ``None`` for what the system does not tell."""

    name: str
    cores: int | None
    """Physical cores of the machine."""
    threads: int
    """Hardware threads that this process may use (its affinity)."""
    memory_bytes: int | None
    caches: Mapping[str, str] = field(default_factory=dict)
    """``{"L1d": "48K", "L2": "2048K", "L3": "32M"}``, as the system writes them."""


@cache
def cpu() -> Cpu:
    """Return the host's processor, asked once in a process."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        info = ""
    model = re.search(r"^model name\s*:\s*(\S.*)$", info, re.MULTILINE)
    # A core is known by its socket and its number there; some systems, ARM's for example, tell
    # neither.
    cores = set(re.findall(r"^physical id\s*:\s*(\d+)$.*?^core id\s*:\s*(\d+)$", info, re.M | re.S))
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        memory = None
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    return Cpu(
        name=(model[1] if model else platform.processor() or platform.machine()) or "unknown CPU",
        cores=len(cores) or None,
        threads=len(affinity) if affinity else os.cpu_count() or 1,
        memory_bytes=memory,
        caches=_caches(Path("/sys/devices/system/cpu/cpu0/cache")),
    )


def _caches(folder: Path) -> dict[str, str]:
    """By level, as Linux's sysfs tells them (ABI/testing/sysfs-devices-system-cpu)."""
    sizes = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        sizes[f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")] = size
    return sizes


def last_level_cache_bytes() -> int:
    """Size of the largest cache; ``UNKNOWN_CACHE`` where the system does not tell."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    sizes = (re.fullmatch(r"(\d+)([KMG]?)", size) for size in cpu().caches.values())
    return (
        max((int(size[1]) * units.get(size[2], 1) for size in sizes if size), default=0)
        or UNKNOWN_CACHE
    )


class HostSession(Session):
    """A session whose native arrays are NumPy arrays and whose calls return when they are done."""

    layouts: ClassVar[tuple[Layout, ...]] = ALL_LAYOUTS

    def __init__(self, backend: str, device: str = CPU) -> None:
        self._backend, self.device = backend, device
        self._facts: dict[str, Value] = {}
        """Conditions that are known when it has been opened."""
        self._passed: tuple[Any, ...] = ()
        """What functions get before the arguments of a call: ``Backend.passes``."""
        self._scratch: Any = None
        """What ``flush`` writes."""
        self._ending = ExitStack()

    def serve(self, backend: str, passed: tuple[Any, ...], facts: Mapping[str, Value]) -> None:
        """From now on functions of that backend, which get these values first."""
        self._backend, self._passed = backend, passed
        self._facts |= facts

    @contextmanager
    def opening(self) -> Iterator[ExitStack]:
        """End what is registered inside with the session, and at once where something fails."""
        try:
            yield self._ending
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._scratch = None
        self._ending.close()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        return copy_with_layout(array)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        return np.array(native)

    def table_to_native(self, table: Any) -> Native:
        """NumPy arrays by name, as ``gpubench.arrow`` describes them."""
        return arrow.to_columns(table)

    def table_to_host(self, native: Native) -> Any:
        return arrow.from_columns(native)

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        return np.asarray(native)

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        return array

    def restore(self, native: Native, pristine: Native) -> None:
        overwrite(native, pristine)

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        return self.call_of(function_of(target, self._backend), (*self._passed, *arguments))

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        """Return one run of a function. ``partial`` is the call with the least overhead (0.06
        µs)."""
        return partial(function, *arguments)

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(time.perf_counter, call)

    def empty(self) -> Call | None:
        return nothing if self._passed else self.bind(Target(function=nothing), None, ())

    def facts(self) -> Mapping[str, Value]:
        gpu = facts_now(self.device) if is_cuda(self.device) else {}
        return {**super().facts(), **gpu, **self._facts}

    def synchronize(self) -> None:
        """Nothing is ever queued."""

    def flush(self) -> None:
        """Write a buffer of twice the last-level cache's size: caches that are not strictly
        least-recently-used keep some lines of a buffer of their own size."""
        if self._scratch is None:
            self._scratch = np.zeros(2 * last_level_cache_bytes(), np.uint8)
        self._scratch += 1


class Cell:
    """Holds an array, or a reference to one, of a system whose arrays cannot be written to."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def value_of(native: Native) -> Any:
    """Return what a cell holds. What a function returns is no cell."""
    return native.value if isinstance(native, Cell) else native


class CellSession(HostSession):
    """A session whose native arrays are cells."""

    layouts: ClassVar[tuple[Layout, ...]] = ("C",)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        return np.array(self.view(native))

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        return np.asarray(value_of(native))

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        return self.to_native(array)

    def restore(self, native: Native, pristine: Native) -> None:
        native.value = pristine.value

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        def call() -> Any:
            return function(*[each.value if isinstance(each, Cell) else each for each in arguments])

        return call

    def empty(self) -> Call | None:
        return None


class HostBackend(Backend):
    """A backend that the host calls as a library: only ``start`` is left to write. It is on the
    processor, unless ``device_names`` say otherwise."""

    def unavailable(self, device: str) -> str | None:
        """Ask a library for GPUs only where there is a GPU: else it is of no use."""
        needs_a_gpu = is_cuda(device) and self.serves(device)
        return (no_such_gpu(device) if needs_a_gpu else None) or super().unavailable(device)

    def device_facts(self, device: str) -> DeviceFacts:
        """Return the processor, or a GPU as far as NVML tells; launches are the library's own
        business, so that there are no limits."""
        if is_cuda(device):
            return cuda_device_facts(device)
        return DeviceFacts(name=cpu().name, scope={"device": device})

    def devices(self) -> Sequence[Description]:
        """Return the processor, where it serves that; others tell of GPUs."""
        if not self.serves(CPU):
            return ()
        here = cpu()
        caches = " ".join(f"{level}={size}" for level, size in here.caches.items())
        facts: dict[str, Value | None] = {
            "cpu": here.name,
            "cpu_cores": here.cores,
            "cpu_threads": here.threads,
            "cpu_caches": caches or None,
            "memory_bytes": here.memory_bytes,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return (Description(CPU, here.name, known),)

    def too_many_threads(self, threads: int) -> str | None:
        """More than there are processors would take turns, which is another case's time."""
        most = cpu().threads
        if threads <= most:
            return None
        return (
            f"threads of {threads}: this process may use {most} of the machine's hardware threads; "
            "use fewer, or measure on a larger machine"
        )


def threads_to_be(variable: str) -> int:
    """Return the threads of a pool that a library makes when it is imported: as many as the
    environment's variable says, else one for each processor."""
    text = os.environ.get(variable, "").strip()
    return int(text) if text.isdecimal() and int(text) else cpu().threads


def nothing() -> None:
    """Do nothing."""


def function_of(target: Target, backend: str) -> Callable[..., Any]:
    """Return the function of a target; ``KernelError`` for a launcher or source, which need a
    device."""
    if target.function is None:
        kind = "launcher" if target.launcher is not None else "source"
        raise KernelError(
            f"the backend {backend} runs functions and got a {kind}; "
            "name a 'function:' or a 'factory:', or another 'backend:'"
        )
    function: Callable[..., Any] = target.function
    return function
