"""CuPy on a CUDA device, a GPU or one in software: its session, its programs, the suite."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_programs import LAUNCH, SCALED, SUITES, N, cases_on_the_gpu, crash, program

from gpubench.backends import devices
from gpubench.backends.cuda_driver import driver
from gpubench.backends.cuda_program import parameters_of, program_arguments
from gpubench.backends.cuda_sampling import PLAIN, REPLAY
from gpubench.backends.protocol import DeviceError, DeviceMemoryError, Launch, Target
from gpubench.backends.registry import get
from gpubench.edge.systems.cupy import CupySession
from gpubench.errors import BackendError, KernelError
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.suite.loading import load_suite

needs_cupy = pytest.mark.skipif(
    importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"
)


@pytest.fixture
def session() -> Iterator[CupySession]:
    with get("cupy").open("cuda:0") as opened:
        assert isinstance(opened, CupySession)
        yield opened


def run(session: CupySession, target: Target, launch: Launch | None, *arguments: Any) -> Any:
    returned = session.bind(target, launch, arguments)()
    session.synchronize()
    return returned


# --- programs in CUDA C++


@needs_cupy
@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_reach_a_program_in_the_types_that_it_declares(
    session: CupySession, dtype: str
) -> None:
    """``by`` is a float of Python: its 64 bits, read as 32, would be another number."""
    array = session.to_native(np.arange(N, dtype=dtype))
    run(session, program(real=dtype), LAUNCH, array, 1.5, N - 1)
    expected = np.arange(N, dtype=dtype) * np.where(np.arange(N) < N - 1, 1.5, 1).astype(dtype)
    np.testing.assert_array_equal(session.to_host(array), expected)


@needs_cupy
@pytest.mark.gpu
def test_a_raw_kernel_is_launched(session: CupySession) -> None:
    kernel = session.cupy.RawKernel(SCALED.replace("real", "float"), "scale")
    array = session.to_native(np.ones(N, np.float32))
    run(session, Target(function=kernel), LAUNCH, array, 3, N)
    np.testing.assert_array_equal(session.to_host(array), np.full(N, 3, np.float32))
    with pytest.raises(KernelError, match="needs a 'launch'"):
        session.bind(Target(function=kernel), None, [array, 3, N])


@needs_cupy
@pytest.mark.gpu
def test_the_memory_of_a_run_is_what_the_sessions_pool_takes_for_it(session: CupySession) -> None:
    held = []
    peak = session.peak_bytes(lambda: held.append(session.cupy.empty(2**20, np.uint8)))
    assert 2**20 <= (peak or 0) <= 2**21


@needs_cupy
@pytest.mark.gpu
def test_a_program_that_does_not_compile_shows_the_line(session: CupySession) -> None:
    broken = program(SCALED.replace("*= by", "*= bye"))
    call = session.bind(broken, LAUNCH, [session.to_native(np.ones(N)), 2.0, N])
    with pytest.raises(KernelError, match=r'(?s)scale does not compile.*"bye" is undefined'):
        call()


@needs_cupy
@pytest.mark.gpu
def test_a_kernel_that_is_not_there_is_refused_with_the_next_step(session: CupySession) -> None:
    call = session.bind(program(entry="scales"), LAUNCH, [session.to_native(np.ones(N)), 2.0, N])
    with pytest.raises(KernelError, match="no kernel 'scales'; declare it extern"):
        call()


@needs_cupy
@pytest.mark.gpu
def test_arguments_that_do_not_fit_are_refused(session: CupySession) -> None:
    array = session.to_native(np.ones(N))
    for given, fault in (
        ([array, 2.0], "scale has 3 parameters and 'call' gives 2"),
        ([2.0, 2.0, N], r"parameter 1 of scale, 'real \*a': 'call' gives the number 2.0"),
        ([array, array, N], "parameter 2 of scale, 'real by': 'call' gives an array"),
        ([array, 2.0, 2**31], "is no whole number from -2147483648 to 2147483647"),
        ([array, 2.0, np.int64(3)], "give the scalar 'dtype: int32'"),
    ):
        with pytest.raises(KernelError, match=fault):
            session.bind(program(), LAUNCH, given)()


def test_parameters_are_read_from_the_text() -> None:
    text = """
    // __global__ void mine(int wrong) {}
    template <int W> __device__ int other(int n);
    extern "C" __global__ void __launch_bounds__(256, 2)
    mine(const float *__restrict__ a /* in */, unsigned long long n, real by, int8_t s, Box box) {}
    """
    types = [type_ for _, type_ in parameters_of(text, "mine", {"real": "float32"}) or ()]
    assert types == ["pointer*", "ulong", "float", "char", "Box"]
    assert parameters_of(text, "none", {}) is None
    assert parameters_of("__global__ void empty() {}", "empty", {}) == []


def test_numbers_of_a_kernel_that_a_macro_makes_have_64_bits() -> None:
    one, half = program_arguments("KERNEL(double_it)", "double_it", {}, [1, 0.5])
    assert (type(one), type(half)) == (np.int64, np.float64)


# --- the session


@needs_cupy
@pytest.mark.gpu
def test_what_writes_its_arrays_is_replayed_from_a_graph(session: CupySession) -> None:
    array = session.to_native(np.ones(N))
    sampler = session.sampler(session.bind(program(), LAUNCH, [array, 2.0, N]))
    session.restore(array, session.to_native(np.ones(N)))
    sampler.seconds(5)
    assert sampler.method == REPLAY
    np.testing.assert_array_equal(session.to_host(array), np.full(N, 32.0))


@needs_cupy
@pytest.mark.gpu
def test_what_makes_new_arrays_is_not_captured(session: CupySession) -> None:
    """A replay would write where other arrays lie by then."""
    array = session.to_native(np.ones(N))
    sampler = session.sampler(session.bind(Target(function=lambda a: a + 1), None, [array]))
    sampler.seconds(5)
    assert sampler.method == PLAIN


@needs_cupy
@pytest.mark.gpu
def test_no_room_is_said_and_leaves_the_session_usable(session: CupySession) -> None:
    _, total = session.cupy.cuda.runtime.memGetInfo()

    def too_much() -> Any:
        return session.cupy.empty(2 * total, np.uint8)

    with pytest.raises(DeviceMemoryError, match=r"^cuda:0 is out of memory: .*use smaller sizes"):
        session.bind(Target(function=too_much), None, [])()
    np.testing.assert_array_equal(session.to_host(session.to_native(np.ones(N))), np.ones(N))


@needs_cupy
@pytest.mark.gpu
def test_errors_of_the_runtime_have_their_names_and_leave_the_default_stream(
    session: CupySession,
) -> None:
    """NVIDIA's runtime is asked for names, and asks the driver for functions of both kinds."""
    cuda, api = session.cupy.cuda, driver()
    with pytest.raises(cuda.runtime.CUDARuntimeError, match=r"InvalidResourceHandle|InvalidValue"):
        cuda.get_elapsed_time(cuda.Event(), cuda.Event())
    default, legacy = api.cuStreamGetId(0)[1], api.cuStreamGetId(api.CUstream(1))[1]
    assert int(default) == int(legacy)


