"""A session on a CUDA device: clock, copies, flush, failures and facts, on a scripted device."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_cuda import FLOOR, Kernel, ScriptedCuda

from gpubench.backends.ceilings import Ceilings
from gpubench.backends.cuda_ceilings import cuda_array_bytes
from gpubench.backends.cuda_session import CudaSession
from gpubench.backends.device_errors import DeviceError, DeviceLostError, DeviceMemoryError
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.protocol import Call, Launch, Target

LAUNCH = Launch(block=(64, 1, 1), grid=(2, 1, 1))


@pytest.fixture
def cuda() -> ScriptedCuda:
    return ScriptedCuda()


@pytest.fixture
def session(cuda: ScriptedCuda) -> CudaSession:
    return CudaSession(cuda, ARCHITECTURE_LIMITS, lambda: cuda.host)


def bound(session: CudaSession, kernel: Kernel) -> Call:
    return session.bind(Target(function=kernel), LAUNCH, [])


def test_the_clock_adds_the_time_between_two_events_of_a_pair(
    session: CudaSession, cuda: ScriptedCuda
) -> None:
    readings = []
    for idle, busy in [(5.0, 0.25), (100.0, 0.5)]:
        cuda.host += idle
        start = session.clock.start()
        bound(session, Kernel(busy))()
        readings.append((start, session.clock.stop()))
    launching = cuda.launch_cost
    assert readings == [
        (0.0, pytest.approx(0.25 + launching)),
        (pytest.approx(0.25 + launching), pytest.approx(0.75 + 2 * launching)),
    ]


def test_the_clock_waits_for_what_was_queued_before_and_leaves_it_out(
    session: CudaSession, cuda: ScriptedCuda
) -> None:
    bound(session, Kernel(7.0))()
    start = session.clock.start()
    assert cuda.host >= 7.0
    assert session.clock.stop() - start == 0


def test_a_sampler_measures_the_kernel_and_not_its_launch(session: CudaSession) -> None:
    sampler = session.sampler(bound(session, Kernel(3e-6)))
    assert sampler.seconds(1000) == pytest.approx(3e-3)
    assert sampler.method == "graph replay"


def test_flushing_copies_as_much_as_the_l2_cache_holds(
    session: CudaSession, cuda: ScriptedCuda
) -> None:
    session.flush()
    session.flush()
    assert cuda.asked == ["allocate 1000", "allocate 1000", "copy 1000", "copy 1000"]


def test_restoring_follows_the_work_that_is_queued(session: CudaSession) -> None:
    native, pristine = session.to_native(np.zeros(3)), session.to_native(np.ones(3))
    session.restore(native, pristine)
    np.testing.assert_array_equal(session.to_host(native), np.ones(3))


def test_leaving_a_session_waits_and_frees(session: CudaSession, cuda: ScriptedCuda) -> None:
    with session:
        bound(session, Kernel(2.0))()
    assert cuda.host >= 2.0
    assert cuda.asked == ["close"]


def test_a_failure_that_nobody_waited_for_shows_when_the_session_is_left(
    session: CudaSession, cuda: ScriptedCuda
) -> None:
    with pytest.raises(DeviceLostError), session:
        bound(session, Kernel(lost_at=0))()
    assert cuda.asked == ["close"]


def test_closing_a_lost_device_hides_no_other_error(session: CudaSession) -> None:
    with pytest.raises(ZeroDivisionError), session:
        bound(session, Kernel(lost_at=0))()
        raise ZeroDivisionError


def test_a_session_goes_on_after_running_out_of_memory(
    session: CudaSession, cuda: ScriptedCuda
) -> None:
    cuda.free = 0
    with pytest.raises(DeviceMemoryError):
        session.flush()
    cuda.free = 10**6
    session.flush()
    assert session.sampler(bound(session, Kernel(1e-3))).seconds(3) == pytest.approx(3e-3)


def test_an_impossible_launch_is_refused_before_it_happens(session: CudaSession) -> None:
    with pytest.raises(DeviceError, match=r"^block of 2048 threads: the limit is 1024"):
        session.bind(Target(function=Kernel()), Launch((2048, 1, 1), (1, 1, 1)), [])


def test_facts_tell_the_floor_once_something_was_sampled(session: CudaSession) -> None:
    assert session.facts() == {"gpu": "scripted", "l2_bytes": 1000}
    session.sampler(bound(session, Kernel(1e-3)))
    assert session.facts() == {
        "gpu": "scripted",
        "l2_bytes": 1000,
        "floor_seconds": pytest.approx(FLOOR),
    }


def test_ceilings_count_every_byte_read_and_written_once(
    session: CudaSession, cuda: ScriptedCuda
) -> None:
    expected = 4e12
    assert session.ceilings() == Ceilings(pytest.approx(expected), pytest.approx(expected), 2**26)
    assert cuda.asked == ["allocate 67108864"] * 3 + ["kernel copy", "kernel triad"]


@pytest.mark.parametrize(
    ("l2", "free", "size"),
    [
        (60 * 10**6, 140 * 10**9, 480 * 10**6),
        (2 * 10**6, 16 * 10**9, 2**26),
        (60 * 10**6, 800 * 10**6, 100 * 10**6),
        (60 * 10**6, 100, 8),
    ],
    ids=["several caches", "small cache", "little memory", "none"],
)
def test_arrays_are_several_caches_and_leave_memory_free(l2: int, free: int, size: int) -> None:
    assert cuda_array_bytes(l2, free) == size
