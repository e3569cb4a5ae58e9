"""The GPU's clock while it is measured, with NVML played by a small module."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.backends.devices import ClockState, GpuClocks

H200 = {"SM": 1980, "MEM": 3201}


def with_nvml(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> list[str]:
    """NVML that knows ``GPU-one``; returns what it is asked."""
    asked: list[str] = []
    known: dict[str, Any] = {
        "nvmlDeviceGetHandleByUUID": lambda uuid: {"GPU-one": 1}[uuid],
        "nvmlDeviceGetClockInfo": lambda handle, clock: 1200,
        "nvmlDeviceGetMaxClockInfo": lambda handle, clock: H200[clock],
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x004 | 0x020,
        "nvmlDeviceGetMemoryBusWidth": lambda handle: 6144,
        "nvmlInit": lambda: asked.append("init"),
        "nvmlShutdown": lambda: asked.append("shutdown"),
        **answers,
    }
    nvml = SimpleNamespace(NVMLError=NVMLError, NVML_CLOCK_SM="SM", NVML_CLOCK_MEM="MEM", **known)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return asked


class NVMLError(Exception):
    pass


def refuse(*arguments: object) -> Any:
    raise NVMLError("Not Supported")


def test_the_clock_is_told_with_its_highest_and_why_it_is_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_nvml(monkeypatch)
    reasons = ("software power cap", "software thermal slowdown")
    assert GpuClocks("GPU-one").state() == ClockState(1200, 1980, reasons)


def test_a_driver_that_tells_no_reasons_still_tells_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_nvml(monkeypatch, nvmlDeviceGetCurrentClocksThrottleReasons=refuse)
    assert GpuClocks("GPU-one").state() == ClockState(1200, 1980)


def test_the_datasheets_bandwidth_is_clock_times_width(monkeypatch: pytest.MonkeyPatch) -> None:
    with_nvml(monkeypatch)
    assert GpuClocks("GPU-one").peak_bytes_per_second() == pytest.approx(4.917e12, rel=1e-3)


@pytest.mark.parametrize(
    "answers",
    [
        {"nvmlInit": refuse},
        {"nvmlDeviceGetHandleByUUID": refuse},
        {
            "nvmlDeviceGetClockInfo": refuse,
            "nvmlDeviceGetMemoryBusWidth": refuse,
        },
    ],
    ids=["no driver", "unknown GPU", "clocks not told"],
)
def test_what_nvml_does_not_tell_is_not_known(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]
) -> None:
    with_nvml(monkeypatch, **answers)
    clocks = GpuClocks("GPU-one")
    assert (clocks.state(), clocks.peak_bytes_per_second()) == (None, None)


def test_closing_ends_nvml_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = with_nvml(monkeypatch)
    clocks = GpuClocks("GPU-one")
    clocks.close()
    clocks.close()
    assert asked == ["init", "shutdown"]
    assert clocks.state() is None