@needs_cupy
@pytest.mark.gpu
def test_a_session_gives_back_memory_stream_and_device() -> None:
    with get("cupy").open("cuda:0") as first:  # loads what stays
        cupy = first.cupy
        first.synchronize()
    stream, before = cupy.cuda.get_current_stream().ptr, cupy.cuda.runtime.memGetInfo()[0]
    with get("cupy").open("cuda:0") as session:
        array = session.to_native(np.ones(2**20))
        assert cupy.cuda.runtime.memGetInfo()[0] <= before - array.nbytes
        assert cupy.cuda.get_current_stream().ptr == session.stream.ptr != stream
        del array
    assert cupy.cuda.get_current_stream().ptr == stream
    assert cupy.cuda.runtime.memGetInfo()[0] == before


@needs_cupy
@pytest.mark.gpu
def test_the_sessions_stream_stays_current(session: CupySession) -> None:
    """CuPy copies arrays with gaps `with` the stream that it is given. What came after went to the
    default stream, for which the session's does not wait: copies were read too early."""
    current = session.cupy.cuda.get_current_stream
    with_gaps = session.to_native(np.arange(8.0)[::2])
    np.testing.assert_array_equal(session.to_host(with_gaps), np.arange(0, 8, 2))
    assert current().ptr == session.stream.ptr
    with session.stream, session.cupy.cuda.Stream(non_blocking=True):  # as a launcher may
        pass
    assert current().ptr == session.stream.ptr


