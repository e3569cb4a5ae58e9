"""The clock of one GPU while it is measured, through NVML; a reading is tens of microseconds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gpubench.backends.cuda_facade import ClockState
from gpubench.backends.nvml import THROTTLE_REASONS


class NvmlClocks:
    """Reads clocks of the GPU with a UUID (``GPU-...``); tells nothing where NVML does not."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        with suppress(Exception):  # without NVML the work still runs; only this is not known
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml = pynvml

    def state(self) -> ClockState | None:
        """The multiprocessors' clock now and the highest that they can have."""
        if self._nvml is None:
            return None
        nvml, handle = self._nvml, self._handle
        with suppress(Exception):
            now = nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)
            normal = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
            return ClockState(int(now), int(normal), self._reasons())
        return None

    def _reasons(self) -> tuple[str, ...]:
        with suppress(Exception):
            bits = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
            return tuple(reason for bit, reason in THROTTLE_REASONS.items() if bits & bit)
        return ()

    def peak_bytes_per_second(self) -> float | None:
        """The datasheet's bandwidth: memory clock x bus width, two transfers a clock."""
        with suppress(Exception):
            nvml, handle = self._nvml, self._handle
            clock = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)
            bits = nvml.nvmlDeviceGetMemoryBusWidth(handle)
            return float(2 * clock * 10**6 * bits / 8)
        return None

    def close(self) -> None:
        if self._nvml is not None:
            with suppress(Exception):
                self._nvml.nvmlShutdown()
        self._nvml = None
