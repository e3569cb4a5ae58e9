"""PyOpenCL: kernels in OpenCL C on any device that has an OpenCL driver, CPUs among them.

An implementation names a ``source`` and its ``entry``, compiled at the first call in a process; or
a ``launcher``, whose ``launch.stream`` is the ``pyopencl.CommandQueue``; or a function of
``pyopencl.array.Array``. Blocks are work-groups, and a grid counts them.

Only drivers keep compiled programs on disk, where ``POCL_CACHE_DIR``, ``CUDA_CACHE_PATH`` or
``XDG_CACHE_HOME`` says; PyOpenCL's own cache is not used for a ``source``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.backends.ceilings import Ceilings
from gpubench.backends.device_errors import DeviceError
from gpubench.backends.limits import launch_fault
from gpubench.backends.managed import ManagedSession
from gpubench.backends.opencl_ceilings import measured_ceilings
from gpubench.backends.opencl_devices import (
    cache_bytes,
    device_facts,
    device_fault,
    device_limits,
    find_device,
    flush_bytes,
    is_device,
    opencl,
)
from gpubench.backends.opencl_errors import opencl_errors, translated
from gpubench.backends.opencl_program import CompiledKernel, build_options, compile_source
from gpubench.backends.opencl_times import HeldQueueSampler, MarkerClock
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
from gpubench.errors import BackendError, KernelError
from gpubench.names import TIMES, Value, format_shape

_NOTHING = Target(source="__kernel void nothing(void) {}", entry="nothing")


class BoundCall:
    """One run, with OpenCL's errors as gpubench's."""

    def __init__(self, run: Call, device: str, only_queues: bool) -> None:
        self._run = run
        self._device = device
        self.only_queues = only_queues

    def __call__(self) -> Any:
        try:
            return self._run()
        except Exception as error:
            if found := translated(error, self._device):
                raise found from error
            raise


class PyOpenCLSession(ManagedSession):
    """An OpenCL device with a context and an in-order queue of its own."""

    simulated = False
    clock: Clock

    def __init__(self, name: str, device: Any) -> None:
        cl = opencl()
        self._name = name
        self._device = device
        self._limits = device_limits(device)
        self._kernels: dict[tuple[str, str, tuple[str, ...]], CompiledKernel] = {}
        self._scratch: Any = None
        with opencl_errors(name):
            self._context = cl.Context([device])
            self._queue = cl.CommandQueue(
                self._context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
        self.clock = MarkerClock(name, self._queue)

    def close(self) -> None:
        """Wait, then drop what the session made; OpenCL frees what is no longer referenced."""
        with suppress(Exception):
            self._queue.finish()
        self._kernels.clear()
        self._scratch = None

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """A ``pyopencl.array.Array`` with the same layout; one that is not contiguous becomes C."""
        flags = array.flags
        contiguous = flags.c_contiguous or flags.f_contiguous
        source = array if contiguous else np.ascontiguousarray(array)
        with opencl_errors(self._name):
            return _arrays().to_device(self._queue, source)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not isinstance(native, _arrays().Array):
            return np.array(native)
        with opencl_errors(self._name):
            host: np.ndarray[Any, Any] = native.get(self._queue)
        return host

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from buffer to buffer. Another layout is changed on the host first."""
        if native.strides != pristine.strides:
            ordered = np.empty_like(native.get(self._queue))
            ordered[...] = self.to_host(pristine)
            pristine = self.to_native(ordered)
        if native.nbytes == 0:
            return
        with opencl_errors(self._name):
            opencl().enqueue_copy(
                self._queue, native.base_data, pristine.base_data, byte_count=native.nbytes
            )

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind a source's kernel, a launcher or a function; nothing is compiled or queued yet.

        The first call compiles and raises ``KernelError`` for a source that does not compile, has
        no such kernel, or takes other arguments. Here ``DeviceError`` is raised for a launch over
        the device's limits, ``KernelError`` for a source without an entry or a launch.
        """
        if launch is not None and (fault := launch_fault(launch, self._limits)):
            raise DeviceError(fault)
        run = self._runner(target, launch, tuple(arguments))
        return BoundCall(run, self._name, only_queues=target.source is not None)

    def _runner(self, target: Target, launch: Launch | None, arguments: tuple[Any, ...]) -> Call:
        if target.launcher is not None:
            return partial(target.launcher, self._launch_context(launch), *arguments)
        if target.function is not None:
            return partial(target.function, *arguments)
        if target.source is None or target.entry is None:
            raise KernelError("an OpenCL 'source' needs an 'entry', the name of its kernel")
        if launch is None:
            raise KernelError("an OpenCL kernel needs a 'launch' with its block; none is given")
        return self._compiling(target, launch, arguments)

    def _compiling(self, target: Target, launch: Launch, arguments: tuple[Any, ...]) -> Call:
        """Compiles, binds and queues at the first call, and only queues at the others.

        It holds the arguments: OpenCL does not keep the buffers of a kernel alive.
        """
        enqueue: Call | None = None

        def run() -> None:
            nonlocal enqueue
            if enqueue is None:
                enqueue = self._bound(self._compiled(target), launch, arguments)
            enqueue()

        return run

    def _compiled(self, target: Target) -> CompiledKernel:
        text, entry = str(target.source), str(target.entry)
        key = (text, entry, build_options(target.constants))
        if key not in self._kernels:
            self._kernels[key] = compile_source(self._context, *key)
        return self._kernels[key]

    def _bound(self, kernel: CompiledKernel, launch: Launch, given: tuple[Any, ...]) -> Call:
        enqueue, queue = opencl().enqueue_nd_range_kernel, self._queue
        arguments = kernel.arguments(given, launch.shared_bytes)
        if launch.threads_per_block > (most := kernel.most_threads(self._device)):
            raise DeviceError(
                f"block of {format_shape(launch.block)}: {kernel.entry} can have {most} threads "
                f"per block on {self._name}; use a smaller block"
            )
        pairs = zip(launch.grid, launch.block, strict=True)
        items = tuple(blocks * threads for blocks, threads in pairs)
        return lambda: enqueue(queue, kernel.holding(arguments), items, launch.block)

    def _launch_context(self, launch: Launch | None) -> LaunchContext:
        shape = launch or Launch(block=(1, 1, 1), grid=(1, 1, 1))
        return LaunchContext(self._queue, shape.grid, shape.block, shape.shared_bytes)

    def sampler(self, call: Call) -> Sampler:
        """A source is held back until a batch is queued; other calls may wait inside."""
        if isinstance(call, BoundCall) and call.only_queues:
            return HeldQueueSampler(self._name, self._queue, call)
        return LoopSampler(self.clock, call, "event loop")

    def empty(self) -> Call:
        """A kernel that does nothing: its time is the floor under all others."""
        return self.bind(_NOTHING, Launch(block=(1, 1, 1), grid=(1, 1, 1)), ())

    def synchronize(self) -> None:
        with opencl_errors(self._name):
            self._queue.finish()

    def flush(self) -> None:
        """Queue a write of a buffer that is larger than the device's cache."""
        cl = opencl()
        size = flush_bytes(self._device)
        with opencl_errors(self._name):
            if self._scratch is None:
                self._scratch = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
            cl.enqueue_fill_buffer(self._queue, self._scratch, np.uint8(1), 0, size)

    def ceilings(self) -> Ceilings:
        """What the device's memory reaches with kernels that do nothing but move data."""
        return measured_ceilings(self, self._name, self._device, self._queue)

    def facts(self) -> Mapping[str, Value]:
        """Versions, platform, device, driver, the compute units in use and, where the driver tells,
        the size of the cache before the device's memory."""
        platform, cache = self._device.platform, cache_bytes(self._device)
        return {
            **({"l2_bytes": cache} if cache else {}),
            "numpy": np.__version__,
            "pyopencl": opencl().VERSION_TEXT,
            "opencl_platform": f"{platform.name.strip()}, {platform.version.strip()}",
            "opencl_device": self._device.name.strip(),
            "opencl_driver": self._device.driver_version.strip(),
            "compute_units": int(self._device.max_compute_units),
        }