@needs_cupy
@pytest.mark.gpu
def test_launches_over_the_limits_are_refused(session: CupySession) -> None:
    array = session.to_native(np.ones(N))
    with pytest.raises(DeviceError, match="the limit is 1024 threads per block"):
        session.bind(program(), Launch((2048, 1, 1), (1, 1, 1)), [array, 2.0, N])
    with pytest.raises(DeviceError, match="cooperative launch"):
        session.bind(program(), Launch((64, 1, 1), (1, 1, 1), 0, True), [array, 2.0, N])()


@needs_cupy
@pytest.mark.gpu
def test_facts_name_cupy_and_its_compiler(session: CupySession) -> None:
    facts = session.facts()
    assert facts["cupy"] == session.cupy.__version__
    assert str(facts["nvrtc"]).count(".") == 1
    assert facts["gpu"] == devices.gpus()[0].name


@needs_cupy
@pytest.mark.gpu
def test_an_illegal_access_loses_the_device_and_leaving_is_silent() -> None:
    assert crash("cupy").startswith("lost: the work crashed on cuda:0: ")


# --- what CuPy asks of the runtime beside arrays


@needs_cupy
@pytest.mark.gpu
def test_work_is_captured_and_replayed(session: CupySession) -> None:
    cupy, called = session.cupy, list[int]()
    array = cupy.zeros(N)
    cupy.add(array, 1, out=array)  # compiled before
    session.stream.begin_capture()
    cupy.add(array, 1, out=array)
    session.stream.launch_host_func(called.append, 7)
    graph = session.stream.end_capture()
    session.synchronize()
    assert called == []
    graph.launch(session.stream)
    graph.launch(session.stream)
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(array), np.full(N, 3.0))
    assert called == [7, 7]


@needs_cupy
@pytest.mark.gpu
def test_functions_of_the_host_are_called_in_the_order_of_a_stream(session: CupySession) -> None:
    called = list[Any]()
    for number in range(50):
        session.stream.launch_host_func(called.append, number)
    session.stream.add_callback(lambda stream, status, data: called.append((status, data)), "x")
    session.synchronize()
    assert called == [*range(50), (0, "x")]


@needs_cupy
@pytest.mark.gpu
def test_memory_is_managed_and_pooled(session: CupySession) -> None:
    cuda = session.cupy.cuda
    for take, kind in (
        (cuda.malloc_managed, 3),
        (cuda.MemoryAsyncPool().malloc, 2),
        (cuda.malloc_async, 2),
    ):
        memory = take(8 * N)
        array = session.cupy.ndarray(N, np.float64, memory)
        array[...] = 2.5
        np.testing.assert_array_equal(session.to_host(array), np.full(N, 2.5))
        attributes = cuda.runtime.pointerGetAttributes(memory.ptr)
        assert (attributes.type, attributes.device, attributes.devicePointer) == (
            *(kind, 0, memory.ptr),
        )
    pool = cuda.MemoryAsyncPool()
    assert pool.used_bytes() >= 0
    pool.free_all_blocks()


@needs_cupy
@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bool", "uint8"])
def test_arrays_are_sorted_along_every_axis(session: CupySession, dtype: str) -> None:
    cupy, generator = session.cupy, np.random.default_rng(1)
    array = generator.integers(0, 9, (4, 5, 6)).astype(dtype)
    if dtype == "float32":
        array[1, 2, 3] = np.nan
    native = session.to_native(array)
    for axis in (0, 1, -1):
        sorted_, order = cupy.sort(native, axis=axis), cupy.argsort(native, axis=axis)
        np.testing.assert_array_equal(session.to_host(sorted_), np.sort(array, axis=axis))
        expected = np.argsort(array, axis=axis, kind="stable")
        np.testing.assert_array_equal(session.to_host(order), expected)
    np.testing.assert_array_equal(session.to_host(native), array)
    keys = array[0]
    np.testing.assert_array_equal(
        session.to_host(cupy.lexsort(session.to_native(keys))), np.lexsort(keys)
    )
    np.testing.assert_array_equal(session.to_host(cupy.sort(cupy.zeros((0, 3)))), np.zeros((0, 3)))


