"""Numba on a CUDA device, and Numba's simulator of one.

Everything that is specific to Numba's CUDA target is in this file; it works with the target built
into Numba and with the package numba-cuda. One process runs either devices or the simulator, as
``NUMBA_ENABLE_CUDASIM`` says when Numba is imported.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module, metadata
from types import TracebackType
from typing import Any, Self

import numpy as np

from gpubench.backends import devices
from gpubench.backends.device_errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpubench.backends.limits import (
    ARCHITECTURE_LIMITS,
    SIMULATOR_LIMITS,
    device_limits,
    launch_fault,
)
from gpubench.backends.protocol import (
    Call,
    Clock,
    DeviceFacts,
    Launch,
    LaunchContext,
    Limits,
    Native,
    Sampler,
    Target,
)
from gpubench.backends.sampler import LoopSampler
from gpubench.errors import BackendError, GpubenchError, KernelError
from gpubench.names import TIMES, Value

SIMULATOR = "cudasim"
SWITCH = "NUMBA_ENABLE_CUDASIM"

_DEVICE = re.compile(r"cuda:(\d+)")
_KERNELS = frozenset({"CUDADispatcher", "FakeCUDAKernel"})
_UFUNCS = frozenset({"CUDAUFuncDispatcher", "CUDAGeneralizedUFunc"})
_ERRORS = frozenset({"CudaAPIError", "CudaDriverError", "CudaSupportError", "CUDAError"})
_LOST = (
    "ILLEGAL_ADDRESS",
    "ILLEGAL_INSTRUCTION",
    "INVALID_ADDRESS_SPACE",
    "INVALID_PC",
    "MISALIGNED_ADDRESS",
    "LAUNCH_FAILED",
    "LAUNCH_TIMEOUT",
    "HARDWARE_STACK_ERROR",
    "ERROR_ASSERT",
    "ECC_UNCORRECTABLE",
    "CONTEXT_IS_DESTROYED",
)
"""Errors after which the CUDA context answers nothing else (CUDA driver API, ``CUresult``)."""


def simulating() -> bool:
    """Whether this process runs Numba's simulator in place of devices."""
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return bool(config.ENABLE_CUDASIM)
    text = os.environ.get(SWITCH, "").strip()
    return text.isdecimal() and int(text) != 0


class EventClock:
    """Reads a device's own time through two events on a stream; a running total in seconds."""

    def __init__(self, cuda: Any, stream: Any) -> None:
        self._stream = stream
        self._begin, self._end = cuda.event(timing=True), cuda.event(timing=True)
        self._total = 0.0

    def start(self) -> float:
        """Mark the stream's present end, once everything before it has run."""
        self._begin.record(self._stream)
        self._begin.synchronize()
        return self._total

    def stop(self) -> float:
        """Wait for what was queued since ``start`` and add the time between the two events."""
        self._end.record(self._stream)
        self._end.synchronize()
        self._total += self._begin.elapsed_time(self._end) * 1e-3  # events tell milliseconds
        return self._total


class NoClock:
    """The simulator's: it refuses, so that no simulated time can be taken for a time."""

    def start(self) -> float:
        raise GpubenchError(
            "the CUDA simulator has no times; "
            f"run on a GPU without {SWITCH} to measure, or only check results here"
        )

    stop = start


