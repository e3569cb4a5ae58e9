"""What OpenCL raises, in gpubench's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpubench.backends.device_errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpubench.backends.opencl_devices import opencl

_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
_LOST = ("EXEC_STATUS_ERROR", "DEVICE_NOT_AVAILABLE", "INVALID_COMMAND_QUEUE", "-9999")
"""After a crash; -9999 is NVIDIA's for an illegal read or write by a kernel."""
_RESOURCES = "OUT_OF_RESOURCES"
_LAUNCHES = ("clEnqueueNDRangeKernel",)
_WAITS = ("clFinish", "clWaitForEvents", "clEnqueueReadBuffer")


@contextmanager
def opencl_errors(device: str) -> Iterator[None]:
    """Raises what OpenCL raises inside as a ``DeviceError``."""
    try:
        yield
    except Exception as error:
        if found := translated(error, device):
            raise found from error
        raise


def translated(error: Exception, device: str) -> DeviceError | None:
    """What OpenCL raised, in gpubench's words; ``None`` for an error that is not OpenCL's."""
    if not isinstance(error, opencl().Error):
        return None
    text, routine = str(error).strip(), str(error.routine)
    if _RESOURCES in text:
        return _exhausted(text, routine, device)
    if any(code in text for code in _MEMORY):
        return _out_of_memory(text, device)
    if any(code in text for code in _LOST):
        return _lost(text, device)
    return DeviceError(f"{device} failed: {text}")


def _exhausted(text: str, routine: str, device: str) -> DeviceError:
    """One code for three things (OpenCL 3.0, "CL_OUT_OF_RESOURCES"): when it is raised tells."""
    if routine in _WAITS:
        return _lost(text, device)
    if routine in _LAUNCHES:
        return DeviceError(
            f"{device} lacks registers or local memory for this block: {text}; use a smaller block"
        )
    return _out_of_memory(text, device)


def _out_of_memory(text: str, device: str) -> DeviceMemoryError:
    return DeviceMemoryError(
        f"{device} is out of memory: {text}; use smaller sizes, or free memory on the device"
    )


def _lost(text: str, device: str) -> DeviceLostError:
    return DeviceLostError(
        f"the work crashed on {device}: {text}; check the kernel's bounds; "
        "only a fresh process can use the device again"
    )
