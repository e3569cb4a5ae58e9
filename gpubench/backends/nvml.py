"""The GPUs of this machine, counted and described through NVML: no CUDA context starts.

CUDA's ordinals follow ``CUDA_VISIBLE_DEVICES``, and so does every index here. NVML numbers GPUs by
PCI bus; where a machine mixes models, set ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` to have CUDA do so too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpubench.backends import software
from gpubench.errors import BackendError
from gpubench.names import Value

VISIBLE = "CUDA_VISIBLE_DEVICES"

CORES_PER_SM = {
    (7, 0): 64,
    (7, 2): 64,
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 7): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (10, 3): 128,
    (11, 0): 128,
    (12, 0): 128,
    (12, 1): 128,
}
"""Float32 lanes of a multiprocessor by compute capability (CUDA C++ Programming Guide, table
"Throughput of Native Arithmetic Instructions"): NVML tells lanes, not multiprocessors."""

THROTTLE_REASONS = {
    0x002: "application clocks",
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x100: "display clocks",
}
"""Bits of ``nvmlDeviceGetCurrentClocksEventReasons`` (nvml.h) that slow a busy GPU."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as CUDA would number it; ``None`` for what the driver does not tell."""

    index: int
    """CUDA's ordinal: ``cuda:<index>``."""
    name: str
    uuid: str
    driver: str
    memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    clock_mhz: int | None = None
    """Of the multiprocessors, now."""
    max_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    max_memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()


def gpus() -> tuple[Gpu, ...]:
    """Every GPU that CUDA would see, with its state now; empty where there is none."""
    return _survey(os.environ.get(VISIBLE))[0]


def gpu_count() -> int:
    """How many GPUs CUDA would see; asked once in a process."""
    return len(known_gpus())


def known_gpus() -> tuple[Gpu, ...]:
    """The GPUs as they were when this process first asked: for what does not change."""
    return _first_survey(os.environ.get(VISIBLE), software.requested())[0]


def no_gpu_reason() -> str | None:
    """Why there is no GPU, with the next step; ``None`` when there is one."""
    return _first_survey(os.environ.get(VISIBLE), software.requested())[1]


