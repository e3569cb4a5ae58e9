"""The OpenCL backend on a real device, PoCL's CPU for example, whose queue runs on its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpubench.backends import pyopencl
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceMemoryError,
    Launch,
    Session,
    Target,
)
from gpubench.backends.registry import get
from gpubench.errors import BackendError, KernelError
from gpubench.names import Value

pytestmark = pytest.mark.opencl

DEVICE = "cl:0:0"
KERNELS = (Path(__file__).parent / "opencl" / "kernels.cl").read_text()

LAUNCH = Launch(block=(4, 1, 1), grid=(2, 1, 1))
PATIENCE = 20.0
"""Seconds after which a queue that a test holds goes on, so that a failing test ends."""


@pytest.fixture
def session() -> Iterator[Session]:
    with get("pyopencl").open(DEVICE) as opened:
        yield opened


def bound(session: Session, entry: str, *arguments: Any, launch: Launch = LAUNCH) -> Call:
    return session.bind(Target(source=KERNELS, entry=entry), launch, arguments)


def refusal(session: Session, text: str, *arguments: Any, entry: str = "k") -> str:
    """Message of the first call of a kernel that cannot run."""
    call = session.bind(Target(source=text, entry=entry), LAUNCH, arguments)
    with pytest.raises(KernelError) as refused:
        call()
    return str(refused.value)


class Held:
    """A queue that waits until it is let go."""

    def __init__(self, queue: Any) -> None:
        import pyopencl

        self._complete = pyopencl.command_execution_status.COMPLETE
        self.gate = pyopencl.UserEvent(queue.context)
        pyopencl.enqueue_barrier(queue, wait_for=[self.gate])
        self.let_go_at = 0.0

    def let_go(self) -> None:
        self.let_go_at = self.let_go_at or time.perf_counter()
        with suppress(Exception):  # it may have been let go
            self.gate.set_status(self._complete)

    @property
    def waits(self) -> bool:
        return bool(self.gate.command_execution_status != self._complete)


@contextmanager
def held(queue: Any, seconds: float = PATIENCE) -> Iterator[Held]:
    found = Held(queue)
    timer = threading.Timer(seconds, found.let_go)
    timer.start()
    try:
        yield found
    finally:
        timer.cancel()
        found.let_go()


def peeked(native: Any) -> np.ndarray[Any, Any]:
    """What is in the device's memory now, whatever the session's queue still has to do."""
    import pyopencl

    host = np.empty(native.shape, native.dtype)
    with pyopencl.CommandQueue(native.queue.context) as other:
        pyopencl.enqueue_copy(other, host, native.base_data, is_blocking=True)
    return host


def incrementing(session: Session) -> tuple[Any, Call]:
    """Eight ones on the device and a call, compiled already, that adds one to each."""
    native = session.to_native(np.zeros(8, np.int32))
    call = bound(session, "increment", native)
    call()
    session.synchronize()
    return native, call


def test_a_call_returns_while_the_device_has_not_begun(session: Session) -> None:
    native, call = incrementing(session)
    with held(native.queue) as queue:
        call()
        assert queue.waits


def test_an_output_read_without_waiting_is_stale(session: Session) -> None:
    native, call = incrementing(session)
    with held(native.queue):
        call()
        assert peeked(native).tolist() == [1] * 8


def test_after_synchronising_the_output_is_there(session: Session) -> None:
    native, call = incrementing(session)
    with held(native.queue, seconds=0.05):
        call()
        session.synchronize()
        assert peeked(native).tolist() == [2] * 8


def test_outputs_are_waited_for(session: Session) -> None:
    native, call = incrementing(session)
    with held(native.queue, seconds=0.05) as queue:
        call()
        host = session.to_host(native)
        assert not queue.waits
    assert host.tolist() == [2] * 8


def test_a_sample_waits_for_the_device_and_not_only_for_the_host(session: Session) -> None:
    native, call = incrementing(session)
    holding: list[Held] = []

    def launcher(launch: Launch) -> None:
        holding.append(Held(launch.stream))
        threading.Timer(0.05, holding[0].let_go).start()
        call()

    sampler = session.sampler(session.bind(Target(launcher=launcher), None, []))
    before = time.perf_counter()
    assert sampler.seconds(1) <= time.perf_counter() - before
    assert not holding[0].waits
    assert peeked(native).tolist() == [2] * 8


def test_more_work_on_the_device_takes_more_time(session: Session) -> None:
    few, many = (slow(session, steps) for steps in (2_000, 200_000))
    device = {call: min(session.sampler(call).seconds(1) for _ in range(3)) for call in (few, many)}
    assert device[many] > device[few] > 0


def slow(session: Session, steps: int) -> Call:
    call = bound(session, "iterate", session.to_native(np.ones(64, np.float32)), steps)
    call()
    session.synchronize()
    return call


@pytest.mark.parametrize("runs", [1, 256, 600])
def test_a_sample_runs_as_often_as_it_is_asked(session: Session, runs: int) -> None:
    native = session.to_native(np.zeros(8, np.int32))
    sampler = session.sampler(bound(session, "increment", native))
    assert sampler.method == "held-back queue"
    assert sampler.seconds(runs) > 0
    assert session.to_host(native).tolist() == [runs] * 8


def test_a_sample_has_no_time_of_the_host_between_its_runs(session: Session) -> None:
    _, call = incrementing(session)

    def dawdle() -> None:
        time.sleep(0.02)
        call()

    dawdling = pyopencl.OnlyQueues(dawdle)
    assert min(session.sampler(dawdling).seconds(5) for _ in range(3)) < 5 * 0.02


def test_a_held_queue_is_let_go_when_a_call_fails(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl

    complete, user_event = pyopencl.command_execution_status.COMPLETE, pyopencl.UserEvent
    gates: list[Any] = []
    monkeypatch.setattr(pyopencl, "UserEvent", lambda c: gates.append(user_event(c)) or gates[-1])
    with pytest.raises(KernelError):
        session.sampler(bound(session, "no_such_kernel")).seconds(3)
    (gate,) = gates
    found = gate.command_execution_status
    with suppress(Exception):  # or a test that fails would never end
        gate.set_status(complete)
    assert found == complete


def test_a_launcher_may_wait_and_is_timed_by_markers(session: Session) -> None:
    seen = []

    def launcher(launch: Launch, a: Any) -> None:
        seen.append((launch.grid, launch.block, launch.shared_bytes))
        a.fill(7, queue=launch.stream)
        launch.stream.finish()

    native = session.to_native(np.zeros(8, np.int32))
    call = session.bind(Target(launcher=launcher), LAUNCH, [native])
    sampler = session.sampler(call)
    assert sampler.method == "event loop"
    assert sampler.seconds(2) > 0
    assert session.to_host(native).tolist() == [7] * 8
    assert seen == 2 * [((2, 1, 1), (4, 1, 1), 0)]


def test_a_function_gets_and_returns_arrays_of_the_device(session: Session) -> None:
    native = session.to_native(np.arange(8.0))
    call = session.bind(Target(function=lambda a: a + a), None, [native])
    np.testing.assert_array_equal(session.to_host(call()), 2 * np.arange(8.0))


def test_a_launch_is_work_groups_of_the_block_s_shape(session: Session) -> None:
    native = session.to_native(np.zeros((2, 8), np.int32))
    bound(session, "positions", native, launch=Launch(block=(4, 1, 1), grid=(2, 2, 1)))()
    assert session.to_host(native).tolist() == [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [100, 100, 100, 100, 101, 101, 101, 101],
    ]


def test_shared_bytes_are_local_memory_in_the_last_parameter(session: Session) -> None:
    native = session.to_native(np.arange(8, dtype=np.int32))
    bound(session, "reverse_groups", native, launch=Launch((4, 1, 1), (2, 1, 1), 16))()
    assert session.to_host(native).tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


@pytest.mark.parametrize(
    "given",
    [
        (True, -3, 0.5),
        (np.True_, np.int32(-3), np.float32(0.5)),
        (np.uint8(1), -3.0, np.float32(0.5)),
    ],
    ids=["python", "numpy", "mixed"],
)
def test_numbers_arrive_in_the_declared_types(session: Session, given: Any) -> None:
    native = session.to_native(np.zeros(3))
    bound(session, "store", native, *given, launch=Launch((1, 1, 1), (1, 1, 1)))()
    assert session.to_host(native).tolist() == [1, -3, 0.5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            (1, 2**40, 0.5),
            "parameter 3 of store, 'int whole': 1099511627776 is no whole number from -2147483648 "
            "to 2147483647; declare another type in the kernel",
        ),
        (
            (1, 2.5, 0.5),
            "parameter 3 of store, 'int whole': 2.5 is no whole number from -2147483648 to "
            "2147483647; declare another type in the kernel",
        ),
        (
            (1, 2, np.float64(0.5)),
            "parameter 4 of store, 'float fraction': 'call' gives the float64 0.5; give the "
            "scalar 'dtype: float32', or declare it double",
        ),
        ((1, 2), "store has 4 parameters and 'call' gives 3; make them agree"),
    ],
    ids=["too large", "a fraction", "another dtype", "too few"],
)
def test_numbers_that_do_not_fit_are_refused(session: Session, given: Any, message: str) -> None:
    assert refusal(session, KERNELS, session.to_native(np.zeros(3)), *given, entry="store") == (
        message
    )


def test_an_array_and_a_number_are_not_taken_for_each_other(session: Session) -> None:
    text = "__kernel void k(__global float *a, long n) {}"
    native = session.to_native(np.zeros(3, np.float32))
    assert refusal(session, text, 3, 3) == (
        "parameter 1 of k, 'float* a': 'call' gives the number 3"
    )
    assert refusal(session, text, native, native) == (
        "parameter 2 of k, 'long n': 'call' gives an array"
    )


def test_local_memory_counts_as_an_argument(session: Session) -> None:
    native = session.to_native(np.zeros(8, np.int32))
    launch = Launch((4, 1, 1), (2, 1, 1), 16)
    with pytest.raises(KernelError) as refused:
        bound(session, "increment", native, launch=launch)()
    assert str(refused.value) == (
        "increment has 1 parameters and 'call' gives 1 and 'shared_bytes' one; make them agree"
    )


def test_a_source_that_does_not_compile_shows_the_compiler_s_words(session: Session) -> None:
    message = refusal(session, "__kernel void k(__global int *a) {\n    a[0] = missing;\n}")
    first, *log = message.splitlines()
    assert first == "the source of k does not compile:"
    assert "missing" in log[0] and "2:12" in log[0]
    assert "tempfile" not in message


def test_an_unknown_kernel_is_named_with_those_that_there_are(session: Session) -> None:
    text = "__kernel void one(__global int *a) {}\n__kernel void two(__global int *a) {}"
    message = refusal(session, text)
    assert message.startswith("the source has no kernel 'k'; it has ")
    assert sorted(message.rpartition("it has ")[2].split(", ")) == ["one", "two"]


def test_constants_are_known_when_the_source_is_compiled(session: Session) -> None:
    text = "__kernel void k(__global real *a) { real tile[WIDTH]; tile[0] = HALF; a[0] = tile[0]; }"
    found = []
    for half in (0.5, 0.25):
        constants: dict[str, Value] = {"real": "float64", "WIDTH": 4, "HALF": half}
        native = session.to_native(np.zeros(1))
        target = Target(source=text, entry="k", constants=constants)
        session.bind(target, Launch((1, 1, 1), (1, 1, 1)), [native])()
        found.append(session.to_host(native)[0])
    assert found == [0.5, 0.25]


def test_a_source_is_compiled_once_for_all_that_is_bound_to_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyopencl

    built, build = [], pyopencl.Program.build
    monkeypatch.setattr(
        pyopencl.Program, "build", lambda self, *a: (built.append(self), build(self, *a))[1]
    )
    natives = [session.to_native(np.zeros(8, np.int32)) for _ in range(2)]
    calls = [bound(session, "increment", native) for native in natives]
    assert not built
    for call in (*calls, *calls):
        call()
    assert len(built) == 1
    assert [session.to_host(native).tolist() for native in natives] == [[2] * 8, [2] * 8]


def test_a_source_needs_a_launch_and_an_entry(session: Session) -> None:
    with pytest.raises(KernelError) as refused:
        session.bind(Target(source=KERNELS, entry="increment"), None, [])
    assert str(refused.value) == "an OpenCL kernel needs a 'launch' with its block; none is given"
    with pytest.raises(KernelError) as refused:
        session.bind(Target(source=KERNELS), LAUNCH, [])
    assert str(refused.value) == "an OpenCL 'source' needs an 'entry', the name of its kernel"


def test_a_launch_over_the_device_s_limits_is_refused_before_it_happens(session: Session) -> None:
    limits = get("pyopencl").device_facts(DEVICE).limits
    assert limits is not None
    most = limits.threads_per_block
    with pytest.raises(DeviceError) as refused:
        bound(session, "increment", launch=Launch((2 * most, 1, 1), (1, 1, 1)))
    assert str(refused.value) == (
        f"block of {2 * most} threads: the limit is {most} threads per block ({limits.source}); "
        "use a smaller block"
    )


def test_memory_that_the_device_has_not_is_a_memory_error(session: Session) -> None:
    def hungry(launch: Launch) -> None:
        import pyopencl

        pyopencl.Buffer(launch.stream.context, pyopencl.mem_flags.READ_WRITE, 2**50)

    with pytest.raises(DeviceMemoryError, match=rf"^{DEVICE} is out of memory: .*; use smaller"):
        session.bind(Target(launcher=hungry), None, [])()


def test_restore_brings_values_into_another_layout(session: Session) -> None:
    values = np.arange(6.0).reshape(2, 3)
    native = session.to_native(np.zeros((2, 3), order="F"))
    session.restore(native, session.to_native(values))
    np.testing.assert_array_equal(session.to_host(native), values)


def test_empty_arrays_can_be_restored_and_bound(session: Session) -> None:
    native = session.to_native(np.zeros(0, np.int32))
    session.restore(native, session.to_native(np.zeros(0, np.int32)))
    assert session.to_host(native).shape == (0,)


def test_the_floor_is_a_kernel_that_does_nothing(session: Session) -> None:
    empty = session.empty()
    assert empty is not None and session.sampler(empty).seconds(3) > 0


def test_facts_name_platform_device_and_driver(session: Session) -> None:
    assert {"pyopencl", "opencl_platform", "opencl_device", "opencl_driver"} < set(session.facts())


def test_the_cache_is_the_one_that_the_driver_tells(session: Session) -> None:
    size = pyopencl.opencl_devices()[DEVICE].global_mem_cache_size
    assert session.facts().get("l2_bytes", 0) == size


def test_ceilings_are_of_a_copy_and_a_triad_over_arrays_larger_than_the_cache(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubench.backends.ceilings.MIN_BYTES", 2**20)
    monkeypatch.setattr("gpubench.backends.pyopencl.cache_bytes", lambda device: 2**16)
    batches: list[tuple[int, float]] = []

    class Scripted(pyopencl.QueueSampler):
        """Runs for real, and tells a time of its own: a second, then one more for each batch."""

        def seconds(self, runs: int) -> float:
            assert super().seconds(runs) > 0
            batches.append((runs, 1.0 + len(batches)))
            return batches[-1][1]

    monkeypatch.setattr(pyopencl, "QueueSampler", Scripted)
    found = session.ceilings()
    assert [runs for runs, _ in batches] == [2] * 12
    # The first of six batches is thrown away: 2 s of the next for the copy, 8 s for the triad.
    assert found == {
        "copy_bytes_per_second": 2 * 2**20 / 1.0,
        "triad_bytes_per_second": 3 * 2**20 / 4.0,
    }


def test_the_copy_copies_and_the_triad_adds(session: Session) -> None:
    target, one = session.to_native(np.zeros(4, "f4")), session.to_native(np.ones(4, "f4"))
    other = session.to_native(np.arange(4, dtype="f4"))
    launch = Launch(block=(2, 1, 1), grid=(2, 1, 1))
    for entry, arrays, expected in (
        ("copy", (target, other), [0, 1, 2, 3]),
        ("triad", (target, one, other), [1, 4, 7, 10]),
    ):
        session.bind(Target(source=pyopencl.MOVING, entry=entry), launch, arrays)()
        assert session.to_host(target).tolist() == expected


def test_limits_and_facts_come_from_the_driver() -> None:
    facts = get("pyopencl").device_facts(DEVICE)
    assert facts.limits is not None and facts.limits.source == facts.name
    assert set(facts.scope) == {
        *("device", "sm_count", "shared_memory_per_block", "global_memory"),
    }


def test_a_number_of_threads_is_refused() -> None:
    with pytest.raises(BackendError) as refused:
        get("pyopencl").open(DEVICE, threads=2)
    assert str(refused.value).startswith(
        "threads of 2: no call of OpenCL sets how many a device uses; leave 'threads' out"
    )


def test_a_device_that_is_not_there_is_named_with_those_that_are() -> None:
    here = get("pyopencl").device_facts(DEVICE).name
    reason = get("pyopencl").unavailable("cl:99:0")
    assert reason is not None
    assert reason.startswith(
        f"cl:99:0: this machine has no such OpenCL device; it has cl:0:0 ({here})"
    )
