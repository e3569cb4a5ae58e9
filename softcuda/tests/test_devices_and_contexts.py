"""Devices and contexts of the device in software."""

from __future__ import annotations

from typing import Any

from softcuda_process import error, on_softcuda, reports, result, use_device


def _identities() -> dict[str, Any]:
    from cuda.bindings import driver

    result(driver.cuInit(0))
    count = int(result(driver.cuDeviceGetCount()))
    return {
        "names": [
            result(driver.cuDeviceGetName(32, i)).split(b"\0")[0].decode() for i in range(count)
        ],
        "uuids": [result(driver.cuDeviceGetUuid(i)).bytes[:2].hex() for i in range(count)],
        "buses": [
            result(driver.cuDeviceGetPCIBusId(13, i)).strip(b"\0").decode() for i in range(count)
        ],
        "by bus": int(result(driver.cuDeviceGetByPCIBusId(b"0000:51:00.0"))) if count > 1 else None,
        "beyond": error(driver.cuDeviceGet(count)),
        "luid": error(driver.cuDeviceGetLuid(0)),
    }


def test_devices_have_one_name_and_their_own_identities() -> None:
    assert on_softcuda(_identities, devices=2) == {
        "names": ["softcuda", "softcuda"],
        "uuids": ["5050", "5151"],
        "buses": ["0000:50:00.0", "0000:51:00.0"],
        "by bus": 1,
        "beyond": "INVALID_DEVICE",
        "luid": "NOT_SUPPORTED",
    }


def _visible_uuids() -> list[str]:
    from cuda.bindings import driver

    if error(driver.cuInit(0)) == "NO_DEVICE":
        return []
    count = result(driver.cuDeviceGetCount())
    return [result(driver.cuDeviceGetUuid(i)).bytes[:1].hex() for i in range(count)]


def test_devices_are_hidden_and_reordered_as_cuda_does() -> None:
    expected = {
        "2,0": ["52", "50"],
        "1,7,0": ["51"],
        "GPU-52": ["52"],
        "GPU-5": [],
        "1,1": [],
        "": [],
    }
    seen = {text: on_softcuda(_visible_uuids, devices=3, visible=text) for text in expected}
    assert seen == expected


def _limits() -> list[int]:
    from cuda.bindings import driver

    result(driver.cuInit(0))
    names = (
        "COMPUTE_CAPABILITY_MAJOR",
        "COMPUTE_CAPABILITY_MINOR",
        "MULTIPROCESSOR_COUNT",
        "MAX_THREADS_PER_BLOCK",
        "MAX_SHARED_MEMORY_PER_BLOCK",
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
        "MAX_THREADS_PER_MULTIPROCESSOR",
        "WARP_SIZE",
    )
    attributes = driver.CUdevice_attribute
    keys = [getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}") for name in names]
    return [int(result(driver.cuDeviceGetAttribute(key, 0))) for key in keys]


def test_attributes_follow_the_capability_and_the_options() -> None:
    kib = 1024
    assert on_softcuda(_limits) == [8, 0, 4, 1024, 48 * kib, 163 * kib, 2048, 32]
    assert on_softcuda(_limits, cc="12.0") == [12, 0, 4, 1024, 48 * kib, 99 * kib, 1536, 32]
    smaller = on_softcuda(_limits, cc="75", sms=2, block=256, shared="16K")
    assert smaller == [7, 5, 2, 256, 16 * kib, 16 * kib, 1024, 32]


def _clocks() -> list[int]:
    from cuda.bindings import driver

    result(driver.cuInit(0))
    ask = driver.CUdevice_attribute
    keys = (
        ask.CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
        ask.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
        ask.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
        ask.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    )
    return [int(result(driver.cuDeviceGetAttribute(key, 0))) for key in keys]


def test_a_device_in_software_claims_no_clock_no_bus_and_no_cache() -> None:
    assert on_softcuda(_clocks) == [0, 0, 0, 0]


def _primary_context() -> dict[str, Any]:
    from cuda.bindings import driver

    result(driver.cuInit(0))
    said: dict[str, Any] = {"unretained": error(driver.cuDevicePrimaryCtxRelease(0))}
    first = use_device()
    second = result(driver.cuDevicePrimaryCtxRetain(0))
    said["same"] = int(first) == int(second)
    said["active"] = int(result(driver.cuDevicePrimaryCtxGetState(0))[1])
    array = result(driver.cuMemAlloc(100))
    result(driver.cuDevicePrimaryCtxRelease(0))
    said["still"] = error(driver.cuMemAlloc(100))
    result(driver.cuDevicePrimaryCtxRelease(0))
    said["ended"] = error(driver.cuMemAlloc(100))
    said["inactive"] = int(result(driver.cuDevicePrimaryCtxGetState(0))[1])
    use_device()
    said["again"] = error(driver.cuMemFree(array))
    said["free"] = result(driver.cuMemGetInfo())[0]
    said["found"] = reports()
    return said


def test_a_primary_context_lives_as_long_as_it_is_retained() -> None:
    assert on_softcuda(_primary_context, memory="1M") == {
        "unretained": "INVALID_CONTEXT",
        "same": True,
        "active": 1,
        "still": "SUCCESS",
        "ended": "CONTEXT_IS_DESTROYED",
        "inactive": 0,
        "again": "INVALID_VALUE",
        "free": 1 << 20,
        "found": ["free: cuMemFree was given allocation 1, which was freed before"],
    }


