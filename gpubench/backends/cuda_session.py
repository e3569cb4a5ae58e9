"""What sessions of CUDA libraries share that tell the handle of their stream: Numba, CuPy, PyCUDA.

Whatever the library, a stream is the driver's, and so are events, graphs, the gate, an empty kernel
and the buffers that flush a cache. They are made here through NVIDIA's own bindings of the driver
(``cuda.bindings``), so that all libraries are timed in the same three ways (``cuda_sampling.py``).
What differs is in the library's own file: arrays, functions and how a program is compiled.
"""

from __future__ import annotations

import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property, partial
from statistics import median
from typing import Any, ClassVar

from gpubench.backends import devices, software
from gpubench.backends.cuda_driver import CUDAError, Gate, Graph, capture, checked, driver
from gpubench.backends.cuda_program import program_arguments
from gpubench.backends.cuda_sampling import BestWay, CudaSampler
from gpubench.backends.host import CUDA
from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import (
    ONE_THREAD,
    Backend,
    Call,
    DeviceError,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Errors,
    Launch,
    Limits,
    Sampler,
    Session,
    Target,
    made_at_first_call,
)
from gpubench.errors import BackendError, KernelError
from gpubench.names import TIMES, Value

FLOOR_RUNS, FLOOR_SAMPLES = 100, 9
"""The floor is the median of so many samples, each of ``FLOOR_RUNS`` runs."""

LOST = {
    "ILLEGAL_ADDRESS": "illegal memory access",
    "ILLEGAL_INSTRUCTION": "illegal instruction",
    "INVALID_ADDRESS_SPACE": "invalid address space",
    "INVALID_PC": "invalid program counter",
    "MISALIGNED_ADDRESS": "misaligned address",
    "LAUNCH_FAILED": "unspecified launch failure",
    "LAUNCH_TIMEOUT": "launch timed out",
    "HARDWARE_STACK_ERROR": "hardware stack error",
    "ERROR_ASSERT": "device-side assert",
    "ECC_UNCORRECTABLE": "uncorrectable ecc",
    "CONTEXT_IS_DESTROYED": "context is destroyed",
}
"""Errors after which a CUDA context answers nothing else (CUDA driver API, ``CUresult``): parts of
their names and of their texts (``cuGetErrorString``), of which a library shows one."""
_NO_MEMORY = ("out_of_memory", "out of memory", "errormemoryallocation")
_NO_RESOURCES = ("launch_out_of_resources", "too many resources requested", "launchoutofresources")

