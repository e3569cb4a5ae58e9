"""Numba on a CUDA device.

Everything that is specific to Numba's CUDA target is in this file. The target is the package
numba-cuda, which takes the place of the one that is built into Numba and brings NVIDIA's bindings
of the driver.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from importlib import import_module, metadata
from statistics import median
from typing import Any

import numpy as np

from gpubench.backends import devices, software
from gpubench.backends.ceilings import BLOCK, Seconds, array_bytes, memory_ceilings
from gpubench.backends.cuda_driver import CUDAError, Gate, Graph, capture, driver
from gpubench.backends.cuda_sampling import BestWay, CudaSampler
from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import (
    ONE_THREAD,
    Backend,
    Call,
    Description,
    DeviceError,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    Limits,
    Native,
    Sampler,
    Session,
    Target,
)
from gpubench.errors import BackendError, KernelError
from gpubench.names import TIMES, Value

TIMES_CACHE = 8
"""Size of an array of the ceilings, in L2 caches. STREAM asks for four; more leaves less in the
cache from one run to the next, and takes milliseconds here."""
PART_OF_FREE = 8
"""Each of its three arrays takes at most this part of the memory that is free."""
SAMPLES, RUNS = 7, 4
"""Tens of milliseconds together on a large GPU."""
ITEM = 8
"""Bytes of a float64."""
FLOOR_RUNS, FLOOR_SAMPLES = 100, 9
"""The floor is the median of so many samples, each of ``FLOOR_RUNS`` runs."""

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


class NumbaCudaSession(Session):
    """A CUDA device and a stream of its own through Numba; graphs and the gate through NVIDIA's
    bindings.

    "Queue" means: on that stream, through which every copy and launch goes. Errors of the library
    come as ``DeviceError``.
    """

    host_time = staticmethod(time.perf_counter)
    """The host's clock in seconds."""

    def __init__(self, device: str, limits: Limits) -> None:
        self.device, self._limits = device, limits
        self.simulated = software.running_device() is not None
        self.floor_seconds: float | None = None
        """Of the way of timing that ``floor`` was asked for last; ``None`` before."""
        self._floors: dict[tuple[str, bool], float | None] = {}
        self._flushed: tuple[Native, Native] | None = None
        self._cleanup = ExitStack()
        with self._errors():
            self._open()

    def _open(self) -> None:
        """Make the device's context the thread's current one, with a stream; another that was
        current is so again when this one is closed.

        Numba pushes a device's context each time that it is selected. The thread's first stays, as
        the CUDA runtime's does: what is given back after the session needs a context (CUDA driver
        API, ``cuMemFree``: ``CUDA_ERROR_INVALID_CONTEXT``).
        """
        from numba import cuda

        self._cuda: Any = cuda
        self._driver = driver()
        ordinal, (result, current) = _ordinal(self.device), self._driver.cuCtxGetDevice()
        before = int(current) if result == 0 else None  # an error where no context is current
        if before != ordinal:
            self._cuda.select_device(ordinal)
        context = self._context = self._cuda.current_context()
        if before not in (None, ordinal):
            self._cleanup.callback(context.pop)
        self._stream = self._cuda.stream()
        self._uuid, self.l2_bytes = str(context.device.uuid), int(context.device.L2_CACHE_SIZE)

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy to the device with the same layout; one that is not contiguous becomes C."""
        array = array if array.flags.forc else np.ascontiguousarray(array)
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
        """Device memory whose contents do not matter, as float64; ``nbytes`` divides by 8."""
        with self._errors():
            return self._cuda.device_array(nbytes // ITEM, np.float64, stream=self._stream)

    def free_bytes(self) -> int:
        """Device memory that is free now."""
        with self._errors():
            return int(self._context.get_memory_info()[0])

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Configure a kernel once, or hand a launcher its stream and shape; nothing runs yet.

        Raises ``DeviceError`` for a launch over the device's limits, ``KernelError`` for a kernel
        without a launch or a target that is no kernel.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        if target.launcher is not None:
            shape = replace(launch or ONE_THREAD, stream=self._stream)
            run = partial(target.launcher, shape, *arguments)
        elif _is_a(target.function, _UFUNCS):
            run = partial(target.function, *arguments, stream=self._stream)
        elif not _is_a(target.function, _KERNELS):
            given = "a source text" if target.source is not None else repr(target.function)
            raise KernelError(
                f"{given} is no kernel of Numba's CUDA target; decorate it with numba.cuda.jit"
            )
        elif launch is None:
            raise KernelError("a CUDA kernel needs a 'launch' with its block; none is given")
        else:
            run = self._configured(target.function, launch, arguments)

        def call() -> Any:
            try:
                return run()
            except Exception as error:
                if device_error := self._translated(error):
                    raise device_error from error
                raise

        return call

    def kernel(self, name: str, launch: Launch, arguments: Sequence[Native] = ()) -> Call:
        """One of ``moving_kernels``, bound."""
        return self._configured(moving_kernels()[name], launch, arguments)

    def _configured(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> partial[Any]:
        from numba.cuda.core.errors import NumbaPerformanceWarning

        with warnings.catch_warnings():  # a small grid is asked for, not overlooked
            warnings.simplefilter("ignore", NumbaPerformanceWarning)
            configured = kernel[launch.grid, launch.block, self._stream, launch.shared_bytes]
        return partial(configured, *arguments)

    def synchronize(self) -> None:
        with self._errors():
            self._stream.synchronize()

    def flush(self) -> None:
        """Queue a copy between two buffers that fill the L2 cache each."""
        if self._flushed is None:
            size = -(-self.l2_bytes // ITEM) * ITEM
            self._flushed = self.allocate(size), self.allocate(size)
        self.restore(*self._flushed)

    def sampler(self, call: Call) -> Sampler:
        """Runs the call until it is warm, and finds the best way to time it."""
        return CudaSampler(self, call)

    def sampler_again(self, call: Call) -> Sampler:
        return CudaSampler(self, call, warm=True)

    def event(self) -> Any:
        """An event that keeps time."""
        with self._errors():
            return self._cuda.event(timing=True)

    def record(self, event: Any) -> None:
        """Queue an event: it takes the time when all before it has run."""
        with self._errors():
            event.record(self._stream)

    def seconds(self, begin: Any, end: Any) -> float:
        """Wait for ``end``; seconds between the two events on the device's own clock."""
        with self._errors():
            end.synchronize()
            return float(begin.elapsed_time(end)) * 1e-3  # events tell milliseconds

    def capture(self, call: Call, runs: int) -> Graph:
        """Capture so many runs of a call into a graph; none of them runs.

        Refuses what waits for the device or takes or gives back memory. Raises ``CannotCapture``;
        the stream is then as usable as before.
        """
        with self._cuda.defer_cleanup():  # freeing memory would break the capture
            return capture(self._driver, int(self._stream), call, runs)

    @cached_property
    def _gate(self) -> Gate | None:
        """Made where something is timed: a check of results alone needs none."""
        with suppress(CUDAError):
            gate = Gate(self._driver, int(self._stream))
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

        Frees no memory meanwhile: that would wait for the stream that waits for the host.
        """
        if self._gate is None:
            raise BackendError(f"{self.device}: its driver cannot hold a stream back")
        with self._errors(), self._cuda.defer_cleanup(), self._gate.shut() as release:
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

    @cached_property
    def _empty_kernel(self) -> BestWay:
        call = self.kernel("empty", ONE_THREAD)
        call()  # compiles
        return BestWay(self, call)

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

    def ceiling_bytes(self) -> int:
        """Size of each array that the ceilings are measured on."""
        return array_bytes(self.l2_bytes, TIMES_CACHE, self.free_bytes() // PART_OF_FREE, ITEM)

    def ceilings(self) -> Mapping[str, float]:
        """What the device's memory reaches with kernels that do nothing but move data; takes tens
        of milliseconds and gives all memory back."""
        nbytes = self.ceiling_bytes()
        arrays = [self.allocate(nbytes) for _ in range(3)]
        launch = Launch(block=(BLOCK, 1, 1), grid=(-(-nbytes // ITEM // BLOCK), 1, 1))

        def timer(name: str, used: Sequence[Native]) -> Seconds:
            call = self.kernel(name, launch, used)
            call()  # compiles
            return BestWay(self, call).seconds

        return memory_ceilings(arrays, nbytes, timer, SAMPLES, RUNS)

    def facts(self) -> Mapping[str, Value]:
        """Versions, the size of L2, and the GPU's name, driver, clocks, temperature and throttling
        now; of a device in software, nothing of a speed that it does not have."""
        import numba

        facts: dict[str, Value] = {
            **super().facts(),
            "l2_bytes": self.l2_bytes,
            "numba": numba.__version__,
            "llvmlite": metadata.version("llvmlite"),
            "numba_cuda": metadata.version("numba-cuda"),
        }
        with suppress(Exception):  # the runtime's library is not needed to run kernels
            facts["cuda_runtime"] = ".".join(map(str, self._cuda.runtime.get_version()))
        if not self.simulated and self.floor_seconds is not None:
            facts["floor_seconds"] = self.floor_seconds
        if not self.simulated and (peak := self._clocks.peak_bytes_per_second()) is not None:
            facts["peak_bytes_per_second"] = peak
        # An instance of a partitioned GPU has a UUID of its own; the ordinal tells its GPU.
        gpus = devices.gpus()
        here = [gpu for gpu in gpus if gpu.uuid == self._uuid] or gpus[_ordinal(self.device) :]
        return {**facts, **(devices.gpu_facts(here[0]) if here else {})}

    def close(self) -> None:
        """Wait, then free; silent on a lost device, which answers nothing."""
        self._flushed = None
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
            if device_error := self._translated(error):
                raise device_error from error
            raise

    def _translated(self, error: Exception) -> DeviceError | None:
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
                f"the work crashed on {device}: {text}; {'' if self.simulated else where}"
                "only a fresh process can use the device again"
            )
        if "LAUNCH_OUT_OF_RESOURCES" in text:
            return DeviceError(
                f"{device} lacks registers for this block: {text}; "
                "use a smaller block, or max_registers in cuda.jit"
            )
        return DeviceError(f"{device} failed: {text}")


@cache
def moving_kernels() -> Mapping[str, Any]:
    """``empty()``, ``copy(target, source)`` and ``triad(target, one, other)`` over float64; they
    are compiled where they first run."""
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
    capabilities = ("gpu", "in_place", "compiles")
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
        gpus, ordinal, limits = devices.known_gpus(), _ordinal(device), ARCHITECTURE_LIMITS
        if ordinal >= len(gpus):
            return DeviceFacts(device, limits)
        gpu = gpus[ordinal]
        scope: dict[str, Value | None] = {
            "device": device,
            "sm_count": gpu.sm_count,
            "global_memory": gpu.memory_bytes,
            "shared_memory_per_block": limits.shared_bytes_per_block,
        }
        if gpu.compute_capability is not None:
            version = "{}.{}".format(*gpu.compute_capability)
            scope["compute_capability"] = float(version)
            limits = replace(limits, source=f"{gpu.name} (compute capability {version})")
        return DeviceFacts(gpu.name, limits, {k: v for k, v in scope.items() if v is not None})

    def devices(self) -> Sequence[Description]:
        gpus, reason = devices.gpus(), devices.no_gpu_reason()
        if reason is not None:
            return [Description("cuda", "NVIDIA GPU", {}, reason)]
        return [Description(f"cuda:{gpu.index}", gpu.name, devices.gpu_facts(gpu)) for gpu in gpus]

    def machine_facts(self) -> Mapping[str, Value | None]:
        """What stays as it is of the first GPU, with the names of all, or why there is none."""
        gpus = devices.gpus()
        if not gpus:
            return {"gpu": None, "no_gpu": devices.no_gpu_reason()}
        facts = devices.gpu_facts(gpus[0])
        steady = {name: facts[name] for name in devices.STEADY_FACTS if name in facts}
        return {**steady, "gpu": ", ".join(gpu.name for gpu in gpus)}

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

    def start(self, device: str, threads: int | None) -> NumbaCudaSession:
        """Start a context on the device, on which nothing counts threads of the host."""
        return NumbaCudaSession(device, self.device_facts(device).limits or ARCHITECTURE_LIMITS)


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
