"""PyOpenCL: kernels in OpenCL C on any device that has an OpenCL driver, CPUs among them.

An implementation names a ``source`` and its ``entry``, compiled at the first call in a process; or
a ``launcher``, whose ``launch.stream`` is the ``pyopencl.CommandQueue``; or a function of
``pyopencl.array.Array``. Blocks are work-groups, and a grid counts them.

Only drivers keep compiled programs on disk, where ``POCL_CACHE_DIR``, ``CUDA_CACHE_PATH`` or
``XDG_CACHE_HOME`` says; PyOpenCL's own cache is not used for a ``source``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np

from gpubench.backends.ceilings import BLOCK, Seconds, array_bytes, memory_ceilings
from gpubench.backends.devices import STEADY_FACTS
from gpubench.backends.limits import launch_fault
from gpubench.backends.opencl_devices import (
    cache_bytes,
    device_fault,
    device_limits,
    device_name,
    flush_bytes,
    opencl,
    opencl_devices,
    opencl_errors,
    translated,
)
from gpubench.backends.opencl_program import CompiledKernel, build_options, compile_source
from gpubench.backends.protocol import (
    Backend,
    Call,
    DeviceError,
    DeviceFacts,
    Launch,
    LaunchContext,
    Native,
    Sampler,
    Session,
    Target,
)
from gpubench.errors import BackendError, KernelError
from gpubench.names import TIMES, Value, format_shape

MOST_HELD = 256
"""Runs that are held back at once; drivers bound the commands that a queue can hold."""

MOVING = """
__kernel void copy(__global float *target, __global const float *source) {
    size_t i = get_global_id(0);
    target[i] = source[i];
}
__kernel void triad(
    __global float *target, __global const float *one, __global const float *other
) {
    size_t i = get_global_id(0);
    target[i] = one[i] + 3.0f * other[i];
}
"""
"""Kernels of the ceilings: float32, because not every device has float64. A grid has no thread too
many."""

TIMES_CACHE = 4
"""Size of an array of the ceilings, in caches, as STREAM asks for; more would take seconds where
the device is the CPU."""
PART_OF_ALL = 16
"""Each of its three arrays takes at most this part of the device's memory; OpenCL does not tell
what is free."""
SAMPLES, RUNS = 5, 2
"""Tenths of a second together on a CPU."""
ITEM = 4
"""Bytes of a float32."""

Source = tuple[str, str, tuple[str, ...]]
"""Text of a program, name of a kernel in it, options for the compiler."""

_NOTHING = Target(source="__kernel void nothing(void) {}", entry="nothing")


class QueueSampler:
    """Times batches on a queue by the device's own counter.

    A marker on an in-order queue ends when everything queued before it has ended, and a queue that
    records profiles tells when, in nanoseconds (OpenCL 3.0, ``clGetEventProfilingInfo``).

    Where a call does nothing but queue, a batch is queued behind a gate, which then opens: the
    host's launches are not in the time. A call that waits for the device would wait there for ever.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, device: str, queue: Any, call: Call, held: bool) -> None:
        self._device, self._queue, self._call, self._held = device, queue, call, held
        self.method = "held-back queue" if held else "event loop"

    def seconds(self, runs: int) -> float:
        whole, rest = divmod(runs, MOST_HELD) if self._held else (0, runs)
        with opencl_errors(self._device):
            return sum(map(self._batch, [MOST_HELD] * whole + [rest] * bool(rest)))

    def _batch(self, runs: int) -> float:
        cl = opencl()
        self._queue.finish()
        gates = [cl.UserEvent(self._queue.context)] if self._held else []
        try:
            begin = cl.enqueue_marker(self._queue, wait_for=gates or None)
            for _ in repeat(None, runs):
                self._call()
            end = cl.enqueue_marker(self._queue)
        finally:
            for gate in gates:
                gate.set_status(cl.command_execution_status.COMPLETE)
        end.wait()
        return float(end.profile.end - begin.profile.end) * 1e-9


class BoundCall:
    """One run, with OpenCL's errors as gpubench's."""

    def __init__(self, run: Call, device: str, only_queues: bool) -> None:
        self._run, self._device, self.only_queues = run, device, only_queues

    def __call__(self) -> Any:
        try:
            return self._run()
        except Exception as error:
            if device_error := translated(error, self._device):
                raise device_error from error
            raise


