"""PyOpenCL: kernels in OpenCL C on any device that has an OpenCL driver, CPUs among them.

An implementation names a ``source`` and its ``entry``, compiled at the first call in a process; or
a ``launcher``, whose ``launch.stream`` is the ``pyopencl.CommandQueue``; or a function of
``pyopencl.array.Array``. Blocks are work-groups, and a grid counts them.

OpenCL has no way to count devices without loading their drivers (PoCL starts its worker threads
then), so a platform is asked only about a device that a case names. That creates no context.

Only drivers keep compiled programs on disk, where ``POCL_CACHE_DIR``, ``CUDA_CACHE_PATH`` or
``XDG_CACHE_HOME`` says; PyOpenCL's own cache is not used for a ``source``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from gpubench.backends.ceilings import BLOCK, BatchTimer, array_bytes, memory_ceilings
from gpubench.backends.devices import STEADY_FACTS
from gpubench.backends.limits import launch_fault
from gpubench.backends.opencl_program import CompiledKernel, defines, opencl
from gpubench.backends.protocol import (
    ONE_THREAD_LAUNCH,
    Backend,
    Call,
    DeviceError,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Errors,
    Launch,
    Limits,
    Native,
    Sampler,
    Session,
    Target,
    made_at_first_call,
    refuse_launch,
)
from gpubench.distribution import require_extra
from gpubench.errors import KernelError
from gpubench.layouts import Layout, laid_out_like
from gpubench.names import TIMES, Value

MIB = 2**20

# Parts of OpenCL's messages (OpenCL 3.0, appendix "Error Codes").
_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
_LOST = ("EXEC_STATUS_ERROR", "DEVICE_NOT_AVAILABLE", "INVALID_COMMAND_QUEUE", "-9999")
"""After a crash; -9999 is NVIDIA's for an illegal read or write by a kernel."""

_INSTALL_OPENCL = f"pip install '{require_extra('opencl')}'"
_DRIVER = "the driver of the device (for the CPU, PoCL: apt-get install pocl-opencl-icd)"
_MIN_GPU_CACHE = 128 * MIB
"""Drivers of GPUs report the first level as the global memory cache; no L2 is larger than this."""

MAX_HELD_RUNS = 256
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

CEILING_ARRAY_IN_CACHES = 4
"""Size of an array of the ceilings, in caches, as STREAM asks for; more would take seconds where
the device is the CPU."""
PART_OF_ALL = 16
"""Each of its three arrays takes at most this part of the device's memory; OpenCL does not tell
what is free."""
SAMPLES, RUNS = 5, 2
"""Tenths of a second together on a CPU."""
FLOAT32_BYTES = 4
"""Bytes of a float32."""


def translated(error: Exception, device: str) -> DeviceError | None:
    """Return what OpenCL raised, in gpubench's words; ``None`` for an error that is not
    OpenCL's."""
    if not isinstance(error, opencl().Error):
        return None
    text, routine = str(error).strip(), str(error.routine)
    # One code for three things: the call that raises it tells which.
    exhausted = "OUT_OF_RESOURCES" in text
    waiting = routine in ("clFinish", "clWaitForEvents", "clEnqueueReadBuffer")
    if exhausted and routine == "clEnqueueNDRangeKernel":
        return DeviceError(
            f"{device} lacks registers or local memory for this block: {text}; use a smaller block"
        )
    if (exhausted and not waiting) or any(code in text for code in _MEMORY):
        return DeviceMemoryError(
            f"{device} is out of memory: {text}; use smaller sizes, or free memory on the device"
        )
    if exhausted or any(code in text for code in _LOST):
        return DeviceLostError(
            f"the work crashed on {device}: {text}; check the kernel's bounds; "
            "only a fresh process can use the device again"
        )
    return DeviceError(f"{device} failed: {text}")


