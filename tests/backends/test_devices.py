"""GPUs are counted and described from what NVML says; here NVML is played by a small module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from softcuda_process import on_softcuda

import softcuda
from gpubench.backends import devices, host, registry, software
from gpubench.backends.protocol import Description
from gpubench.backends.registry import describe_devices
from gpubench.errors import BackendError


class FakeNvml(ModuleType):
    """NVML of a machine with the given GPUs, each a mapping of answers by question."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    class NVMLError_LibraryNotFound(NVMLError):
        pass

    class NVMLError_DriverNotLoaded(NVMLError):
        pass

    class NVMLError_Unknown(NVMLError):
        pass

    def __init__(self, *gpus: dict[str, Any], fails: type[Exception] | None = None) -> None:
        super().__init__("pynvml")
        self.gpus, self.fails, self.initialised = gpus, fails, 0

    def nvmlInit(self) -> None:
        if self.fails:
            raise self.fails("of this kind")
        self.initialised += 1

    def nvmlShutdown(self) -> None:
        self.initialised -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> dict[str, Any]:
        if uuid == "MIG-1":
            return {**H200, "UUID": uuid}
        raise self.NVMLError("not found")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def answer(handle: dict[str, Any], *details: int) -> Any:
            assert self.initialised == 1
            key = name.removeprefix("nvmlDeviceGet") + "".join(map(str, details))
            if key not in handle:
                raise self.NVMLError("not supported")
            return handle[key]

        return answer


H200 = {
    "Name": "NVIDIA H200",
    "UUID": "GPU-aaaa",
    "CudaComputeCapability": (9, 0),
    "MemoryInfo": SimpleNamespace(total=150_000_000_000),
    "NumGpuCores": 16896,
    "ClockInfo1": 1980,
    "MaxClockInfo1": 1980,
    "ClockInfo2": 3201,
    "MaxClockInfo2": 3201,
    "Temperature0": 41,
    "PowerUsage": 120_500,
    "CurrentClocksThrottleReasons": 0x01 | 0x04 | 0x40,
}
SOFTWARE = {**H200, "Name": "softcuda"}
SHY = {"Name": "Old GPU", "UUID": "GPU-bbbb"}


@pytest.fixture(autouse=True)
def _asked_afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices._first_survey.cache_clear()
    yield
    devices._first_survey.cache_clear()


def machine(monkeypatch: pytest.MonkeyPatch, fake: FakeNvml) -> FakeNvml:
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_a_gpu_is_described_with_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = machine(monkeypatch, FakeNvml(H200))
    assert devices.gpus() == (
        devices.Gpu(
            index=0,
            name="NVIDIA H200",
            uuid="GPU-aaaa",
            driver="580.65",
            memory_bytes=150_000_000_000,
            compute_capability=(9, 0),
            sm_count=132,
            pace={
                "gpu_clock_mhz": 1980,
                "gpu_max_clock_mhz": 1980,
                "gpu_memory_clock_mhz": 3201,
                "gpu_max_memory_clock_mhz": 3201,
                "gpu_temperature_c": 41,
                "gpu_power_w": 120.5,
                "gpu_throttling": "software power cap, hardware thermal slowdown",
            },
        ),
    )
    assert devices.no_gpu_reason() is None
    assert fake.initialised == 0


@pytest.mark.parametrize(("told", "version"), [(13010, (13, 1)), (12090, (12, 9))])
def test_the_driver_tells_the_newest_cuda_that_it_runs(
    monkeypatch: pytest.MonkeyPatch, told: int, version: tuple[int, int]
) -> None:
    fake = machine(monkeypatch, FakeNvml(H200))
    monkeypatch.setattr(fake, "nvmlSystemGetCudaDriverVersion_v2", lambda: told, raising=False)
    assert devices.cuda_version() == version


def test_without_a_driver_there_is_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, FakeNvml(fails=FakeNvml.NVMLError_LibraryNotFound))
    assert devices.cuda_version() is None


def test_what_a_driver_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, FakeNvml(SHY))
    (gpu,) = devices.gpus()
    nothing = dict.fromkeys(gpu.pace) | {"gpu_throttling": "none"}
    assert gpu == devices.Gpu(0, "Old GPU", "GPU-bbbb", "580.65", pace=nothing)


def test_facts_of_a_device_in_software_tell_nothing_of_its_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, FakeNvml(SOFTWARE))
    assert devices.gpu_facts(devices.gpus()[0]) == {
        "gpu": "softcuda",
        "gpu_uuid": "GPU-aaaa",
        "driver": "580.65",
        "compute_capability": "9.0",
        "sm_count": 132,
        "gpu_memory_bytes": 150_000_000_000,
    }


def test_the_device_in_software_is_started_before_nvml_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake, order = machine(monkeypatch, FakeNvml(SOFTWARE)), []
    monkeypatch.setattr(software, "software_device", lambda: order.append("device"))
    monkeypatch.setattr(fake, "nvmlShutdown", lambda: order.append("NVML"))
    devices.gpus()
    assert order == ["device", "NVML"]


