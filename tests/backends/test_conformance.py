"""The protocol as a table: every backend that can run in this process keeps the same promises."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import doublings
import numpy as np
import pytest
from numba import cuda, njit

from gpubench.backends.protocol import Backend, Launch, Session, Target
from gpubench.backends.registry import BACKENDS_GROUP, get
from gpubench.backends.scripted import script
from gpubench.distribution import DISTRIBUTION
from gpubench.errors import BackendError, GpubenchError
from gpubench.layouts import refused_layout
from gpubench.names import TIMES, Value

N = 12
LAUNCH = Launch(block=(4, 1, 1), grid=(3, 1, 1))


@dataclass(frozen=True)
class Subject:
    """A backend on one device, and how a kernel is written for it."""

    backend: str
    device: str
    compiled: Callable[[Callable[..., Any]], Any] | None
    """Makes ``work(array, n)`` a function of this backend; ``None``: it takes a source in C."""
    cuda: bool = False
    foreign: str = "cl:0:0"
    """A device of another backend."""
    written: Callable[..., Any] | None = None
    """``work(array, n)`` as this system has it, where it is no loop to be ``compiled``."""
    returns: bool = False
    """Whether ``work`` returns the new array and leaves the old one, which cannot be written."""
    options: Mapping[str, Value] = field(default_factory=dict)
    source: bool = False
    """Whether it takes a source as well as functions."""
    dear: bool = False
    """Whether opening it takes so long (a pool, a cluster) that tests share a session."""

    @property
    def name(self) -> str:
        return "-".join([self.backend, self.device, *map(str, self.options.values())])

    def launch(self, blocks: int = 3) -> Launch | None:
        """Return how ``work`` is launched; what a system has of its own chooses that itself."""
        return None if self.written else Launch(block=(4, 1, 1), grid=(blocks, 1, 1))


def plain(function: Callable[..., Any]) -> Any:
    return function


CUDA = Subject("numba_cuda", "cuda:0", cuda.jit, cuda=True)
OPENCL = Subject("pyopencl", "cl:0:0", None, foreign="cuda:0")


def system(
    written: Callable[..., Any], backend: str, device: str, *modules: str, **how: Any
) -> Any:
    """Return a row for another system, skipped where the modules that it needs are not
    installed."""
    missing = [module for module in modules if find_spec(module) is None]
    reason = f"not installed here: {', '.join(missing)}; make test-systems has them"
    marks = (pytest.mark.systems, pytest.mark.skipif(bool(missing), reason=reason))
    return pytest.param(Subject(backend, device, plain, written=written, **how), marks=marks)


def array_api(library: str, device: str = "cpu") -> Any:
    modules, options = {"array_api_compat", library}, {"library": library}
    return system(doublings.array_api, "array_api", device, *modules, returns=True, options=options)


def on_a_gpu(row: Any) -> Any:
    """Return the same row, run where there is a GPU or a device in software."""
    return pytest.param(*row.values, marks=(*row.marks, pytest.mark.gpu))


def of_other_packages() -> list[Subject]:
    """Return the backends of packages that are installed beside this one, for functions of NumPy
    arrays."""
    return [
        Subject(one.name, "cpu", plain)
        for one in entry_points(group=BACKENDS_GROUP)
        if one.dist is not None and one.dist.name != DISTRIBUTION
    ]


SUBJECTS = [
    Subject("numpy", "cpu", plain),
    Subject("numba", "cpu", njit),
    Subject("scripted", "cpu", script(seconds=1.0)),
    Subject("scripted", "scripted:1", script(seconds=1.0, asynchronous=True)),
    pytest.param(CUDA, marks=pytest.mark.gpu),
    pytest.param(OPENCL, marks=pytest.mark.opencl),
    system(doublings.torch, "torch", "cpu", "torch"),
    system(doublings.jax, "jax", "cpu", "jax", returns=True),
    *map(array_api, ("numpy", "torch", "jax", "dask")),
    system(doublings.torch, "scikit_learn", "cpu", "sklearn"),
    system(doublings.xgboost, "xgboost", "cpu", "xgboost"),
    on_a_gpu(system(doublings.torch, "cupy", "cuda:0", "cupy", cuda=True, source=True)),
    on_a_gpu(system(doublings.pycuda, "pycuda", "cuda:0", "pycuda", cuda=True, source=True)),
    on_a_gpu(array_api("cupy", "cuda:0")),
    system(doublings.pool, "multiprocessing", "processes:2", dear=True),
    system(doublings.pool, "threads", "threads:2"),
    system(doublings.joblib, "joblib", "processes:2", "joblib", returns=True, dear=True),
    system(doublings.joblib, "joblib", "threads:2", "joblib", returns=True),
    system(doublings.dask, "dask", "threads:2", "dask", returns=True),
    system(doublings.dask, "dask", "processes:2", "dask", returns=True, dear=True),
    system(doublings.dask, "dask", "dask:2:1", "distributed", returns=True, dear=True),
    system(doublings.ray, "ray", "ray:2", "ray", returns=True, dear=True),
    # Of these, arrays lie in this process, and are written as PyTorch's are.
    system(doublings.torch, "pandas", "cpu", "pandas", "pyarrow"),
    system(doublings.torch, "polars", "cpu", "polars", "pyarrow"),
    system(doublings.torch, "modin", "dask:2:1", "modin", "distributed", dear=True),
    system(doublings.torch, "modin", "ray:2", "modin", "ray", dear=True),
    *of_other_packages(),
]


@pytest.fixture(params=SUBJECTS, ids=lambda subject: subject.name, scope="module")
def subject(request: pytest.FixtureRequest) -> Subject:
    found: Subject = request.param
    return found


@pytest.fixture
def backend(subject: Subject) -> Backend:
    return get(subject.backend)


@dataclass
class Shared:
    """What tests of one subject share."""

    before: set[tuple[int, str]]
    """Processes that there were before its first session."""
    session: Session | None = None

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None


@pytest.fixture(scope="module")
def shared(subject: Subject) -> Iterator[Shared]:
    shared = Shared(processes_started())
    yield shared
    shared.close()


@pytest.fixture
def session(backend: Backend, subject: Subject, shared: Shared) -> Iterator[Session]:
    if not subject.dear:
        with backend.open(subject.device, None, subject.options) as opened:
            yield opened
        return
    if shared.session is None:
        shared.session = backend.open(subject.device, None, subject.options)
    yield shared.session


DOUBLE_IN_C = """
__kernel void twice(__global double *a, long n) {
    size_t i = get_global_id(0);
    if (i < n) a[i] *= 2;
}
"""


def doubling(subject: Subject) -> Target:
    """``a[i] *= 2`` for each ``i < n``, as this backend writes it."""
    if subject.compiled is None:
        return Target(source=DOUBLE_IN_C, entry="twice")
    if subject.written is not None:
        return Target(function=subject.written)
    if not subject.cuda:

        def double(a: Any, n: int) -> None:
            for i in range(n):
                a[i] *= 2

        return Target(function=subject.compiled(double))

    def double_on_device(a: Any, n: int) -> None:
        i = cuda.grid(1)
        if i < n:
            a[i] *= 2

    return Target(function=subject.compiled(double_on_device))


def outcome(session: Session, subject: Subject, native: Any, returned: Any) -> Any:
    """Return the array that a call made, on the host: the one that it wrote, or the one that it
    returned. One that was not to be written is what it was."""
    session.synchronize()
    if not subject.returns:
        return session.to_host(native)
    np.testing.assert_array_equal(session.to_host(native), numbers())
    return session.to_host(returned)


def numbers(dtype: str = "float64") -> np.ndarray[Any, Any]:
    return np.arange(N).astype(dtype)


DTYPES = "bool int8 uint8 int16 int32 int64 uint64 float16 float32 float64 complex64 complex128"


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_arrays_come_back_as_they_went(session: Session, dtype: str) -> None:
    sent = numbers(dtype)
    back = session.to_host(session.to_native(sent))
    np.testing.assert_array_equal(back, sent, strict=True)


@pytest.mark.parametrize(
    "sent",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24.0).reshape(2, 3, 4),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(1.0),
    ],
    ids=["fortran", "three dimensions", "not contiguous", "one element"],
)
def test_every_layout_comes_back(session: Session, sent: np.ndarray[Any, Any]) -> None:
    back = session.to_host(session.to_native(sent))
    np.testing.assert_array_equal(back, sent, strict=True)


LAYOUTS = {
    "C": np.arange(12.0).reshape(3, 4),
    "F": np.arange(12.0).reshape(3, 4).T,
    "strided": np.arange(24.0).reshape(3, 8)[:, ::2],
    "backwards": np.arange(24.0).reshape(3, 8)[::-1, ::-2],
    "overlapping": np.broadcast_to(np.arange(4.0), (3, 4)),
    "unaligned": np.ones(4, "u1,f8")["f1"],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_that_a_session_takes_is_kept_whatever_is_restored(
    session: Session, layout: Any
) -> None:
    sent = LAYOUTS[layout]
    if layout not in session.layouts:
        assert refused_layout(sent, session.layouts)
        return
    native = session.to_native(sent)
    others = [np.zeros(sent.shape), np.asfortranarray(3 * sent), np.broadcast_to(7.0, sent.shape)]
    for values in (sent, *(others if layout != "overlapping" else [])):
        session.restore(native, session.pristine(values))
        session.synchronize()
        np.testing.assert_array_equal(session.to_host(native), values)
        if hasattr(native, "strides"):
            assert native.strides == sent.strides
        elif hasattr(native, "stride"):  # PyTorch counts elements
            assert [8 * step for step in native.stride()] == [*sent.strides]


def test_native_arrays_are_copies_in_both_directions(session: Session) -> None:
    sent = numbers()
    native = session.to_native(sent)
    sent[:] = -1
    back = session.to_host(native)
    back[:] = -2
    np.testing.assert_array_equal(session.to_host(native), numbers())


def test_restore_overwrites_and_leaves_the_pristine_array(session: Session) -> None:
    native, pristine = session.to_native(np.zeros(N)), session.to_native(numbers())
    session.restore(native, pristine)
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), numbers())
    session.restore(native, session.to_native(np.ones(N)))
    np.testing.assert_array_equal(session.to_host(pristine), numbers())


def test_binding_runs_nothing(session: Session, subject: Subject) -> None:
    native = session.to_native(numbers())
    session.bind(doubling(subject), subject.launch(), [native, N])
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), numbers())


def test_each_call_runs_once(session: Session, subject: Subject) -> None:
    native = session.to_native(numbers())
    call = session.bind(doubling(subject), subject.launch(), [native, N])
    for factor in (2, 2) if subject.returns else (2, 4):
        doubled = outcome(session, subject, native, call())
        np.testing.assert_array_equal(doubled, factor * numbers(), strict=True)


def test_what_a_call_returned_stays_when_another_runs(session: Session, subject: Subject) -> None:
    if not subject.returns:
        pytest.skip("writes its arrays")
    native, other = session.to_native(numbers()), session.to_native(np.ones(N))
    call = session.bind(doubling(subject), subject.launch(), [native, N])
    first = call()
    session.restore(native, other)
    second = call()
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(first), 2 * numbers())
    np.testing.assert_array_equal(session.to_host(second), 2 * np.ones(N))


def test_what_a_backend_passes_comes_before_the_calls_arguments(
    session: Session, backend: Backend, subject: Subject
) -> None:
    if subject.written is None:
        pytest.skip("its kernels are compiled: they cannot look at their arguments")
    written, seen = subject.written, []

    def watched(*arguments: Any) -> Any:
        seen.append(arguments)
        return written(*arguments)

    native = session.to_native(numbers())
    session.bind(Target(function=watched), None, [native, N])()
    session.synchronize()
    ((*passed, _, n),) = seen
    assert (len(passed), n) == (len(backend.passes), N)


def test_restore_follows_the_work_that_is_queued(session: Session, subject: Subject) -> None:
    native, pristine = session.to_native(numbers()), session.to_native(np.ones(N))
    session.bind(doubling(subject), subject.launch(), [native, N])()
    session.restore(native, pristine)
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), np.ones(N))


def test_two_bindings_of_one_function_stay_apart(session: Session, subject: Subject) -> None:
    target = doubling(subject)
    whole, part = session.to_native(numbers()), session.to_native(numbers())
    first = session.bind(target, subject.launch(), [whole, N])
    second = session.bind(target, subject.launch(blocks=1), [part, 4])
    returned = first(), second()
    np.testing.assert_array_equal(
        outcome(session, subject, whole, returned[0]), 2 * numbers(), strict=True
    )
    doubled = outcome(session, subject, part, returned[1])
    np.testing.assert_array_equal(doubled[4:], numbers()[4:])


def test_a_sample_runs_as_often_as_it_is_asked_and_takes_time(
    session: Session, subject: Subject
) -> None:
    native, runs, target = session.to_native(numbers()), [], doubling(subject)
    if subject.returns:  # an array tells nothing: count calls

        def counted(*arguments: Any) -> Any:
            runs.append(1)
            return doubling(subject).function(*arguments)

        target = Target(function=counted)
    sampler = session.sampler(session.bind(target, subject.launch(), [native, N]))
    session.restore(native, session.to_native(numbers()))
    session.synchronize()  # whatever warming up did is undone
    runs.clear()
    seconds = sampler.seconds(3)
    if subject.returns:
        assert len(runs) == 3
    else:
        np.testing.assert_array_equal(session.to_host(native), 8 * numbers())
    assert seconds > 0 or session.simulated or subject.device == "scripted:1"
    assert sampler.method


def test_the_call_that_does_nothing_runs_where_there_is_one(session: Session) -> None:
    if (empty := session.empty()) is not None:
        empty()
        session.synchronize()
        assert session.sampler(empty).seconds(2) >= 0


def test_flushing_the_cache_leaves_arrays_alone(session: Session) -> None:
    native = session.to_native(numbers())
    for _ in range(2):
        session.flush()
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), numbers())


def test_facts_are_flat_and_name_the_versions(session: Session) -> None:
    facts = session.facts()
    assert facts["numpy"] == np.__version__
    assert all(isinstance(value, (str, int, float, bool)) for value in facts.values())


def test_a_source_text_is_refused_by_those_that_take_functions(
    session: Session, subject: Subject
) -> None:
    if subject.compiled is None or subject.source:
        session.bind(Target(source=DOUBLE_IN_C, entry="twice"), LAUNCH, [])
        return
    with pytest.raises(GpubenchError, match="source"):
        session.bind(Target(source="__kernel void k() {}", entry="k"), LAUNCH, [])


def test_a_session_closes_after_an_error_and_another_opens(
    backend: Backend, subject: Subject, shared: Shared
) -> None:
    shared.close()
    where = subject.device, None, subject.options
    with pytest.raises(ZeroDivisionError), backend.open(*where) as broken:
        broken.to_native(numbers())
        raise ZeroDivisionError
    broken.close()  # a second time
    with backend.open(*where) as fresh:
        np.testing.assert_array_equal(fresh.to_host(fresh.to_native(numbers())), numbers())
    deadline = time.monotonic() + 20
    while (left := processes_started() - shared.before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def processes_started() -> set[tuple[int, str]]:
    """Return the processes below this one, with their command lines; without those of
    ``multiprocessing`` that serve a whole process and end with it. Empty where the system has no
    /proc."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
    below, found = {os.getpid()}, set()
    while new := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= new
    for pid in below - {os.getpid()}:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue
        if command and not any(name in command for name in ("resource_tracker", "forkserver")):
            found.add((pid, command))
    return found


