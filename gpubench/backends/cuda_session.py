"""What sessions of CUDA libraries share that tell the handle of their stream: Numba, CuPy, PyCUDA.

Whatever the library, its stream is the driver's, so that all are timed in the same three ways
(``cuda_sampling.py``) through NVIDIA's own bindings of the driver (``cuda.bindings``). What differs
is in the library's own file: arrays, functions and how a program is compiled.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar

from gpubench.backends import devices, software
from gpubench.backends.cuda_driver import CUDAError, checked
from gpubench.backends.cuda_program import program_arguments
from gpubench.backends.cuda_sampling import TimedStream
from gpubench.backends.host import CUDA
from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import (
    ONE_THREAD_LAUNCH,
    Backend,
    Call,
    DeviceError,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    LaunchLimitError,
    Limits,
    Target,
    made_at_first_call,
)
from gpubench.errors import KernelError
from gpubench.names import PEAK_BANDWIDTH, TIMES, Value

LOST_DEVICE_ERRORS = {
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
_TOO_MANY_BLOCKS = (
    *("cooperative_?launch_?too_?large", "too many blocks in cooperative launch"),
    "specified grid size .* exceeds the limit",
)
"""In the words of the driver, of its runtime and of ``cuda.core``, which looks before."""
_NO_RESOURCES = ("launch_out_of_resources", "too many resources requested", "launchoutofresources")


class CudaSession(TimedStream):
    """A CUDA device and a stream of a library's own.

    A library's session makes its context current and its stream, and calls ``_use`` with the
    stream's handle; ``bind`` asks it for ``_function``, ``_program`` and ``_queues``. Errors of the
    library and of the driver come as ``DeviceError``.
    """

    more_registers: ClassVar[str] = ""
    """What else than a smaller block leaves a kernel registers, for messages."""

    def __init__(
        self, device: str, limits: Limits, errors: tuple[type[Exception], ...] = ()
    ) -> None:
        """``errors``: what the library raises where the device refuses or fails."""
        super().__init__(device)
        self._limits = limits
        self._raised: tuple[type[Exception], ...] = (CUDAError, *errors)
        self.simulated = software.is_running()
        self._programs: dict[Any, Any] = {}

    # --- calls

    @abstractmethod
    def _function(self, function: Any, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Return what runs a function or kernel of the library; runs nothing. Raises
        ``KernelError`` for one that is not the library's."""

    @abstractmethod
    def _program(self, source: str, entry: str, constants: Mapping[str, Value]) -> Any:
        """Return a kernel compiled from CUDA C++, loaded on the device. Raises ``KernelError`` for
        a source that does not compile or has no such kernel."""

    @abstractmethod
    def _queues(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        """Return what queues a kernel of the library, or one that ``_program`` made."""

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind a function, a launcher or a program; nothing is compiled or queued yet.

        A program is compiled at its first call in a session. Raises ``DeviceError`` for a launch
        over the device's limits, ``KernelError`` for a program without an entry or a launch.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        if target.launcher is not None:
            shape = replace(launch or ONE_THREAD_LAUNCH, stream=self.stream)
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
        """Return what queues a program's kernel; it is compiled once in a session."""
        source, entry = target.source or "", target.entry or ""
        key = source, entry, tuple(target.constants.items())
        if key not in self._programs:
            self._programs[key] = self._program(source, entry, target.constants)
        given = program_arguments(source, entry, target.constants, arguments)
        return self._queues(self._programs[key], launch, given)

    # --- the cache

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
            facts[PEAK_BANDWIDTH] = peak
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
        """Return whether the library or the driver raised it where the device refuses or fails."""
        return isinstance(error, self._raised)

    def _translated(self, error: Exception) -> DeviceError | None:
        if not self._is_cudas(error):
            return None
        text, device = str(error).strip(), self.device
        lower = text.lower()
        if isinstance(error, MemoryError) or any(words in lower for words in _NO_MEMORY):
            return DeviceMemoryError(
                f"{device} is out of memory: {text}; use smaller sizes, or free memory on the "
                "device"
            )
        if any(name in text or words in lower for name, words in LOST_DEVICE_ERRORS.items()):
            where = "compute-sanitizer or `gpubench verify --sanitize` tells where, and "
            # Of a device in software, what it has seen stands beside the error.
            return DeviceLostError(
                f"the work crashed on {device}: {text}; {'' if self.simulated else where}"
                "only a fresh process can use the device again"
            )
        if any(re.search(words, lower) for words in _TOO_MANY_BLOCKS):
            return LaunchLimitError(
                f"a cooperative launch needs all its blocks on {device} at once: {text}; use a "
                "smaller grid there"
            )
        if any(words in lower for words in _NO_RESOURCES):
            return DeviceError(
                f"{device} lacks registers for this block: {text}; "
                f"use a smaller block{self.more_registers}"
            )
        return DeviceError(f"{device} failed: {text}")


def needed(launch: Launch | None) -> Launch:
    """Return the launch that a kernel has to have; raises ``KernelError`` where there is none."""
    if launch is None:
        raise KernelError("a CUDA kernel needs a 'launch' with its block; none is given")
    return launch


class CudaBackend(Backend):
    """A CUDA library on ``cuda:N``, on the device in software too."""

    times = TIMES
    capabilities = ("gpu", "in_place", "compiles")
    device_names = CUDA
    runs_on = "cuda:0, cuda:1 ..."
    no_threads = "a GPU has the threads of a launch's 'block' and 'grid'; leave out 'threads'"
    session: ClassVar[type[CudaSession]]
    """Makes the device's context current; nothing there counts threads of the host."""

    def unavailable(self, device: str) -> str | None:
        return super().unavailable(device) or devices.no_such_gpu(device, in_software=True)

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits by compute capability; those of every architecture where there is no device."""
        return devices.cuda_device_facts(device, ARCHITECTURE_LIMITS)

    def start(self, device: str, threads: int | None) -> CudaSession:
        return self.session(device, self.device_facts(device).limits or ARCHITECTURE_LIMITS)
