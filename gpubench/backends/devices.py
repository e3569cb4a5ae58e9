"""The GPUs of this machine, counted, described and watched through NVML: no CUDA context starts.

CUDA's ordinals follow ``CUDA_VISIBLE_DEVICES``, and so does every index here. NVML numbers GPUs by
PCI bus; where a machine mixes models, set ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` to have CUDA do so too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from gpubench.backends import software
from gpubench.backends.protocol import DeviceFacts, Limits
from gpubench.errors import BackendError
from gpubench.names import Value

VISIBLE = "CUDA_VISIBLE_DEVICES"

LANES_PER_SM = dict.fromkeys(((7, 0), (7, 2), (7, 5), (8, 0)), 64) | dict.fromkeys(
    ((8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)), 128
)
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

STEADY_FACTS = (
    *("gpu", "gpu_uuid", "driver", "compute_capability", "sm_count", "gpu_memory_bytes"),
    *("gpu_max_clock_mhz", "gpu_max_memory_clock_mhz"),
)
"""Facts of a GPU that stay the same for a whole run. The others are readings: sessions tell them
with each case."""


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
    pace: Mapping[str, Value | None] = field(default_factory=dict)
    """Clocks, temperature (°C), power (W) and throttling now, by the names that they have on
    record."""


def gpus() -> tuple[Gpu, ...]:
    """Return every GPU that CUDA would see, with its state now; empty where there is none."""
    return _survey(os.environ.get(VISIBLE))[0]


def known_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs as they were when this process first asked: for what does not change."""
    return _first_survey(os.environ.get(VISIBLE), software.requested())[0]


def gpu_count() -> int:
    """Return how many GPUs CUDA would see; asked once in a process."""
    return len(known_gpus())


def no_gpu_reason() -> str | None:
    """Return why there is no GPU, with the next step; ``None`` when there is one."""
    return _first_survey(os.environ.get(VISIBLE), software.requested())[1]


def is_cuda(device: str) -> bool:
    """Return whether it is a CUDA device, one (``cuda:0``) or all of them (``cuda:*``)."""
    return device.startswith("cuda:")


def ordinal(device: str) -> int:
    """Return the number of ``cuda:N``."""
    return int(device.removeprefix("cuda:"))


def no_such_gpu(device: str, *, in_software: bool = False) -> str | None:
    """Return why ``cuda:N`` cannot be used here; ``None`` where there is such a device. Opens none.

    ``in_software``: by a library that runs on the device in software too.
    """
    if software.requested() and not in_software:
        return f"{device}: {software.NAME} runs Numba, CuPy and PyCUDA alone; use a GPU here"
    if reason := no_gpu_reason():
        without = f"; without one `gpubench verify` checks results, as {software.SWITCH}=1 does"
        tells_of_it = in_software and not software.requested()
        return f"{device}: {reason}{without if tells_of_it else ''}"
    if ordinal(device) < (count := gpu_count()):
        return None
    has = "1 GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
    return f"{device}: this machine has {has}; use one of these, or cuda:* for all"


def cuda_device_facts(device: str, limits: Limits | None = None) -> DeviceFacts:
    """Name and facts of ``cuda:N`` as far as NVML tells; ``limits`` where launches have any."""
    if ordinal(device) >= gpu_count():
        return DeviceFacts(device, limits, {"device": device})
    gpu = known_gpus()[ordinal(device)]
    scope: dict[str, Value | None] = {
        "device": device,
        "sm_count": gpu.sm_count,
        "global_memory": gpu.memory_bytes,
    }
    if limits is not None:
        scope["shared_memory_per_block"] = limits.shared_bytes_per_block
    if gpu.compute_capability is not None:
        version = "{}.{}".format(*gpu.compute_capability)
        scope["compute_capability"] = float(version)
        if limits is not None:
            limits = replace(limits, source=f"{gpu.name} (compute capability {version})")
    return DeviceFacts(gpu.name, limits, {k: v for k, v in scope.items() if v is not None})