def test_without_a_device_in_software_its_own_reason_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unavailable() -> None:
        raise BackendError("no C compiler; install one")

    machine(monkeypatch, FakeNvml(SOFTWARE))
    monkeypatch.setattr(software, "software_device", unavailable)
    assert (devices.gpus(), devices.no_gpu_reason()) == ((), "no C compiler; install one")


def test_the_first_reason_against_the_device_in_software_is_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons = iter(("no C compiler; install one", "libnvJitLink.so.13 is loaded already"))

    def start() -> None:
        raise softcuda.UnavailableError(next(reasons))

    monkeypatch.setenv(software.SWITCH, "1")
    monkeypatch.setattr(software, "_started", None)
    monkeypatch.setattr(software, "_refused", "")
    monkeypatch.setattr(softcuda, "start", start)
    for _ in range(2):
        with pytest.raises(BackendError, match="no C compiler"):
            software.software_device()


def test_asking_for_software_is_not_asking_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = machine(monkeypatch, FakeNvml())
    monkeypatch.setattr(software, "software_device", lambda: None)
    assert devices.gpu_count() == 0
    fake.gpus = (SOFTWARE,)
    assert devices.gpu_count() == 0
    with software.switched_on():
        assert devices.gpu_count() == 1
    assert devices.gpu_count() == 0


def test_names_are_those_of_the_device_itself() -> None:
    """The engine has its words too, so that it loads nothing of softcuda to know them."""
    assert (software.NAME, software.PROCESS_SWITCH) == (softcuda.NAME, softcuda.SWITCH)


@pytest.mark.parametrize(
    ("engine", "process", "is_asked_for"),
    [
        (None, None, False),
        ("0", None, False),
        ("1", None, True),
        (None, "1", True),
        ("", "0", False),
    ],
)
def test_a_program_on_softcuda_need_not_ask_for_it(
    monkeypatch: pytest.MonkeyPatch, engine: str | None, process: str | None, is_asked_for: bool
) -> None:
    for name, said in ((software.SWITCH, engine), (software.PROCESS_SWITCH, process)):
        monkeypatch.delenv(name, raising=False)
        if said is not None:
            monkeypatch.setenv(name, said)
    assert software.requested() is is_asked_for


def test_a_driver_that_is_loaded_already_names_the_engines_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start() -> None:
        raise softcuda.DriverLoadedError("libcuda.so.1")

    monkeypatch.setenv(software.SWITCH, "1")
    monkeypatch.setattr(software, "_started", None)
    monkeypatch.setattr(software, "_refused", "")
    monkeypatch.setattr(softcuda, "start", start)
    with pytest.raises(BackendError) as refused:
        software.software_device()
    assert str(refused.value) == (
        "libcuda.so.1 is loaded already, and the device in software has to come first; "
        "call softcuda.start() before any kernel is compiled, as `import gpubench` does where "
        "GPUBENCH_SOFTCUDA=1 is set"
    )


@pytest.mark.parametrize("is_folder", [False, True])
def test_without_softcuda_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, is_folder: bool
) -> None:
    """A clone of the repository has a folder of that name, which Python takes for a package."""
    folder = ModuleType("softcuda")
    folder.__path__ = []
    monkeypatch.setitem(sys.modules, "softcuda", folder if is_folder else None)  # type: ignore[arg-type]
    for name in [*sys.modules]:
        if name.startswith("softcuda."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv(software.SWITCH, "1")
    monkeypatch.setattr(software, "_started", None)
    monkeypatch.setattr(software, "_refused", "")
    with pytest.raises(BackendError) as refused:
        software.software_device()
    assert str(refused.value) == (
        "the package softcuda is not installed; pip install 'gpubench-suite[cuda]'"
    )
    assert software.counts_model() == 0


def describe_first_gpu() -> list[Any]:
    gpu = devices.known_gpus()[0]
    clock, throttling = gpu.pace["gpu_clock_mhz"], gpu.pace["gpu_throttling"]
    return [gpu.name, gpu.sm_count, clock, gpu.pace["gpu_temperature_c"], throttling]


def test_a_device_in_software_has_multiprocessors_and_no_clock() -> None:
    for capability in ("7.5", "8.0", "8.6", "9.0", "12.0"):
        described = on_softcuda(describe_first_gpu, cc=capability, sms=6)
        assert described == ["softcuda", 6, None, None, "none"]


@pytest.mark.parametrize(("said", "count"), [("", 1), ("2", 2), ("0", 1), ("many", 1)])
def test_a_device_in_software_is_one_unless_more_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, said: str, count: int
) -> None:
    monkeypatch.setenv("SOFTCUDA_DEVICES", said)
    assert software.device_count() == count