_EMPTY = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry empty()
{
    ret;
}
\0"""
"""PTX of a kernel that does nothing: what a launch costs the device. 6.0 and sm_50 are older than
every driver and device that the libraries here run on."""


class CudaSession(Session):
    """A CUDA device and a stream of a library's own.

    "Queue" means: on that stream. A library's session makes its context current and its stream,
    and calls ``_use`` with the stream's handle; ``bind`` asks it for ``_function``, ``_program``
    and ``_queues``. Errors of the library and of the driver come as ``DeviceError``.
    """

    host_time = staticmethod(time.perf_counter)
    """The host's clock in seconds."""
    more_registers: ClassVar[str] = ""
    """What else than a smaller block leaves a kernel registers, for messages."""

    def __init__(
        self, device: str, limits: Limits, errors: tuple[type[Exception], ...] = ()
    ) -> None:
        """``errors``: what the library raises where the device refuses or fails."""
        self.device, self._limits = device, limits
        self._raised: tuple[type[Exception], ...] = (CUDAError, *errors)
        self._errors = Errors(self._translated)
        self.simulated = software.is_running()
        self.floor_seconds: float | None = None
        """Of the way of timing that ``floor`` was asked for last; ``None`` before."""
        self._floors: dict[tuple[str, bool], float | None] = {}
        self._programs: dict[Any, Any] = {}
        self._cleanup = ExitStack()
        self.stream: Any = None
        """The library's own stream, which launchers get."""

    @cached_property
    def _driver(self) -> Any:
        return driver()

    def _use(self, stream: Any, handle: int) -> None:
        """Work on this stream of the context that is current."""
        api = self._driver
        self.stream, self._handle = stream, handle
        here = checked(api.cuCtxGetDevice())
        l2 = api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        self.l2_bytes = int(checked(api.cuDeviceGetAttribute(l2, here)))
        self._uuid = f"GPU-{uuid.UUID(bytes=bytes(checked(api.cuDeviceGetUuid(here)).bytes))}"

    # --- calls

    @abstractmethod
    def _function(self, function: Any, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """What runs a function or kernel of the library; runs nothing. Raises ``KernelError`` for
        one that is not the library's."""

    @abstractmethod
    def _program(self, source: str, entry: str, constants: Mapping[str, Value]) -> Any:
        """A kernel compiled from CUDA C++, loaded on the device. Raises ``KernelError`` for a
        source that does not compile or has no such kernel."""

    @abstractmethod
    def _queues(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        """What queues a kernel of the library, or one that ``_program`` made."""

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind a function, a launcher or a program; nothing is compiled or queued yet.

        A program is compiled at its first call in a session. Raises ``DeviceError`` for a launch
        over the device's limits, ``KernelError`` for a program without an entry or a launch.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        if target.launcher is not None:
            shape = replace(launch or ONE_THREAD, stream=self.stream)
            run: Call = partial(target.launcher, shape, *arguments)
        elif target.source is None:
            run = self._function(target.function, launch, arguments)
        elif target.entry is None:
            raise KernelError("a 'source' in CUDA C++ needs an 'entry', the name of its kernel")
        else:
            compiled = partial(self._compiled, target, needed(launch), arguments)
            run = made_at_first_call(compiled)
        return self._errors.around(run)

    def _compiled(self, target: Target, launch: Launch, arguments: Sequence[Any]) -> Call:
        """What queues a program's kernel; it is compiled once in a session."""
        source, entry = target.source or "", target.entry or ""
        key = source, entry, tuple(target.constants.items())
        if key not in self._programs:
            self._programs[key] = self._program(source, entry, target.constants)
        given = program_arguments(source, entry, target.constants, arguments)
        return self._queues(self._programs[key], launch, given)

    # --- waiting and timing

    def synchronize(self) -> None:
        with self._errors:
            checked(self._driver.cuStreamSynchronize(self._handle))

    def sampler(self, call: Call) -> Sampler:
        """Runs the call until it is warm, and finds the best way to time it."""
        return CudaSampler(self, call)

    def sampler_again(self, call: Call) -> Sampler:
        return CudaSampler(self, call, warm=True)

    def event(self) -> Any:
        """An event that keeps time."""
        with self._errors:
            event = checked(self._driver.cuEventCreate(0))
        self._cleanup.callback(self._driver.cuEventDestroy, event)
        return event

    def record(self, event: Any) -> None:
        """Queue an event: it takes the time when all before it has run."""
        with self._errors:
            checked(self._driver.cuEventRecord(event, self._handle))

    def seconds(self, begin: Any, end: Any) -> float:
        """Wait for ``end``; seconds between the two events on the device's own clock."""
        with self._errors:
            checked(self._driver.cuEventSynchronize(end))
            # Events tell milliseconds.
            return float(checked(self._driver.cuEventElapsedTime(begin, end))) * 1e-3

    def capture(self, call: Call, runs: int) -> Graph:
        """Capture so many runs of a call into a graph; none of them runs.

        Refuses what waits for the device or takes or gives back memory, from the library's own
        store of memory too: a replay would write where other arrays lie by then. Raises
        ``CannotCapture``; the stream is then as usable as before.
        """
        with self._memory_stays():
            return capture(self._driver, self._handle, call, runs)

    def _memory_stays(self) -> AbstractContextManager[None]:
        """Inside, the library neither takes memory for an array nor gives any back."""
        return nullcontext()

    @cached_property
    def _gate(self) -> Gate | None:
        """Made where something is timed: a check of results alone needs none."""
        with suppress(CUDAError):
            gate = Gate(self._driver, self._handle)
            self._cleanup.callback(gate.close)
            return gate
        return None

    @property
    def can_hold(self) -> bool:
        """Whether the driver can hold the stream back."""
        return self._gate is not None

    @contextmanager
    def held(self) -> Iterator[Callable[[], None]]:
        """Hold back all that is queued from here on, until what the context gives is called, or the
        context is left. Calling it twice, or from another thread, is allowed.

        No memory is given back meanwhile: that would wait for the stream that waits for the host.
        """
        if self._gate is None:
            raise BackendError(f"{self.device}: its driver cannot hold a stream back")
        with self._errors, self._memory_stays(), self._gate.shut() as release:
            yield release

    @cached_property
    def _clocks(self) -> devices.GpuClocks:
        """Opened where something is timed: starting NVML takes milliseconds."""
        clocks = devices.GpuClocks(self._uuid)
        self._cleanup.callback(clocks.close)
        return clocks

    def clock_state(self) -> devices.ClockState | None:
        """The clock now; ``None`` where the driver does not tell."""
        return self._clocks.state()

    def _nothing(self) -> Call:
        """Queues a kernel that does nothing."""
        api = self._driver
        with self._errors:
            module = checked(api.cuModuleLoadData(_EMPTY))
            self._cleanup.callback(api.cuModuleUnload, module)
            kernel = checked(api.cuModuleGetFunction(module, b"empty"))

        def call() -> None:
            checked(api.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, self._handle, 0, 0))

        return call

    @cached_property
    def _empty_kernel(self) -> BestWay:
        return BestWay(self, self._nothing())

    def floor(self, method: str, single: bool) -> float | None:
        """Seconds of an empty run by that method, one run at a time or in a batch, measured once;
        ``None`` where the empty kernel is timed in another way than the case."""
        key = (method, single)
        if key not in self._floors:
            runs, way = 1 if single else FLOOR_RUNS, self._empty_kernel
            seconds = median(way.seconds(runs) / runs for _ in range(FLOOR_SAMPLES))
            self._floors[key] = seconds if way.method == method else None
        self.floor_seconds = self._floors[key]
        return self.floor_seconds

    @cached_property
    def _flushed(self) -> tuple[Any, Any, int]:
        """Two buffers that fill the L2 cache each, and their size in bytes."""
        size = max(self.l2_bytes, 1)
        buffers = []
        for _ in range(2):
            buffer = checked(self._driver.cuMemAlloc(size))
            self._cleanup.callback(self._driver.cuMemFree, buffer)
            buffers.append(buffer)
        return buffers[0], buffers[1], size

    def flush(self) -> None:
        """Queue a copy between two buffers that fill the L2 cache each."""
        with self._errors:
            target, source, size = self._flushed
            checked(self._driver.cuMemcpyDtoDAsync(target, source, size, self._handle))

    # --- facts, errors, the end

    def facts(self) -> Mapping[str, Value]:
        """NumPy's version, the size of L2, and the GPU's name, driver, clocks, temperature and
        throttling now; of a device in software, nothing of a speed that it does not have."""
        facts: dict[str, Value] = {**super().facts(), "l2_bytes": self.l2_bytes}
        if not self.simulated and self.floor_seconds is not None:
            facts["floor_seconds"] = self.floor_seconds
        if not self.simulated and (peak := self._clocks.peak_bytes_per_second()) is not None:
            facts["peak_bytes_per_second"] = peak
        return {**facts, **devices.facts_now(self.device, self._uuid)}

    def close(self) -> None:
        """Wait, then free; silent on a lost device, which answers nothing."""
        if self.stream is not None:
            self._driver.cuStreamSynchronize(self._handle)
        self._programs.clear()
        with suppress(Exception):
            self._cleanup.close()
        self.stream = None

    def _is_cudas(self, error: Exception) -> bool:
        """Whether the library or the driver raised it where the device refuses or fails."""
        return isinstance(error, self._raised)

    def _translated(self, error: Exception) -> DeviceError | None:
        """What CUDA raised, in gpubench's words; ``None`` for an error that is not CUDA's."""
        if not self._is_cudas(error):
            return None
        text, device = str(error).strip(), self.device
        lower = text.lower()
        if isinstance(error, MemoryError) or any(words in lower for words in _NO_MEMORY):
            return DeviceMemoryError(
                f"{device} is out of memory: {text}; use smaller sizes, or free memory on the "
                "device"
            )
        if any(name in text or words in lower for name, words in LOST.items()):
            where = "compute-sanitizer or `gpubench verify --sanitize` tells where, and "
            # Of a device in software, what it has seen stands beside the error.
            return DeviceLostError(
                f"the work crashed on {device}: {text}; {'' if self.simulated else where}"
                "only a fresh process can use the device again"
            )
        if any(words in lower for words in _NO_RESOURCES):
            return DeviceError(
                f"{device} lacks registers for this block: {text}; "
                f"use a smaller block{self.more_registers}"
            )
        return DeviceError(f"{device} failed: {text}")


def needed(launch: Launch | None) -> Launch:
    """The launch that a kernel has to have; raises ``KernelError`` where there is none."""
    if launch is None:
        raise KernelError("a CUDA kernel needs a 'launch' with its block; none is given")
    return launch


class CudaBackend(Backend):
    """A CUDA library on ``cuda:N``, on the device in software too."""

    times = TIMES
    capabilities = ("gpu", "in_place", "compiles")
    device_names = CUDA
    runs_on = "cuda:0, cuda:1 ..."
    session: ClassVar[type[CudaSession]]
    """Makes the device's context current; nothing there counts threads of the host."""

    def unavailable(self, device: str) -> str | None:
        return super().unavailable(device) or devices.no_such_gpu(device, in_software=True)

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits by compute capability; those of every architecture where there is no device."""
        return devices.cuda_device_facts(device, ARCHITECTURE_LIMITS)

    def start(self, device: str, threads: int | None) -> CudaSession:
        return self.session(device, self.device_facts(device).limits or ARCHITECTURE_LIMITS)
