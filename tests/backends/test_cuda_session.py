"""A session on a CUDA device: clock, copies, flush, failures and facts, on a scripted device."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_cuda import BANDWIDTH, FLOOR, Kernel, ScriptedCuda

from gpubench.backends import numba_cuda
from gpubench.backends.ceilings import array_bytes
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    Launch,
    Target,
)

LAUNCH = Launch(block=(64, 1, 1), grid=(2, 1, 1))


@pytest.fixture
def cuda() -> ScriptedCuda:
    return ScriptedCuda()


def bound(cuda: ScriptedCuda, kernel: Kernel) -> Call:
    return cuda.bind(Target(function=kernel), LAUNCH, [])


def test_a_sampler_measures_the_kernel_and_not_its_launch(cuda: ScriptedCuda) -> None:
    sampler = cuda.sampler(bound(cuda, Kernel(3e-6)))
    assert sampler.seconds(1000) == pytest.approx(3e-3)
    assert sampler.method == "graph replay"


def test_restoring_follows_the_work_that_is_queued(cuda: ScriptedCuda) -> None:
    native, pristine = cuda.to_native(np.zeros(3)), cuda.to_native(np.ones(3))
    cuda.restore(native, pristine)
    np.testing.assert_array_equal(cuda.to_host(native), np.ones(3))


def test_leaving_a_session_waits_and_frees(cuda: ScriptedCuda) -> None:
    with cuda:
        bound(cuda, Kernel(2.0))()
    assert cuda.host >= 2.0
    assert cuda.asked == ["close"]


def test_a_failure_that_nobody_waited_for_shows_when_the_session_is_left(
    cuda: ScriptedCuda,
) -> None:
    with pytest.raises(DeviceLostError), cuda:
        bound(cuda, Kernel(lost_at=0))()
    assert cuda.asked == ["close"]


def test_closing_a_lost_device_hides_no_other_error(cuda: ScriptedCuda) -> None:
    with pytest.raises(ZeroDivisionError), cuda:
        bound(cuda, Kernel(lost_at=0))()
        raise ZeroDivisionError


def test_a_session_goes_on_after_running_out_of_memory(cuda: ScriptedCuda) -> None:
    cuda.free = -1
    with pytest.raises(DeviceMemoryError):
        cuda.ceilings()
    assert cuda.sampler(bound(cuda, Kernel(1e-3))).seconds(3) == pytest.approx(3e-3)


def test_an_impossible_launch_is_refused_before_it_happens(cuda: ScriptedCuda) -> None:
    with pytest.raises(DeviceError, match=r"^block of 2048 threads: the limit is 1024"):
        cuda.bind(Target(function=Kernel()), Launch((2048, 1, 1), (1, 1, 1)), [])


def test_a_session_knows_the_floor_once_something_was_sampled(cuda: ScriptedCuda) -> None:
    assert cuda.floor_seconds is None
    cuda.sampler(bound(cuda, Kernel(1e-3)))
    assert cuda.floor_seconds == pytest.approx(FLOOR)


def test_ceilings_count_every_byte_read_and_written_once(cuda: ScriptedCuda) -> None:
    assert cuda.ceilings() == {
        "copy_bytes_per_second": pytest.approx(BANDWIDTH),
        "triad_bytes_per_second": pytest.approx(BANDWIDTH),
    }
    assert cuda.asked == ["allocate 67108864"] * 3 + ["kernel copy", "kernel triad"]


@pytest.mark.parametrize(
    ("l2", "most", "size"),
    [
        (60 * 10**6, 18 * 10**9, 480 * 10**6),
        (2 * 10**6, 2 * 10**9, 2**26),
        (60 * 10**6, 100 * 10**6, 100 * 10**6),
        (60 * 10**6, 12, 8),
    ],
    ids=["several caches", "small cache", "little memory", "none"],
)
def test_arrays_are_several_caches_and_leave_memory_free(l2: int, most: int, size: int) -> None:
    assert (
        array_bytes(l2, numba_cuda.CEILING_ARRAY_IN_L2_CACHES, most, numba_cuda.FLOAT64_BYTES)
        == size
    )


def test_arrays_of_the_ceilings_take_a_part_of_the_memory_that_is_free(cuda: ScriptedCuda) -> None:
    cuda.free = 8 * 10**6
    cuda.ceilings()
    assert cuda.asked[:3] == ["allocate 1000000"] * 3