def test_an_option_takes_no_other_value(backend: Backend, subject: Subject) -> None:
    for option, meaning in backend.options.items():
        assert meaning
        with pytest.raises(BackendError, match=option):
            backend.open(subject.device, None, {**subject.options, option: "no such value"})


def test_its_times_are_known_and_a_kernel_has_one(backend: Backend) -> None:
    assert "kernel" in backend.times
    assert set(backend.times) <= set(TIMES)


def test_only_its_own_devices_are_served(backend: Backend, subject: Subject) -> None:
    assert backend.serves(subject.device)
    assert backend.unavailable_with(subject.device, subject.options) is None
    foreign = subject.foreign
    assert not backend.serves(foreign)
    reason = backend.unavailable(foreign)
    assert reason is not None and reason.startswith(f"{foreign}: the backend")
    with pytest.raises(GpubenchError) as refusal:
        backend.open(foreign)
    assert str(refusal.value) == reason


def test_the_optional_methods_have_answers(backend: Backend, subject: Subject) -> None:
    assert backend.too_many_threads(1) is None
    assert not backend.keeps(print)
    assert all(isinstance(name, str) for name in (*backend.software, *backend.concerns))
    lines = {line.device: line for line in backend.devices()}
    if subject.device in lines:
        assert lines[subject.device].unavailable is None
        assert lines[subject.device].name == backend.device_facts(subject.device).name


def test_the_device_has_a_name(backend: Backend, subject: Subject) -> None:
    facts = backend.device_facts(subject.device)
    assert facts.name
    assert facts.scope["device"] == subject.device


def test_a_launcher_is_told_the_launch(session: Session, subject: Subject) -> None:
    if not subject.cuda and subject.compiled is not None:
        with pytest.raises(GpubenchError):
            session.bind(Target(launcher=print), LAUNCH, [])
        return
    kernel, seen = doubling(subject).function, []

    def twice(launch: Launch, a: Any, n: int) -> None:
        seen.append((launch.grid, launch.block, launch.shared_bytes))
        for _ in range(2):
            if kernel is None:
                a.__imul__(2)
            elif subject.written is not None:
                kernel(a, n)
            else:
                kernel[launch.grid, launch.block, launch.stream](a, n)

    native = session.to_native(numbers())
    session.bind(Target(launcher=twice), LAUNCH, [native, N])()
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), 4 * numbers())
    assert seen == [((3, 1, 1), (4, 1, 1), 0)]