class QueueSampler:
    """Times batches on a queue by the device's own counter.

    A marker on an in-order queue ends when everything queued before it has ended, and a queue that
    records profiles tells when, in nanoseconds (OpenCL 3.0, ``clGetEventProfilingInfo``).

    Where a call does nothing but queue, a batch is queued behind a gate, which then opens: the
    host's launches are not in the time. A call that waits for the device would wait there for ever.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, errors: Errors, queue: Any, call: Call) -> None:
        self._errors, self._queue, self._call = errors, queue, call
        self._held = held = isinstance(call, OnlyQueues)
        self.method = "held-back queue" if held else "event loop"

    def seconds(self, runs: int) -> float:
        whole, rest = divmod(runs, MAX_HELD_RUNS) if self._held else (0, runs)
        with self._errors:
            return sum(map(self._batch, [MAX_HELD_RUNS] * whole + [rest] * bool(rest)))

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


class OnlyQueues(partial[Any]):
    """A call that does nothing but queue, so that a batch of it can be held back."""


class PyOpenCLSession(Session):
    """An OpenCL device with a context and an in-order queue of its own."""

    layouts: ClassVar[tuple[Layout, ...]] = ("C", "F")

    def __init__(self, name: str, device: Any, limits: Limits | None) -> None:
        cl = opencl()
        self._name, self._device, self._limits = name, device, limits
        self._arrays: Any = import_module("pyopencl.array")
        self._errors = Errors(partial(translated, device=name))
        self._kernels: dict[tuple[str, str, tuple[str, ...]], CompiledKernel] = {}
        self._scratch: Any = None
        with self._errors:
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
        """Return a ``pyopencl.array.Array``."""
        array = array if array.flags.forc else np.ascontiguousarray(array)
        with self._errors:
            return self._arrays.to_device(self._queue, array)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        if not isinstance(native, self._arrays.Array):
            return np.array(native)
        with self._errors:
            return np.asarray(native.get(self._queue))

    def restore(self, native: Native, pristine: Native) -> None:
        """Queue a copy from buffer to buffer. Another layout is changed on the host first."""
        if native.strides != pristine.strides:
            pristine = self.to_native(laid_out_like(self.to_host(pristine), native.strides))
        if native.nbytes == 0:
            return
        with self._errors:
            opencl().enqueue_copy(
                self._queue, native.base_data, pristine.base_data, byte_count=native.nbytes
            )

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind a source's kernel, a launcher or a function; nothing is compiled or queued yet.

        The first call compiles and raises ``KernelError`` for a source that does not compile, has
        no such kernel, or takes other arguments. Here ``DeviceError`` is raised for a launch over
        the device's limits, ``KernelError`` for a source without an entry or a launch.
        """
        limits = self._limits
        if launch is not None and limits is not None and (fault := launch_fault(launch, limits)):
            raise DeviceError(fault)
        if target.launcher is not None:
            shape = replace(launch or ONE_THREAD_LAUNCH, stream=self._queue)
            return self._errors.around(partial(target.launcher, shape, *arguments))
        if target.function is not None:
            refuse_launch("a function of PyOpenCL's arrays", launch)
            return self._errors.around(partial(target.function, *arguments))
        if target.source is None or target.entry is None:
            raise KernelError("an OpenCL 'source' needs an 'entry', the name of its kernel")
        if launch is None:
            raise KernelError("an OpenCL kernel needs a 'launch' with its block; none is given")
        options = "-cl-kernel-arg-info", *defines(target.constants)
        source = target.source, target.entry, options

        def compiled() -> Call:
            """Once in a session. It holds the arguments: OpenCL does not keep the buffers of a
            kernel alive."""
            if source not in self._kernels:
                self._kernels[source] = CompiledKernel(self._name, self._context, *source)
            return self._kernels[source].bound(self._queue, launch, arguments)

        return OnlyQueues(self._errors.around(made_at_first_call(compiled)))

    def sampler(self, call: Call) -> Sampler:
        """Hold a source back until a batch is queued; other calls may wait inside."""
        return QueueSampler(self._errors, self._queue, call)

    def empty(self) -> Call:
        """Return a kernel that does nothing: its time is the floor under all others."""
        nothing = Target(source="__kernel void nothing(void) {}", entry="nothing")
        return self.bind(nothing, ONE_THREAD_LAUNCH, ())

    def synchronize(self) -> None:
        with self._errors:
            self._queue.finish()

    def flush(self) -> None:
        """Queue a write of a buffer that is larger than the device's cache."""
        cl = opencl()
        size = flush_bytes(self._device)
        with self._errors:
            if self._scratch is None:
                self._scratch = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
            cl.enqueue_fill_buffer(self._queue, self._scratch, np.uint8(1), 0, size)

    def ceilings(self) -> Mapping[str, float]:
        """Return what the device's memory reaches with kernels that do nothing but move data; takes
        tenths of a second on a CPU and gives all memory back."""
        device = self._device
        most = min(device.global_mem_size // PART_OF_ALL, device.max_mem_alloc_size)
        width = min(BLOCK, device.max_work_group_size)
        nbytes = array_bytes(
            cache_bytes(device), CEILING_ARRAY_IN_CACHES, most, width * FLOAT32_BYTES
        )
        launch = Launch(block=(width, 1, 1), grid=(nbytes // FLOAT32_BYTES // width, 1, 1))
        with self._errors:
            arrays = [
                self._arrays.empty(self._queue, nbytes // FLOAT32_BYTES, np.float32)
                for _ in range(3)
            ]
            for array in arrays:
                # Pages of a CPU's memory that nothing has written are all the same page.
                one = np.float32(1)
                opencl().enqueue_fill_buffer(self._queue, array.base_data, one, 0, nbytes)

        def timer(name: str, used: Sequence[Native]) -> BatchTimer:
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


def cache_bytes(device: Any) -> int:
    """Size of the device's last-level cache, or of what its driver calls the global memory cache;
    0 where it has none or the driver does not tell."""
    return int(device.global_mem_cache_size)


def flush_bytes(device: Any) -> int:
    """Size of a buffer that evicts the device's last-level cache when it is written."""
    cache = cache_bytes(device)
    if device.type & opencl().device_type.GPU:
        cache = max(cache, _MIN_GPU_CACHE)
    # Twice: caches that are not strictly least-recently-used keep lines of a buffer of their size.
    return int(min(2 * max(cache, MIB), device.max_mem_alloc_size))


def opencl_devices() -> dict[str, Any]:
    """Return each ``pyopencl.Device`` by name: ``{"cl:0:0": ...}``; empty where there is no
    platform."""
    cl = opencl()
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as error:
        if "PLATFORM_NOT_FOUND_KHR" in str(error):
            return {}
        raise
    return {
        f"cl:{p}:{d}": device
        for p, platform in enumerate(platforms)
        for d, device in enumerate(platform.get_devices())
    }


def device_name(device: Any) -> str:
    return f"{device.name.strip()} on {device.platform.name.strip()}"


class PyOpenCLBackend(Backend):
    """Runs OpenCL C through PyOpenCL on ``cl:PLATFORM:DEVICE``."""

    name = "pyopencl"
    title = "PyOpenCL"
    times = TIMES
    capabilities = ("gpu", "in_place", "compiles")
    device_names = r"cl:\d{1,3}:\d{1,3}"
    runs_on = "cl:0:0, cl:PLATFORM:DEVICE"
    requires = (require_extra("opencl"),)
    software = ("pyopencl",)
    concerns = ("pyopencl", *STEADY_FACTS)
    caches = ("POCL_CACHE_DIR", "CUDA_CACHE_PATH")
    caches_by_content = (
        "XDG_CACHE_HOME",
    )  # PyOpenCL's own: with the files that a program includes
    # PoCL gives a sub-device all threads of the whole.
    no_threads = (
        "no call of OpenCL sets how many a device uses; leave 'threads' out (PoCL reads "
        "POCL_MAX_PTHREAD_COUNT from the environment of the whole run)"
    )

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if importlib.util.find_spec("pyopencl") is None:
            missing = "the module 'pyopencl' is not installed"
            return f"{device}: {missing}; {_INSTALL_OPENCL}, and {_DRIVER}"
        try:
            devices = opencl_devices()
        except Exception as error:
            cause = f"{type(error).__name__}: {str(error).strip()}"
            return (
                f"{device}: OpenCL cannot be used here: {cause}; {_INSTALL_OPENCL}, and {_DRIVER}"
            )
        if not devices:
            return f"{device}: this machine has no OpenCL platform with a device; install {_DRIVER}"
        if device in devices:
            return None
        here = ", ".join(f"{name} ({device_name(one)})" for name, one in devices.items())
        return f"{device}: this machine has no such OpenCL device; it has {here}"

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits and facts as the driver reports them; the name alone where there is no device."""
        if self.unavailable(device):
            return DeviceFacts(device, scope={"device": device})
        here = opencl_devices()[device]
        # The global size is bounded by the device's addresses alone (OpenCL 3.0,
        # clEnqueueNDRangeKernel), and groups cannot wait for each other.
        most = 2**here.address_bits - 1
        x, y, z = here.max_work_item_sizes[:3]
        limits = Limits(
            threads_per_block=here.max_work_group_size,
            block=(x, y, z),
            grid=(most, most, most),
            shared_bytes_per_block=here.local_mem_size,
            source=device_name(here),
            total_threads=most,
            cooperative_blocks=1,
        )
        scope = {
            "device": device,
            "sm_count": here.max_compute_units,
            "shared_memory_per_block": here.local_mem_size,
            "global_memory": here.global_mem_size,
        }
        return DeviceFacts(limits.source, limits, scope)

    def start(self, device: str, threads: int | None) -> PyOpenCLSession:
        """Create a context on the device."""
        limits = self.device_facts(device).limits
        return PyOpenCLSession(device, opencl_devices()[device], limits)
