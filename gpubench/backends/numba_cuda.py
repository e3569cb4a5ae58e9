"""Numba on a CUDA device.

Everything that is specific to Numba's CUDA target is in this file. The target is the package
numba-cuda, which takes the place of the one that is built into Numba and brings NVIDIA's bindings
of the driver.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, cached_property, partial
from importlib import import_module, metadata
from typing import Any

import numpy as np

from gpubench.backends import devices, software
from gpubench.backends.cuda_driver import Gate, Graph, capture, current_device, driver
from gpubench.backends.cuda_session import CudaSession, KernelName
from gpubench.backends.limits import ARCHITECTURE_LIMITS, cuda_limits
from gpubench.backends.protocol import (
    Backend,
    Call,
    Description,
    DeviceError,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    LaunchContext,
    Limits,
    Native,
    Target,
)
from gpubench.errors import BackendError, KernelError
from gpubench.names import TIMES, Value

_KERNELS = frozenset({"CUDADispatcher"})
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


class NumbaCudaSession(CudaSession):
    """A CUDA device and a stream through Numba; graphs and the gate through NVIDIA's bindings."""

    def __init__(self, device: str, limits: Limits) -> None:
        from numba import cuda

        self._cuda: Any = cuda
        self.device = device
        with self._errors():
            self._driver = driver()
            self._cleanup = ExitStack()
            self._context = self._current_context()
            self._stream = self._cuda.stream()
            self._uuid = str(self._context.device.uuid)
            super().__init__(limits, int(self._context.device.L2_CACHE_SIZE))

    def _current_context(self) -> Any:
        """The device's, made the thread's current one; another that was current is so again when
        this one is closed.

        Numba pushes a device's context each time that it is selected. The thread's first stays, as
        the CUDA runtime's does: what is given back after the session needs a context (CUDA driver
        API, ``cuMemFree``: ``CUDA_ERROR_INVALID_CONTEXT``).
        """
        ordinal, before = _ordinal(self.device), current_device(self._driver)
        if before != ordinal:
            self._cuda.select_device(ordinal)
        context = self._cuda.current_context()
        if before not in (None, ordinal):
            self._cleanup.callback(context.pop)
        return context

    @cached_property
    def _gate(self) -> Gate | None:
        """Made where something is timed: a check of results alone needs none."""
        gate = Gate.on(self._driver, int(self._stream))
        if gate is not None:
            self._cleanup.callback(gate.close)
        return gate

    @property
    def can_hold(self) -> bool:
        return self._gate is not None

    @cached_property
    def _clocks(self) -> devices.GpuClocks:
        """Opened where something is timed: starting NVML takes milliseconds."""
        clocks = devices.GpuClocks(self._uuid)
        self._cleanup.callback(clocks.close)
        return clocks

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

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from device memory to device memory."""
        with self._errors():
            native.copy_to_device(pristine, stream=self._stream)

    def allocate(self, nbytes: int) -> Native:
        with self._errors():
            return self._cuda.device_array(nbytes // 8, np.float64, stream=self._stream)

    def free_bytes(self) -> int:
        with self._errors():
            return int(self._context.get_memory_info()[0])

    def runner(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if target.launcher is not None:
            context = LaunchContext.on(self._stream, launch)
            return partial(target.launcher, context, *arguments)
        if _is_a(target.function, _UFUNCS):
            return partial(target.function, *arguments, stream=self._stream)
        if not _is_a(target.function, _KERNELS):
            given = "a source text" if target.source is not None else repr(target.function)
            raise KernelError(
                f"{given} is no kernel of Numba's CUDA target; decorate it with numba.cuda.jit"
            )
        if launch is None:
            raise KernelError("a CUDA kernel needs a 'launch' with its block; none is given")
        return self._configured(target.function, launch, arguments)

    def _configured(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        from numba.cuda.core.errors import NumbaPerformanceWarning

        with warnings.catch_warnings():  # a small grid is asked for, not overlooked
            warnings.simplefilter("ignore", NumbaPerformanceWarning)
            configured = kernel[launch.grid, launch.block, self._stream, launch.shared_bytes]
        return partial(configured, *arguments)

    def kernel(self, name: KernelName, launch: Launch, arguments: Sequence[Native] = ()) -> Call:
        return self._configured(moving_kernels()[name], launch, arguments)

    def translated(self, error: Exception) -> DeviceError | None:
        """What CUDA raised, in gpubench's words; ``None`` for an error that is not CUDA's."""
        if not any(kind.__name__ in _ERRORS for kind in type(error).__mro__):
            return None
        text, device = str(error).strip(), self.device
        if "OUT_OF_MEMORY" in text:
            return DeviceMemoryError(
                f"{device} is out of memory: {text}; use smaller sizes, or free memory on the "
                "device"
            )
        if any(code in text for code in _LOST):
            where = "compute-sanitizer or `gpubench verify --sanitize` tells where, and "
            # Of a device in software, what it has seen stands beside the error.
            return DeviceLostError(
                f"the work crashed on {device}: {text}; {'' if software.requested() else where}"
                "only a fresh process can use the device again"
            )
        if "LAUNCH_OUT_OF_RESOURCES" in text:
            return DeviceError(
                f"{device} lacks registers for this block: {text}; "
                "use a smaller block, or max_registers in cuda.jit"
            )
        return DeviceError(f"{device} failed: {text}")

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

    def capture(self, call: Call, runs: int) -> Graph:
        with self._cuda.defer_cleanup():  # freeing memory would break the capture
            return capture(self._driver, int(self._stream), call, runs)

    @contextmanager
    def held(self) -> Iterator[Callable[[], None]]:
        """Frees no memory meanwhile: that would wait for the stream that waits for the host."""
        if self._gate is None:
            raise BackendError(f"{self.device}: its driver cannot hold a stream back")
        with self._errors(), self._cuda.defer_cleanup(), self._gate.shut() as release:
            yield release

    def clock_state(self) -> devices.ClockState | None:
        return self._clocks.state()

    def facts(self) -> Mapping[str, Value]:
        """Versions, and the GPU's name, driver, clocks, temperature and throttling now."""
        import numba

        facts: dict[str, Value] = {
            **super().facts(),
            "numba": numba.__version__,
            "llvmlite": metadata.version("llvmlite"),
            "numba_cuda": metadata.version("numba-cuda"),
        }
        with suppress(Exception):  # the runtime's library is not needed to run kernels
            facts["cuda_runtime"] = ".".join(map(str, self._cuda.runtime.get_version()))
        if (peak := self._clocks.peak_bytes_per_second()) is not None:
            facts["peak_bytes_per_second"] = peak
        ordinal, gpus = _ordinal(self.device), devices.gpus()
        gpu = next((gpu for gpu in gpus if gpu.uuid == self._uuid), None)
        if gpu is None and ordinal < len(gpus):  # an instance of a partitioned GPU
            gpu = gpus[ordinal]
        return {**facts, **(devices.gpu_facts(gpu) if gpu else {})}

    def close(self) -> None:
        """Wait, then free; silent on a lost device, which answers nothing."""
        super().close()
        with suppress(Exception):
            self._stream.synchronize()
            self._context.deallocations.clear()
        with suppress(Exception):
            self._cleanup.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if translated := self.translated(error):
                raise translated from error
            raise


