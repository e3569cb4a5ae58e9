"""Numba's session and the CUDA backend, with Numba's CUDA target played by a small module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scripted_bindings import STREAM, UUID, Bindings

from gpubench.backends import cuda_sampling, devices, numba_cuda
from gpubench.backends.cuda_driver import CannotCapture
from gpubench.backends.devices import Gpu
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.numba_cuda import NumbaCudaBackend, NumbaCudaSession
from gpubench.backends.protocol import (
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    Target,
)
from gpubench.errors import BackendError, KernelError

LAUNCH = Launch(block=(64, 1, 1), grid=(2, 1, 1), shared_bytes=16)


class CudaAPIError(Exception):
    """As Numba's: recognised by name, since two packages have one each."""


class FakeCuda:
    """Device and stream of one GPU, writing down what it is asked."""

    def __init__(self, bindings: Bindings) -> None:
        self.asked, self.fails, self.bindings = [], "", bindings
        self.runtime = SimpleNamespace(get_version=lambda: (13, 0))

    def note(self, what: str) -> None:
        if self.fails:
            raise CudaAPIError(f"[700] {self.fails}")
        self.asked.append(what)

    def select_device(self, ordinal: int) -> None:
        self.note(f"select {ordinal}")
        self.bindings.current = ordinal

    def stream(self) -> FakeStream:
        return FakeStream()

    @contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        self.note("keep memory")
        yield
        self.note("memory may go")

    def to_device(self, array: Any, stream: Any) -> FakeArray:
        self.note("copy to device")
        return FakeArray(self, array.copy())

    def current_context(self) -> Any:
        return SimpleNamespace(
            deallocations=SimpleNamespace(clear=lambda: self.note("free memory")),
            get_memory_info=lambda: (500, 900),
            pop=lambda: self.note("pop"),
        )

    def device_array(self, shape: int, dtype: Any, stream: Any) -> FakeArray:
        self.note(f"allocate {shape}")
        return FakeArray(self, np.empty(shape, dtype))


class FakeStream:
    def __int__(self) -> int:
        return STREAM


class FakeArray:
    def __init__(self, cuda: FakeCuda, data: np.ndarray[Any, Any]) -> None:
        self.cuda, self.data = cuda, data
        self.strides, self.size = data.strides, data.size

    def is_c_contiguous(self) -> bool:
        return self.data.flags.c_contiguous

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
def bindings() -> Bindings:
    return Bindings()


@pytest.fixture
def fake(bindings: Bindings) -> FakeCuda:
    return FakeCuda(bindings)


@pytest.fixture
def session(
    fake: FakeCuda, bindings: Bindings, monkeypatch: pytest.MonkeyPatch
) -> NumbaCudaSession:
    return opened(fake, bindings, monkeypatch)


def opened(fake: FakeCuda, bindings: Bindings, monkeypatch: pytest.MonkeyPatch) -> NumbaCudaSession:
    import numba.cuda

    fake.bindings = bindings
    monkeypatch.setattr(numba, "cuda", fake)
    monkeypatch.setattr(cuda_sampling, "driver", lambda: bindings)
    return NumbaCudaSession("cuda:1", ARCHITECTURE_LIMITS)


def with_gpus(monkeypatch: pytest.MonkeyPatch, *gpus: Gpu) -> None:
    reason = None if gpus else "no GPU today"
    monkeypatch.setattr(devices, "known_gpus", lambda: gpus)
    monkeypatch.setattr(devices, "gpus", lambda: gpus)
    monkeypatch.setattr(devices, "gpu_count", lambda: len(gpus))
    monkeypatch.setattr(devices, "no_gpu_reason", lambda: reason)


H200 = Gpu(0, "NVIDIA H200", "GPU-one", "580", 150 * 10**9, (9, 0), sm_count=132)
T4 = Gpu(1, "Tesla T4", f"GPU-{UUID}", "580", 16 * 10**9, (7, 5), sm_count=40)


