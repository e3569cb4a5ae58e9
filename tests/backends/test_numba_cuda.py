"""The CUDA backend with CUDA played by a small module, and, marked ``gpu``, for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpubench.backends import devices, numba_cuda
from gpubench.backends.device_errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpubench.backends.devices import Gpu
from gpubench.backends.limits import ARCHITECTURE_LIMITS, device_limits
from gpubench.backends.numba_cuda import EventClock, NumbaCudaBackend, NumbaCudaSession
from gpubench.backends.protocol import Launch, Target
from gpubench.errors import BackendError, KernelError

LAUNCH = Launch(block=(64, 1, 1), grid=(2, 1, 1), shared_bytes=16)


class CudaAPIError(Exception):
    """As Numba's: recognised by name, since two packages have one each."""


class FakeCuda:
    """Device and stream of one GPU whose time is ``now`` (s), writing down what it is asked."""

    def __init__(self) -> None:
        self.now, self.asked, self.fails = 0.0, [], ""
        self.runtime = SimpleNamespace(get_version=lambda: (13, 0))

    def note(self, what: str) -> None:
        if self.fails:
            raise CudaAPIError(f"[700] {self.fails}")
        self.asked.append(what)

    def select_device(self, ordinal: int) -> None:
        self.note(f"select {ordinal}")

    def stream(self) -> Any:
        return SimpleNamespace(synchronize=lambda: self.note("synchronize stream"))

    def event(self, timing: bool) -> FakeEvent:
        assert timing
        return FakeEvent(self)

    def to_device(self, array: Any, stream: Any) -> FakeArray:
        self.note("copy to device")
        return FakeArray(self, array.copy())

    def current_context(self) -> Any:
        return SimpleNamespace(
            deallocations=SimpleNamespace(clear=lambda: self.note("free memory"))
        )

    def get_current_device(self) -> Any:
        return SimpleNamespace(uuid="GPU-two", L2_CACHE_SIZE=640)

    def device_array(self, shape: int, dtype: Any, stream: Any) -> FakeArray:
        self.note(f"allocate {shape}")
        return FakeArray(self, np.empty(shape, dtype))


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.at, self.done = cuda, 0.0, False

    def record(self, stream: Any) -> None:
        assert stream is not None
        self.at, self.done = self.cuda.now, False

    def synchronize(self) -> None:
        self.done = True

    def elapsed_time(self, end: FakeEvent) -> float:
        assert self.done and end.done
        return (end.at - self.at) * 1e3


class FakeArray:
    def __init__(self, cuda: FakeCuda, data: np.ndarray[Any, Any]) -> None:
        self.cuda, self.data = cuda, data

    def copy_to_host(self, stream: Any) -> np.ndarray[Any, Any]:
        self.cuda.note("copy to host")
        return self.data.copy()

    def copy_to_device(self, other: FakeArray, stream: Any) -> None:
        self.cuda.note("copy on device")
        self.data[:] = other.data


class CUDADispatcher:
    """Stands where Numba's kernel stands: recognised by its type's name and module."""

    __module__ = "numba.cuda.dispatcher"

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.configured = cuda, 0

    def __getitem__(self, shape: Any) -> Callable[..., None]:
        self.configured += 1
        grid, block, _, shared = shape
        return lambda *arguments: self.cuda.note(f"launch {grid} {block} {shared} {arguments}")


