"""Numba on a CUDA device, and Numba's simulator of one.

Everything that is specific to Numba's CUDA target is in this file, and in ``numba_cuda_kernels.py``
the kernels that every facade brings. It works with the target built into Numba, which without
``cuda.bindings`` has neither graphs nor a gate, and with the package numba-cuda. One process runs
either devices or the simulator, as ``NUMBA_ENABLE_CUDASIM`` says when Numba is imported.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module, metadata
from typing import Any

import numpy as np

from gpubench.backends import devices
from gpubench.backends.cuda_clocks import NvmlClocks
from gpubench.backends.cuda_driver import DriverGraph, Gate, capture, driver
from gpubench.backends.cuda_facade import ClockState, KernelName
from gpubench.backends.cuda_session import CudaSession
from gpubench.backends.device_errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpubench.backends.limits import ARCHITECTURE_LIMITS, SIMULATOR_LIMITS, device_limits
from gpubench.backends.protocol import (
    Call,
    Clock,
    DeviceFacts,
    Launch,
    LaunchContext,
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


class NoClock:
    """The simulator's: it refuses, so that no simulated time can be taken for a time."""

    def start(self) -> float:
        raise GpubenchError(
            "the CUDA simulator has no times; "
            f"run on a GPU without {SWITCH} to measure, or only check results here"
        )

    stop = start


class NumbaCuda:
    """A CUDA device and a stream through Numba; graphs and the gate through NVIDIA's bindings."""

    def __init__(self, device: str) -> None:
        from numba import cuda

        self._cuda: Any = cuda
        self.device = device
        with self._errors():
            self._start()

    def _start(self) -> None:
        self._cuda.select_device(_ordinal(self.device))
        self._stream = self._cuda.stream()
        here = self._cuda.get_current_device()
        self.l2_bytes = int(here.L2_CACHE_SIZE)
        self._uuid = str(getattr(here, "uuid", ""))
        self._clocks = NvmlClocks(self._uuid)
        self._driver = driver()
        self._gate = Gate.on(self._driver, int(self._stream))
        self.can_hold = self._gate is not None

    def to_device(self, array: np.ndarray[Any, Any]) -> Native:
        with self._errors():
            native = self._cuda.to_device(array, stream=self._stream)
            self._stream.synchronize()
        return native

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not hasattr(native, "copy_to_host"):
            return np.array(native)
        with self._errors():
            host: np.ndarray[Any, Any] = native.copy_to_host(stream=self._stream)
            self._stream.synchronize()
        return host

    def copy(self, target: Native, source: Native) -> None:
        with self._errors():
            target.copy_to_device(source, stream=self._stream)

    def allocate(self, nbytes: int) -> Native:
        with self._errors():
            return self._cuda.device_array(nbytes // 8, np.float64, stream=self._stream)

    def free_bytes(self) -> int:
        with self._errors():
            return int(self._cuda.current_context().get_memory_info()[0])

    def runner(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
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

    def kernel(self, name: KernelName, launch: Launch, arguments: Sequence[Native] = ()) -> Call:
        from gpubench.backends.numba_cuda_kernels import KERNELS

        return self._configured(KERNELS[name], launch, arguments)

    def translated(self, error: Exception) -> DeviceError | None:
        return _translated(error, self.device)

    def synchronize(self) -> None:
        with self._errors():
            self._stream.synchronize()

    def event(self) -> Any:
        with self._errors():
            return self._cuda.event(timing=True)

    def record(self, event: Any) -> None:
        with self._errors():
            event.record(self._stream)

    def seconds(self, begin: Any, end: Any) -> float:
        with self._errors():
            end.synchronize()
            return float(begin.elapsed_time(end)) * 1e-3  # events tell milliseconds

    def capture(self, call: Call, runs: int) -> DriverGraph:
        with self._cuda.defer_cleanup():  # freeing memory would break the capture
            return capture(self._driver, int(self._stream), call, runs)

    @contextmanager
    def held(self) -> Iterator[Callable[[], None]]:
        """Frees no memory meanwhile: that would wait for the stream that waits for the host."""
        if self._gate is None:
            raise BackendError(f"{self.device}: its driver cannot hold a stream back")
        with self._errors(), self._cuda.defer_cleanup(), self._gate.shut() as release:
            yield release

    def clock_state(self) -> ClockState | None:
        return self._clocks.state()

    def facts(self) -> Mapping[str, Value]:
        """Versions, and the GPU's name, driver, clocks, temperature and throttling now."""
        ordinal, found = _ordinal(self.device), devices.gpus()
        gpu = next((g for g in found if g.uuid == self._uuid), None)
        if gpu is None and ordinal < len(found):  # an instance of a partitioned GPU
            gpu = found[ordinal]
        described = devices.gpu_facts(gpu) if gpu else {}
        return {**_versions(), **self._runtime(), **self._peak(), **described}

    def _runtime(self) -> dict[str, Value]:
        with suppress(Exception):  # the runtime's library is not needed to run kernels
            return {"cuda_runtime": ".".join(map(str, self._cuda.runtime.get_version()))}
        return {}

    def _peak(self) -> dict[str, Value]:
        peak = self._clocks.peak_bytes_per_second()
        return {} if peak is None else {"peak_bytes_per_second": peak}

    def close(self) -> None:
        with suppress(Exception):
            self._stream.synchronize()
            self._cuda.current_context().deallocations.clear()
            if self._gate is not None:
                self._gate.close()
        self._gate = None
        self._clocks.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if translated := self.translated(error):
                raise translated from error
            raise


class SimulatedCuda(NumbaCuda):
    """Numba's simulator, which has copies and kernels and no device behind them."""

    def _start(self) -> None:
        self._stream = self._cuda.stream()
        self.l2_bytes, self.can_hold = 0, False

    def _configured(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        shape = (launch.grid, launch.block, self._stream, launch.shared_bytes)
        # Subscribing a simulated kernel changes it in place, so each call does it anew.
        return lambda: kernel[shape](*arguments)

    def facts(self) -> Mapping[str, Value]:
        return {**_versions(), "simulator": True}

    def close(self) -> None:
        """The simulator's arrays are NumPy's."""


class SimulatorSession(CudaSession):
    """Numba's simulator: results mean something, times do not."""

    simulated = True

    def _own_clock(self) -> Clock:
        return NoClock()

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(self.clock, call, "simulator")

    def flush(self) -> None:
        """The simulator has no cache."""

    def facts(self) -> Mapping[str, Value]:
        return self._cuda.facts()


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

    def open(self, device: str, threads: int | None = None) -> CudaSession:
        """Start a context on the device; raises ``BackendError`` where it cannot run."""
        if reason := self.unavailable(device):
            raise BackendError(reason)
        limits = self.device_facts(device).limits or ARCHITECTURE_LIMITS
        if device == SIMULATOR:
            return SimulatorSession(SimulatedCuda(device), limits)
        return CudaSession(NumbaCuda(device), limits)


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
