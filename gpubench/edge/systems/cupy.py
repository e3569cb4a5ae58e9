"""CuPy: arrays on CUDA devices, and kernels in CUDA C++ that CuPy compiles.

An implementation names a function of CuPy's arrays, which writes them or returns new ones (an
``ElementwiseKernel`` and a ``ReductionKernel`` are such); a ``cupy.RawKernel`` or a kernel of
``cupyx.jit``, with a launch; a ``source`` in CUDA C++ with its ``entry``, compiled by NVRTC; or a
``launcher``, whose ``launch.stream`` is the ``cupy.cuda.Stream``.

All work goes to one stream, which is CuPy's current one while the session is open, and is timed as
that of Numba is. A function that makes new arrays takes memory, so it cannot be captured: it is
timed between plain events, and what the host takes to queue it may be in the time, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from gpubench.backends import devices
from gpubench.backends.cuda_driver import CannotCapture
from gpubench.backends.cuda_program import program_arguments
from gpubench.backends.cuda_session import CudaBackend, CudaSession, needed
from gpubench.backends.opencl_program import defines, does_not_compile
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    Launch,
    Limits,
    Native,
    refuse_launch,
)
from gpubench.distribution import require_extra
from gpubench.errors import BackendError, KernelError
from gpubench.layouts import Layout, array_in, refused_layout, span_bytes
from gpubench.names import Value


class CupySession(CudaSession):
    """CuPy's arrays on a CUDA device, in memory that the session gives back when it is closed.

    Raises ``BackendError`` where CuPy cannot use the device.
    """

    layouts: ClassVar[tuple[Layout, ...]] = ("C", "F", "strided", "backwards", "overlapping")

    def __init__(self, device: str, limits: Limits) -> None:
        self.cupy: Any = import_module("cupy")
        cuda = self._cuda = self.cupy.cuda
        errors = (
            cuda.runtime.CUDARuntimeError,
            cuda.driver.CUDADriverError,
            cuda.memory.OutOfMemoryError,
        )
        super().__init__(device, limits, errors)
        try:
            before = cuda.runtime.getDevice()
            cuda.Device(devices.ordinal(device)).use()
        except errors as error:
            raise BackendError(f"{device}: CuPy cannot use it: {error}") from error
        self._cleanup.callback(cuda.Device(before).use)
        with self._errors:
            self._cleanup.callback(cuda.get_current_stream().use)
            # Without the default stream, so that nothing else waits for it or has it wait. CuPy
            # keeps a stack of streams by `with`, which `use` is no part of: after the next `with`,
            # as in CuPy's own copies of arrays with gaps, the default stream would be current.
            stream = self._cleanup.enter_context(cuda.Stream(non_blocking=True))
            pool = self._pool = cuda.MemoryPool()
            self._cleanup.callback(pool.free_all_blocks)
            self._cleanup.enter_context(cuda.using_allocator(pool.malloc))
            self._use(stream, int(stream.ptr))

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy an array to the device. Raises ``KernelError`` for a dtype that CuPy has not."""
        if refused_layout(array, self.layouts):
            array = np.ascontiguousarray(array)
        with self._errors:
            try:
                if array.flags.forc:
                    native = self.cupy.array(array, copy=True, order="K")
                else:
                    memory = np.empty(span_bytes(array), np.uint8)
                    place = array_in(memory, array)
                    place[...] = array
                    start = self.cupy.array(memory).data + (place.ctypes.data - memory.ctypes.data)
                    native = self.cupy.ndarray(array.shape, array.dtype, start, array.strides)
            except (TypeError, ValueError) as error:
                raise KernelError(
                    f"CuPy has no dtype like {array.dtype}: {error}; use a number of 8 to 64 bits, "
                    "or another backend"
                ) from error
            self.stream.synchronize()
        return native

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not isinstance(native, self.cupy.ndarray):
            return np.array(native)
        with self._errors:
            return np.asarray(self.cupy.asnumpy(native, stream=self.stream, order="A"))

    def restore(self, native: Native, pristine: Native) -> None:
        with self._errors:
            self.cupy.copyto(native, pristine)

    def _function(self, function: Any, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if not self._is_kernel(function):
            if not callable(function):
                raise KernelError(f"{function!r} is no function of CuPy's arrays and no kernel")
            refuse_launch("a function of CuPy's arrays", launch)
            return partial(function, *arguments)
        if isinstance(function, self.cupy.RawKernel):
            arguments = program_arguments(function.code, function.name, {}, arguments)
        return self._queues(function, needed(launch), arguments)

    def _is_kernel(self, function: Any) -> bool:
        """Return whether it is launched: a ``RawKernel``, or a kernel of ``cupyx.jit``."""
        kinds = {(kind.__module__, kind.__name__) for kind in type(function).__mro__}
        return isinstance(function, self.cupy.RawKernel) or (
            ("cupyx.jit._interface", "_JitRawKernel") in kinds
        )

    def _program(self, source: str, entry: str, constants: Mapping[str, Value]) -> Any:
        module = self.cupy.RawModule(code=source, options=defines(constants))
        try:
            return module.get_function(entry)
        except self._cuda.compiler.CompileException as error:
            raise does_not_compile(entry, error.get_message()) from error
        except self._cuda.driver.CUDADriverError as error:
            if "NOT_FOUND" not in str(error):
                raise
            raise KernelError(
                f'the source has no kernel {entry!r}; declare it extern "C" __global__, as CuPy '
                "asks for it by this name"
            ) from error

    def _queues(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        """On CuPy's current stream. Raises ``DeviceError`` for a cooperative launch, which CuPy
        asks for when a kernel is made."""
        if launch.cooperative:
            raise DeviceError(
                "a cooperative launch is not part of what the backend cupy does; make the kernel "
                "with enable_cooperative_groups=True and name a 'launcher'"
            )
        return partial(
            kernel, launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared_bytes
        )

    def _memory_stays(self) -> AbstractContextManager[None]:
        def refuse(nbytes: int) -> Any:
            raise CannotCapture(f"the call takes {nbytes} bytes of memory for an array of its own")

        stays: AbstractContextManager[None] = self._cuda.using_allocator(refuse)
        return stays

    def peak_bytes(self, run: Call) -> int | None:
        """Return what the session's pool, emptied before, has taken from the device after the run:
        it gives nothing back by itself."""
        pool = self._pool
        pool.free_all_blocks()
        before = int(pool.total_bytes())
        run()
        return int(pool.total_bytes()) - before

    def facts(self) -> Mapping[str, Value]:
        """Return the same, with the versions of CuPy, of its CUDA runtime and of its compiler."""
        facts: dict[str, Value] = {**super().facts(), "cupy": str(self.cupy.__version__)}
        runtime = int(self._cuda.runtime.runtimeGetVersion())
        facts["cuda_runtime"] = f"{runtime // 1000}.{runtime % 1000 // 10}"
        with suppress(Exception):  # arrays alone need no compiler
            facts["nvrtc"] = ".".join(map(str, self._cuda.nvrtc.getVersion()))
        return facts


class CupyBackend(CudaBackend):
    """Runs functions and kernels of CuPy on ``cuda:N``."""

    name = "cupy"
    title = "CuPy"
    requires = (require_extra("cupy"),)
    software = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
    concerns = ("cupy", "cupy_cuda13x", "cupy_cuda12x", "nvrtc", "no_gpu", *devices.STEADY_FACTS)
    caches = ("CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
    modules = ("cupy", "cuda.bindings")
    session = CupySession