class NumbaCudaSession:
    """A CUDA device with a stream of its own; every copy and launch goes through that stream."""

    simulated = False
    clock: Clock

    def __init__(self, device: str, limits: Limits) -> None:
        from numba import cuda

        self._cuda: Any = cuda
        self._device = device
        self._limits = limits
        self._scratch: list[Native] | None = None
        with _cuda_errors(device):
            self._start()

    def _start(self) -> None:
        self._cuda.select_device(_ordinal(self._device))
        self._stream = self._cuda.stream()
        self.clock = EventClock(self._cuda, self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()

    def close(self) -> None:
        """Wait, then free what is no longer referenced. A lost device has nothing left to free."""
        self._scratch = None
        with suppress(Exception):
            self._stream.synchronize()
            self._cuda.current_context().deallocations.clear()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy to the device with the same layout; one that is not contiguous becomes C."""
        flags = array.flags
        contiguous = flags.c_contiguous or flags.f_contiguous
        with _cuda_errors(self._device):
            source = array if contiguous else np.ascontiguousarray(array)
            native = self._cuda.to_device(source, stream=self._stream)
            self._stream.synchronize()
        return native

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not hasattr(native, "copy_to_host"):
            return np.array(native)
        with _cuda_errors(self._device):
            host: np.ndarray[Any, Any] = native.copy_to_host(stream=self._stream)
            self._stream.synchronize()
        return host

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from device memory to device memory."""
        with _cuda_errors(self._device):
            native.copy_to_device(pristine, stream=self._stream)

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Configure a kernel once, or hand a launcher its stream and shape; nothing runs yet.

        Raises ``DeviceError`` for a launch over the device's limits, ``KernelError`` for a kernel
        without a launch or a target that Numba cannot run.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        run, device = self._runner(target, launch, arguments), self._device

        def call() -> Any:
            try:
                return run()
            except Exception as error:
                if translated := _translated(error, device):
                    raise translated from error
                raise

        return call

    def _runner(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if target.launcher is not None:
            return partial(target.launcher, self._context(launch), *arguments)
        if _is_a(target.function, _UFUNCS):
            return partial(target.function, *arguments, stream=self._stream)
        if not _is_a(target.function, _KERNELS):
            raise KernelError(_not_a_kernel(target))
        if launch is None:
            raise KernelError("a CUDA kernel needs a 'launch' with its block; none is given")
        return self._configured(target.function, launch, arguments)

    def _configured(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        from numba.core.errors import NumbaPerformanceWarning

        with warnings.catch_warnings():  # a small grid is asked for, not overlooked
            warnings.simplefilter("ignore", NumbaPerformanceWarning)
            configured = kernel[launch.grid, launch.block, self._stream, launch.shared_bytes]
        return partial(configured, *arguments)

    def _context(self, launch: Launch | None) -> LaunchContext:
        shape = launch or Launch(block=(1, 1, 1), grid=(1, 1, 1))
        return LaunchContext(self._stream, shape.grid, shape.block, shape.shared_bytes)

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(self.clock, call, "event loop")

    def synchronize(self) -> None:
        with _cuda_errors(self._device):
            self._stream.synchronize()

    def flush(self) -> None:
        """Queue a copy between two buffers that fill the L2 cache each."""
        with _cuda_errors(self._device):
            if self._scratch is None:
                size = self._cuda.get_current_device().L2_CACHE_SIZE
                self._scratch = [
                    self._cuda.device_array(size, np.uint8, stream=self._stream) for _ in range(2)
                ]
            source, destination = self._scratch
            destination.copy_to_device(source, stream=self._stream)

    def facts(self) -> Mapping[str, Value]:
        """Versions, and the GPU's name, driver, clocks, temperature and throttling now."""
        with _cuda_errors(self._device):
            uuid = str(getattr(self._cuda.get_current_device(), "uuid", ""))
        ordinal = _ordinal(self._device)
        found = devices.gpus()
        gpu = next((g for g in found if g.uuid == uuid), None)
        if gpu is None and ordinal < len(found):  # an instance of a partitioned GPU
            gpu = found[ordinal]
        described = devices.gpu_facts(gpu) if gpu else {}
        return {**_versions(), **self._runtime(), **described}

    def _runtime(self) -> dict[str, Value]:
        with suppress(Exception):  # the runtime's library is not needed to run kernels
            return {"cuda_runtime": ".".join(map(str, self._cuda.runtime.get_version()))}
        return {}


class SimulatorSession(NumbaCudaSession):
    """Numba's simulator: results mean something, times do not."""

    simulated = True

    def _start(self) -> None:
        self._stream = self._cuda.stream()
        self.clock = NoClock()

    def close(self) -> None:
        """The simulator's arrays are NumPy's."""

    def flush(self) -> None:
        """The simulator has no cache."""

    def _configured(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        shape = (launch.grid, launch.block, self._stream, launch.shared_bytes)
        # Subscribing a simulated kernel changes it in place, so each call does it anew.
        return lambda: kernel[shape](*arguments)

    def facts(self) -> Mapping[str, Value]:
        return {**_versions(), "simulator": True}


class NumbaCudaBackend:
    """Runs ``numba.cuda`` kernels on ``cuda:N``, or on ``cudasim`` under the simulator."""

    name = "numba_cuda"
    title = "Numba on CUDA"
    requires = ("gpubench[cuda]",)
    times = TIMES

    def serves(self, device: str) -> bool:
        return device == SIMULATOR or _DEVICE.fullmatch(device) is not None

    def recognises(self, function: Any) -> bool:
        """Kernels and universal functions of Numba's CUDA target, simulated ones too."""
        return _is_a(function, _KERNELS | _UFUNCS)

    def unavailable(self, device: str) -> str | None:
        if not self.serves(device):
            return f"{device}: the backend {self.name} runs on cuda:0, cuda:1 ... and {SIMULATOR}"
        if device == SIMULATOR:
            return None if simulating() else _SIMULATOR_OFF
        if simulating():
            return (
                f"{device}: this process runs the CUDA simulator ({SWITCH} is set); "
                f"unset it to run on a GPU, or use the device {SIMULATOR}"
            )
        return _gpu_fault(device) or _compiler_fault()

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits by compute capability; those of every architecture where there is no device."""
        if device == SIMULATOR:
            return DeviceFacts("CUDA simulator", SIMULATOR_LIMITS, {"device": device})
        found, ordinal = devices.known_gpus(), _ordinal(device)
        if ordinal >= len(found):
            return DeviceFacts(device, ARCHITECTURE_LIMITS)
        return _gpu_facts(device, found[ordinal])

    def open(self, device: str, threads: int | None = None) -> NumbaCudaSession:
        """Start a context on the device; raises ``BackendError`` where it cannot run."""
        if reason := self.unavailable(device):
            raise BackendError(reason)
        kind = SimulatorSession if device == SIMULATOR else NumbaCudaSession
        return kind(device, self.device_facts(device).limits or ARCHITECTURE_LIMITS)


_SIMULATOR_OFF = (
    f"{SIMULATOR}: this process does not run the CUDA simulator; "
    f"set {SWITCH}=1 in the environment before Python starts"
)


def _ordinal(device: str) -> int:
    match = _DEVICE.fullmatch(device)
    if match is None:
        raise BackendError(f"{device!r} is no CUDA device; write cuda:0, cuda:1 ...")
    return int(match[1])


def _gpu_fault(device: str) -> str | None:
    if reason := devices.no_gpu_reason():
        return (
            f"{device}: {reason}, "
            f"or set {SWITCH}=1 and use the device {SIMULATOR} to check results without one"
        )
    count = devices.gpu_count()
    if _ordinal(device) < count:
        return None
    has = "1 GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
    return f"{device}: this machine has {has}; use one of these, or cuda:* for all"


@cache
def _compiler_fault() -> str | None:
    """What Numba's CUDA target lacks to compile; loads its compiler and opens no device."""
    try:
        nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
        nvvm.NVVM()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return (
            f"Numba's CUDA support is incomplete: {type(error).__name__}: {first}; "
            "pip install 'gpubench[cuda]'"
        )
    return None


def _gpu_facts(device: str, gpu: devices.Gpu) -> DeviceFacts:
    capability = gpu.compute_capability
    limits = device_limits(gpu.name, capability) if capability else ARCHITECTURE_LIMITS
    known: dict[str, Value | None] = {
        "device": device,
        "sm_count": gpu.sm_count,
        "global_memory": gpu.memory_bytes,
        "compute_capability": float(f"{capability[0]}.{capability[1]}") if capability else None,
        "shared_memory_per_block": limits.shared_bytes_per_block,
    }
    return DeviceFacts(gpu.name, limits, {k: v for k, v in known.items() if v is not None})


def _is_a(function: Any, kinds: frozenset[str]) -> bool:
    """Whether a type of Numba's CUDA target, by name, is among the function's; imports nothing."""
    return any(
        kind.__name__ in kinds and kind.__module__.startswith(("numba.cuda", "numba_cuda"))
        for kind in type(function).__mro__
    )


def _not_a_kernel(target: Target) -> str:
    found = "a source text" if target.source is not None else repr(target.function)
    return f"{found} is no kernel of Numba's CUDA target; decorate it with numba.cuda.jit"


@contextmanager
def _cuda_errors(device: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if translated := _translated(error, device):
            raise translated from error
        raise


def _translated(error: Exception, device: str) -> DeviceError | None:
    """What CUDA raised, in gpubench's words; ``None`` for an error that is not CUDA's."""
    if not any(kind.__name__ in _ERRORS for kind in type(error).__mro__):
        return None
    text = str(error).strip()
    if "OUT_OF_MEMORY" in text:
        return DeviceMemoryError(
            f"{device} is out of memory: {text}; use smaller sizes, or free memory on the device"
        )
    if any(code in text for code in _LOST):
        return DeviceLostError(
            f"the work crashed on {device}: {text}; "
            "compute-sanitizer tells where, and only a fresh process can use the device again"
        )
    if "LAUNCH_OUT_OF_RESOURCES" in text:
        return DeviceError(
            f"{device} lacks registers for this block: {text}; "
            "use a smaller block, or max_registers in cuda.jit"
        )
    return DeviceError(f"{device} failed: {text}")


def _versions() -> dict[str, Value]:
    import numba
    from numba import cuda

    builtin = getattr(cuda, "implementation", "Built-in") == "Built-in"
    return {
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": metadata.version("llvmlite"),
        "numba_cuda": "built-in" if builtin else metadata.version("numba-cuda"),
    }
