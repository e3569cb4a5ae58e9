"""What the device in software is told by the environment, and what it tells of faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from softcuda_process import (
    error,
    on_softcuda,
    process_on_softcuda,
    reports,
    result,
    use_device,
)

import softcuda


def _initialise() -> str:
    from cuda.bindings import driver

    return error(driver.cuInit(0))


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        ("devices", "17", "SOFTCUDA_DEVICES=17 means nothing; allowed: 0 to 16"),
        ("devices", "two", "SOFTCUDA_DEVICES=two means nothing; allowed: 0 to 16"),
        ("cc", "8,0", "SOFTCUDA_CC=8,0 means nothing; allowed: a compute capability such as 8.0"),
        (
            "memory",
            "4X",
            "SOFTCUDA_MEMORY=4X means nothing; allowed: bytes, as",
        ),
        ("sanitize", "yes", "SOFTCUDA_SANITIZE=yes means nothing; allowed: 0 or 1"),
        ("count", "all", "SOFTCUDA_COUNT=all means nothing; allowed: 0 or 1"),
        ("timeout", "-1", "SOFTCUDA_TIMEOUT=-1 means nothing; allowed: seconds, 0 for none"),
        ("faults", "oom@0", "SOFTCUDA_FAULTS=oom@0 means nothing; allowed: "),
        ("faults", "delay:5", "SOFTCUDA_FAULTS=delay:5 means nothing; allowed: "),
        ("faults", "oom@2,fire", "SOFTCUDA_FAULTS=oom@2,fire means nothing; allowed: "),
    ],
)
def test_a_word_that_means_nothing_stops_the_driver_with_one_line(
    option: str, text: str, complaint: str
) -> None:
    done = process_on_softcuda(_initialise, **{option: text})
    said = [line for line in done.stderr.splitlines() if line]
    assert json.loads(done.stdout) == "INVALID_VALUE"
    assert len(said) == 1 and said[0].startswith(f"softcuda: {complaint}")


def _version() -> int:
    from cuda.bindings import driver

    return int(result(driver.cuDriverGetVersion()))


def test_the_driver_has_the_version_that_is_asked_for() -> None:
    assert on_softcuda(_version, version="12.4") == 12040
    assert on_softcuda(_version, version="12040") == 12040


def test_no_device_is_an_answer() -> None:
    assert on_softcuda(_initialise, devices=0) == "NO_DEVICE"


def _allocations() -> list[str]:
    from cuda.bindings import driver

    use_device()
    sizes = (100, 2000, 300, 4000, 500)
    return [error(driver.cuMemAlloc(size)) for size in sizes]


@pytest.mark.parametrize(
    ("faults", "failing"),
    [
        ("oom@3", [2]),
        ("oom:1000", [1, 3]),
        ("oom@2:1000", [3]),
        ("oom@2:1K", [3]),
        ("oom@1,oom@5", [0, 4]),
        ("oom", [0, 1, 2, 3, 4]),
    ],
)
def test_allocations_fail_on_command(faults: str, failing: list[int]) -> None:
    said = on_softcuda(_allocations, faults=faults)
    assert [i for i, word in enumerate(said) if word == "OUT_OF_MEMORY"] == failing


def _set_options() -> list[bool]:
    device = softcuda.start()
    answers = []
    for name, value in [("order", "descending"), ("order", "7"), ("order", "up"), ("speed", "1")]:
        try:
            device.set(name, value)
            answers.append(True)
        except ValueError:
            answers.append(False)
    return answers


def test_options_are_set_while_programs_run_unless_they_mean_nothing() -> None:
    assert on_softcuda(_set_options) == [True, True, False, False]


def _log_some_calls() -> None:
    from cuda.bindings import driver

    use_device()
    driver.cuMemFree(12345)


def test_the_log_has_a_line_for_each_call_and_for_what_was_found(tmp_path: Path) -> None:
    on_softcuda(_log_some_calls, log=tmp_path / "calls")
    lines = (tmp_path / "calls").read_text().splitlines()
    calls = [line for line in lines if line.startswith(("call cu", "found "))]
    assert calls[:4] == [
        "call cuInit",
        "call cuDevicePrimaryCtxRetain",
        "call cuCtxSetCurrent",
        "call cuMemFree_v2",
    ]
    assert calls[4] == "found free: cuMemFree was given 0x3039, where no memory was allocated"


def _report_the_same_often() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    for _ in range(5):
        driver.cuMemFree(12345)
    for address in range(1000, 1300):
        driver.cuMemFree(address)
    found = softcuda.start().reports()
    again = softcuda.start().reports()
    return [found[0].count, len(found), found[-1].kind, found[-1].count, len(again)]


def test_reports_are_counted_limited_and_given_once() -> None:
    assert on_softcuda(_report_the_same_often) == [5, 201, "dropped", 101, 0]


def _report_with_awkward_names() -> list[list[Any]]:
    from cuda.bindings import driver

    use_device()
    array = int(result(driver.cuMemAlloc(8)))
    arrays = []
    for name in ('a "quoted"\\ name\n', "größe", "ü" * 40):
        softcuda.start().name(array, name)
        driver.cuMemsetD8(array, 0, 9)
        found = softcuda.start().reports()[0]
        arrays.append([found.array, found.offset, found.size, found.length])
    return arrays


def test_any_name_survives_a_report_and_a_long_one_is_cut_between_characters() -> None:
    assert on_softcuda(_report_with_awkward_names) == [
        ['a "quoted"\\ name\n', 0, 9, 8],
        ["größe", 0, 9, 8],
        ["ü" * 31, 0, 9, 8],
    ]


def _use_wrong_handles() -> list[Any]:
    from cuda.bindings import driver

    use_device()
    event = result(driver.cuEventCreate(0))
    stream = result(driver.cuStreamCreate(0))
    result(driver.cuEventDestroy(event))
    said = [
        error(driver.cuEventDestroy(event)),
        error(driver.cuEventRecord(event, stream)),
        error(driver.cuEventQuery(driver.CUevent(int(stream)))),
        error(driver.cuStreamSynchronize(driver.CUstream(0x1234560))),
        error(driver.cuEventSynchronize(driver.CUevent(0))),
    ]
    return [sorted(set(said)), reports()]


def test_a_handle_that_is_none_is_refused_and_reported() -> None:
    assert on_softcuda(_use_wrong_handles) == [
        ["INVALID_HANDLE"],
        [
            "handle: cuEventDestroy was given event 1, which was destroyed before",
            "handle: cuEventRecord was given event 1, which was destroyed before",
            "handle: cuEventQuery was given a stream, and needs an event",
            "handle: cuStreamSynchronize was given 0x1234560, which is no stream",
            "handle: cuEventSynchronize was given NULL, and needs an event",
        ],
    ]


def _leave_things_behind() -> list[str]:
    from cuda.bindings import driver

    use_device()
    result(driver.cuStreamCreate(0))
    kept = result(driver.cuEventCreate(0))
    result(driver.cuEventDestroy(result(driver.cuEventCreate(0))))
    array = int(result(driver.cuMemAlloc(100)))
    softcuda.start().name(array, "b")
    result(driver.cuMemHostAlloc(7, 0))
    result(driver.cuEventRecord(kept, None))
    result(driver.cuDevicePrimaryCtxRelease(0))
    return reports()


def test_what_is_alive_when_its_context_ends_is_a_leak_where_that_is_asked_for() -> None:
    assert on_softcuda(_leave_things_behind) == []
    assert sorted(on_softcuda(_leave_things_behind, leaks=1)) == [
        "leak: allocation 2 of 7 bytes was alive when its context ended; cuMemFreeHost ends it",
        "leak: b of 100 bytes was alive when its context ended; cuMemFree ends it",
        "leak: event 1 was alive when its context ended; cuEventDestroy ends it",
        "leak: stream 1 was alive when its context ended; cuStreamDestroy ends it",
    ]


def _exit_with_an_allocation() -> None:
    from cuda.bindings import driver

    use_device()
    result(driver.cuMemAlloc(100))


def test_leaks_are_printed_when_the_process_ends() -> None:
    done = process_on_softcuda(_exit_with_an_allocation, leaks=1)
    assert done.stderr == (
        "softcuda: leak: allocation 1 of 100 bytes was alive when its context ended; "
        "cuMemFree ends it\n"
    )
