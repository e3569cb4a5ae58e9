"""Numba on a CUDA device.

Everything that is specific to Numba's CUDA target is in this file. The target is the package
numba-cuda, which takes the place of the one that is built into Numba and brings NVIDIA's bindings
of the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, partial
from importlib import import_module, metadata
from typing import Any, ClassVar

import numpy as np

from gpubench.backends import devices
from gpubench.backends.ceilings import BLOCK, BatchTimer, array_bytes, memory_ceilings
from gpubench.backends.cuda_sampling import BestWay
from gpubench.backends.cuda_session import CudaBackend, CudaSession, needed
from gpubench.backends.numba_globals import changed_global, remember_globals
from gpubench.backends.numba_settings import describe_damaged_cache, why_off
from gpubench.backends.protocol import (
    ONE_THREAD_LAUNCH,
    Call,
    Description,
    Launch,
    Limits,
    Native,
    Target,
    refuse_launch,
)
from gpubench.distribution import require_extra
from gpubench.errors import KernelError
from gpubench.layouts import Layout, array_in, laid_out_like, refused_layout, span_bytes
from gpubench.names import Value

CEILING_ARRAY_IN_L2_CACHES = 8
"""Size of an array of the ceilings, in L2 caches. STREAM asks for four; more leaves less in the
cache from one run to the next, and takes milliseconds here."""
PART_OF_FREE = 8
"""Each of its three arrays takes at most this part of the memory that is free."""
SAMPLES, RUNS = 7, 4
"""Tens of milliseconds together on a large GPU."""
FLOAT64_BYTES = 8
"""Bytes of a float64."""

_COMPILERS = (
    *("nvidia-nvvm", "nvidia-nvjitlink"),
    *("nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12"),
)
"""Packages with what makes machine code of Numba's, for CUDA 13 and 12: another version of one is
another compiler, and a cause of other times and counts."""

_KERNELS = frozenset({"CUDADispatcher"})
_UFUNCS = frozenset({"CUDAUFuncDispatcher", "CUDAGeneralizedUFunc"})
_ERRORS = frozenset({"CudaAPIError", "CudaDriverError", "CudaSupportError", "CUDAError"})


class NumbaCudaSession(CudaSession):
    """A CUDA device and a stream of its own through Numba, through which every copy and launch
    goes."""

    more_registers = ", or max_registers in cuda.jit"
    layouts: ClassVar[tuple[Layout, ...]] = ("C", "F", "strided", "overlapping")

    def __init__(self, device: str, limits: Limits) -> None:
        super().__init__(device, limits)
        with self._errors:
            self._open()

    def _open(self) -> None:
        """Make the device's context the thread's current one, with a stream; another that was
        current is so again when this one is closed.

        Numba pushes a device's context each time that it is selected. The thread's first stays, as
        the CUDA runtime's does: what is given back after the session needs a context (CUDA driver
        API, ``cuMemFree``: ``CUDA_ERROR_INVALID_CONTEXT``).
        """
        from numba import cuda
        from numba.cuda.core import config

        self._cuda: Any = cuda
        # A small grid is asked for, not overlooked, and launchers make grids of their own.
        self._cleanup.callback(
            setattr, config, "CUDA_LOW_OCCUPANCY_WARNINGS", config.CUDA_LOW_OCCUPANCY_WARNINGS
        )
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        ordinal, (result, current) = devices.ordinal(self.device), self._driver.cuCtxGetDevice()
        before = int(current) if result == 0 else None  # an error where no context is current
        if before != ordinal:
            self._cuda.select_device(ordinal)
        context = self._context = self._cuda.current_context()
        if before not in (None, ordinal):
            self._cleanup.callback(context.pop)
        self._cleanup.callback(context.deallocations.clear)
        stream = self._cuda.stream()
        self._use(stream, int(stream))

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        if refused_layout(array, self.layouts):
            array = np.ascontiguousarray(array)
        with self._errors:
            if array.flags.forc:
                native = self._cuda.to_device(array, stream=self.stream)
            else:  # which Numba copies between devices and hosts as bytes alone
                native = self._cuda.device_array(
                    array.shape, array.dtype, array.strides, stream=self.stream
                )
                memory = np.empty(span_bytes(array), np.uint8)
                array_in(memory, array)[...] = array
                _bytes_of(native).copy_to_device(memory, stream=self.stream)
        self.synchronize()
        return native

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not hasattr(native, "copy_to_host"):
            return np.array(native)
        with self._errors:
            host: np.ndarray[Any, Any] = native.copy_to_host(stream=self.stream)
        self.synchronize()
        return host

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from array to array. Another layout is changed on the host first."""
        if native.strides != pristine.strides and native.size:
            pristine = self.to_native(laid_out_like(self.to_host(pristine), native.strides))
        with self._errors:
            if native.is_c_contiguous():
                native.copy_to_device(pristine, stream=self.stream)
            else:
                _bytes_of(native).copy_to_device(_bytes_of(pristine), stream=self.stream)

    def allocate(self, nbytes: int) -> Native:
        """Device memory whose contents do not matter, as float64; ``nbytes`` divides by 8."""
        with self._errors:
            return self._cuda.device_array(nbytes // FLOAT64_BYTES, np.float64, stream=self.stream)

    def free_bytes(self) -> int:
        """Device memory that is free now."""
        with self._errors:
            return int(self._context.get_memory_info()[0])

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Configure a kernel once, or hand a launcher its stream and shape; nothing runs yet."""
        if target.source is not None:
            raise self._no_kernel("a source text")
        return super().bind(target, launch, arguments)

    def _function(self, function: Any, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if reason := why_off("ENABLE_CUDASIM"):
            raise KernelError(reason)
        if _is_a(function, _UFUNCS):
            refuse_launch("a ufunc of Numba", launch)
            return partial(function, *arguments, stream=self.stream)
        if not _is_a(function, _KERNELS):
            raise self._no_kernel(repr(function))
        remember_globals(function)
        return self._queues(function, needed(launch), arguments)

    def why_wrong(self, target: Target) -> str | None:
        return changed_global(target.function)

    def _program(self, source: str, entry: str, constants: Mapping[str, Value]) -> Any:
        raise self._no_kernel("a source text")

    def _no_kernel(self, given: str) -> KernelError:
        return KernelError(
            f"{given} is no kernel of Numba's CUDA target; decorate it with numba.cuda.jit"
        )

    def kernel(self, name: str, launch: Launch, arguments: Sequence[Native] = ()) -> Call:
        """Return one of ``moving_kernels``, bound."""
        return self._queues(moving_kernels()[name], launch, arguments)

    def _queues(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        configured = kernel[launch.grid, launch.block, self.stream, launch.shared_bytes]
        return partial(configured, *arguments)

    def _nothing(self) -> Call:
        call = self.kernel("empty", ONE_THREAD_LAUNCH)
        call()  # compiles
        return call

    def _memory_stays(self) -> AbstractContextManager[None]:
        stays: AbstractContextManager[None] = self._cuda.defer_cleanup()
        return stays

    def ceiling_bytes(self) -> int:
        """Size of each array that the ceilings are measured on."""
        return array_bytes(
            self.l2_bytes,
            CEILING_ARRAY_IN_L2_CACHES,
            self.free_bytes() // PART_OF_FREE,
            FLOAT64_BYTES,
        )

    def ceilings(self) -> Mapping[str, float]:
        """Return what the device's memory reaches with kernels that do nothing but move data; takes
        tens of milliseconds and gives all memory back."""
        nbytes = self.ceiling_bytes()
        arrays = [self.allocate(nbytes) for _ in range(3)]
        launch = Launch(block=(BLOCK, 1, 1), grid=(-(-nbytes // FLOAT64_BYTES // BLOCK), 1, 1))

        def timer(name: str, used: Sequence[Native]) -> BatchTimer:
            call = self.kernel(name, launch, used)
            call()  # compiles
            return BestWay(self, call).seconds

        return memory_ceilings(arrays, nbytes, timer, SAMPLES, RUNS)

    def facts(self) -> Mapping[str, Value]:
        """Return the same, with the versions of Numba and its target, and of the CUDA runtime."""
        import numba

        facts: dict[str, Value] = {
            **super().facts(),
            "numba": numba.__version__,
            "llvmlite": metadata.version("llvmlite"),
            "numba_cuda": metadata.version("numba-cuda"),
        }
        with suppress(Exception):  # the runtime's library is not needed to run kernels
            facts["cuda_runtime"] = ".".join(map(str, self._cuda.runtime.get_version()))
        return facts

    def _is_cudas(self, error: Exception) -> bool:
        """By the names of its types, of which two packages have one each; a grid over the limit is
        refused before the driver is asked."""
        is_refused = isinstance(error, ValueError) and "specified grid size" in str(error)
        return is_refused or any(kind.__name__ in _ERRORS for kind in type(error).__mro__)


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


class NumbaCudaBackend(CudaBackend):
    """Runs ``numba.cuda`` kernels on ``cuda:N``."""

    name = "numba_cuda"
    title = "Numba on CUDA"
    requires = (require_extra("cuda"),)
    decorators = ("cuda.jit",)
    needs_launch = True
    launches_itself = ("vectorize", "guvectorize")
    session = NumbaCudaSession
    software = ("numba", "llvmlite", "numba-cuda", *_COMPILERS)
    concerns = (
        *("numba", "llvmlite", "numba_cuda", "no_gpu"),
        *(name.replace("-", "_") for name in _COMPILERS),
        *devices.STEADY_FACTS,
    )
    caches = ("NUMBA_CACHE_DIR", "CUDA_CACHE_PATH")

    def unavailable(self, device: str) -> str | None:
        off = why_off("ENABLE_CUDASIM")
        return off or super().unavailable(device) or _compiler_fault()

    def devices(self) -> Sequence[Description]:
        gpus, reason = devices.gpus(), devices.no_gpu_reason()
        if reason is not None:
            return [Description("cuda", "NVIDIA GPU", {}, reason)]
        return [Description(f"cuda:{gpu.index}", gpu.name, devices.gpu_facts(gpu)) for gpu in gpus]

    def hint(self, error: BaseException) -> str | None:
        return describe_damaged_cache(error)

    def machine_facts(self) -> Mapping[str, Value | None]:
        """Return what stays as it is of the first GPU, with the names of all, or why there is
        none."""
        gpus = devices.gpus()
        if not gpus:
            return {"gpu": None, "no_gpu": devices.no_gpu_reason()}
        facts = devices.gpu_facts(gpus[0])
        steady = {name: facts[name] for name in devices.STEADY_FACTS if name in facts}
        return {**steady, "gpu": ", ".join(gpu.name for gpu in gpus)}


@cache
def _compiler_fault() -> str | None:
    """Return what the CUDA target lacks to compile; loads its compiler and opens no device."""
    try:
        cuda: Any = import_module("numba.cuda")
        if cuda.implementation == "Built-in":
            return f"the package numba-cuda is not installed; {_INSTALL_CUDA}"
        nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
        nvvm.NVVM()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return f"numba-cuda is incomplete: {type(error).__name__}: {first}; {_INSTALL_CUDA}"
    return None


_INSTALL_CUDA = f"pip install '{require_extra('cuda')}'"


def _bytes_of(native: Native) -> Native:
    """Return an array's memory as bytes, with what lies between its elements."""
    nbytes = native.alloc_size
    return type(native)((nbytes,), (1,), np.uint8, stream=native.stream, gpu_data=native.gpu_data)


def _is_a(function: Any, kinds: frozenset[str]) -> bool:
    """Return whether a type of Numba's CUDA target, by name, is among the function's; imports
    nothing."""
    return any(
        kind.__name__ in kinds and kind.__module__.startswith(("numba.cuda", "numba_cuda"))
        for kind in type(function).__mro__
    )