class PyOpenCLSession(Session):
    """An OpenCL device with a context and an in-order queue of its own."""

    def __init__(self, name: str, device: Any) -> None:
        cl = opencl()
        self._name = name
        self._device = device
        self._limits = device_limits(device)
        self._kernels: dict[Source, CompiledKernel] = {}
        self._scratch: Any = None
        with opencl_errors(name):
            self._context = cl.Context([device])
            self._queue = cl.CommandQueue(
                self._context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )

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
        if target.launcher is not None:
            context = LaunchContext.on(self._queue, launch)
            return BoundCall(partial(target.launcher, context, *arguments), self._name, False)
        if target.function is not None:
            return BoundCall(partial(target.function, *arguments), self._name, False)
        if target.source is None or target.entry is None:
            raise KernelError("an OpenCL 'source' needs an 'entry', the name of its kernel")
        if launch is None:
            raise KernelError("an OpenCL kernel needs a 'launch' with its block; none is given")
        source = target.source, target.entry, build_options(target.constants)
        enqueue: Call | None = None

        def run() -> None:
            """Compiles, binds and queues at the first call, and only queues at the others.

            It holds the arguments: OpenCL does not keep the buffers of a kernel alive.
            """
            nonlocal enqueue
            if enqueue is None:
                enqueue = self._compiled(source, launch, arguments)
            enqueue()

        return BoundCall(run, self._name, only_queues=True)

    def _compiled(self, source: Source, launch: Launch, given: Sequence[Any]) -> Call:
        """What queues the kernel; a source is compiled once in a session."""
        if source not in self._kernels:
            self._kernels[source] = compile_source(self._context, *source)
        kernel, queue = self._kernels[source], self._queue
        enqueue = opencl().enqueue_nd_range_kernel
        arguments = kernel.arguments(given, launch.shared_bytes)
        if launch.threads_per_block > (most := kernel.most_threads(self._device)):
            raise DeviceError(
                f"block of {format_shape(launch.block)}: {kernel.entry} can have {most} threads "
                f"per block on {self._name}; use a smaller block"
            )
        pairs = zip(launch.grid, launch.block, strict=True)
        items = tuple(blocks * threads for blocks, threads in pairs)
        return lambda: enqueue(queue, kernel.holding(arguments), items, launch.block)

    def sampler(self, call: Call) -> Sampler:
        """A source is held back until a batch is queued; other calls may wait inside."""
        held = isinstance(call, BoundCall) and call.only_queues
        return QueueSampler(self._name, self._queue, call, held)

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

    def ceilings(self) -> Mapping[str, float]:
        """What the device's memory reaches with kernels that do nothing but move data; takes tenths
        of a second on a CPU and gives all memory back."""
        device = self._device
        most = min(device.global_mem_size // PART_OF_ALL, device.max_mem_alloc_size)
        width = min(BLOCK, device.max_work_group_size)
        nbytes = array_bytes(cache_bytes(device), TIMES_CACHE, most, width * ITEM)
        launch = Launch(block=(width, 1, 1), grid=(nbytes // ITEM // width, 1, 1))
        with opencl_errors(self._name):
            arrays = [_arrays().empty(self._queue, nbytes // ITEM, np.float32) for _ in range(3)]
            for array in arrays:
                # Pages of a CPU's memory that nothing has written are all the same page.
                one = np.float32(1)
                opencl().enqueue_fill_buffer(self._queue, array.base_data, one, 0, nbytes)

        def timer(name: str, used: Sequence[Native]) -> Seconds:
            call = self.bind(Target(source=MOVING, entry=name), launch, used)
            call()  # compiles
            return self.sampler(call).seconds

        return memory_ceilings(arrays, nbytes, timer, SAMPLES, RUNS)

    def facts(self) -> Mapping[str, Value]:
        """Versions, platform, device, driver, the compute units in use and, where the driver tells,
        the size of the cache before the device's memory."""
        platform, cache = self._device.platform, cache_bytes(self._device)
        return {
            **super().facts(),
            **({"l2_bytes": cache} if cache else {}),
            "pyopencl": opencl().VERSION_TEXT,
            "opencl_platform": f"{platform.name.strip()}, {platform.version.strip()}",
            "opencl_device": self._device.name.strip(),
            "opencl_driver": self._device.driver_version.strip(),
            "compute_units": int(self._device.max_compute_units),
        }


class PyOpenCLBackend(Backend):
    """Runs OpenCL C through PyOpenCL on ``cl:PLATFORM:DEVICE``."""

    name = "pyopencl"
    title = "PyOpenCL"
    times = TIMES
    runs_on = "cl:0:0, cl:PLATFORM:DEVICE"
    requires = ("gpubench[opencl]",)
    software = ("pyopencl",)
    concerns = ("pyopencl", *STEADY_FACTS)
    caches = ("POCL_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")

    def serves(self, device: str) -> bool:
        return re.fullmatch(r"cl:\d{1,3}:\d{1,3}", device) is not None

    def unavailable(self, device: str) -> str | None:
        return super().unavailable(device) or device_fault(device)

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits and facts as the driver reports them; the name alone where there is no device."""
        if device_fault(device):
            return DeviceFacts(device, scope={"device": device})
        cl_device = opencl_devices()[device]
        scope = {
            "device": device,
            "sm_count": cl_device.max_compute_units,
            "shared_memory_per_block": cl_device.local_mem_size,
            "global_memory": cl_device.global_mem_size,
        }
        return DeviceFacts(device_name(cl_device), device_limits(cl_device), scope)

    def start(self, device: str, threads: int | None) -> PyOpenCLSession:
        """Create a context on the device.

        Raises ``BackendError`` for ``threads``: no call of OpenCL sets how many a device uses (PoCL
        gives a sub-device all threads of the whole).
        """
        if threads is not None:
            raise BackendError(
                f"{device}: OpenCL cannot be given {threads} threads; leave 'threads' out (PoCL "
                "reads POCL_MAX_PTHREAD_COUNT from the environment of the whole run)"
            )
        return PyOpenCLSession(device, opencl_devices()[device])


def _arrays() -> Any:
    return import_module("pyopencl.array")