def test_facts_leave_out_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, FakeNvml(SHY))
    assert devices.gpu_facts(devices.gpus()[0]) == {
        "gpu": "Old GPU",
        "gpu_uuid": "GPU-bbbb",
        "driver": "580.65",
        "gpu_throttling": "none",
    }


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        (None, ["GPU-aaaa", "GPU-bbbb"]),
        ("1", ["GPU-bbbb"]),
        ("1,0", ["GPU-bbbb", "GPU-aaaa"]),
        ("GPU-b", ["GPU-bbbb"]),
        ("0,7,1", ["GPU-aaaa"]),
        ("-1", []),
        ("", []),
        ("GPU-", []),
        ("MIG-1", ["MIG-1"]),
        ("MIG-2", []),
    ],
)
def test_ordinals_follow_cuda_visible_devices(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, uuids: list[str]
) -> None:
    machine(monkeypatch, FakeNvml(H200, SHY))
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = devices.gpus()
    assert [gpu.uuid for gpu in found] == uuids
    assert [gpu.index for gpu in found] == list(range(len(uuids)))
    assert devices.gpu_count() == len(uuids)


@pytest.mark.parametrize(
    ("fake", "visible", "reason"),
    [
        (
            FakeNvml(fails=FakeNvml.NVMLError_LibraryNotFound),
            None,
            "no NVIDIA driver: its management library (NVML) is not on this machine; "
            "install the driver to use a GPU",
        ),
        (
            FakeNvml(fails=FakeNvml.NVMLError_DriverNotLoaded),
            None,
            "the NVIDIA driver is installed and not loaded; "
            "load its kernel module (modprobe nvidia) or restart",
        ),
        (
            FakeNvml(fails=FakeNvml.NVMLError_Unknown),
            None,
            "the GPUs cannot be counted: NVMLError_Unknown: of this kind; "
            "check that nvidia-smi works",
        ),
        (FakeNvml(), None, "the NVIDIA driver reports no GPU; check that nvidia-smi lists one"),
        (
            FakeNvml(H200),
            "",
            "CUDA_VISIBLE_DEVICES='' hides the 1 GPU of this machine; unset it to use them",
        ),
        (
            FakeNvml(H200, SHY),
            "5",
            "CUDA_VISIBLE_DEVICES='5' hides the 2 GPUs of this machine; unset it to use them",
        ),
    ],
)
def test_no_gpu_has_a_reason_and_a_next_step(
    monkeypatch: pytest.MonkeyPatch, fake: FakeNvml, visible: str | None, reason: str
) -> None:
    machine(monkeypatch, fake)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.gpu_count() == 0
    assert devices.no_gpu_reason() == reason
    assert describe_devices()[1:] == [Description("cuda", "NVIDIA GPU", {}, reason)]
    assert registry.get("numba_cuda").machine_facts() == {"gpu": None, "no_gpu": reason}


def test_every_device_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, FakeNvml(SHY, H200))
    here, first, second = describe_devices()
    assert (here.device, here.unavailable) == ("cpu", None)
    assert here.facts["cpu_threads"] == host.cpu().threads
    assert (first.device, first.name) == ("cuda:0", "Old GPU")
    assert (second.device, second.facts["sm_count"]) == ("cuda:1", 132)


def test_a_run_records_what_stays_of_the_first_gpu_and_the_names_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, FakeNvml(H200, SHY))
    backend = registry.get("numba_cuda")
    facts = backend.machine_facts()
    assert facts == {
        "gpu": "NVIDIA H200, Old GPU",
        "gpu_uuid": "GPU-aaaa",
        "driver": "580.65",
        "compute_capability": "9.0",
        "sm_count": 132,
        "gpu_memory_bytes": 150_000_000_000,
        "gpu_max_clock_mhz": 1980,
        "gpu_max_memory_clock_mhz": 3201,
    }
    assert facts.keys() <= set(backend.concerns)


def test_the_cpu_has_a_name_and_threads() -> None:
    assert host.cpu().name
    assert host.cpu().threads >= 1


@pytest.mark.parametrize(
    ("caches", "size"),
    [
        ({"L1d": "48K", "L2": "2048K", "L3": "32M"}, 32 * 2**20),
        ({"L2": "512K"}, 512 * 2**10),
        ({"L3": "unknown"}, 64 * 2**20),
        ({}, 64 * 2**20),
    ],
)
def test_the_last_level_cache_is_the_largest(
    monkeypatch: pytest.MonkeyPatch, caches: dict[str, str], size: int
) -> None:
    here = host.Cpu("CPU", 1, 1, None, caches)
    monkeypatch.setattr(host, "cpu", lambda: here)
    assert host.last_level_cache_bytes() == size


def test_caches_are_read_as_the_system_writes_them(tmp_path: Path) -> None:
    for index, answers in enumerate([("1", "Data", "48K"), ("2", "Unified", "2048K")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in zip(("level", "type", "size"), answers, strict=True):
            (folder / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()
    assert host._caches(tmp_path) == {"L1d": "48K", "L2": "2048K"}
