"""PyTorch, JAX and one source for all libraries of arrays: sessions, and the suite of them."""

from __future__ import annotations

import importlib.util
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_functions
import numpy as np
import pytest

from gpubench.backends.protocol import DeviceLostError, DeviceMemoryError, Target
from gpubench.backends.registry import get
from gpubench.edge.systems.torch import EventSampler, translated
from gpubench.errors import BackendError, KernelError
from gpubench.measure.verify_cases import Manner, Verified, Verifier
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
pytest.importorskip("array_api_compat")
pytest.importorskip("dask.array")

SUITE = Path(__file__).parents[1] / "suites/arrays.yaml"
LIBRARIES = ("numpy", "torch", "jax", "dask")

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", autouse=True)
def cache_of_compiled_code(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


def smallest() -> list[Any]:
    """The suite's cases on the CPU, each implementation at its smallest size."""
    cases: dict[str, Case] = {}
    for case in build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases():
        if case.device == "cpu":
            cases.setdefault(f"{case.kernel_name}-{case.implementation_name}", case)
    return [pytest.param(case, id=name) for name, case in cases.items()]


def verify_case(case: Case) -> Verified:
    return Verifier(Manner())((0, case))


@pytest.mark.parametrize("case", smallest())
def test_every_kernel_of_the_suite_is_right(case: Case) -> None:
    result = verify_case(case)
    if case.implementation_name == "xp_cupy":
        assert (result.status, result.reason) == ("skipped", "CuPy computes on a GPU")
    else:
        assert (result.status, result.reason) == ("right", None)
        assert result.warnings == ()


def test_the_suite_runs_each_kernel_on_each_library() -> None:
    """From one source: that is what the suite counts."""
    kernels = load_suite(SUITE).suite.kernels
    for kernel in kernels.values():
        of_xp = {n: i for n, i in kernel.implementations.items() if n.startswith("xp_")}
        assert len({implementation.function for implementation in of_xp.values()}) == 1
        assert of_xp.keys() >= {f"xp_{library}" for library in (*LIBRARIES, "cupy")}


# --- results by name

ADD = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float64}
  b: {shape: [n], dtype: float64, intent: inout}
call: [a, b]
implementations:
  numpy: {function: array_functions:add_numpy}
"""

BOTH = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float64}
  b: {shape: [n], dtype: float64, intent: inout}
  c: {shape: [n], dtype: float64, intent: out}
call: [a, b, c]
implementations:
  numpy: {function: array_functions:add_and_subtract_numpy}
"""


def verified(folder: Path, kernel: str, candidate: str) -> Verified:
    """What becomes of an implementation beside those of a kernel."""
    body = textwrap.indent(f"{kernel.strip()}\n  candidate: {{{candidate}}}\n", "    ")
    path = folder / "sample.yaml"
    path.write_text(f"version: 1\nsuite: sample\nkernels:\n  sample:\n{body}")
    cases = build_plan([load_suite(path)], gpu_count=0).cases()
    return verify_case(next(c for c in cases if c.implementation_name == "candidate"))


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_what_is_returned_stands_for_what_others_write(tmp_path: Path, backend: str) -> None:
    candidate = f"function: array_functions:add, backend: {backend}, returns: [b]"
    assert verified(tmp_path, ADD, candidate).status == "right"


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_a_wrong_function_is_wrong(tmp_path: Path, backend: str) -> None:
    candidate = f"function: array_functions:subtract, backend: {backend}, returns: [b]"
    result = verified(tmp_path, ADD, candidate)
    assert result.status == "wrong"
    assert result.reason is not None
    assert result.reason.startswith("differs from the baseline 'numpy': b: 64 of 64 elements")


@pytest.mark.parametrize(("function", "status"), [("straight", "right"), ("swapped", "wrong")])
def test_several_results_go_by_their_names(tmp_path: Path, function: str, status: str) -> None:
    candidate = f"function: array_functions:{function}, backend: jax, returns: [b, c]"
    assert verified(tmp_path, BOTH, candidate).status == status


@pytest.mark.parametrize("library", LIBRARIES)
def test_another_dtype_is_wrong(tmp_path: Path, library: str) -> None:
    candidate = (
        "function: array_functions:narrow, backend: array_api, returns: [b], "
        f"options: {{library: \"'{library}'\"}}"
    )
    result = verified(tmp_path, ADD, candidate)
    assert result.status == "wrong"
    assert result.reason is not None
    assert "dtype float32, the baseline gives float64" in result.reason


