"""Numba on a CUDA device.

Everything that is specific to Numba's CUDA target is in this file, and in ``numba_cuda_kernels.py``
the kernels that every facade brings. The target is the package numba-cuda, which takes the place of
the one that is built into Numba and brings NVIDIA's bindings of the driver.
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
from gpubench.backends.cuda_clocks import NvmlClocks
from gpubench.backends.cuda_driver import DriverGraph, Gate, capture, current_device, driver
from gpubench.backends.cuda_facade import ClockState, KernelName
from gpubench.backends.cuda_session import CudaSession
from gpubench.backends.device_errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpubench.backends.limits import ARCHITECTURE_LIMITS, device_limits
from gpubench.backends.protocol import (
    Call,
    DeviceFacts,
    Launch,
    LaunchContext,
    Native,
    Target,
)
from gpubench.errors import BackendError, KernelError
from gpubench.names import TIMES, Value

_DEVICE = re.compile(r"cuda:(\d+)")
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


class NumbaCuda:
    """A CUDA device and a stream through Numba; graphs and the gate through NVIDIA's bindings."""

    def __init__(self, device: str) -> None:
        from numba import cuda

        self._cuda: Any = cuda
        self.device = device
        with self._errors():
            self._start()

    def _start(self) -> None:
        self._driver = driver()
        self._cleanup = ExitStack()
        self._context = self._current_context()
        self._stream = self._cuda.stream()
        self.l2_bytes = int(self._context.device.L2_CACHE_SIZE)
        self._uuid = str(self._context.device.uuid)

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
    def _clocks(self) -> NvmlClocks:
        """Opened where something is timed: starting NVML takes milliseconds."""
        clocks = NvmlClocks(self._uuid)
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

    def copy(self, target: Native, source: Native) -> None:
        with self._errors():
            target.copy_to_device(source, stream=self._stream)

    def allocate(self, nbytes: int) -> Native:
        with self._errors():
            return self._cuda.device_array(nbytes // 8, np.float64, stream=self._stream)

    def free_bytes(self) -> int:
        with self._errors():
            return int(self._context.get_memory_info()[0])

    def runner(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if target.launcher is not None:
            return partial(target.launcher, self._launch_context(launch), *arguments)
        if _is_a(target.function, _UFUNCS):
            return partial(target.function, *arguments, stream=self._stream)
        if not _is_a(target.function, _KERNELS):
            raise KernelError(_not_a_kernel(target))
        if launch is None:
            raise KernelError("a CUDA kernel needs a 'launch' with its block; none is given")
        return self._configured(target.function, launch, arguments)

    def _configured(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        from numba.cuda.core.errors import NumbaPerformanceWarning

        with warnings.catch_warnings():  # a small grid is asked for, not overlooked
            warnings.simplefilter("ignore", NumbaPerformanceWarning)
            configured = kernel[launch.grid, launch.block, self._stream, launch.shared_bytes]
        return partial(configured, *arguments)

    def _launch_context(self, launch: Launch | None) -> LaunchContext:
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
        with suppress(Exception):  # a lost device answers nothing
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


class SoftwareSession(CudaSession):
    """The device in software: results mean something, times do not.

    The ways of timing work, so that they can be tried. Who measures asks ``simulated`` first.
    """

    simulated = True

    def facts(self) -> Mapping[str, Value]:
        """Versions and the device, and nothing of a speed that it does not have."""
        facts = super().facts()
        return {name: fact for name, fact in facts.items() if name not in _FACTS_OF_SPEED}


_FACTS_OF_SPEED = ("peak_bytes_per_second", "floor_seconds")


class NumbaCudaBackend:
    """Runs ``numba.cuda`` kernels on ``cuda:N``."""

    name = "numba_cuda"
    title = "Numba on CUDA"
    requires = ("gpubench[cuda]",)
    times = TIMES

    def serves(self, device: str) -> bool:
        return _DEVICE.fullmatch(device) is not None

    def recognises(self, function: Any) -> bool:
        """Kernels and universal functions of Numba's CUDA target."""
        return _is_a(function, _KERNELS | _UFUNCS)

    def unavailable(self, device: str) -> str | None:
        if not self.serves(device):
            return f"{device}: the backend {self.name} runs on cuda:0, cuda:1 ..."
        return _gpu_fault(device) or _compiler_fault()

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits by compute capability; those of every architecture where there is no device."""
        found, ordinal = devices.known_gpus(), _ordinal(device)
        if ordinal >= len(found):
            return DeviceFacts(device, ARCHITECTURE_LIMITS)
        return _gpu_facts(device, found[ordinal])

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

    def open(self, device: str, threads: int | None = None) -> CudaSession:
        """Start a context on the device; raises ``BackendError`` where it cannot run."""
        if reason := self.unavailable(device):
            raise BackendError(reason)
        facts = self.device_facts(device)
        session = SoftwareSession if facts.name == software.NAME else CudaSession
        return session(NumbaCuda(device), facts.limits or ARCHITECTURE_LIMITS)


def _ordinal(device: str) -> int:
    match = _DEVICE.fullmatch(device)
    if match is None:
        raise BackendError(f"{device!r} is no CUDA device; write cuda:0, cuda:1 ...")
    return int(match[1])


def _gpu_fault(device: str) -> str | None:
    if reason := devices.no_gpu_reason():
        without = "" if software.requested() else _WITHOUT_A_GPU
        return f"{device}: {reason}{without}"
    count = devices.gpu_count()
    if _ordinal(device) < count:
        return None
    has = "1 GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
    return f"{device}: this machine has {has}; use one of these, or cuda:* for all"


_WITHOUT_A_GPU = f"; without one `gpubench verify` checks results, as {software.SWITCH}=1 does"


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
        return DeviceLostError(f"the work crashed on {device}: {text}; {_lost_advice()}")
    if "LAUNCH_OUT_OF_RESOURCES" in text:
        return DeviceError(
            f"{device} lacks registers for this block: {text}; "
            "use a smaller block, or max_registers in cuda.jit"
        )
    return DeviceError(f"{device} failed: {text}")


def _lost_advice() -> str:
    if software.requested():  # what it has found stands beside the error
        return "only a fresh process can use the device again"
    return (
        "compute-sanitizer or `gpubench verify --sanitize` tells where, "
        "and only a fresh process can use the device again"
    )


def _versions() -> dict[str, Value]:
    import numba

    return {
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": metadata.version("llvmlite"),
        "numba_cuda": metadata.version("numba-cuda"),
    }
