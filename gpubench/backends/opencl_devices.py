"""OpenCL's platforms and devices: which there are, what they allow, and why one cannot be used.

OpenCL has no way to count devices without loading their drivers (PoCL starts its worker threads
then), so a platform is asked only about a device that a case names. No context is created.
"""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module
from typing import Any

from gpubench.backends.protocol import DeviceFacts, Limits
from gpubench.errors import BackendError

MIB = 2**20

_DEVICE = re.compile(r"cl:\d{1,3}:\d{1,3}")
_INSTALL = "pip install 'gpubench[opencl]'"
_DRIVER = "the driver of the device (for the CPU, PoCL: apt-get install pocl-opencl-icd)"
_LEAST_GPU_CACHE = 128 * MIB
"""Drivers of GPUs report the first level as the global memory cache; no L2 is larger than this."""


def opencl() -> Any:
    """The module pyopencl, imported when it is first needed."""
    return import_module("pyopencl")


def is_device(name: str) -> bool:
    """Whether it is written ``cl:PLATFORM:DEVICE``, ``cl:0:0`` for example."""
    return _DEVICE.fullmatch(name) is not None


def device_fault(name: str) -> str | None:
    """Why there is no such device here, with the next step; ``None`` where it is there."""
    if importlib.util.find_spec("pyopencl") is None:
        return f"{name}: the module 'pyopencl' is not installed; {_INSTALL}, and {_DRIVER}"
    try:
        found = _devices()
    except Exception as error:
        cause = f"{type(error).__name__}: {str(error).strip()}"
        return f"{name}: OpenCL cannot be used here: {cause}; {_INSTALL}, and {_DRIVER}"
    if not found:
        return f"{name}: this machine has no OpenCL platform with a device; install {_DRIVER}"
    if name in found:
        return None
    known = ", ".join(f"{key} ({_name(device)})" for key, device in found.items())
    return f"{name}: this machine has no such OpenCL device; it has {known}"


def find_device(name: str) -> Any:
    """The ``pyopencl.Device`` of that name; raises ``BackendError`` where there is none."""
    if reason := device_fault(name):
        raise BackendError(reason)
    return _devices()[name]


def device_facts(name: str) -> DeviceFacts:
    """Limits and facts as the driver reports them; the name alone where there is no device."""
    if device_fault(name):
        return DeviceFacts(name, scope={"device": name})
    device = _devices()[name]
    scope = {
        "device": name,
        "sm_count": device.max_compute_units,
        "shared_memory_per_block": device.local_mem_size,
        "global_memory": device.global_mem_size,
    }
    return DeviceFacts(_name(device), device_limits(device), scope)


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
        source=_name(device),
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


def _devices() -> dict[str, Any]:
    """Every device by name: ``{"cl:0:0": ...}``; empty where no platform is installed."""
    return {
        f"cl:{p}:{d}": device
        for p, platform in enumerate(_platforms())
        for d, device in enumerate(platform.get_devices())
    }


def _platforms() -> list[Any]:
    cl = opencl()
    try:
        return list(cl.get_platforms())
    except cl.LogicError as error:
        if "PLATFORM_NOT_FOUND_KHR" in str(error):
            return []
        raise


def _name(device: Any) -> str:
    return f"{device.name.strip()} on {device.platform.name.strip()}"