def test_writing_what_is_only_read_is_wrong(tmp_path: Path) -> None:
    candidate = "function: array_functions:writes_its_input, backend: torch, returns: [b]"
    result = verified(tmp_path, ADD, candidate)
    assert result.status == "wrong"
    assert "the run changed a" in str(result.reason)


# --- PyTorch


def test_threads_of_pytorch_are_set_and_given_back() -> None:
    before = torch.get_num_threads()
    other = 1 if before > 1 else 2
    with get("torch").open("cpu", other) as session:
        assert torch.get_num_threads() == other
        assert session.facts()["torch_threads"] == other
    assert torch.get_num_threads() == before


def test_threads_that_pytorch_does_not_take_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    before = torch.get_num_threads()
    with pytest.raises(BackendError, match=rf"^threads of {before + 1}: PyTorch uses {before} "):
        get("torch").open("cpu", before + 1)


def test_facts_of_pytorch_name_its_version_and_code() -> None:
    with get("torch").open("cpu") as session:
        facts = session.facts()
    assert facts["torch"] == torch.__version__
    assert facts["torch_cpu_capability"] == torch.backends.cpu.get_cpu_capability()


def test_a_view_of_a_tensor_is_its_memory() -> None:
    with get("torch").open("cpu") as session:
        native = session.to_native(np.zeros(8))
        native[3] = 7
        assert session.view(native).ctypes.data == native.data_ptr()
        assert session.to_host(native).ctypes.data != native.data_ptr()


@pytest.mark.parametrize("size", [1, 100, 10**5])
def test_tensors_lie_where_pytorch_would_put_them(size: int) -> None:
    """On 64 bytes (c10's alignment on the CPU), which NumPy's arrays do not."""
    with get("torch").open("cpu") as session:
        natives = [session.to_native(np.zeros(size, np.float32)) for _ in range(8)]
        assert {native.data_ptr() % 64 for native in natives} == {0}


def test_a_tensor_keeps_the_layout_of_its_array() -> None:
    with get("torch").open("cpu") as session:
        native = session.to_native(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
        assert native.stride() == (1, 2)


def test_a_dtype_that_pytorch_has_not_is_refused() -> None:
    with (
        get("torch").open("cpu") as session,
        pytest.raises(KernelError, match=r"^PyTorch has no dtype like"),
    ):
        session.to_native(np.zeros(3, [("x", "f8")]))


def test_a_conjugate_that_pytorch_puts_off_arrives_conjugated() -> None:
    with get("torch").open("cpu") as session:
        native = session.to_native(np.array([1 + 2j]))
        assert session.to_host(native.conj()) == [1 - 2j]


def test_no_room_in_the_hosts_memory_is_an_error_of_memory() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**50)
    error = translated(raised.value, "cpu")
    assert isinstance(error, DeviceMemoryError)
    assert str(error).startswith("cpu is out of memory: ")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), DeviceMemoryError),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), DeviceLostError),
        (RuntimeError("The size of tensor a (3) must match"), type(None)),
    ],
)
def test_errors_of_a_device_are_told_from_those_of_a_function(
    error: RuntimeError, kind: type
) -> None:
    assert type(translated(error, "cuda:0")) is kind


class ScriptedEvent:
    """Takes place at the moment that a scripted stream has reached when it is recorded."""

    now = 0.0

    def record(self) -> None:
        self.moment = ScriptedEvent.now

    def elapsed_time(self, end: ScriptedEvent) -> float:
        return 1e3 * (end.moment - self.moment)


def scripted_sampler(seconds: float, *, warm: bool) -> tuple[EventSampler, list[float]]:
    """Of a call that takes so many seconds of the stream and none of the host."""
    calls: list[float] = []

    def call() -> None:
        ScriptedEvent.now += seconds
        calls.append(seconds)

    return EventSampler(call, lambda: None, ScriptedEvent, warm=warm), calls


def test_events_tell_the_time_of_a_batch_after_warming_up() -> None:
    sampler, calls = scripted_sampler(seconds=0.5, warm=False)
    warmed = len(calls)
    assert warmed > 1
    assert sampler.seconds(3) == pytest.approx(1.5)
    assert (len(calls) - warmed, sampler.method, sampler.warnings) == (3, "event loop", ())
    assert len(scripted_sampler(seconds=0.5, warm=True)[1]) == 1


