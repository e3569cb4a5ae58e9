"""Scripted functions: the clock tells what the script says, and faults come when they are asked."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
import pytest

from gpubench.backends.protocol import DeviceLostError, DeviceMemoryError, Launch, Target
from gpubench.backends.scripted import ScriptedBackend, ScriptedSession, script
from gpubench.errors import BackendError


def seconds_of(function: Any, *arguments: Any, runs: int = 1, **opening: Any) -> list[float]:
    """Time of each run on the session's clock, synchronised."""
    with ScriptedBackend().open("scripted:0", **opening) as session:
        call = session.bind(Target(function=function), LAUNCH, arguments)
        return [timed(session, call) for _ in range(runs)]


def timed(session: ScriptedSession, call: Any) -> float:
    start = session.now
    call()
    session.synchronize()
    return session.now - start


LAUNCH = Launch(block=(32, 2, 1), grid=(5, 1, 1))


def test_a_constant_takes_that_long() -> None:
    @script(seconds=0.25)
    def work() -> None: ...

    assert seconds_of(work, runs=2) == [0.25, 0.25]


def test_a_list_is_cycled() -> None:
    @script(seconds=[1.0, 2.0])
    def work() -> None: ...

    assert seconds_of(work, runs=3) == [1.0, 2.0, 1.0]


def test_seconds_follow_the_arguments_and_the_launch() -> None:
    @script(seconds=lambda n, threads, threads_per_block, blocks, **values: n * threads / blocks)
    def work(n: int) -> None: ...

    assert seconds_of(work, 10, threads=2) == [4.0]


def test_a_function_may_draw_noise() -> None:
    generator = np.random.default_rng(7)

    @script(seconds=lambda **values: 1.0 + 0.01 * generator.standard_normal())
    def work() -> None: ...

    times = seconds_of(work, runs=200)
    assert len(set(times)) == 200
    assert abs(np.mean(times) - 1.0) < 0.005
    assert 0.005 < np.std(times) < 0.02


def test_outputs_are_what_the_function_computes() -> None:
    @script(seconds=1e-3)
    def work(a: Any, b: Any) -> None:
        b[:] = a + 7

    with ScriptedBackend().open("cpu") as session:
        a, b = session.to_native(np.ones(3)), session.to_native(np.zeros(3))
        session.bind(Target(function=work), None, [a, b])()
        np.testing.assert_array_equal(session.to_host(b), [8, 8, 8])
        np.testing.assert_array_equal(session.to_host(a), [1, 1, 1])


def test_a_forgotten_synchronisation_shows() -> None:
    @script(seconds=1.0, asynchronous=True)
    def work(a: Any) -> None:
        a += 1

    with ScriptedBackend().open("scripted:0") as session:
        a = session.to_native(np.zeros(2))
        call = session.bind(Target(function=work), None, [a])
        start = session.now
        call()
        assert session.now - start == 0.0
        assert a.sum() == 0
        session.synchronize()
        assert session.now - start == 1.0
        assert a.sum() == 2


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("out of memory", DeviceMemoryError, "scripted:0 is out of memory, as its script says"),
        ("illegal address", DeviceLostError, "the work crashed on scripted:0, as its script says"),
    ],
)
def test_a_fault_comes_at_the_run_that_is_asked_for(
    fault: Any, kind: type[Exception], message: str
) -> None:
    @script(seconds=1.0, fails=fault, fails_at=2)
    def work() -> None: ...

    assert seconds_of(work, runs=2) == [1.0, 1.0]
    with pytest.raises(kind) as failure:
        seconds_of(work, runs=3)
    assert str(failure.value) == message


def test_an_asynchronous_fault_shows_when_the_session_is_left() -> None:
    @script(fails="illegal address", asynchronous=True)
    def work() -> None: ...

    with pytest.raises(DeviceLostError), ScriptedBackend().open("scripted:0") as session:
        session.bind(Target(function=work), None, [])()


def test_a_hang_never_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    @script(fails="hang", asynchronous=True)
    def work() -> None: ...

    class StillWaiting(Exception):
        pass

    naps = iter(range(3))

    def nap(seconds: float) -> None:
        if next(naps) == 2:
            raise StillWaiting

    monkeypatch.setattr(time, "sleep", nap)
    session = ScriptedBackend().open("scripted:0")
    session.bind(Target(function=work), None, [])()
    with pytest.raises(StillWaiting):
        session.synchronize()


def test_a_plain_function_is_refused() -> None:
    def plain() -> None: ...

    with pytest.raises(BackendError, match="has no script; decorate it with"):
        seconds_of(plain)


def test_an_unknown_fault_says_which_there_are() -> None:
    with pytest.raises(BackendError) as refusal:

        @script(fails="tired")
        def work() -> None: ...

    assert str(refusal.value) == (
        "unknown fault 'tired'; allowed: out of memory, illegal address, hang"
    )


def test_facts_own_up_to_the_script() -> None:
    with ScriptedBackend().open("cpu", threads=3) as session:
        assert session.facts() == {"scripted": True, "numpy": np.__version__, "threads": 3}


def test_a_scripted_function_keeps_its_name_and_computes_when_called() -> None:
    @script(seconds=1.0)
    def add(a: int, b: int) -> int:
        """Sum of both."""
        return a + b

    assert add(1, 2) == 3
    assert (add.__name__, inspect.getdoc(add)) == ("add", "Sum of both.")