def cuda_version() -> tuple[int, int] | None:
    """Newest CUDA that the driver runs, ``(13, 0)``; ``None`` where no driver tells."""
    try:
        with _nvml() as nvml:
            version: int | None = _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    except Exception:  # why there is no driver, ``no_gpu_reason`` tells
        return None
    return None if version is None else (version // 1000, version % 1000 // 10)


def gpu_facts(gpu: Gpu) -> dict[str, Value]:
    """Flat facts for the record: ``gpu``, ``driver``, ``gpu_clock_mhz`` ...; unknown left out, and
    of a device in software all that has to do with its speed."""
    capability = gpu.compute_capability
    facts: dict[str, Value | None] = {
        "gpu": gpu.name,
        "gpu_uuid": gpu.uuid,
        "driver": gpu.driver,
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "sm_count": gpu.sm_count,
        "gpu_memory_bytes": gpu.memory_bytes,
        **({} if gpu.name == software.NAME else _pace(gpu)),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _pace(gpu: Gpu) -> dict[str, Value | None]:
    return {
        "gpu_clock_mhz": gpu.clock_mhz,
        "gpu_max_clock_mhz": gpu.max_clock_mhz,
        "gpu_memory_clock_mhz": gpu.memory_clock_mhz,
        "gpu_max_memory_clock_mhz": gpu.max_memory_clock_mhz,
        "gpu_temperature_c": gpu.temperature_c,
        "gpu_power_w": gpu.power_w,
        "gpu_throttling": ", ".join(gpu.throttle_reasons) or "none",
    }


_Survey = tuple[tuple[Gpu, ...], str | None]


@lru_cache(maxsize=8)
def _first_survey(visible: str | None, in_software: bool) -> _Survey:
    """One for each environment: ``in_software`` is only what it depends on beside ``visible``."""
    return _survey(visible)


def _survey(visible: str | None) -> _Survey:
    """GPUs that ``visible`` leaves, and the reason where that is none. Never raises."""
    try:
        with _nvml() as nvml:
            handles = _all_handles(nvml)
            seen = _visible_handles(nvml, handles, visible)
            found = tuple(_gpu(nvml, index, handle) for index, handle in enumerate(seen))
    except Exception as error:  # a broken driver must not stop what needs no GPU
        return (), _driver_fault(error)
    if found:
        return found, None
    if handles:
        return (), (
            f"{VISIBLE}={visible!r} hides the {_gpus(len(handles))} of this machine; "
            "unset it to use them"
        )
    return (), "the NVIDIA driver reports no GPU; check that nvidia-smi lists one"


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


@contextmanager
def _nvml() -> Iterator[Any]:
    import pynvml

    software.software_device()  # its NVML has to be there before NVML is looked for
    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


_DRIVER_FAULTS = {
    "NVMLError_LibraryNotFound": (
        "no NVIDIA driver: its management library (NVML) is not on this machine; "
        "install the driver to use a GPU"
    ),
    "NVMLError_DriverNotLoaded": (
        "the NVIDIA driver is installed and not loaded; "
        "load its kernel module (modprobe nvidia) or restart"
    ),
    "NVMLError_LibRmVersionMismatch": (
        "the NVIDIA driver's library and kernel module differ in version; restart the machine"
    ),
    "NVMLError_NoPermission": (
        "no permission to use the NVIDIA driver; check who may open /dev/nvidiactl"
    ),
}


def _driver_fault(error: Exception) -> str:
    if isinstance(error, BackendError):  # the device in software says itself what to do
        return str(error)
    kind = type(error).__name__
    return _DRIVER_FAULTS.get(
        kind, f"the GPUs cannot be counted: {kind}: {error}; check that nvidia-smi works"
    )


def _all_handles(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]


def _visible_handles(nvml: Any, handles: Sequence[Any], visible: str | None) -> list[Any]:
    """What CUDA would number 0, 1 ...: like CUDA, the list ends at the first unknown entry."""
    if visible is None:
        return list(handles)
    seen: list[Any] = []
    for entry in visible.split(","):
        handle = _handle(nvml, handles, entry.strip())
        if handle is None:
            break
        seen.append(handle)
    return seen


def _handle(nvml: Any, handles: Sequence[Any], entry: str) -> Any | None:
    """Device named by an ordinal, by the start of its UUID, or by the UUID of a MIG instance."""
    if entry.startswith("MIG-"):
        return _ask(nvml, "nvmlDeviceGetHandleByUUID", entry)
    if entry.startswith("GPU-"):
        matches = [h for h in handles if _text(nvml.nvmlDeviceGetUUID(h)).startswith(entry)]
        return matches[0] if len(matches) == 1 else None
    known = entry.isdecimal() and int(entry) < len(handles)
    return handles[int(entry)] if known else None


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:
    def ask(name: str, *arguments: Any) -> Any:
        return _ask(nvml, name, handle, *arguments)

    capability = ask("nvmlDeviceGetCudaComputeCapability")
    memory = ask("nvmlDeviceGetMemoryInfo")
    power = ask("nvmlDeviceGetPowerUsage")
    return Gpu(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        memory_bytes=None if memory is None else int(memory.total),
        compute_capability=None if capability is None else (capability[0], capability[1]),
        sm_count=_sm_count(capability, ask("nvmlDeviceGetNumGpuCores")),
        clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        max_clock_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        memory_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        max_memory_clock_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
        temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        power_w=None if power is None else power / 1000,
        throttle_reasons=_throttle_reasons(ask("nvmlDeviceGetCurrentClocksThrottleReasons")),
    )


def _ask(nvml: Any, name: str, *arguments: Any) -> Any | None:
    """One question to NVML; ``None`` where this driver, device or binding cannot answer it."""
    question: Callable[..., Any] | None = getattr(nvml, name, None)
    try:
        return None if question is None else question(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    """Older bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _sm_count(capability: Sequence[int] | None, cores: int | None) -> int | None:
    lanes = CORES_PER_SM.get((capability[0], capability[1])) if capability else None
    return cores // lanes if cores and lanes else None


def _throttle_reasons(bits: int | None) -> tuple[str, ...]:
    return tuple(reason for bit, reason in THROTTLE_REASONS.items() if (bits or 0) & bit)