def test_a_batch_that_waited_for_the_host_is_marked() -> None:
    sampler, _ = scripted_sampler(seconds=0.0, warm=True)
    sampler.seconds(3)
    assert [warning.partition(":")[0] for warning in sampler.warnings] == ["launch-bound"]


# --- JAX


def aligned_zeros(size: int) -> Array:
    """Memory that begins at a multiple of 64 bytes, which JAX would share."""
    room = np.zeros(8 * size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + 8 * size].view(np.float64)


def test_an_array_of_jax_shares_no_memory_with_its_source() -> None:
    source = aligned_zeros(4096)
    with get("jax").open("cpu") as session:
        native = session.to_native(source)
        source[:] = 7
        np.testing.assert_array_equal(session.to_host(native), np.zeros(4096))


class Late:
    """What a call returned before its work was done."""

    def __init__(self, moments: list[str]) -> None:
        self.moments = moments
        moments.append("called")

    def block_until_ready(self) -> Late:
        self.moments.append("done")
        return self


def test_each_call_of_jax_is_done_before_the_next_one_or_the_clock() -> None:
    moments: list[str] = []
    with get("jax").open("cpu") as session:
        call = session.bind(Target(function=lambda: Late(moments)), None, [])
        session.sampler(call).seconds(3)
    assert moments[:6] == ["called", "done"] * 3


def test_synchronizing_waits_for_the_last_call_of_jax() -> None:
    moments: list[str] = []
    with get("jax").open("cpu") as session:
        call = session.bind(Target(function=lambda: Late(moments)), None, [])
        call()
        assert moments == ["called"]
        session.synchronize()
        assert moments == ["called", "done"]


def test_double_precision_ends_with_the_session() -> None:
    before = jax.config.jax_enable_x64, jax.config.jax_default_device
    jax.config.update("jax_enable_x64", False)
    try:
        with get("jax").open("cpu") as session:
            assert session.to_host(session.to_native(np.zeros(3))).dtype == np.float64
            assert session.facts()["jax_x64"] is True
        assert jax.numpy.zeros(3).dtype == np.float32
    finally:
        jax.config.update("jax_enable_x64", before[0])
    assert jax.config.jax_default_device is before[1]


def test_threads_of_jax_cannot_be_set() -> None:
    with pytest.raises(BackendError, match=r"^threads of 2: XLA takes all processors"):
        get("jax").open("cpu", 2)


def test_under_jit_sizes_are_known_and_data_is_not() -> None:
    seen = []

    def function(a: Any, n: int, step: float, seed: Any) -> Any:
        seen.append([isinstance(each, jax.core.Tracer) for each in (a, n, step, seed)])
        return a[:n] * step + seed

    with get("jax").open("cpu", options={"wrap": "jit"}) as session:
        arguments = [session.to_native(np.ones(4)), 3, 0.5, np.uint64(7)]
        for _ in range(2):  # a case binds its function more than once
            call = session.bind(Target(function=function), None, arguments)
            np.testing.assert_array_equal(session.to_host(call()), [7.5] * 3)
    assert seen == [[True, False, True, True]]


def test_without_jit_a_function_runs_as_it_is() -> None:
    with get("jax").open("cpu") as session:
        seen: list[Any] = []
        native = session.to_native(np.ones(4))
        session.bind(Target(function=seen.append), None, [native])()
    assert isinstance(seen[0], jax.Array) and not isinstance(seen[0], jax.core.Tracer)


def test_another_wrapper_of_jax_is_refused() -> None:
    with pytest.raises(BackendError, match=r"^wrap of 'pmap'; allowed: jit"):
        get("jax").open("cpu", options={"wrap": "pmap"})


def test_no_room_for_an_array_of_jax_is_an_error_of_memory() -> None:
    with get("jax").open("cpu") as session:
        call = session.bind(Target(function=jax.numpy.zeros), None, [2**45])
        with pytest.raises(DeviceMemoryError, match=r"^cpu is out of memory: RESOURCE_EXHAUSTED"):
            call()