class SoftwareSession(NumbaCudaSession):
    """The device in software: results mean something, times do not.

    The ways of timing work, so that they can be tried. Who measures asks ``simulated`` first.
    """

    simulated = True

    def facts(self) -> Mapping[str, Value]:
        """Versions and the device, and nothing of a speed that it does not have."""
        facts, of_speed = super().facts(), ("peak_bytes_per_second", "floor_seconds")
        return {name: fact for name, fact in facts.items() if name not in of_speed}


@cache
def moving_kernels() -> Mapping[str, Any]:
    """The kernels of ``KernelName``, decorated; they are compiled where they first run."""
    from numba import cuda

    def empty() -> None:
        """Nothing: what a launch costs the device."""

    def copy(target: Any, source: Any) -> None:
        i = np.uint64(cuda.grid(1))
        if i < np.uint64(target.size):
            target[i] = source[i]

    def triad(target: Any, one: Any, other: Any) -> None:
        i = np.uint64(cuda.grid(1))
        if i < np.uint64(target.size):
            target[i] = one[i] + 3.0 * other[i]

    return {"empty": cuda.jit(empty), "copy": cuda.jit(copy), "triad": cuda.jit(triad)}


class NumbaCudaBackend(Backend):
    """Runs ``numba.cuda`` kernels on ``cuda:N``."""

    name = "numba_cuda"
    title = "Numba on CUDA"
    times = TIMES
    runs_on = "cuda:0, cuda:1 ..."
    requires = ("gpubench[cuda]",)
    software = ("numba", "llvmlite", "numba-cuda")
    concerns = ("numba", "llvmlite", "numba_cuda", "no_gpu", *devices.STEADY_FACTS)
    caches = ("NUMBA_CACHE_DIR", "CUDA_CACHE_PATH")

    def serves(self, device: str) -> bool:
        return re.fullmatch(r"cuda:\d+", device) is not None

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if reason := devices.no_gpu_reason():
            without = f"; without one `gpubench verify` checks results, as {software.SWITCH}=1 does"
            return f"{device}: {reason}{'' if software.requested() else without}"
        count = devices.gpu_count()
        if _ordinal(device) < count:
            return _compiler_fault()
        has = "1 GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        return f"{device}: this machine has {has}; use one of these, or cuda:* for all"

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits by compute capability; those of every architecture where there is no device."""
        gpus, ordinal = devices.known_gpus(), _ordinal(device)
        if ordinal >= len(gpus):
            return DeviceFacts(device, ARCHITECTURE_LIMITS)
        gpu = gpus[ordinal]
        capability = gpu.compute_capability
        limits = cuda_limits(gpu.name, capability) if capability else ARCHITECTURE_LIMITS
        scope: dict[str, Value | None] = {
            "device": device,
            "sm_count": gpu.sm_count,
            "global_memory": gpu.memory_bytes,
            "compute_capability": float(f"{capability[0]}.{capability[1]}") if capability else None,
            "shared_memory_per_block": limits.shared_bytes_per_block,
        }
        return DeviceFacts(gpu.name, limits, {k: v for k, v in scope.items() if v is not None})

    def devices(self) -> Sequence[Description]:
        return devices.describe_gpus()

    def machine_facts(self) -> Mapping[str, Value | None]:
        """The first GPU's, with the names of all."""
        return devices.steady_facts()

    def compile_with_lines(self) -> None:
        """Have all kernels that are made from now on compiled with lines of their source."""
        from numba.cuda.dispatcher import CUDADispatcher

        plain = CUDADispatcher.__init__

        def with_lines(dispatcher: Any, py_func: Any, targetoptions: Any, **others: Any) -> None:
            # Debug information has lines too, and Numba takes only one of the two.
            lines = {"lineinfo": not targetoptions.get("debug")}
            plain(dispatcher, py_func, targetoptions={**targetoptions, **lines}, **others)

        CUDADispatcher.__init__ = with_lines
        # What is kept on disk may have been compiled without.
        CUDADispatcher.enable_caching = lambda dispatcher: None

    def start(self, device: str, threads: int | None) -> CudaSession:
        """Start a context on the device, on which nothing counts threads of the host."""
        facts = self.device_facts(device)
        session = SoftwareSession if facts.name == software.NAME else NumbaCudaSession
        return session(device, facts.limits or ARCHITECTURE_LIMITS)


def _ordinal(device: str) -> int:
    """Of a device that the backend serves."""
    return int(device.removeprefix("cuda:"))


@cache
def _compiler_fault() -> str | None:
    """What the CUDA target lacks to compile; loads its compiler and opens no device."""
    try:
        cuda: Any = import_module("numba.cuda")
        if cuda.implementation == "Built-in":
            return f"the package numba-cuda is not installed; {_INSTALL}"
        nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
        nvvm.NVVM()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return f"numba-cuda is incomplete: {type(error).__name__}: {first}; {_INSTALL}"
    return None


_INSTALL = "pip install 'gpubench[cuda]'"


def _is_a(function: Any, kinds: frozenset[str]) -> bool:
    """Whether a type of Numba's CUDA target, by name, is among the function's; imports nothing."""
    return any(
        kind.__name__ in kinds and kind.__module__.startswith(("numba.cuda", "numba_cuda"))
        for kind in type(function).__mro__
    )
