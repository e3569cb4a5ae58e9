"""What the OpenCL backend says and decides where there is no device, with OpenCL played."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.backends import pyopencl
from gpubench.backends.limits import launch_fault
from gpubench.backends.opencl_program import defines
from gpubench.backends.protocol import (
    DeviceError,
    DeviceFacts,
    DeviceLostError,
    DeviceMemoryError,
    Errors,
    Launch,
)
from gpubench.backends.registry import get
from gpubench.errors import BackendError

INSTALL = "pip install 'gpubench-suite[opencl]'"
DRIVER = "the driver of the device (for the CPU, PoCL: apt-get install pocl-opencl-icd)"
GPU, CPU = 4, 2
MIB = 2**20
ERRORS = Errors(partial(pyopencl.translated, device="cl:0:0"))


class OpenCLError(Exception):
    """As PyOpenCL's: it tells the routine that failed."""

    def __init__(self, text: str, routine: str = "") -> None:
        super().__init__(text)
        self.routine = routine


def device(name: str, kind: int = CPU, **info: Any) -> Any:
    known = {
        "max_compute_units": 8,
        "max_work_group_size": 256,
        "max_work_item_sizes": [256, 128, 64],
        "local_mem_size": 32_768,
        "global_mem_size": 2**33,
        "global_mem_cache_size": 2 * MIB,
        "max_mem_alloc_size": 2**31,
        "address_bits": 32,
    }
    platform = SimpleNamespace(name="Played")
    return SimpleNamespace(name=name, type=kind, platform=platform, **(known | info))


def play(monkeypatch: pytest.MonkeyPatch, *platforms: list[Any], fails: str = "") -> None:
    """An OpenCL with these platforms, each a list of devices."""

    def get_platforms() -> list[Any]:
        if fails:
            raise OpenCLError(fails)
        return [SimpleNamespace(get_devices=lambda found=found: found) for found in platforms]

    played = SimpleNamespace(
        get_platforms=get_platforms,
        LogicError=OpenCLError,
        Error=OpenCLError,
        device_type=SimpleNamespace(GPU=GPU),
    )
    monkeypatch.setattr(pyopencl, "opencl", lambda: played)
    monkeypatch.setattr(pyopencl.importlib.util, "find_spec", lambda name: object())


def test_without_the_module_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyopencl.importlib.util, "find_spec", lambda name: None)
    assert get("pyopencl").unavailable("cl:0:0") == (
        f"cl:0:0: the module 'pyopencl' is not installed; {INSTALL}, and {DRIVER}"
    )


@pytest.mark.parametrize(
    "missing",
    [
        {"fails": "clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR"},
        {"platforms": [[]]},
    ],
    ids=["no platform", "a platform without devices"],
)
def test_without_a_device_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: dict[str, Any]
) -> None:
    play(monkeypatch, *missing.get("platforms", []), fails=missing.get("fails", ""))
    assert get("pyopencl").unavailable("cl:0:0") == (
        f"cl:0:0: this machine has no OpenCL platform with a device; install {DRIVER}"
    )


def test_a_driver_that_fails_is_told_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, fails="clGetPlatformIDs failed: OUT_OF_HOST_MEMORY")
    assert get("pyopencl").unavailable("cl:0:0") == (
        "cl:0:0: OpenCL cannot be used here: OpenCLError: clGetPlatformIDs failed: "
        f"OUT_OF_HOST_MEMORY; {INSTALL}, and {DRIVER}"
    )


def test_an_index_out_of_range_is_answered_with_the_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play(monkeypatch, [device("one")], [device("two"), device("three")])
    backend = get("pyopencl")
    assert backend.unavailable("cl:1:1") is None
    reason = "it has cl:0:0 (one on Played), cl:1:0 (two on Played), cl:1:1 (three on Played)"
    for name in ("cl:0:1", "cl:2:0"):
        assert backend.unavailable(name) == f"{name}: this machine has no such OpenCL device; " + (
            reason
        )
    with pytest.raises(BackendError, match=r"^cl:2:0: this machine has no such OpenCL device"):
        backend.open("cl:2:0")


@pytest.mark.parametrize("name", ["cpu", "cuda:0", "cl", "cl:0", "cl:0:0:0", "cl:x:0"])
def test_devices_are_written_with_platform_and_device(name: str) -> None:
    backend = get("pyopencl")
    assert backend.serves("cl:0:0") and not backend.serves(name)
    assert backend.unavailable(name) == (
        f"{name}: the backend pyopencl runs on cl:0:0, cl:PLATFORM:DEVICE"
    )


def test_where_there_is_no_device_its_name_is_all_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play(monkeypatch)
    assert get("pyopencl").device_facts("cl:0:0") == (
        DeviceFacts("cl:0:0", None, {"device": "cl:0:0"})
    )


