"""Streams of the device in software: the order of work, and what the host waits for."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

from kernels_in_ptx import Gate, device_word, function, launch, load, read_word
from softcuda_process import error, on_softcuda, process_on_softcuda, reports, result, use_device


def new_stream(*, blocking: bool = True) -> Any:
    from cuda.bindings import driver

    flags = driver.CUstream_flags
    kind = flags.CU_STREAM_DEFAULT if blocking else flags.CU_STREAM_NON_BLOCKING
    return result(driver.cuStreamCreate(kind))


def add_one(address: int, stream: Any) -> Any:
    return launch(function("add_one"), [(address, ctypes.c_uint64)], stream=stream)


def is_ready(stream: Any) -> bool:
    from cuda.bindings import driver

    said = error(driver.cuStreamQuery(stream))
    assert said in ("SUCCESS", "NOT_READY"), said
    return said == "SUCCESS"


def becomes_ready(stream: Any, seconds: float = 5) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_ready(stream):
            return True
        time.sleep(0.002)
    return False


# ---- asynchrony ---------------------------------------------------------------------------------


def _work_behind_a_gate() -> list[bool]:
    from cuda.bindings import driver

    use_device()
    stream, word = new_stream(blocking=False), device_word(1)
    gate = Gate(stream)
    result(add_one(word, stream))
    before = is_ready(stream)
    gate.open()
    result(driver.cuStreamSynchronize(stream))
    return [before, is_ready(stream), read_word(word) == 2]


def test_work_waits_for_what_was_queued_before_it_and_the_host_does_not() -> None:
    assert on_softcuda(_work_behind_a_gate) == [False, True, True]


def _streams_side_by_side() -> list[bool]:
    use_device()
    one, two, word = new_stream(), new_stream(), device_word()
    gate = Gate(one)
    result(add_one(word, two))
    seen = [becomes_ready(two), is_ready(one)]
    gate.open()
    return [*seen, becomes_ready(one)]


def test_streams_do_not_wait_for_each_other() -> None:
    assert on_softcuda(_streams_side_by_side) == [True, False, True]


def _a_thousand_streams_with_barriers() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    mappings = count_mappings()
    words = [device_word() for _ in range(1000)]
    streams = [new_stream(blocking=False) for _ in words]
    for word, stream in zip(words, streams, strict=True):
        arguments = [(word, ctypes.c_uint64)]
        result(launch(function("count_at_barrier"), arguments, stream=stream, block=(1024, 1, 1)))
    result(driver.cuCtxSynchronize())
    return {
        "wrong": [number for number in map(read_word, words) if number != 1024],
        "mappings": count_mappings() - mappings,
    }


def count_mappings() -> int:
    """Count the mappings of memory that this process has; the system allows some 65,000."""
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_a_thousand_streams_run_kernels_of_1024_threads_that_wait_for_each_other() -> None:
    found = on_softcuda(_a_thousand_streams_with_barriers)
    assert found["wrong"] == []
    assert found["mappings"] < 60_000


# ---- the default streams ------------------------------------------------------------------------


def _legacy_stream_and_others() -> dict[str, bool]:
    use_device()
    seen = {}
    blocking, free, word = new_stream(), new_stream(blocking=False), device_word()
    gate = Gate(blocking)
    result(add_one(word, 0))
    seen["legacy waits for a blocking stream"] = not becomes_ready(0, 0.1)
    gate.open()
    seen["and goes on behind it"] = becomes_ready(0)
    gate = Gate(free)
    result(add_one(word, 0))
    seen["legacy does not wait for a non-blocking stream"] = becomes_ready(0)
    gate.open()
    gate = Gate(0)
    result(add_one(word, blocking))
    result(add_one(word, free))
    seen["a blocking stream waits for legacy"] = not becomes_ready(blocking, 0.1)
    seen["a non-blocking stream does not"] = becomes_ready(free)
    gate.open()
    seen["and goes on behind legacy"] = becomes_ready(blocking)
    return seen


def test_the_legacy_default_stream_and_blocking_streams_wait_for_each_other() -> None:
    seen = on_softcuda(_legacy_stream_and_others)
    assert seen == dict.fromkeys(seen, True)


def _synchronising_the_legacy_stream() -> list[float]:
    from cuda.bindings import driver

    use_device()
    gate = Gate(new_stream())
    threading.Timer(0.2, gate.open).start()
    begin = time.monotonic()
    result(driver.cuStreamSynchronize(0))
    return [time.monotonic() - begin]


def test_synchronising_the_legacy_stream_waits_for_blocking_streams() -> None:
    assert on_softcuda(_synchronising_the_legacy_stream)[0] > 0.15


def _streams_of_threads() -> dict[str, bool]:
    from cuda.bindings import driver

    context = use_device()
    per_thread = driver.CUstream(driver.CU_STREAM_PER_THREAD)
    ids = [int(result(driver.cuStreamGetId(per_thread)))]

    def other() -> None:
        result(driver.cuCtxSetCurrent(context))
        ids.append(int(result(driver.cuStreamGetId(per_thread))))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    ids.append(int(result(driver.cuStreamGetId(per_thread))))
    ids.append(int(result(driver.cuStreamGetId(0))))
    word = device_word()
    gate = Gate(per_thread)
    result(add_one(word, 0))
    waits = not becomes_ready(0, 0.1)
    gate.open()
    return {
        "another thread has another stream": ids[0] != ids[1],
        "the same thread the same": ids[0] == ids[2],
        "neither is the legacy stream": ids[3] not in ids[:3],
        "the legacy stream waits for it": waits,
    }


def test_each_thread_has_a_default_stream_of_its_own() -> None:
    seen = on_softcuda(_streams_of_threads)
    assert seen == dict.fromkeys(seen, True)


def _null_is_the_stream_of_the_thread() -> list[bool]:
    # cuda-bindings asks for the functions of per-thread default streams, when it is imported.
    os.environ["CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"] = "1"
    from cuda.bindings import driver

    use_device()

    def number(stream: int) -> int:
        return int(result(driver.cuStreamGetId(driver.CUstream(stream))))

    legacy, per_thread = driver.CU_STREAM_LEGACY, driver.CU_STREAM_PER_THREAD
    return [number(0) == number(per_thread), number(0) == number(legacy)]


def test_null_is_the_stream_of_the_thread_where_a_program_asks_for_that() -> None:
    assert on_softcuda(_null_is_the_stream_of_the_thread) == [True, False]


# ---- creating, asking, destroying ---------------------------------------------------------------


def _what_a_stream_says() -> dict[str, Any]:
    from cuda.bindings import driver

    context = use_device()
    stream = result(driver.cuStreamCreateWithPriority(1, -7))
    least, greatest = result(driver.cuCtxGetStreamPriorityRange())
    other = new_stream()
    return {
        "flags": result(driver.cuStreamGetFlags(stream)),
        "clamped": result(driver.cuStreamGetPriority(stream)) == greatest,
        "usual": result(driver.cuStreamGetPriority(other)) == 0 <= least,
        "context": int(result(driver.cuStreamGetCtx(stream))) == int(context),
        "legacy context": int(result(driver.cuStreamGetCtx(0))) == int(context),
        "device": int(result(driver.cuStreamGetDevice(stream))),
        "ids": result(driver.cuStreamGetId(stream)) != result(driver.cuStreamGetId(other)),
        "bad flags": error(driver.cuStreamCreate(4)),
    }


def test_a_stream_says_how_it_was_made() -> None:
    assert on_softcuda(_what_a_stream_says) == {
        "flags": 1,
        "clamped": True,
        "usual": True,
        "context": True,
        "legacy context": True,
        "device": 0,
        "ids": True,
        "bad flags": "INVALID_VALUE",
    }


def _destroyed_with_work() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, word = new_stream(blocking=False), device_word(1)
    gate = Gate(stream)
    result(add_one(word, stream))
    result(driver.cuStreamDestroy(stream))
    after = [error(driver.cuStreamDestroy(stream)), error(driver.cuStreamQuery(stream))]
    gate.open()
    result(driver.cuCtxSynchronize())
    return [*after, read_word(word), reports()]


def test_a_destroyed_stream_finishes_its_work_and_its_handle_is_dead() -> None:
    assert on_softcuda(_destroyed_with_work) == [
        "INVALID_HANDLE",
        "INVALID_HANDLE",
        2,
        [
            "handle: cuStreamDestroy was given stream 1, which was destroyed before",
            "handle: cuStreamQuery was given stream 1, which was destroyed before",
        ],
    ]


def _without_context() -> list[str]:
    from cuda.bindings import driver

    before = error(driver.cuStreamCreate(0))
    result(driver.cuInit(0))
    return [before, error(driver.cuStreamCreate(0)), error(driver.cuStreamSynchronize(0))]


def test_streams_need_an_initialised_driver_and_a_context() -> None:
    assert on_softcuda(_without_context) == [
        "NOT_INITIALIZED",
        "INVALID_CONTEXT",
        "INVALID_CONTEXT",
    ]


# ---- waiting for memory -------------------------------------------------------------------------


def _values() -> dict[str, list[bool]]:
    from cuda.bindings import driver

    use_device()
    stream = new_stream(blocking=False)
    address = int(result(driver.cuMemHostAlloc(8, 0)))
    word = ctypes.c_uint32.from_address(address)
    flags = driver.CUstreamWaitValue_flags
    seen = {}
    for name, mode, value, not_yet, enough in (
        ("at least", flags.CU_STREAM_WAIT_VALUE_GEQ, 3, 2, 4),
        ("at least, around zero", flags.CU_STREAM_WAIT_VALUE_GEQ, 1, 0xFFFFFFF0, 2),
        ("equal", flags.CU_STREAM_WAIT_VALUE_EQ, 3, 4, 3),
        ("and", flags.CU_STREAM_WAIT_VALUE_AND, 6, 1, 2),
        ("nor", flags.CU_STREAM_WAIT_VALUE_NOR, 0xFFFF0000, 0x0000FFFF, 0x00007FFF),
    ):
        word.value = not_yet
        result(driver.cuStreamWaitValue32(stream, address, value, mode))
        waits = not becomes_ready(stream, 0.05)
        word.value = enough
        seen[name] = [waits, becomes_ready(stream)]
    long = ctypes.c_uint64.from_address(address)
    long.value = 0
    result(driver.cuStreamWriteValue64(stream, address, 1 << 40, 0))
    result(driver.cuStreamWaitValue64(stream, address, 1 << 40, 0))
    seen["64 bits"] = [becomes_ready(stream), long.value == 1 << 40]
    result(driver.cuStreamWriteValue32(stream, address, 7, 0))
    seen["written"] = [becomes_ready(stream), word.value == 7]
    return seen


def test_a_stream_waits_until_a_word_of_memory_has_its_value() -> None:
    seen = on_softcuda(_values)
    assert seen == {name: [True, True] for name in seen}


def _wrong_values() -> list[str]:
    from cuda.bindings import driver

    use_device()
    stream, word = new_stream(), device_word()
    managed = int(result(driver.cuMemAllocManaged(64, 1)))
    return [
        error(driver.cuStreamWaitValue32(stream, word + 2, 1, 0)),
        error(driver.cuStreamWaitValue32(stream, 4096, 1, 0)),
        error(driver.cuStreamWaitValue32(stream, managed, 1, 0)),
        error(driver.cuStreamWaitValue64(stream, word, 1, 1 << 6)),
    ]


def test_a_word_to_wait_for_is_aligned_and_known_memory() -> None:
    assert on_softcuda(_wrong_values) == ["INVALID_VALUE"] * 4


def _several_at_once() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, word = new_stream(), device_word(0, 2)
    operations = []
    for index, value in enumerate((5, 6)):
        operation = driver.CUstreamBatchMemOpParams()
        operation.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
        operation.writeValue.address = driver.CUdeviceptr(word + 4 * index)
        operation.writeValue.value = value
        operations.append(operation)
    result(driver.cuStreamBatchMemOp(stream, 2, operations, 0))
    return [read_word(word), read_word(word + 4)]


def test_several_memory_operations_are_queued_at_once() -> None:
    assert on_softcuda(_several_at_once) == [5, 6]


# ---- functions of the host ----------------------------------------------------------------------


def _host_functions() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    said: list[str] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    first = kind(lambda data: said.append(f"first {data}"))
    second = kind(lambda data: said.append(error(driver.cuMemAlloc(4))))
    stream = new_stream()
    gate = Gate(stream)
    for call, data in ((first, 7), (second, 0)):
        pointer = driver.CUhostFn(_ptr=ctypes.addressof(call))
        result(driver.cuLaunchHostFunc(stream, pointer, data))
    before = list(said)
    gate.open()
    result(driver.cuStreamSynchronize(stream))
    return {"before": before, "after": said}


def test_a_function_of_the_host_runs_in_its_turn_and_may_not_call_cuda() -> None:
    assert on_softcuda(_host_functions) == {"before": [], "after": ["first 7", "NOT_PERMITTED"]}


def _callbacks_after_an_error() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    said: list[str] = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: said.append("function"))
    back = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
        lambda stream, status, data: said.append(f"callback {status}")
    )
    stream = new_stream(blocking=False)
    gate = Gate(stream)
    result(add_one(16, stream))
    result(driver.cuLaunchHostFunc(stream, driver.CUhostFn(_ptr=ctypes.addressof(call)), 0))
    pointer = driver.CUstreamCallback(_ptr=ctypes.addressof(back))
    result(driver.cuStreamAddCallback(stream, pointer, 0, 0))
    gate.open()
    status = error(driver.cuStreamSynchronize(stream))
    time.sleep(0.1)  # a waiting call answers as soon as the error is there
    return [status, said]


def test_after_an_error_callbacks_are_told_and_functions_are_not_called() -> None:
    assert on_softcuda(_callbacks_after_an_error) == ["ILLEGAL_ADDRESS", ["callback 700"]]


# ---- errors, exits and forks --------------------------------------------------------------------


def _sticky() -> list[str]:
    from cuda.bindings import driver

    use_device()
    one, two, word = new_stream(), new_stream(blocking=False), device_word(1)
    gate = Gate(two)
    result(add_one(word, two))
    module = load()
    result(launch(function("add_one", module), [(0, ctypes.c_uint64)], stream=one))
    waited = error(driver.cuStreamSynchronize(one))
    gate.open()
    return [
        waited,
        error(driver.cuStreamSynchronize(two)),
        error(driver.cuMemAlloc(4)),
        error(driver.cuStreamDestroy(one)),
    ]


def test_an_error_of_a_kernel_is_answered_by_every_call_of_its_context() -> None:
    assert on_softcuda(_sticky) == ["ILLEGAL_ADDRESS"] * 4


def _other_device_after_an_error() -> list[Any]:
    from cuda.bindings import driver

    first = use_device(0)
    module = load()
    result(launch(function("add_one", module), [(0, ctypes.c_uint64)]))
    said = error(driver.cuCtxSynchronize())
    result(driver.cuDevicePrimaryCtxRetain(1))
    other = result(driver.cuDevicePrimaryCtxRetain(1))
    driver.cuCtxSetCurrent(other)
    word = device_word(4)
    result(add_one(word, 0))
    value = read_word(word)
    driver.cuCtxSetCurrent(first)
    return [said, value, error(driver.cuCtxSynchronize())]


def test_an_error_stays_in_its_context() -> None:
    assert on_softcuda(_other_device_after_an_error, devices=2) == [
        "ILLEGAL_ADDRESS",
        5,
        "ILLEGAL_ADDRESS",
    ]


def _reset_after_an_error() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream = new_stream()
    result(add_one(0, stream))
    said = error(driver.cuStreamSynchronize(stream))
    result(driver.cuDevicePrimaryCtxReset(0))
    use_device()
    word = device_word(8)
    result(add_one(word, 0))
    return [said, read_word(word), error(driver.cuStreamQuery(stream))]


def test_a_primary_context_works_again_after_a_reset() -> None:
    assert on_softcuda(_reset_after_an_error) == ["ILLEGAL_ADDRESS", 9, "INVALID_HANDLE"]


def _reset_with_a_closed_gate() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    Gate(new_stream(blocking=False))
    Gate(0)
    begin = time.monotonic()
    result(driver.cuDevicePrimaryCtxReset(0))
    return [time.monotonic() - begin < 5]


def test_the_end_of_a_context_ends_streams_that_wait() -> None:
    assert on_softcuda(_reset_with_a_closed_gate) == [True]


def _exit_with_a_closed_gate() -> None:
    use_device()
    stream, word = new_stream(), device_word()
    Gate(stream)
    result(add_one(word, 0))


def test_a_process_ends_though_a_stream_waits() -> None:
    assert process_on_softcuda(_exit_with_a_closed_gate).returncode == 0


def _forked() -> list[int]:
    from cuda.bindings import driver

    use_device()
    Gate(new_stream())
    child = os.fork()
    if not child:
        said = (driver.cuInit(0)[0], driver.cuMemAlloc(4)[0], driver.cuCtxSynchronize()[0])
        os._exit(0 if said == (driver.CUresult.CUDA_ERROR_NOT_INITIALIZED,) * 3 else 1)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]


def test_a_forked_child_cannot_use_the_driver() -> None:
    assert on_softcuda(_forked) == [0]


def _forked_before_init() -> list[int]:
    child = os.fork()
    if not child:
        use_device()
        word = device_word(1)
        result(add_one(word, 0))
        os._exit(read_word(word))
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]


def test_a_child_that_was_forked_before_the_driver_was_used_has_its_own() -> None:
    assert on_softcuda(_forked_before_init) == [2]


def _delayed() -> list[bool]:
    use_device()
    first, second, word = new_stream(), new_stream(), device_word()
    result(add_one(word, first))
    result(add_one(word + 4, second))
    return [becomes_ready(second, 0.2), becomes_ready(first, 0.1), becomes_ready(first)]


def test_work_of_a_chosen_stream_starts_late_on_command() -> None:
    assert on_softcuda(_delayed, faults="delay:1:600000") == [True, False, True]