class PyOpenCLBackend:
    """Runs OpenCL C through PyOpenCL on ``cl:PLATFORM:DEVICE``."""

    name = "pyopencl"
    title = "PyOpenCL"
    requires = ("gpubench[opencl]",)
    times = TIMES

    def serves(self, device: str) -> bool:
        return is_device(device)

    def recognises(self, function: Any) -> bool:
        """No function is OpenCL's by itself: a suite writes ``backend: pyopencl``."""
        return False

    def unavailable(self, device: str) -> str | None:
        if not is_device(device):
            return f"{device}: the backend {self.name} runs on cl:0:0, cl:PLATFORM:DEVICE"
        return device_fault(device)

    def device_facts(self, device: str) -> DeviceFacts:
        return device_facts(device)

    def open(self, device: str, threads: int | None = None) -> PyOpenCLSession:
        """Create a context on the device.

        Raises ``BackendError`` where it cannot run, and for ``threads``: no call of OpenCL sets
        how many a device uses (PoCL gives a sub-device all threads of the whole).
        """
        if reason := self.unavailable(device):
            raise BackendError(reason)
        if threads is not None:
            raise BackendError(
                f"{device}: OpenCL cannot be given {threads} threads; leave 'threads' out (PoCL "
                "reads POCL_MAX_PTHREAD_COUNT from the environment of the whole run)"
            )
        return PyOpenCLSession(device, find_device(device))


def _arrays() -> Any:
    return import_module("pyopencl.array")