def test_facts_of_a_device_have_the_names_that_rules_use(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, [device(" one ")])
    facts = get("pyopencl").device_facts("cl:0:0")
    assert facts.name == "one on Played"
    assert facts.scope == {
        "device": "cl:0:0",
        "sm_count": 8,
        "shared_memory_per_block": 32_768,
        "global_memory": 2**33,
    }


@pytest.mark.parametrize(
    ("launch", "fault"),
    [
        (Launch((256, 1, 1), (1, 1, 1)), None),
        (Launch((512, 1, 1), (1, 1, 1)), "block of 512 threads: the limit is 256 threads"),
        (Launch((1, 1, 65), (1, 1, 1)), "the limit is 64 threads along z"),
        (Launch((1, 1, 1), (1, 1, 1), 32_769), "the limit is 32768 bytes per block"),
        (Launch((1, 1, 1), (2**32, 1, 1)), "the limit is 4294967295 blocks along x"),
        (Launch((2, 1, 1), (2**31, 1, 1)), "launch of 4294967296 threads"),
        (Launch((1, 1, 1), (2, 1, 1), cooperative=True), "cooperative launch of 2 blocks"),
    ],
    ids=["fits", "block", "item sizes", "local memory", "grid", "global size", "cooperative"],
)
def test_limits_are_the_device_s(
    monkeypatch: pytest.MonkeyPatch, launch: Launch, fault: str | None
) -> None:
    play(monkeypatch, [device("one")])
    limits = get("pyopencl").device_facts("cl:0:0").limits
    assert limits is not None and limits.source == "one on Played"
    found = launch_fault(launch, limits)
    assert found == fault if fault is None else fault in str(found)


@pytest.mark.parametrize(
    ("found", "nbytes"),
    [
        (device("cpu", global_mem_cache_size=32 * MIB), 64 * MIB),
        (device("cpu that does not tell", global_mem_cache_size=0), 2 * MIB),
        (device("gpu that tells its L1", GPU), 256 * MIB),
        (device("small", GPU, max_mem_alloc_size=MIB), MIB),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_what_is_flushed_is_larger_than_the_cache(
    monkeypatch: pytest.MonkeyPatch, found: Any, nbytes: int
) -> None:
    play(monkeypatch)
    assert pyopencl.flush_bytes(found) == nbytes


MEMORY = "cl:0:0 is out of memory: {}; use smaller sizes, or free memory on the device"
LOST = (
    "the work crashed on cl:0:0: {}; check the kernel's bounds; only a fresh process can use the "
    "device again"
)
BLOCK = "cl:0:0 lacks registers or local memory for this block: {}; use a smaller block"


@pytest.mark.parametrize(
    ("text", "routine", "kind", "message"),
    [
        ("MEM_OBJECT_ALLOCATION_FAILURE", "", DeviceMemoryError, MEMORY),
        ("INVALID_BUFFER_SIZE", "create_buffer", DeviceMemoryError, MEMORY),
        ("OUT_OF_RESOURCES", "create_buffer", DeviceMemoryError, MEMORY),
        ("OUT_OF_RESOURCES", "clEnqueueNDRangeKernel", DeviceError, BLOCK),
        ("OUT_OF_RESOURCES", "clFinish", DeviceLostError, LOST),
        ("<unknown error -9999>", "clFinish", DeviceLostError, LOST),
        ("INVALID_KERNEL_ARGS", "clEnqueueNDRangeKernel", DeviceError, "cl:0:0 failed: {}"),
    ],
)
def test_what_opencl_raises_becomes_a_device_error(
    monkeypatch: pytest.MonkeyPatch, text: str, routine: str, kind: type[Exception], message: str
) -> None:
    play(monkeypatch)
    with pytest.raises(DeviceError) as raised, ERRORS:
        raise OpenCLError(text, routine)
    assert type(raised.value) is kind
    assert str(raised.value) == message.format(text)


def test_other_errors_pass_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch)
    with pytest.raises(ZeroDivisionError), ERRORS:
        raise ZeroDivisionError


def test_constants_are_options_of_the_compiler() -> None:
    constants = {"tile": 16, "fast": True, "alpha": 0.1, "real": "float32", "op": "+"}
    expected = ("-Dtile=16", "-Dfast=1", "-Dalpha=0.1", "-Dreal=float", "-Dop=+")
    assert defines(constants) == expected


def test_loading_the_backend_imports_no_opencl() -> None:
    program = (
        "import sys; from gpubench.backends.registry import get; backend = get('pyopencl'); "
        "backend.serves('cl:0:0'), backend.machine_facts(), backend.unavailable('cpu'); "
        "print('pyopencl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
