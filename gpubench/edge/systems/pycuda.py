"""PyCUDA: programs in CUDA C++ on CUDA devices, and its arrays.

An implementation names a ``source`` with its ``entry``, which PyCUDA's ``SourceModule`` compiles at
the first call in a session; a ``launcher``, whose ``launch.stream`` is a ``pycuda.driver.Stream``;
or a function of ``pycuda.gpuarray.GPUArray``, whose work PyCUDA queues on the default stream.

``SourceModule`` runs ``nvcc``. Where that is not installed, NVRTC (which comes with
``gpubench-suite[pycuda]``) compiles in its place, for PyCUDA's arrays too; the record says which
(``pycuda_compiler``).
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from gpubench.backends import devices
from gpubench.backends.cuda_driver import checked
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
from gpubench.layouts import Layout, laid_out_like
from gpubench.names import Value


class NvrtcError(Exception):
    """A program that does not compile, with the compiler's log."""


class PycudaSession(CudaSession):
    """PyCUDA's arrays on a CUDA device, in its primary context, with a stream.

    The stream waits for the default one and is waited for by it, so that what PyCUDA's arrays queue
    there lies between the events of a sample. Raises ``BackendError`` where PyCUDA cannot use the
    device.
    """

    layouts: ClassVar[tuple[Layout, ...]] = ("C", "F")

    def __init__(self, device: str, limits: Limits) -> None:
        # Before anything else asks for the driver: PyCUDA is linked against it.
        self._pycuda: Any = import_module("pycuda.driver")
        self._arrays: Any = import_module("pycuda.gpuarray")
        cuda = self._pycuda
        super().__init__(device, limits, (cuda.Error,))
        try:
            primary_context(devices.ordinal(device)).push()
        except cuda.Error as error:
            raise BackendError(f"{device}: PyCUDA cannot use it: {error}") from error
        self._cleanup.callback(cuda.Context.pop)
        compiler: Any = import_module("pycuda.compiler")
        self._source_module = compiler.SourceModule
        self._compiler = "nvcc" if shutil.which("nvcc") and not self.simulated else "nvrtc"
        if self._compiler == "nvrtc" and not self.simulated:  # softcuda does so by itself
            own, compiler.compile = compiler.compile, compiled
            self._cleanup.callback(setattr, compiler, "compile", own)
        with self._errors:
            stream = cuda.Stream()
            self._use(stream, int(stream.handle))

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        array = array if array.flags.forc else np.ascontiguousarray(array)
        with self._errors:
            return self._arrays.to_gpu(array)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not isinstance(native, self._arrays.GPUArray):
            return np.array(native)
        self.synchronize()
        with self._errors:
            return np.asarray(native.get())

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from array to array. Another layout is changed on the host first."""
        if native.strides != pristine.strides:
            pristine = self.to_native(laid_out_like(self.to_host(pristine), native.strides))
        with self._errors:
            self._pycuda.memcpy_dtod_async(
                native.gpudata, pristine.gpudata, native.nbytes, self.stream
            )

    def synchronize(self) -> None:
        """Wait for the default stream too, which PyCUDA's arrays use."""
        with self._errors:
            self._pycuda.Context.synchronize()

    def _function(self, function: Any, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        if isinstance(function, self._pycuda.Function):
            return self._queues(function, needed(launch), arguments)
        if not callable(function):
            raise KernelError(f"{function!r} is no function of PyCUDA's arrays and no kernel")
        refuse_launch("a function of PyCUDA's arrays", launch)
        return partial(function, *arguments)

    def _program(self, source: str, entry: str, constants: Mapping[str, Value]) -> Any:
        try:
            module = self._source_module(source, options=list(defines(constants)))
        except (self._pycuda.CompileError, NvrtcError) as error:
            log = str(getattr(error, "stderr", None) or error)
            raise does_not_compile(entry, log) from error
        try:
            return module.get_function(entry)
        except self._pycuda.LogicError as error:
            raise KernelError(
                f"the source has no kernel {entry!r}; name one that it declares __global__"
            ) from error

    def _queues(self, kernel: Any, launch: Launch, arguments: Sequence[Any]) -> Call:
        if launch.cooperative:
            raise DeviceError(
                "PyCUDA has no cooperative launch; leave out 'cooperative', or use another backend"
            )
        return partial(
            kernel,
            *arguments,
            block=launch.block,
            grid=launch.grid,
            shared=launch.shared_bytes,
            stream=self.stream,
        )

    def facts(self) -> Mapping[str, Value]:
        """Return the same, with the versions of PyCUDA and of the CUDA that it was built with, and
        what compiles."""
        return {
            **super().facts(),
            "pycuda": version("pycuda"),
            "pycuda_cuda": ".".join(map(str, self._pycuda.get_version())),
            "pycuda_compiler": self._compiler,
        }

    def close(self) -> None:
        if self.stream is not None:
            with suppress(self._pycuda.Error):
                self._pycuda.Context.synchronize()
        super().close()


@cache
def primary_context(ordinal: int) -> Any:
    """Return a device's context, which the process keeps: arrays that outlive a session are given
    back in it. Detached at the end, before PyCUDA looks for what is left."""
    cuda: Any = import_module("pycuda.driver")
    cuda.init()
    context = cuda.Device(ordinal).retain_primary_context()
    atexit.register(context.detach)
    return context


def compiled(
    source: str,
    nvcc: str = "nvcc",
    options: Sequence[str] | None = None,
    keep: bool = False,
    no_extern_c: bool = False,
    arch: str | None = None,
    code: str | None = None,
    cache_dir: str | None = None,
    include_dirs: Sequence[str] = (),
    target: str = "cubin",
) -> bytes:
    """``pycuda.compiler.compile`` by NVRTC: machine code for the current context's device. What
    only means something for nvcc is left out, and nothing is kept on disk.

    Raises ``NvrtcError`` for a program that does not compile.
    """
    nvrtc: Any = import_module("cuda.bindings.nvrtc")
    pycuda: Any = import_module("pycuda.compiler")
    if arch is None:
        driver: Any = import_module("pycuda.driver")
        arch = "sm_{}{}".format(*driver.Context.get_device().compute_capability())
    folders = [*include_dirs, pycuda._find_pycuda_include_path()]
    with suppress(Exception):  # a program without headers needs none of CUDA's
        pathfinder: Any = import_module("cuda.pathfinder")
        folders += filter(None, [pathfinder.find_nvidia_header_directory("cudart")])
    flags = [f"--gpu-architecture={arch}", *(options or ()), *(f"-I{folder}" for folder in folders)]
    text = source if no_extern_c else f'extern "C" {{\n{source}\n}}\n'
    program = checked(nvrtc.nvrtcCreateProgram(text.encode(), b"source.cu", 0, [], []))

    def written(size_of: Callable[..., Any], fill: Callable[..., Any]) -> bytes:
        room = b" " * int(checked(size_of(program)))
        checked(fill(program, room))
        return room

    try:
        encoded = [flag.encode() for flag in flags]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if result != 0:
            log = written(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            raise NvrtcError(log.decode(errors="replace").rstrip("\0"))
        return written(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


class PycudaBackend(CudaBackend):
    """Runs programs in CUDA C++ and functions of PyCUDA's arrays on ``cuda:N``."""

    name = "pycuda"
    title = "PyCUDA"
    requires = (require_extra("pycuda"),)
    software = ("pycuda",)
    concerns = ("pycuda", "pycuda_cuda", "pycuda_compiler", "no_gpu", *devices.STEADY_FACTS)
    caches = ("PYCUDA_CACHE_DIR", "CUDA_CACHE_PATH")
    modules = ("pycuda", "cuda.bindings")
    session = PycudaSession
