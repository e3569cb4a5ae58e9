"""The CUDA path on a device, an NVIDIA GPU or one in software: what a script cannot show."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import cuda
from numba.cuda.core.errors import NumbaPerformanceWarning

from gpubench.backends import ceilings, devices, numba_cuda, software
from gpubench.backends.cuda_sampling import BestWay
from gpubench.backends.numba_cuda import NumbaCudaBackend, NumbaCudaSession
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceMemoryError,
    Launch,
    Target,
)

pytestmark = pytest.mark.gpu

ONE = Launch(block=(1, 1, 1), grid=(1, 1, 1))
MANY = Launch(block=(256, 1, 1), grid=(4096, 1, 1))


@cuda.jit
def increment(a: Any) -> None:
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1


@cuda.jit
def spin(a: Any, steps: int) -> None:
    """Each step waits for the one before, so that twice as many take twice as long."""
    value = a[0]
    for _ in range(steps):
        value = value * 0.999 + 0.5
    a[0] = value


@pytest.fixture
def session() -> Iterator[NumbaCudaSession]:
    with NumbaCudaBackend().open("cuda:0") as opened:
        assert isinstance(opened, NumbaCudaSession)
        yield opened


def spinning(session: NumbaCudaSession, steps: int) -> Call:
    array = session.to_native(np.ones(1))
    call = session.bind(Target(function=spin), ONE, [array, steps])
    call()
    session.synchronize()
    return call


@pytest.mark.gpu_time
def test_graph_held_back_stream_and_plain_events_agree(session: NumbaCudaSession) -> None:
    call = spinning(session, 100_000)  # far longer than its launch
    best = BestWay(session, call)
    ways = [best.graph_replay, best.held_back, best.plain_events]
    for way in ways:
        way(20)
    times = [min(way(20) for _ in range(5)) for way in ways]
    assert max(times) <= 1.03 * min(times)


@pytest.mark.gpu_time
def test_the_event_clock_follows_the_work(session: NumbaCudaSession) -> None:
    times = []
    for steps in (200_000, 400_000):
        best = BestWay(session, spinning(session, steps))
        best.seconds(3)
        times.append(min(best.seconds(3) for _ in range(5)))
    assert times[1] == pytest.approx(2 * times[0], rel=0.03)


@pytest.mark.gpu_time
def test_events_never_tell_more_than_the_host_saw(session: NumbaCudaSession) -> None:
    call = spinning(session, 2_000_000)
    begin, end = session.event(), session.event()
    start = time.perf_counter()
    session.record(begin)
    call()
    session.record(end)
    seconds, seen = session.seconds(begin, end), time.perf_counter() - start
    assert 0.5 * seen < seconds <= seen


def test_a_replay_computes_what_its_runs_compute(session: NumbaCudaSession) -> None:
    array = session.to_native(np.zeros(1000))
    call = session.bind(Target(function=increment), MANY, [array])
    call()
    BestWay(session, call).graph_replay(450)
    np.testing.assert_array_equal(session.to_host(array), np.full(1000, 451.0))


def test_a_held_back_batch_runs_every_call(session: NumbaCudaSession) -> None:
    if not session.can_hold:
        pytest.skip("this driver cannot hold a stream back")
    array = session.to_native(np.zeros(1000))
    call = session.bind(Target(function=increment), MANY, [array])
    call()
    BestWay(session, call).held_back(1201)
    np.testing.assert_array_equal(session.to_host(array), np.full(1000, 1202.0))


def test_copying_back_waits_for_what_is_queued(session: NumbaCudaSession) -> None:
    long, array = spinning(session, 3_000_000), session.to_native(np.zeros(1000))
    call = session.bind(Target(function=increment), MANY, [array])
    call()
    long()
    call()
    np.testing.assert_array_equal(session.to_host(array), np.full(1000, 2.0))


def test_a_copy_on_the_device_waits_for_what_is_queued(session: NumbaCudaSession) -> None:
    long, array = spinning(session, 3_000_000), session.to_native(np.zeros(1000))
    pristine = session.to_native(np.arange(1000.0))
    call = session.bind(Target(function=increment), MANY, [array])
    call()
    long()
    call()
    session.restore(array, pristine)
    cuda.synchronize()
    np.testing.assert_array_equal(session.to_host(array), np.arange(1000.0))


def test_numba_cuda_has_graphs_and_a_gate(session: NumbaCudaSession) -> None:
    pytest.importorskip("cuda.bindings")
    assert session.can_hold
    assert session.capture(spinning(session, 10), 3).nodes == 3


def waiting(launch: Launch, array: Any) -> None:
    increment[launch.grid, launch.block, launch.stream](array)
    launch.stream.synchronize()


def allocating(launch: Launch, array: Any) -> None:
    scratch = cuda.device_array_like(array, stream=launch.stream)
    scratch.copy_to_device(array, stream=launch.stream)
    increment[launch.grid, launch.block, launch.stream](scratch)


@pytest.mark.parametrize("launcher", [waiting, allocating])
def test_a_launcher_that_cannot_be_captured_is_measured_plainly(
    session: NumbaCudaSession, launcher: Any
) -> None:
    native = session.to_native(np.zeros(1000))
    sampler = session.sampler(session.bind(Target(launcher=launcher), MANY, [native]))
    assert sampler.seconds(10) > 0
    assert sampler.method == "plain events"
    kernel = session.bind(Target(function=increment), MANY, [native])
    assert session.sampler(kernel).seconds(10) > 0


def test_restoring_brings_the_inputs_back(session: NumbaCudaSession) -> None:
    native, pristine = session.to_native(np.zeros(1000)), session.to_native(np.arange(1000.0))
    session.restore(native, pristine)
    session.bind(Target(function=increment), MANY, [native])()
    session.restore(native, pristine)
    session.synchronize()
    np.testing.assert_array_equal(session.to_host(native), np.arange(1000.0))


def test_an_array_keeps_its_order(session: NumbaCudaSession) -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    native = session.to_native(array)
    assert native.is_f_contiguous()
    np.testing.assert_array_equal(session.to_host(native), array)


@pytest.mark.gpu_time
def test_flushing_makes_a_run_in_the_cache_slower(session: NumbaCudaSession) -> None:
    l2 = session.facts()["l2_bytes"]
    assert isinstance(l2, int)
    native = session.to_native(np.zeros(l2 // 4 // 8))
    call = session.bind(Target(function=increment), MANY, [native])
    sampler = session.sampler(call)
    warm, cold = [], []
    for _ in range(15):
        sampler.seconds(1)
        warm.append(sampler.seconds(1))
        session.flush()
        session.synchronize()
        cold.append(sampler.seconds(1))
    assert np.median(cold) > np.median(warm)


def test_a_launch_over_the_limits_is_refused(session: NumbaCudaSession) -> None:
    with pytest.raises(DeviceError, match="the limit is 1024"):
        session.bind(Target(function=increment), Launch((1025, 1, 1), (1, 1, 1)), [])


def test_a_launcher_makes_small_grids_without_a_remark() -> None:
    def launcher(launch: Launch, array: Any) -> None:
        increment[1, 32](array)

    with warnings.catch_warnings():
        warnings.simplefilter("error", NumbaPerformanceWarning)
        with NumbaCudaBackend().open("cuda:0") as session:
            array = session.to_native(np.zeros(32))
            session.bind(Target(function=increment), ONE, [array])()
            launcher(ONE, array)
        with pytest.raises(NumbaPerformanceWarning):
            increment[2, 32](np.zeros(64))


def test_running_out_of_memory_leaves_the_next_case_fine(session: NumbaCudaSession) -> None:
    with pytest.raises(DeviceMemoryError):
        session.to_native(np.lib.stride_tricks.as_strided(np.zeros(1), (2**46,), (8,)))
    native = session.to_native(np.zeros(1000))
    session.bind(Target(function=increment), MANY, [native])()
    np.testing.assert_array_equal(session.to_host(native), np.ones(1000))


CRASH = """
import numpy as np
from numba import cuda
from gpubench.backends.numba_cuda import NumbaCudaBackend
from gpubench.backends.protocol import DeviceLostError, Launch, Target