def _stack() -> dict[str, Any]:
    from cuda.bindings import driver

    result(driver.cuInit(0))
    said: dict[str, Any] = {
        "none": int(result(driver.cuCtxGetCurrent())),
        "no device": error(driver.cuCtxGetDevice()),
        "pop": error(driver.cuCtxPopCurrent()),
        "alloc": error(driver.cuMemAlloc(8)),
    }
    zero, one = (result(driver.cuDevicePrimaryCtxRetain(i)) for i in (0, 1))
    result(driver.cuCtxPushCurrent(zero))
    result(driver.cuCtxPushCurrent(one))
    said["top"] = int(result(driver.cuCtxGetDevice()))
    said["popped"] = int(result(driver.cuCtxPopCurrent())) == int(one)
    said["below"] = int(result(driver.cuCtxGetDevice()))
    result(driver.cuCtxSetCurrent(one))
    said["replaced"] = int(result(driver.cuCtxGetDevice()))
    result(driver.cuCtxSetCurrent(driver.CUcontext(0)))
    said["cleared"] = int(result(driver.cuCtxGetCurrent()))
    said["unknown"] = error(driver.cuCtxPushCurrent(driver.CUcontext(4096)))
    return said


def test_each_thread_has_a_stack_of_contexts() -> None:
    assert on_softcuda(_stack, devices=2) == {
        "none": 0,
        "no device": "INVALID_CONTEXT",
        "pop": "INVALID_CONTEXT",
        "alloc": "INVALID_CONTEXT",
        "top": 1,
        "popped": True,
        "below": 0,
        "replaced": 1,
        "cleared": 0,
        "unknown": "INVALID_CONTEXT",
    }


def _own_context() -> dict[str, Any]:
    from cuda.bindings import driver

    primary = use_device()
    context = result(driver.cuCtxCreate(None, 0, 0))
    current = int(result(driver.cuCtxGetCurrent())) == int(context)
    event = result(driver.cuEventCreate(0))
    result(driver.cuCtxDestroy(context))
    return {
        "current": current,
        "then": int(result(driver.cuCtxGetCurrent())) == int(primary),
        "twice": error(driver.cuCtxDestroy(context)),
        "primary": error(driver.cuCtxDestroy(primary)),
        "event": error(driver.cuEventQuery(event)),
        "found": reports(),
    }


def test_a_created_context_takes_its_objects_along_when_it_is_destroyed() -> None:
    assert on_softcuda(_own_context) == {
        "current": True,
        "then": True,
        "twice": "CONTEXT_IS_DESTROYED",
        "primary": "INVALID_CONTEXT",
        "event": "INVALID_HANDLE",
        "found": ["handle: cuEventQuery was given event 1, which was destroyed before"],
    }


def _peers() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device(0)
    other = use_device(1)
    use_device(0)
    return {
        "can": int(result(driver.cuDeviceCanAccessPeer(0, 1))),
        "self": int(result(driver.cuDeviceCanAccessPeer(0, 0))),
        "enabled": error(driver.cuCtxEnablePeerAccess(other, 0)),
        "again": error(driver.cuCtxEnablePeerAccess(other, 0)),
        "disabled": error(driver.cuCtxDisablePeerAccess(other)),
        "not enabled": error(driver.cuCtxDisablePeerAccess(other)),
    }


def test_peer_access_is_enabled_once_and_disabled_once() -> None:
    assert on_softcuda(_peers, devices=2) == {
        "can": 1,
        "self": 0,
        "enabled": "SUCCESS",
        "again": "PEER_ACCESS_ALREADY_ENABLED",
        "disabled": "SUCCESS",
        "not enabled": "PEER_ACCESS_NOT_ENABLED",
    }


def _context_limits() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stack = driver.CUlimit.CU_LIMIT_STACK_SIZE
    depth = driver.CUlimit.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH
    before = int(result(driver.cuCtxGetLimit(stack)))
    result(driver.cuCtxSetLimit(stack, 4096))
    after = int(result(driver.cuCtxGetLimit(stack)))
    return [before, after, error(driver.cuCtxGetLimit(depth))]


def test_limits_are_kept_and_those_of_older_devices_refused() -> None:
    assert on_softcuda(_context_limits, cc="9.0") == [1024, 4096, "UNSUPPORTED_LIMIT"]


def _core() -> list[Any]:
    from cuda.core import Device, system

    device = Device(1)
    device.set_current()
    return [
        device.name,
        device.uuid,
        list(device.compute_capability),
        device.properties.multiprocessor_count,
        system.get_num_devices(),
    ]


def test_cuda_core_sees_the_devices() -> None:
    uuid = "51515151-5151-5151-5151-515151515151"
    assert on_softcuda(_core, devices=2) == ["softcuda", uuid, [8, 0], 4, 2]


def _numba_after_reset() -> list[int]:
    import numpy as np
    from numba import cuda

    seen = []
    for _ in range(2):
        seen.append(int(cuda.to_device(np.arange(10)).copy_to_host().sum()))
        cuda.close()
    return seen


def test_numba_uses_the_device_again_after_it_was_closed() -> None:
    assert on_softcuda(_numba_after_reset) == [45, 45]