def cuda_version() -> tuple[int, int] | None:
    """Newest CUDA that the driver runs, ``(13, 0)``; ``None`` where no driver tells."""
    with suppress(Exception), _nvml() as nvml:  # why there is no driver, ``no_gpu_reason`` tells
        version: int = nvml.nvmlSystemGetCudaDriverVersion_v2()
        return version // 1000, version % 1000 // 10
    return None


def facts_now(device: str, uuid: str | None = None) -> dict[str, Value]:
    """``gpu_facts`` of ``cuda:N`` now; empty where NVML does not know it. A GPU with this ``uuid``
    goes first: an instance of a partitioned one has another, and there the ordinal tells."""
    every = gpus()
    here = [gpu for gpu in every if gpu.uuid == uuid] or every[ordinal(device) :]
    return gpu_facts(here[0]) if here else {}


def gpu_facts(gpu: Gpu) -> dict[str, Value]:
    """Flat facts: ``gpu``, ``driver``, ``gpu_clock_mhz`` ...; unknown left out, and of a device in
    software all that has to do with its speed."""
    capability = gpu.compute_capability
    facts: dict[str, Value | None] = {
        "gpu": gpu.name,
        "gpu_uuid": gpu.uuid,
        "driver": gpu.driver,
        "compute_capability": "{}.{}".format(*capability) if capability else None,
        "sm_count": gpu.sm_count,
        "gpu_memory_bytes": gpu.memory_bytes,
        **({} if gpu.name == software.NAME else gpu.pace),
    }
    return {name: value for name, value in facts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ClockState:
    """The clock of a GPU's multiprocessors at one moment, in MHz."""

    now: int
    normal: int
    """What it reaches while nothing slows it down."""
    reasons: tuple[str, ...] = ()
    """Why the driver slows it down: ``software power cap`` ..."""


class GpuClocks:
    """Reads the clocks of the GPU with a UUID (``GPU-...``) while it is measured.

    NVML stays open, so that a reading takes tens of microseconds. Tells nothing where NVML does
    not: the work still runs without.
    """

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        with suppress(Exception):
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml = pynvml

    def state(self) -> ClockState | None:
        nvml, handle = self._nvml, self._handle
        with suppress(Exception):
            now = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
            normal = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
            bits = _ask(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle) or 0
            return ClockState(int(now), int(normal), throttle_reasons(bits))
        return None

    def peak_bytes_per_second(self) -> float | None:
        """Return the datasheet's bandwidth: memory clock x bus width, two transfers a clock."""
        nvml, handle = self._nvml, self._handle
        with suppress(Exception):
            clock = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)
            bits = nvml.nvmlDeviceGetMemoryBusWidth(handle)
            return float(2 * clock * 10**6 * bits / 8)
        return None

    def close(self) -> None:
        with suppress(Exception):
            self._nvml.nvmlShutdown()
        self._nvml = None


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

_Survey = tuple[tuple[Gpu, ...], str | None]
"""The GPUs, and the reason where there is none."""


@cache
def _first_survey(visible: str | None, in_software: bool) -> _Survey:
    """Survey once for each environment, which `gpubench verify` changes: ``in_software`` is only
    what it depends on beside ``visible``."""
    return _survey(visible)


