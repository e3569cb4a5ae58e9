"""NVML of the device in software: the devices that the driver shows, and no invented figures."""

from __future__ import annotations

from typing import Any

from softcuda_process import on_softcuda, result


def _described() -> list[dict[str, Any]]:
    import pynvml

    pynvml.nvmlInit()
    handles = [
        pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
    ]
    return [
        {
            "name": pynvml.nvmlDeviceGetName(handle),
            "uuid": pynvml.nvmlDeviceGetUUID(handle),
            "bus": pynvml.nvmlDeviceGetPciInfo(handle).busId,
            "capability": pynvml.nvmlDeviceGetCudaComputeCapability(handle),
            "memory": pynvml.nvmlDeviceGetMemoryInfo(handle).total,
            "memory v2": pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).total,
        }
        for handle in handles
    ]


def test_devices_follow_the_options() -> None:
    first, second = on_softcuda(_described, devices=2, cc="9.0", memory="2G")
    assert first == {
        "name": "softcuda",
        "uuid": "GPU-50505050-5050-5050-5050-505050505050",
        "bus": "00000000:50:00.0",
        "capability": [9, 0],
        "memory": 2 << 30,
        "memory v2": 2 << 30,
    }
    assert second["uuid"] == "GPU-51515151-5151-5151-5151-515151515151"


def _as_the_driver_sees_it() -> list[Any]:
    import pynvml
    from cuda.bindings import driver

    result(driver.cuInit(0))
    pynvml.nvmlInit()
    uuid = result(driver.cuDeviceGetUuid(1)).bytes.hex()
    bus = result(driver.cuDeviceGetPCIBusId(13, 1)).strip(b"\0")
    same = pynvml.nvmlDeviceGetHandleByPciBusId(bus)
    return [
        pynvml.nvmlDeviceGetUUID(same).removeprefix("GPU-").replace("-", "") == uuid,
        pynvml.nvmlDeviceGetIndex(same),
        pynvml.nvmlSystemGetCudaDriverVersion() == result(driver.cuDriverGetVersion()),
    ]


def test_nvml_and_the_driver_mean_the_same_device() -> None:
    assert on_softcuda(_as_the_driver_sees_it, devices=2, version="12.8") == [True, 1, True]


def _refused() -> dict[str, str]:
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    questions = {
        "clock": lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "temperature": lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
        "power": lambda: pynvml.nvmlDeviceGetPowerUsage(handle),
        "throttling": lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        "use": lambda: pynvml.nvmlDeviceGetUtilizationRates(handle),
        "index": lambda: pynvml.nvmlDeviceGetHandleByIndex(1),
        "uuid": lambda: pynvml.nvmlDeviceGetHandleByUUID("GPU-1"),
    }
    said = {}
    for name, ask in questions.items():
        try:
            said[name] = str(ask())
        except pynvml.NVMLError as error:
            said[name] = str(error)
    pynvml.nvmlShutdown()
    try:
        pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        said["after shutdown"] = str(error)
    return said


def test_what_a_device_in_software_does_not_have_is_not_supported() -> None:
    assert on_softcuda(_refused) == {
        "clock": "Not Supported",
        "temperature": "Not Supported",
        "power": "Not Supported",
        "throttling": "Not Supported",
        "use": "Not Supported",
        "index": "Invalid Argument",
        "uuid": "Not Found",
        "after shutdown": "Uninitialized",
    }
