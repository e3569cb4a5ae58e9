"""The protocol as a table: every backend that can run in this process keeps the same promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import cuda, njit

from gpubench.backends.protocol import Backend, Launch, Session, Target
from gpubench.backends.registry import get
from gpubench.backends.scripted import script
from gpubench.errors import GpubenchError

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


def plain(function: Callable[..., Any]) -> Any:
    return function


CUDA = Subject("numba_cuda", "cuda:0", cuda.jit, cuda=True)
OPENCL = Subject("pyopencl", "cl:0:0", None, foreign="cuda:0")
SUBJECTS = [
    Subject("numpy", "cpu", plain),
    Subject("numba", "cpu", njit),
    Subject("scripted", "cpu", script(seconds=1.0)),
    Subject("scripted", "scripted:1", script(seconds=1.0, asynchronous=True)),
    pytest.param(CUDA, marks=pytest.mark.gpu),
    pytest.param(OPENCL, marks=pytest.mark.opencl),
]


@pytest.fixture(params=SUBJECTS, ids=lambda s: f"{s.backend}-{s.device}")
def subject(request: pytest.FixtureRequest) -> Subject:
    found: Subject = request.param
    return found


@pytest.fixture
def backend(subject: Subject) -> Backend:
    return get(subject.backend)


@pytest.fixture
def session(backend: Backend, subject: Subject) -> Iterator[Session]:
    with backend.open(subject.device) as opened:
        yield opened


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
    session.bind(doubling(subject), LAUNCH, [native, N])
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), numbers())


def test_each_call_runs_once(session: Session, subject: Subject) -> None:
    native = session.to_native(numbers())
    call = session.bind(doubling(subject), LAUNCH, [native, N])
    for factor in (2, 4):
        call()
        session.synchronize()
        np.testing.assert_array_equal(session.to_host(native), factor * numbers())


def test_restore_follows_the_work_that_is_queued(session: Session, subject: Subject) -> None:
    native, pristine = session.to_native(numbers()), session.to_native(numbers())
    session.bind(doubling(subject), LAUNCH, [native, N])()
    session.restore(native, pristine)
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), numbers())


def test_two_bindings_of_one_function_stay_apart(session: Session, subject: Subject) -> None:
    target = doubling(subject)
    whole, part = session.to_native(numbers()), session.to_native(numbers())
    first = session.bind(target, LAUNCH, [whole, N])
    second = session.bind(target, Launch((4, 1, 1), (1, 1, 1)), [part, 4])
    first()
    second()
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(whole), 2 * numbers())
    np.testing.assert_array_equal(session.to_host(part)[4:], numbers()[4:])


def test_a_sample_runs_as_often_as_it_is_asked_and_takes_time(
    session: Session, subject: Subject
) -> None:
    native = session.to_native(numbers())
    sampler = session.sampler(session.bind(doubling(subject), LAUNCH, [native, N]))
    session.restore(native, session.to_native(numbers()))
    session.synchronize()  # whatever warming up did is undone
    seconds = sampler.seconds(3)
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
    if subject.compiled is None:
        session.bind(Target(source=DOUBLE_IN_C, entry="twice"), LAUNCH, [])
        return
    with pytest.raises(GpubenchError, match="source"):
        session.bind(Target(source="__kernel void k() {}", entry="k"), LAUNCH, [])


def test_a_session_closes_after_an_error_and_another_opens(
    backend: Backend, subject: Subject
) -> None:
    with pytest.raises(ZeroDivisionError), backend.open(subject.device) as broken:
        broken.to_native(numbers())
        raise ZeroDivisionError
    with backend.open(subject.device) as fresh:
        np.testing.assert_array_equal(fresh.to_host(fresh.to_native(numbers())), numbers())


def test_only_its_own_devices_are_served(backend: Backend, subject: Subject) -> None:
    assert backend.serves(subject.device)
    assert backend.unavailable(subject.device) is None
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
            else:
                kernel[launch.grid, launch.block, launch.stream](a, n)

    native = session.to_native(numbers())
    session.bind(Target(launcher=twice), LAUNCH, [native, N])()
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), 4 * numbers())
    assert seen == [((3, 1, 1), (4, 1, 1), 0)]
