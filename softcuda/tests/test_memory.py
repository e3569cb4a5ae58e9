"""Memory of the device in software: what a program may do with it, and what is found otherwise."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
from softcuda_process import error, on_softcuda, process_on_softcuda, reports, result, use_device

import softcuda

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def pageable(size: int, value: int = 0) -> Bytes:
    return np.full(size, value, np.uint8)


def pinned(size: int, value: int = 0) -> Bytes:
    from cuda.bindings import driver

    address = int(result(driver.cuMemHostAlloc(size, 0)))
    array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    array[:] = value
    return array


def held_stream() -> tuple[Any, Bytes]:
    """Return a stream that does nothing until the first byte of the array with it is 1."""
    from cuda.bindings import driver

    gate = pinned(4)
    stream = result(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    result(driver.cuStreamWaitValue32(stream, gate.ctypes.data, 1, 0))
    return stream, gate


# ---- what an allocation is ----------------------------------------------------------------------


def _addresses_of_small_allocations() -> list[int]:
    from cuda.bindings import driver

    use_device()
    return [int(result(driver.cuMemAlloc(size))) % 256 for size in (1, 3, 255, 256, 4097)]


def test_an_allocation_is_aligned_to_256_bytes() -> None:
    assert on_softcuda(_addresses_of_small_allocations) == [0] * 5


def _fresh_bytes() -> list[int]:
    from cuda.bindings import driver

    use_device()
    address = result(driver.cuMemAlloc(5000))
    seen = pageable(5000)
    result(driver.cuMemcpyDtoH(seen.ctypes.data, address, 5000))
    return sorted(set(seen.tolist()))


def test_fresh_memory_holds_no_zeros() -> None:
    assert on_softcuda(_fresh_bytes) == [0xA5]


def _free_bytes_as_memory_is_taken() -> list[int]:
    from cuda.bindings import driver

    use_device()
    free = [result(driver.cuMemGetInfo())[0]]
    address = result(driver.cuMemAlloc(1000))
    free.append(result(driver.cuMemGetInfo())[0])
    result(driver.cuMemFree(address))
    return [*free, *result(driver.cuMemGetInfo())]


def test_free_memory_is_counted_to_the_byte() -> None:
    assert on_softcuda(_free_bytes_as_memory_is_taken, memory="1M") == [
        1 << 20,
        (1 << 20) - 1000,
        1 << 20,
        1 << 20,
    ]


def _allocate_more_than_there_is() -> list[str]:
    from cuda.bindings import driver

    use_device()
    first = driver.cuMemAlloc(600_000)
    return [error(first), error(driver.cuMemAlloc(600_000)), error(driver.cuMemAlloc(0))]


def test_a_device_that_is_full_is_out_of_memory() -> None:
    assert on_softcuda(_allocate_more_than_there_is, memory="1M") == [
        "SUCCESS",
        "OUT_OF_MEMORY",
        "INVALID_VALUE",
    ]


def _facts_of_a_pointer() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    ask = driver.CUpointer_attribute
    base = int(result(driver.cuMemAlloc(1000)))

    def attribute(name: str, address: int) -> int:
        key = getattr(ask, f"CU_POINTER_ATTRIBUTE_{name}")
        return int(result(driver.cuPointerGetAttribute(key, address)))

    start, size = result(driver.cuMemGetAddressRange(base + 10))
    host = pinned(10)
    return {
        "offset": int(start) - base,
        "size": size,
        "device memory": attribute("MEMORY_TYPE", base),
        "pinned memory": attribute("MEMORY_TYPE", host.ctypes.data),
        "ordinal": attribute("DEVICE_ORDINAL", base),
        "range": attribute("RANGE_SIZE", base + 999),
        "behind": error(
            driver.cuPointerGetAttribute(ask.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base + 1000)
        ),
        "pageable": error(
            driver.cuPointerGetAttribute(
                ask.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pageable(10).ctypes.data
            )
        ),
    }


def test_a_pointer_tells_what_it_points_to() -> None:
    assert on_softcuda(_facts_of_a_pointer) == {
        "offset": 0,
        "size": 1000,
        "device memory": 2,
        "pinned memory": 1,
        "ordinal": 0,
        "range": 1000,
        "behind": "INVALID_VALUE",
        "pageable": "INVALID_VALUE",
    }


def _pitched() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    address, pitch = result(driver.cuMemAllocPitch(1000, 3, 4))
    rows = np.arange(3000, dtype=np.uint8).reshape(3, 1000)
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    copy.srcHost, copy.srcPitch = rows.ctypes.data, 1000
    copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.dstDevice, copy.dstPitch = address, pitch
    copy.WidthInBytes, copy.Height = 1000, 3
    result(driver.cuMemcpy2D(copy))
    seen = pageable(1000)
    result(driver.cuMemcpyDtoH(seen.ctypes.data, int(address) + 2 * pitch, 1000))
    copy.Height = 4
    return [pitch, bool((seen == rows[2]).all()), error(driver.cuMemcpy2D(copy)), reports()]


def test_rows_are_copied_with_their_pitch_and_not_beyond() -> None:
    assert on_softcuda(_pitched) == [
        1024,
        True,
        "INVALID_VALUE",
        [
            "copy: cuMemcpy2D would write 4072 bytes at offset 0 of allocation 1, which has 3072",
        ],
    ]


def _slices() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    box = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    array = result(driver.cuMemAlloc(2 * 2 * 3))
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    copy.srcHost, copy.srcPitch, copy.srcHeight = box.ctypes.data, 4, 3
    copy.srcXInBytes, copy.srcY, copy.srcZ = 1, 1, 0
    copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.dstDevice, copy.dstPitch, copy.dstHeight = array, 3, 2
    copy.WidthInBytes, copy.Height, copy.Depth = 3, 2, 2
    result(driver.cuMemcpy3D(copy))
    seen = pageable(12)
    result(driver.cuMemcpyDtoH(seen.ctypes.data, array, 12))
    return [seen.tolist(), box[:, 1:, 1:].reshape(-1).tolist()]


def test_a_part_of_a_box_is_copied_slice_by_slice() -> None:
    seen, expected = on_softcuda(_slices)
    assert seen == expected


# ---- freeing ------------------------------------------------------------------------------------


def _wrong_frees() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    freed = result(driver.cuMemAlloc(100))
    softcuda.start().name(int(freed), "b")
    result(driver.cuMemFree(freed))
    live = int(result(driver.cuMemAlloc(100)))
    said = [
        error(driver.cuMemFree(freed)),
        error(driver.cuMemFree(live + 4)),
        error(driver.cuMemFree(pinned(8).ctypes.data)),
        error(driver.cuMemFreeHost(live)),
        error(driver.cuMemFree(12345)),
        error(driver.cuMemFree(0)),
    ]
    return {"said": said, "found": reports()}


def test_a_pointer_that_cannot_be_freed_is_refused_and_named() -> None:
    assert on_softcuda(_wrong_frees) == {
        "said": ["INVALID_VALUE"] * 5 + ["SUCCESS"],
        "found": [
            "free: cuMemFree was given b, which was freed before",
            "free: cuMemFree was given an address 4 bytes behind the beginning of allocation 2",
            "free: cuMemFree was given allocation 3, which another call frees",
            "free: cuMemFreeHost was given allocation 2, which another call frees",
            "free: cuMemFree was given 0x3039, where no memory was allocated",
        ],
    }


def _free_under_a_queued_copy() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, gate = held_stream()
    source, target = pinned(8, value=3), pinned(8)
    array = result(driver.cuMemAlloc(8))
    result(driver.cuMemcpyHtoDAsync(array, source.ctypes.data, 8, stream))
    result(driver.cuMemcpyDtoHAsync(target.ctypes.data, array, 8, stream))
    before = target.tolist()
    gate[0] = 1
    result(driver.cuMemFree(array))  # waits for the copies
    return [before, target.tolist()]


def test_freeing_waits_for_the_work_of_the_context() -> None:
    assert on_softcuda(_free_under_a_queued_copy) == [[0] * 8, [3] * 8]


# ---- the host's memory --------------------------------------------------------------------------


def _register() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    array = pageable(1000)
    address = array.ctypes.data
    first = driver.cuMemHostRegister(address, 1000, 0)
    return {
        "first": error(first),
        "again": error(driver.cuMemHostRegister(address + 500, 1000, 0)),
        "device": int(result(driver.cuMemHostGetDevicePointer(address, 0))) == address,
        "unregistered": error(driver.cuMemHostUnregister(address)),
        "twice": error(driver.cuMemHostUnregister(address)),
        "no longer": error(driver.cuMemHostGetDevicePointer(address, 0)),
    }


def test_host_memory_is_registered_once_and_unregistered_once() -> None:
    assert on_softcuda(_register) == {
        "first": "SUCCESS",
        "again": "HOST_MEMORY_ALREADY_REGISTERED",
        "device": True,
        "unregistered": "SUCCESS",
        "twice": "HOST_MEMORY_NOT_REGISTERED",
        "no longer": "INVALID_VALUE",
    }


# ---- copies -------------------------------------------------------------------------------------


def _wrong_copies() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    array = int(result(driver.cuMemAlloc(1000)))
    softcuda.start().name(array, "b")
    host = pageable(2000)
    short = pinned(100)
    said = [
        error(driver.cuMemcpyHtoD(array, host.ctypes.data, 1001)),
        error(driver.cuMemcpyDtoH(host.ctypes.data, array + 996, 8)),
        error(driver.cuMemcpyDtoH(short.ctypes.data, array, 200)),
        error(driver.cuMemcpyDtoD(array, array + 600, 500)),
        error(driver.cuMemsetD32(array, 7, 251)),
        error(driver.cuMemsetD32(array + 2, 7, 1)),
        error(driver.cuMemcpyHtoD(0, host.ctypes.data, 8)),
        error(driver.cuMemcpyHtoD(host.ctypes.data, host.ctypes.data, 8)),
        error(driver.cuMemcpyHtoD(array, host.ctypes.data, 0)),
    ]
    result(driver.cuMemFree(array))
    said.append(error(driver.cuMemcpyDtoH(host.ctypes.data, array, 8)))
    return {"said": said, "found": [text.replace(hex(host.ctypes.data), "H") for text in reports()]}


def test_a_copy_beyond_an_array_is_refused_and_names_it() -> None:
    assert on_softcuda(_wrong_copies) == {
        "said": ["INVALID_VALUE"] * 8 + ["SUCCESS", "INVALID_VALUE"],
        "found": [
            "copy: cuMemcpyHtoD would write 1001 bytes at offset 0 of b, which has 1000",
            "copy: cuMemcpyDtoH would read 8 bytes at offset 996 of b, which has 1000",
            "copy: cuMemcpyDtoH would write 200 bytes at offset 0 of allocation 2, which has 100",
            "copy: cuMemcpyDtoD would read 500 bytes at offset 600 of b, which has 1000",
            "copy: cuMemsetD32 would fill 1004 bytes at offset 0 of b, which has 1000",
            "copy: cuMemcpyHtoD would write 8 bytes at H, where no memory of the device is",
            "copy: cuMemcpyDtoH would read b, which was freed",
        ],
    }


def _fills() -> list[list[int]]:
    from cuda.bindings import driver

    use_device()
    array = int(result(driver.cuMemAlloc(16)))
    result(driver.cuMemsetD8(array, 1, 16))
    result(driver.cuMemsetD16(array, 0x0302, 2))
    result(driver.cuMemsetD32(array + 8, 0x07060504, 1))
    result(driver.cuMemsetD2D8(array + 5, 8, 9, 2, 2))
    seen = pageable(16)
    result(driver.cuMemcpyDtoH(seen.ctypes.data, array, 16))
    return [seen[:8].tolist(), seen[8:].tolist()]


def test_memory_is_filled_by_elements_and_by_rows() -> None:
    assert on_softcuda(_fills) == [[2, 3, 2, 3, 1, 9, 9, 1], [4, 5, 6, 7, 1, 9, 9, 1]]


def _copies_behind_a_gate() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    array = int(result(driver.cuMemAlloc(8)))
    result(driver.cuMemsetD8(array, 1, 8))
    result(driver.cuCtxSynchronize())
    stream, gate = held_stream()
    from_pageable, from_pinned = pageable(4, value=2), pinned(4, value=3)
    target = pinned(8)
    result(driver.cuMemcpyHtoDAsync(array, from_pageable.ctypes.data, 4, stream))
    result(driver.cuMemcpyHtoDAsync(array + 4, from_pinned.ctypes.data, 4, stream))
    result(driver.cuMemcpyDtoHAsync(target.ctypes.data, array, 8, stream))
    from_pageable[:] = 20  # was staged at the call
    from_pinned[:] = 30  # is read when the copy runs
    early = target.tolist()
    gate[0] = 1
    result(driver.cuStreamSynchronize(stream))
    return {"early": early, "late": target.tolist()}


def test_a_pinned_copy_is_asynchronous_and_a_pageable_source_is_staged() -> None:
    assert on_softcuda(_copies_behind_a_gate) == {
        "early": [0] * 8,
        "late": [2] * 4 + [30] * 4,
    }


def _batch() -> list[list[int]]:
    from cuda.bindings import driver

    use_device()
    array = int(result(driver.cuMemAlloc(8)))
    stream = result(driver.cuStreamCreate(0))
    order = driver.CUmemcpySrcAccessOrder
    attributes = [driver.CUmemcpyAttributes() for _ in range(2)]
    attributes[0].srcAccessOrder = order.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    attributes[1].srcAccessOrder = order.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
    first, second = pinned(4, value=1), pinned(4, value=2)
    targets = [driver.CUdeviceptr(array), driver.CUdeviceptr(array + 4)]
    sources = [driver.CUdeviceptr(part.ctypes.data) for part in (first, second)]
    result(driver.cuMemcpyBatchAsync(targets, sources, [4, 4], 2, attributes, [0, 1], 2, stream))
    second[:] = 20  # was read during the call
    seen = pageable(8)
    result(driver.cuMemcpyDtoHAsync(seen.ctypes.data, array, 8, stream))
    return [seen[:4].tolist(), seen[4:].tolist()]


def test_a_batch_reads_its_sources_when_it_says_so() -> None:
    assert on_softcuda(_batch) == [[1] * 4, [2] * 4]


def _copy_to_pageable_memory() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    array = int(result(driver.cuMemAlloc(4)))
    target = pageable(4)
    began = time.perf_counter()
    result(driver.cuMemsetD8Async(array, 5, 4, None))
    result(driver.cuMemcpyDtoHAsync(target.ctypes.data, array, 4, None))
    return [target.tolist(), time.perf_counter() - began > 0.2]


def test_a_copy_to_pageable_memory_returns_when_it_is_done() -> None:
    assert on_softcuda(_copy_to_pageable_memory, faults="slow_copy:200000") == [[5] * 4, True]


def _copy_from_freed_pool_memory() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, gate = held_stream()
    other = result(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    array = result(driver.cuMemAllocAsync(8, other))
    softcuda.start().name(int(array), "b")
    target = pinned(8)
    result(driver.cuMemcpyDtoHAsync(target.ctypes.data, array, 8, stream))
    result(driver.cuMemFreeAsync(array, other))
    result(driver.cuStreamSynchronize(other))
    gate[0] = 1
    return [error(driver.cuStreamSynchronize(stream)), error(driver.cuMemAlloc(8)), reports()]


def test_a_queued_copy_of_memory_that_was_freed_first_stops_the_context() -> None:
    assert on_softcuda(_copy_from_freed_pool_memory) == [
        "ILLEGAL_ADDRESS",
        "ILLEGAL_ADDRESS",
        ["freed: a queued copy uses b, which was freed before it ran"],
    ]


def _copies_between_devices() -> list[Any]:
    from cuda.bindings import driver

    one, other = use_device(0), use_device(1)
    there = result(driver.cuMemAlloc(4))
    result(driver.cuCtxSetCurrent(one))
    here = result(driver.cuMemAlloc(4))
    result(driver.cuMemsetD8(here, 6, 4))
    result(driver.cuMemcpyPeer(there, other, here, one, 4))
    seen = pageable(4)
    result(driver.cuMemcpyDtoH(seen.ctypes.data, there, 4))
    ask = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return [seen.tolist(), int(result(driver.cuPointerGetAttribute(ask, there)))]


def test_memory_is_copied_between_devices() -> None:
    assert on_softcuda(_copies_between_devices, devices=2) == [[6] * 4, 1]


# ---- pools --------------------------------------------------------------------------------------


def _pool() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    pool = result(driver.cuDeviceGetDefaultMemPool(0))
    used = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    stream = result(driver.cuStreamCreate(0))
    array = result(driver.cuMemAllocAsync(1000, stream))
    taken = int(result(driver.cuMemPoolGetAttribute(pool, used)))
    result(driver.cuMemFreeAsync(array, stream))
    twice = error(driver.cuMemFreeAsync(array, stream))
    result(driver.cuStreamSynchronize(stream))
    return {
        "taken": taken,
        "left": int(result(driver.cuMemPoolGetAttribute(pool, used))),
        "twice": twice,
        "destroyed": error(driver.cuMemPoolDestroy(pool)),
        "found": reports(),
    }


def test_a_pool_counts_what_is_taken_and_given_back_in_the_order_of_streams() -> None:
    assert on_softcuda(_pool) == {
        "taken": 1000,
        "left": 0,
        "twice": "INVALID_VALUE",
        "destroyed": "INVALID_VALUE",
        "found": ["free: cuMemFreeAsync was given allocation 1, which was freed before"],
    }


# ---- the guards ---------------------------------------------------------------------------------


def _write_behind_pinned_memory() -> None:
    use_device()
    array = pinned(256)
    ctypes.memset(array.ctypes.data, 0, 256)
    ctypes.memset(array.ctypes.data + 256, 0, 1)


def _read_freed_pinned_memory() -> None:
    from cuda.bindings import driver

    use_device()
    array = pinned(256)
    result(driver.cuMemFreeHost(array.ctypes.data))
    ctypes.string_at(array.ctypes.data, 1)


def test_the_host_faults_behind_pinned_memory_and_in_what_was_freed() -> None:
    for function in (_write_behind_pinned_memory, _read_freed_pinned_memory):
        assert process_on_softcuda(function).returncode == -11, function.__name__