@needs_cupy
@pytest.mark.gpu
@pytest.mark.skipif(
    bool(devices.known_gpus()) and devices.known_gpus()[0].name != "softcuda", reason="a GPU has it"
)
def test_what_softcuda_has_not_is_refused_with_its_name(session: CupySession) -> None:
    texture = session.cupy.cuda.texture
    channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, 2)
    with pytest.raises(NotImplementedError, match=r"softcuda, .* has no malloc(3D)?Array for CuPy"):
        texture.CUDAarray(channel, 8)


# --- the suites


@needs_cupy
@pytest.mark.gpu
@pytest.mark.parametrize("case", cases_on_the_gpu("cuda_libraries", "cupy"))
def test_every_kernel_of_the_suite_is_right(case: Any) -> None:
    result = Verifier(Manner())((0, case))
    assert (result.status, result.reason) == ("right", None)


@needs_cupy
@pytest.mark.gpu
@pytest.mark.skipif(
    importlib.util.find_spec("array_api_compat") is None, reason="needs array-api-compat"
)
@pytest.mark.parametrize("case", cases_on_the_gpu("arrays", "array_api", "xp_cupy"))
def test_one_source_for_all_libraries_is_right_on_cupy(case: Any) -> None:
    """The product of matrices is cuBLAS's, which is none of softcuda's counts."""
    result = Verifier(Manner(count=True))((0, case))
    assert (result.status, result.reason) == ("right", None)
    if case.kernel_name == "matmul" and devices.known_gpus()[0].name == "softcuda":
        assert result.counts is not None
        assert result.counts.missing == (
            "cublasGemmEx ran on the host in place of NVIDIA's library, so it is not counted"
        )


def test_the_same_program_serves_cupy_and_pycuda() -> None:
    """That is what the suite compares."""
    kernels = load_suite(SUITES / "cuda_libraries.yaml").suite.kernels
    pairs = [
        (kernel.implementations["cupy_source"], kernel.implementations["pycuda_source"])
        for kernel in kernels.values()
        if "cupy_source" in kernel.implementations
    ]
    assert len(pairs) == 2
    for cupy, pycuda in pairs:
        assert (cupy.source, cupy.entry) == (pycuda.source, pycuda.entry)


# --- where it cannot run


@pytest.mark.parametrize("backend", ["cupy", "pycuda"])
def test_a_missing_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = (
        f"cuda:0: the module {backend!r} is not installed; pip install 'gpubench-suite[{backend}]'"
    )
    assert get(backend).unavailable("cuda:0") == message
    with pytest.raises(BackendError) as refusal:
        get(backend).open("cuda:0")
    assert str(refusal.value) == message


@pytest.mark.parametrize("backend", ["cupy", "pycuda"])
def test_a_machine_without_a_gpu_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(devices, "no_gpu_reason", lambda: "no NVIDIA driver; install it")
    monkeypatch.setattr("gpubench.backends.software.requested", lambda: False)
    assert get(backend).unavailable("cuda:0") == (
        "cuda:0: no NVIDIA driver; install it; without one `gpubench verify` checks results, as "
        "GPUBENCH_SOFTCUDA=1 does"
    )


@pytest.mark.parametrize("backend", ["cupy", "pycuda"])
def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(devices, "no_gpu_reason", lambda: None)
    monkeypatch.setattr(devices, "gpu_count", lambda: 1)
    assert get(backend).unavailable("cuda:0") is None
    assert get(backend).unavailable("cuda:1") == (
        "cuda:1: this machine has 1 GPU, cuda:0; use one of these, or cuda:* for all"
    )