def _survey(visible: str | None) -> _Survey:
    """GPUs that ``visible`` leaves, and the reason where that is none. Never raises."""
    if _lacks_nvml():
        return (), _DRIVER_FAULTS["NVMLError_LibraryNotFound"]
    try:
        with _nvml() as nvml:
            count = nvml.nvmlDeviceGetCount()
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
            seen = _visible_handles(nvml, handles, visible)
            visible_gpus = tuple(_gpu(nvml, i, handle) for i, handle in enumerate(seen))
    except BackendError as error:  # the device in software says itself what to do
        return (), str(error)
    except Exception as error:  # a broken driver must not stop what needs no GPU
        kind = type(error).__name__
        other = f"the GPUs cannot be counted: {kind}: {error}; check that nvidia-smi works"
        return (), _DRIVER_FAULTS.get(kind, other)
    if visible_gpus:
        return visible_gpus, None
    if handles and software.requested():
        return (), f"{VISIBLE}={visible!r} hides {software.NAME}, the device in software; unset it"
    if handles:
        hidden = "1 GPU" if len(handles) == 1 else f"{len(handles)} GPUs"
        return (), f"{VISIBLE}={visible!r} hides the {hidden} of this machine; unset it to use them"
    return (), "the NVIDIA driver reports no GPU; check that nvidia-smi lists one"


def _lacks_nvml() -> bool:
    """Return whether NVML is not on this machine, as far as one can tell without its package for
    Python: every process that measures would import that for nothing."""
    if sys.platform != "linux" or software.requested() or "pynvml" in sys.modules:
        return False
    try:
        ctypes.CDLL("libnvidia-ml.so.1")  # as pynvml looks for it
    except OSError:
        return True
    return False


@contextmanager
def _nvml() -> Iterator[Any]:
    import pynvml

    software.software_device()  # its NVML has to be there before NVML is looked for
    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _visible_handles(nvml: Any, handles: Sequence[Any], visible: str | None) -> list[Any]:
    """Return what CUDA would number 0, 1 ...: like CUDA, the list ends at the first unknown entry.

    An entry is an ordinal, the start of a UUID, or the UUID of a MIG instance (CUDA C++ Programming
    Guide, "CUDA Environment Variables").
    """
    if visible is None:
        return list(handles)
    seen: list[Any] = []
    for entry in map(str.strip, visible.split(",")):
        matches: Sequence[Any] = ()
        if entry.startswith("MIG-"):
            instance = _ask(nvml, "nvmlDeviceGetHandleByUUID", entry)
            matches = () if instance is None else (instance,)
        elif entry.startswith("GPU-"):
            matches = [h for h in handles if nvml.nvmlDeviceGetUUID(h).startswith(entry)]
        elif entry.isdecimal():
            matches = handles[int(entry) :][:1]
        if len(matches) != 1:
            break
        seen += matches
    return seen


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:
    def ask(name: str, *arguments: Any) -> Any:
        return _ask(nvml, name, handle, *arguments)

    capability = ask("nvmlDeviceGetCudaComputeCapability")
    memory = ask("nvmlDeviceGetMemoryInfo")
    power = ask("nvmlDeviceGetPowerUsage")
    cores = ask("nvmlDeviceGetNumGpuCores")
    bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    lanes = LANES_PER_SM.get(tuple(capability)) if capability else None
    return Gpu(
        index=index,
        name=nvml.nvmlDeviceGetName(handle),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        driver=nvml.nvmlSystemGetDriverVersion(),
        memory_bytes=memory and int(memory.total),
        compute_capability=capability and tuple(capability),
        sm_count=cores // lanes if cores and lanes else None,
        pace={
            "gpu_clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            "gpu_max_clock_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            "gpu_memory_clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            "gpu_max_memory_clock_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
            "gpu_temperature_c": ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            "gpu_power_w": None if power is None else power / 1000,  # NVML tells milliwatts
            "gpu_throttling": ", ".join(throttle_reasons(bits)) or "none",
        },
    )


def _ask(nvml: Any, name: str, *arguments: Any) -> Any | None:
    """Ask NVML one question; ``None`` where this driver, device or binding cannot answer it."""
    question: Callable[..., Any] | None = getattr(nvml, name, None)
    try:
        return None if question is None else question(*arguments)
    except nvml.NVMLError:
        return None


def throttle_reasons(bits: int) -> tuple[str, ...]:
    return tuple(reason for bit, reason in THROTTLE_REASONS.items() if bits & bit)
