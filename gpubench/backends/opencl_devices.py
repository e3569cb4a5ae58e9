"""OpenCL's platforms and devices: which there are, what they allow, why one cannot be used, and
what they raise.

OpenCL has no way to count devices without loading their drivers (PoCL starts its worker threads
then), so a platform is asked only about a device that a case names. No context is created.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gpubench.backends.protocol import (
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    Limits,
)

MIB = 2**20

# Parts of OpenCL's messages (OpenCL 3.0, appendix "Error Codes").
_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
_LOST = ("EXEC_STATUS_ERROR", "DEVICE_NOT_AVAILABLE", "INVALID_COMMAND_QUEUE", "-9999")
"""After a crash; -9999 is NVIDIA's for an illegal read or write by a kernel."""

_INSTALL = "pip install 'gpubench[opencl]'"
_DRIVER = "the driver of the device (for the CPU, PoCL: apt-get install pocl-opencl-icd)"
_LEAST_GPU_CACHE = 128 * MIB
"""Drivers of GPUs report the first level as the global memory cache; no L2 is larger than this."""


def opencl() -> Any:
    """The module pyopencl, imported when it is first needed."""
    return import_module("pyopencl")


def device_fault(name: str) -> str | None:
    """Why there is no such device here, with the next step; ``None`` where it is there."""
    if importlib.util.find_spec("pyopencl") is None:
        return f"{name}: the module 'pyopencl' is not installed; {_INSTALL}, and {_DRIVER}"
    try:
        devices = opencl_devices()
    except Exception as error:
        cause = f"{type(error).__name__}: {str(error).strip()}"
        return f"{name}: OpenCL cannot be used here: {cause}; {_INSTALL}, and {_DRIVER}"
    if not devices:
        return f"{name}: this machine has no OpenCL platform with a device; install {_DRIVER}"
    if name in devices:
        return None
    here = ", ".join(f"{key} ({device_name(device)})" for key, device in devices.items())
    return f"{name}: this machine has no such OpenCL device; it has {here}"


def device_limits(device: Any) -> Limits:
    """Limits on a launch, from ``clGetDeviceInfo``.

    The global size is bounded by the device's addresses alone (OpenCL 3.0,
    ``clEnqueueNDRangeKernel``), and groups cannot wait for each other.
    """
    most = 2**device.address_bits - 1
    x, y, z = device.max_work_item_sizes[:3]
    return Limits(
        threads_per_block=device.max_work_group_size,
        block=(x, y, z),
        grid=(most, most, most),
        shared_bytes_per_block=device.local_mem_size,
        source=device_name(device),
        total_threads=most,
        cooperative_blocks=1,
    )


def cache_bytes(device: Any) -> int:
    """Size of the device's last-level cache, or of what its driver calls the global memory cache;
    0 where it has none or the driver does not tell."""
    return int(device.global_mem_cache_size)


def flush_bytes(device: Any) -> int:
    """Size of a buffer that evicts the device's last-level cache when it is written."""
    cache = cache_bytes(device)
    if device.type & opencl().device_type.GPU:
        cache = max(cache, _LEAST_GPU_CACHE)
    return int(min(2 * max(cache, MIB), device.max_mem_alloc_size))


def opencl_devices() -> dict[str, Any]:
    """Each ``pyopencl.Device`` by name: ``{"cl:0:0": ...}``; empty where there is no platform."""
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


@contextmanager
def opencl_errors(device: str) -> Iterator[None]:
    """Raises what OpenCL raises inside as a ``DeviceError``."""
    try:
        yield
    except Exception as error:
        if device_error := translated(error, device):
            raise device_error from error
        raise


def translated(error: Exception, device: str) -> DeviceError | None:
    """What OpenCL raised, in gpubench's words; ``None`` for an error that is not OpenCL's."""
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
