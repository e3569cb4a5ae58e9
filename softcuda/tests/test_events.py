"""Events of the device in software: markers in streams, and times between them."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

from kernels_in_ptx import Gate, device_word, function, launch, read_word
from softcuda_process import error, on_softcuda, reports, result, use_device


def new_stream() -> Any:
    from cuda.bindings import driver

    return result(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def new_event(flags: int = 0) -> Any:
    from cuda.bindings import driver

    return result(driver.cuEventCreate(flags))


def _before_and_after_a_record() -> list[str]:
    from cuda.bindings import driver

    use_device()
    event, stream = new_event(), new_stream()
    said = [error(driver.cuEventQuery(event)), error(driver.cuEventSynchronize(event))]
    gate = Gate(stream)
    result(driver.cuEventRecord(event, stream))
    said.append(error(driver.cuEventQuery(event)))
    threading.Timer(0.1, gate.open).start()
    said.append(error(driver.cuEventSynchronize(event)))
    return [*said, error(driver.cuEventQuery(event))]


def test_an_event_is_ready_until_it_is_recorded_and_when_its_record_has_run() -> None:
    assert on_softcuda(_before_and_after_a_record) == [
        "SUCCESS",
        "SUCCESS",
        "NOT_READY",
        "SUCCESS",
        "SUCCESS",
    ]


def _wait_between_streams() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    one, two, word = new_stream(), new_stream(), device_word(1)
    add_one = function("add_one")
    gate = Gate(one)
    event = new_event()
    result(driver.cuEventRecord(event, one))
    result(driver.cuStreamWaitEvent(two, event, 0))
    result(launch(add_one, [(word, ctypes.c_uint64)], stream=two))
    time.sleep(0.05)
    waits = error(driver.cuStreamQuery(two))
    # A later record does not change what was waited for.
    three = new_stream()
    later = Gate(three)
    result(driver.cuEventRecord(event, three))
    gate.open()
    result(driver.cuStreamSynchronize(two))
    still = error(driver.cuEventQuery(event))
    later.open()
    return [waits, still, read_word(word)]


def test_a_stream_waits_for_the_record_that_was_the_last_when_it_was_told_to() -> None:
    assert on_softcuda(_wait_between_streams) == ["NOT_READY", "NOT_READY", 2]


def _newer_record_runs_first() -> list[str]:
    from cuda.bindings import driver

    use_device()
    slow, fast, waiting = new_stream(), new_stream(), new_stream()
    event = new_event()
    gate = Gate(slow)
    result(driver.cuEventRecord(event, slow))
    result(driver.cuStreamWaitEvent(waiting, event, 0))
    result(driver.cuEventRecord(event, fast))
    result(driver.cuEventSynchronize(event))
    time.sleep(0.05)
    said = [error(driver.cuStreamQuery(waiting))]
    gate.open()
    return [*said, error(driver.cuStreamSynchronize(waiting))]


def test_a_newer_record_does_not_release_who_waits_for_an_older_one() -> None:
    assert on_softcuda(_newer_record_runs_first) == ["NOT_READY", "SUCCESS"]


def _times() -> dict[str, Any]:
    from cuda.bindings import driver

    use_device()
    stream, start, end = new_stream(), new_event(), new_event()
    untimed = new_event(int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
    said: dict[str, Any] = {"never recorded": error(driver.cuEventElapsedTime(start, end))}
    result(driver.cuEventRecord(start, stream))
    result(driver.cuEventSynchronize(start))  # else a busy machine may take its time later
    gate = Gate(stream)
    for event in (end, untimed):
        result(driver.cuEventRecord(event, stream))
    said["not ready"] = error(driver.cuEventElapsedTime(start, end))
    time.sleep(0.05)
    gate.open()
    result(driver.cuStreamSynchronize(stream))
    said["grows"] = 40 < result(driver.cuEventElapsedTime(start, end)) < 10000
    said["backwards"] = result(driver.cuEventElapsedTime(end, start)) < 0
    said["itself"] = result(driver.cuEventElapsedTime(end, end))
    said["without timing"] = error(driver.cuEventElapsedTime(start, untimed))
    return said


def test_the_time_between_two_records_is_that_of_the_clock() -> None:
    assert on_softcuda(_times) == {
        "never recorded": "INVALID_HANDLE",
        "not ready": "NOT_READY",
        "grows": True,
        "backwards": True,
        "itself": 0,
        "without timing": "INVALID_HANDLE",
    }


def _flags() -> list[str]:
    from cuda.bindings import driver

    use_device()
    flags = driver.CUevent_flags
    between, silent = flags.CU_EVENT_INTERPROCESS, flags.CU_EVENT_DISABLE_TIMING
    return [
        error(driver.cuEventCreate(flags.CU_EVENT_BLOCKING_SYNC)),
        error(driver.cuEventCreate(between)),
        error(driver.cuEventCreate(between | silent)),
        error(driver.cuEventCreate(64)),
        error(driver.cuEventRecordWithFlags(new_event(), 0, 1)),
    ]


def test_flags_of_events_are_checked() -> None:
    assert on_softcuda(_flags) == [
        "SUCCESS",
        "INVALID_VALUE",
        "NOT_SUPPORTED",
        "INVALID_VALUE",
        "INVALID_VALUE",
    ]


def _destroyed() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    stream, event = new_stream(), new_event()
    gate = Gate(stream)
    result(driver.cuEventRecord(event, stream))
    said = [error(driver.cuEventDestroy(event)), error(driver.cuEventDestroy(event))]
    said += [error(driver.cuEventRecord(event, stream)), error(driver.cuEventQuery(event))]
    gate.open()
    return [said, error(driver.cuStreamSynchronize(stream)), len(reports())]


def test_a_destroyed_event_is_dead_and_its_record_still_runs() -> None:
    assert on_softcuda(_destroyed) == [["SUCCESS", *["INVALID_HANDLE"] * 3], "SUCCESS", 3]


def _two_devices() -> list[str]:
    from cuda.bindings import driver

    use_device(0)
    event, stream = new_event(), new_stream()
    use_device(1)
    other, foreign = new_stream(), new_event()
    said = [error(driver.cuEventRecord(event, other))]
    gate = Gate(other)
    result(driver.cuEventRecord(foreign, other))
    said.append(error(driver.cuStreamWaitEvent(stream, foreign, 0)))
    result(driver.cuEventRecord(event, stream))
    time.sleep(0.05)
    said.append(error(driver.cuEventQuery(event)))
    gate.open()
    said.append(error(driver.cuEventSynchronize(event)))
    return [*said, error(driver.cuEventElapsedTime(event, foreign))]


def test_events_are_recorded_in_their_context_and_waited_for_in_any() -> None:
    assert on_softcuda(_two_devices, devices=2) == [
        "INVALID_HANDLE",
        "SUCCESS",
        "NOT_READY",
        "SUCCESS",
        "INVALID_HANDLE",
    ]