@pytest.fixture
def fake() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def session(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> Iterator[NumbaCudaSession]:
    import numba.cuda

    monkeypatch.setattr(numba, "cuda", fake)
    yield NumbaCudaSession("cuda:1", ARCHITECTURE_LIMITS)


def with_gpus(monkeypatch: pytest.MonkeyPatch, *gpus: Gpu) -> None:
    reason = None if gpus else "no GPU today"
    monkeypatch.setattr(devices, "known_gpus", lambda: gpus)
    monkeypatch.setattr(devices, "gpus", lambda: gpus)
    monkeypatch.setattr(devices, "gpu_count", lambda: len(gpus))
    monkeypatch.setattr(devices, "no_gpu_reason", lambda: reason)


H200 = Gpu(0, "NVIDIA H200", "GPU-one", "580", 150 * 10**9, (9, 0), sm_count=132)
T4 = Gpu(1, "Tesla T4", "GPU-two", "580", 16 * 10**9, (7, 5), sm_count=40)


def test_the_clock_adds_the_time_between_two_events_of_a_pair() -> None:
    fake = FakeCuda()
    clock = EventClock(fake, object())
    readings = []
    for idle, busy in [(5.0, 0.25), (100.0, 0.5)]:
        fake.now += idle
        start = clock.start()
        fake.now += busy
        readings.append((start, clock.stop()))
    assert readings == [(0.0, 0.25), (0.25, 0.75)]


def test_a_kernel_is_configured_once_and_launched_by_each_call(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    kernel = CUDADispatcher(fake)
    call = session.bind(Target(function=kernel), LAUNCH, ["a", 3])
    assert fake.asked == ["select 1"]
    call()
    call()
    assert kernel.configured == 1
    assert fake.asked[1:] == ["launch (2, 1, 1) (64, 1, 1) 16 ('a', 3)"] * 2


def test_copies_go_through_the_stream_and_only_restoring_does_not_wait(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    native, pristine = session.to_native(np.zeros(3)), session.to_native(np.ones(3))
    session.restore(native, pristine)
    np.testing.assert_array_equal(session.to_host(native), np.ones(3))
    copied = ["copy to device", "synchronize stream"]
    assert fake.asked[1:] == [
        *copied,
        *copied,
        "copy on device",
        "copy to host",
        "synchronize stream",
    ]


def test_flushing_copies_as_much_as_the_l2_cache_holds(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    session.flush()
    session.flush()
    assert fake.asked[1:] == ["allocate 640", "allocate 640", "copy on device", "copy on device"]


def test_leaving_a_session_waits_and_frees(session: NumbaCudaSession, fake: FakeCuda) -> None:
    with session:
        pass
    assert fake.asked[-2:] == ["synchronize stream", "free memory"]


def test_a_failure_that_nobody_waited_for_shows_when_the_session_is_left(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    with pytest.raises(DeviceLostError), session:
        fake.fails = "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_closing_a_lost_device_hides_no_other_error(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    with pytest.raises(ZeroDivisionError), session:
        fake.fails = "CUDA_ERROR_ILLEGAL_ADDRESS"
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (
            "Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
            DeviceMemoryError,
            "cuda:1 is out of memory: [700] Call to cuMemAlloc results in "
            "CUDA_ERROR_OUT_OF_MEMORY; use smaller sizes, or free memory on the device",
        ),
        (
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            DeviceLostError,
            "the work crashed on cuda:1: [700] CUDA_ERROR_ILLEGAL_ADDRESS; compute-sanitizer "
            "tells where, and only a fresh process can use the device again",
        ),
        (
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
            DeviceError,
            "cuda:1 lacks registers for this block: [700] CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; "
            "use a smaller block, or max_registers in cuda.jit",
        ),
        ("CUDA_ERROR_INVALID_VALUE", DeviceError, "cuda:1 failed: [700] CUDA_ERROR_INVALID_VALUE"),
    ],
)
@pytest.mark.parametrize("action", ["call", "synchronize", "to_native"])
def test_what_cuda_raises_is_said_in_our_words_with_its_cause(
    session: NumbaCudaSession,
    fake: FakeCuda,
    action: str,
    code: str,
    kind: type[Exception],
    message: str,
) -> None:
    call = session.bind(Target(function=CUDADispatcher(fake)), LAUNCH, [])
    actions: dict[str, Callable[[], Any]] = {
        "call": call,
        "synchronize": session.synchronize,
        "to_native": lambda: session.to_native(np.ones(2)),
    }
    fake.fails = code
    with pytest.raises(DeviceError) as failure:
        actions[action]()
    assert type(failure.value) is kind
    assert str(failure.value) == message
    assert isinstance(failure.value.__cause__, CudaAPIError)


def test_other_errors_pass_as_they_are(session: NumbaCudaSession) -> None:
    def launcher(launch: Any) -> None:
        raise KeyError("block")

    with pytest.raises(KeyError):
        session.bind(Target(launcher=launcher), LAUNCH, [])()


def test_an_impossible_launch_is_refused_before_it_happens(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    kernel = CUDADispatcher(fake)
    with pytest.raises(DeviceError, match=r"^block of 2048 threads: the limit is 1024"):
        session.bind(Target(function=kernel), Launch((2048, 1, 1), (1, 1, 1)), [])
    assert kernel.configured == 0


def test_a_kernel_without_a_launch_is_refused(session: NumbaCudaSession, fake: FakeCuda) -> None:
    with pytest.raises(KernelError) as refusal:
        session.bind(Target(function=CUDADispatcher(fake)), None, [])
    assert str(refusal.value) == "a CUDA kernel needs a 'launch' with its block; none is given"


def test_facts_describe_the_gpu_that_the_context_is_on(
    session: NumbaCudaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, T4, H200)
    facts = session.facts()
    assert facts["gpu"] == "Tesla T4"
    assert facts["cuda_runtime"] == "13.0"


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        (
            [],
            "cuda:3: no GPU today, or set NUMBA_ENABLE_CUDASIM=1 and use the device cudasim "
            "to check results without one",
        ),
        (
            [H200],
            "cuda:3: this machine has 1 GPU, cuda:0; use one of these, or cuda:* for all",
        ),
        (
            [H200, T4],
            "cuda:3: this machine has 2 GPUs, cuda:0 to cuda:1; "
            "use one of these, or cuda:* for all",
        ),
    ],
)
def test_a_gpu_that_is_not_there_has_a_reason(
    monkeypatch: pytest.MonkeyPatch, gpus: list[Gpu], reason: str
) -> None:
    with_gpus(monkeypatch, *gpus)
    assert NumbaCudaBackend().unavailable("cuda:3") == reason
    with pytest.raises(BackendError) as refusal:
        NumbaCudaBackend().open("cuda:3")
    assert str(refusal.value) == reason


def test_ordinals_count_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_cuda, "_compiler_fault", lambda: None)
    with_gpus(monkeypatch, H200)
    backend = NumbaCudaBackend()
    assert backend.unavailable("cuda:0") is None
    assert backend.unavailable("cuda:1") is not None


def test_a_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError("libNVVM cannot be found.\nMore words.")

    with_gpus(monkeypatch, H200)
    monkeypatch.setattr(numba_cuda, "import_module", missing)
    numba_cuda._compiler_fault.cache_clear()
    try:
        assert NumbaCudaBackend().unavailable("cuda:0") == (
            "Numba's CUDA support is incomplete: ImportError: libNVVM cannot be found.; "
            "pip install 'gpubench[cuda]'"
        )
    finally:
        numba_cuda._compiler_fault.cache_clear()


def test_device_facts_follow_the_compute_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, H200)
    facts = NumbaCudaBackend().device_facts("cuda:0")
    assert (facts.name, facts.limits) == ("NVIDIA H200", device_limits("NVIDIA H200", (9, 0)))
    assert facts.scope == {
        "device": "cuda:0",
        "sm_count": 132,
        "global_memory": 150 * 10**9,
        "compute_capability": 9.0,
        "shared_memory_per_block": 49152,
    }


def test_without_a_device_the_architecture_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch)
    facts = NumbaCudaBackend().device_facts("cuda:0")
    assert (facts.name, facts.limits, facts.scope) == ("cuda:0", ARCHITECTURE_LIMITS, {})


@pytest.mark.gpu
def test_on_a_gpu_the_clock_reads_the_work_and_not_its_launch() -> None:
    copies, memory_of_no_gpu_is_faster = 20, 20e12  # B/s
    with NumbaCudaBackend().open("cuda:0") as session:
        a = session.to_native(np.ones(1 << 24, np.float32))
        b = session.to_native(np.zeros(1 << 24, np.float32))
        start = session.clock.start()
        for _ in range(copies):
            session.restore(b, a)
        elapsed = session.clock.stop() - start
    assert elapsed > copies * 2 * a.nbytes / memory_of_no_gpu_is_faster


@pytest.mark.gpu
def test_on_a_gpu_facts_name_it() -> None:
    with NumbaCudaBackend().open("cuda:0") as session:
        facts = session.facts()
    assert facts["gpu"] == devices.gpus()[0].name
    assert facts["driver"]