# --- one source


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_library_gets_its_own_namespace(library: str) -> None:
    module = "jax.numpy" if library == "jax" else f"array_api_compat.{library}"
    seen = []

    def function(xp: Any, a: Any) -> Any:
        seen.append(xp.__name__)
        return array_functions.twice(xp, a)

    with get("array_api").open("cpu", options={"library": library}) as session:
        call = session.bind(Target(function=function), None, [session.to_native(np.ones(5))])
        assert session.to_host(call()) == 10
        facts = session.facts()
    assert seen[0].startswith(module)
    assert facts["array_api_library"] == library and library in facts


def test_the_work_of_dask_is_done_in_the_call() -> None:
    """What a function returns is a plan; it is computed by threads that end with the session."""
    names: list[str] = []

    def piece(block: Array) -> Array:
        names.append(threading.current_thread().name)
        return block + 1

    def function(xp: Any, a: Any) -> Any:
        return a.map_blocks(piece, dtype=a.dtype, meta=np.empty(0))

    with get("array_api").open("cpu", 1, {"library": "dask"}) as session:
        result = session.bind(Target(function=function), None, [session.to_native(np.ones(3))])()
        assert isinstance(result, np.ndarray)
        assert session.facts()["dask_threads"] == 1
        np.testing.assert_array_equal(result, [2, 2, 2])
    assert len(names) == 1 and "ThreadPool" in names[0]
    assert names[0] not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"library": "pandas"}, "library of 'pandas'; allowed: numpy, torch, jax, dask, cupy"),
        (
            {"library": "numpy", "wrap": "jit"},
            "wrap of 'jit' with numpy; allowed: jit with jax, compile with torch, or leave it out",
        ),
        ({"library": "cupy"}, "cpu: cupy does not compute there; allowed: dask, jax, numpy, torch"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(BackendError) as refusal:
        get("array_api").open("cpu", options=options)
    assert str(refusal.value) == message


def compiled_twice(size: int, function: Callable[..., Any]) -> Array:
    """What ``torch.compile`` makes of a function for arrays of one size, in a session of its own;
    the function is bound twice, as a case does."""
    options = {"library": "torch", "wrap": "compile"}
    with get("array_api").open("cpu", options=options) as session:
        native = session.to_native(np.arange(float(size)))
        for _ in range(2):
            result = session.bind(Target(function=function), None, [native])()
        return session.to_host(result)


@torch._dynamo.config.patch(recompile_limit=2)
def test_a_case_of_torch_compile_does_not_depend_on_those_before() -> None:
    """PyTorch compiles a function a limited number of times in a process."""
    sums = [float(compiled_twice(size, array_functions.twice)) for size in (2, 3, 4, 5)]
    assert sums == [2, 6, 12, 20]


def test_what_torch_compile_cannot_take_as_a_whole_fails() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled_twice(4, array_functions.asks_a_tensor)


# --- where something is missing


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("torch", "cpu: the module 'torch' is not installed; pip install 'gpubench-suite[torch]'"),
        ("jax", "cpu: the module 'jax' is not installed; pip install 'gpubench-suite[jax]'"),
        (
            "array_api",
            "cpu: the module 'array_api_compat' is not installed; "
            "pip install 'gpubench-suite[array-api]'",
        ),
    ],
)
def test_a_missing_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, backend: str, message: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert get(backend).unavailable("cpu") == message
    with pytest.raises(BackendError) as refusal:
        get(backend).open("cpu")
    assert str(refusal.value) == message


def test_a_missing_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "dask" else find_spec(name)
    )
    with pytest.raises(
        BackendError, match=r"^dask is not installed; pip install 'gpubench-suite\[dask"
    ):
        get("array_api").open("cpu", options={"library": "dask"})


def test_builds_without_cuda_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with a GPU, which this one is taken for."""
    monkeypatch.setattr("gpubench.backends.host.no_such_gpu", lambda device: None)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.13.0+cpu")
    monkeypatch.setattr("gpubench.edge.systems.jax._PLUGINS", ("no_such_plugin",))
    reason = get("torch").unavailable("cuda:0")
    assert str(reason).startswith("cuda:0: the installed PyTorch is built without CUDA")
    reason = get("jax").unavailable("cuda:0")
    assert reason == "cuda:0: the installed JAX has no CUDA; pip install 'jax[cuda13]'"


@pytest.mark.parametrize("backend", ["torch", "jax", "array_api"])
def test_the_device_in_software_is_no_device_for_a_library(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr("gpubench.backends.software.requested", lambda: True)
    assert "runs Numba, CuPy and PyCUDA alone" in str(get(backend).unavailable("cuda:0"))