@cuda.jit
def stray(a):
    a[cuda.grid(1) + (1 << 40)] = 1

try:
    with NumbaCudaBackend().open("cuda:0") as session:
        native = session.to_native(np.zeros(4))
        call = session.bind(Target(function=stray), Launch((4, 1, 1), (1, 1, 1)), [native])
        session.sampler(call)
except DeviceLostError as error:
    print("lost")
"""


def test_an_illegal_address_ends_one_process_only(session: NumbaCudaSession) -> None:
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH], capture_output=True, text=True, timeout=300, env=os.environ
    )
    assert (crashed.stdout, crashed.returncode) == ("lost\n", 0), crashed.stderr
    native = session.to_native(np.ones(8))
    np.testing.assert_array_equal(session.to_host(native), np.ones(8))


def test_ceilings_are_found(session: NumbaCudaSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "MIN_BYTES", 2**16)
    monkeypatch.setattr(numba_cuda, "CEILING_ARRAY_IN_L2_CACHES", 0)
    found = session.ceilings()
    assert found.keys() == {"copy_bytes_per_second", "triad_bytes_per_second"}
    assert min(found.values()) > 0


@pytest.mark.gpu_time
def test_ceilings_are_below_the_datasheets_bandwidth(session: NumbaCudaSession) -> None:
    found = session.ceilings()
    peak = session.facts().get("peak_bytes_per_second")
    assert min(found.values()) > 1e9
    if isinstance(peak, float):
        assert all(0.4 * peak < rate < peak for rate in found.values())


def test_a_device_in_software_says_so_and_tells_nothing_of_its_speed(
    session: NumbaCudaSession,
) -> None:
    in_software = devices.gpus()[0].name == software.NAME
    assert session.simulated == in_software
    paces = ("peak_bytes_per_second", "gpu_clock_mhz", "gpu_max_memory_clock_mhz")
    assert not (in_software and session.facts().keys() & set(paces))


def test_facts_name_the_gpu(session: NumbaCudaSession) -> None:
    facts = session.facts()
    assert facts["gpu"] == devices.gpus()[0].name
    assert facts["driver"]