def test_events_tell_seconds_once_the_second_has_happened(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    begin, end = session.event(), session.event()
    session.record(begin)
    bindings.now += 0.25
    session.record(end)
    assert session.seconds(begin, end) == 0.25


def test_a_driver_that_refuses_both_has_neither_graphs_nor_a_gate(
    fake: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = opened(fake, Bindings(refuses="cuMemHostAlloc"), monkeypatch)
    assert not refused.can_hold
    with pytest.raises(BackendError) as refusal, refused.held():
        pass
    assert str(refusal.value) == "cuda:1: its driver cannot hold a stream back"
    refused = opened(fake, Bindings(refuses="cuStreamBeginCapture"), monkeypatch)
    with pytest.raises(CannotCapture):
        refused.capture(lambda: None, 1)


@pytest.mark.parametrize(
    ("current", "asked"),
    [
        pytest.param(None, ["select 1"], id="the thread's first context stays"),
        pytest.param(1, [], id="one that is current is not pushed again"),
        pytest.param(0, ["select 1", "pop"], id="another device is current again"),
    ],
)
def test_a_thread_ends_with_the_context_it_began_with(
    fake: FakeCuda,
    bindings: Bindings,
    monkeypatch: pytest.MonkeyPatch,
    current: int | None,
    asked: list[str],
) -> None:
    bindings.current = current
    opened(fake, bindings, monkeypatch).close()
    assert [line for line in fake.asked if line == "pop" or "select" in line] == asked


def test_a_check_of_results_alone_takes_no_gate(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    session.to_host(session.to_native(np.ones(3)))
    session.close()
    assert set(bindings.asked) == {
        "cuCtxGetDevice",
        "cuDeviceGetAttribute l2 1",
        "cuDeviceGetUuid 1",
        f"cuStreamSynchronize {STREAM}",
    }


def test_closing_twice_gives_the_gate_back_once(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    assert session.can_hold
    session.close()
    session.close()
    assert bindings.asked.count(f"cuMemFreeHost {bindings.address}") == 1


def test_no_memory_is_given_back_behind_the_gate_or_in_a_capture(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    asked = len(fake.asked)
    with session.held() as release:
        release()
    assert session.capture(lambda: fake.note("launch"), 1).nodes == 0
    assert fake.asked[asked:] == [
        "keep memory",
        "memory may go",
        "keep memory",
        "launch",
        "memory may go",
    ]


def test_a_session_tells_its_cache_and_free_memory(session: NumbaCudaSession) -> None:
    assert (session.l2_bytes, session.free_bytes()) == (640, 500)


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
    session: NumbaCudaSession, fake: FakeCuda, bindings: Bindings
) -> None:
    bindings.asked = fake.asked  # in one row
    native, pristine = session.to_native(np.zeros(3)), session.to_native(np.ones(3))
    session.restore(native, pristine)
    np.testing.assert_array_equal(session.to_host(native), np.ones(3))
    waited = f"cuStreamSynchronize {STREAM}"
    copied = ["copy to device", waited]
    assert fake.asked[1:] == [*copied, *copied, "copy on device", "copy to host", waited]


def test_scratch_memory_is_allocated_on_the_stream(
    session: NumbaCudaSession, fake: FakeCuda
) -> None:
    assert session.allocate(640).data.nbytes == 640
    assert fake.asked[-1] == "allocate 80"


def test_flushing_copies_as_much_as_the_l2_cache_holds(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    asked = len(bindings.asked)
    session.flush()
    session.flush()
    copied = f"cuMemcpyDtoDAsync memory 1 memory 2 640 {STREAM}"
    assert bindings.asked[asked:] == ["cuMemAlloc 640", "cuMemAlloc 640", copied, copied]
    session.close()
    assert {"cuMemFree memory 1", "cuMemFree memory 2"} <= set(bindings.asked)


def test_a_session_goes_on_after_running_out_of_memory(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    bindings.refuses, bindings.error = "cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(DeviceMemoryError):
        session.flush()
    bindings.refuses = ""
    session.flush()
    assert "cuMemcpyDtoDAsync" in bindings.asked[-1]


def test_leaving_a_session_waits_and_frees(
    session: NumbaCudaSession, fake: FakeCuda, bindings: Bindings
) -> None:
    bindings.asked = fake.asked  # in one row
    with session:
        pass
    assert fake.asked[-2:] == [f"cuStreamSynchronize {STREAM}", "free memory"]


def test_a_failure_that_nobody_waited_for_shows_when_the_session_is_left(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    with pytest.raises(DeviceLostError), session:
        bindings.refuses, bindings.error = "cuStreamSynchronize", "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_a_failure_while_waiting_is_said_in_our_words(
    session: NumbaCudaSession, bindings: Bindings
) -> None:
    bindings.refuses, bindings.error = "cuStreamSynchronize", "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(DeviceError) as failure:
        session.synchronize()
    assert str(failure.value) == "cuda:1 failed: the driver answers CUDA_ERROR_INVALID_VALUE"


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
            "or `gpubench verify --sanitize` "
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
@pytest.mark.parametrize("action", ["call", "to_native"])
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
        "to_native": lambda: session.to_native(np.ones(2)),
    }
    fake.fails = code
    with pytest.raises(DeviceError) as failure:
        actions[action]()
    assert type(failure.value) is kind
    assert str(failure.value) == message
    assert isinstance(failure.value.__cause__, CudaAPIError)


def test_a_launcher_queues_on_the_stream_of_the_session(session: NumbaCudaSession) -> None:
    streams = []
    session.bind(Target(launcher=lambda launch: streams.append(launch.stream)), LAUNCH, [])()
    assert streams == [session.stream]


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
    assert (facts["numpy"], facts["l2_bytes"]) == (np.__version__, 640)


def test_an_instance_of_a_partitioned_gpu_is_described_by_its_ordinal(
    session: NumbaCudaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, replace(T4, uuid="GPU-three"), H200)
    assert session.facts()["gpu"] == "NVIDIA H200"


@pytest.mark.parametrize(("simulated", "told"), [(False, 2.5e-6), (True, None)])
def test_facts_tell_the_floor_once_something_was_sampled_that_has_times(
    session: NumbaCudaSession,
    monkeypatch: pytest.MonkeyPatch,
    simulated: bool,
    told: float | None,
) -> None:
    with_gpus(monkeypatch, T4, H200)
    session.simulated = simulated
    assert "floor_seconds" not in session.facts()
    session.floor_seconds = 2.5e-6
    assert session.facts().get("floor_seconds") == told


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        (
            [],
            "cuda:3: no GPU today; without one `gpubench verify` checks results, "
            "as GPUBENCH_SOFTCUDA=1 does",
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
    def missing() -> Any:
        raise ImportError("libNVVM cannot be found.\nMore words.")

    compiler = SimpleNamespace(implementation="NVIDIA", NVVM=missing)
    assert fault_of(compiler, monkeypatch) == (
        "numba-cuda is incomplete: ImportError: libNVVM cannot be found.; "
        "pip install 'gpubench-suite[cuda]'"
    )


def test_where_only_numbas_own_target_is_installed_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fault_of(SimpleNamespace(implementation="Built-in"), monkeypatch) == (
        "the package numba-cuda is not installed; pip install 'gpubench-suite[cuda]'"
    )


def fault_of(target: Any, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Why there is no ``cuda:0``, where this is all that can be imported of Numba's target."""
    with_gpus(monkeypatch, H200)
    monkeypatch.setattr(numba_cuda, "import_module", lambda _: target)
    numba_cuda._compiler_fault.cache_clear()
    try:
        return NumbaCudaBackend().unavailable("cuda:0")
    finally:
        numba_cuda._compiler_fault.cache_clear()


def test_device_facts_follow_the_compute_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, H200)
    facts = NumbaCudaBackend().device_facts("cuda:0")
    source = "NVIDIA H200 (compute capability 9.0)"
    assert (facts.name, facts.limits) == (
        "NVIDIA H200",
        replace(ARCHITECTURE_LIMITS, source=source),
    )
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
    assert (facts.name, facts.limits) == ("cuda:0", ARCHITECTURE_LIMITS)
    assert facts.scope == {"device": "cuda:0"}
