"""Graphs and the gate, with the driver's bindings played by a small module."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scripted_bindings import Bindings, Result

from gpubench.backends.cuda_driver import (
    CannotCapture,
    CUDAError,
    Gate,
    capture,
    checked,
)
from gpubench.backends.protocol import DeviceError, DeviceLostError

STREAM = 7


def test_a_capture_instantiates_and_uploads_what_the_calls_queued() -> None:
    api, calls = Bindings("KERNEL", "MEMSET"), []
    graph = capture(api, STREAM, lambda: calls.append(1), 2)
    graph.replay()
    assert (graph.nodes, graph.replayable, len(calls)) == (2, True, 2)
    assert [line.split()[0] for line in api.asked] == [
        "cuStreamBeginCapture",
        "cuStreamEndCapture",
        "cuGraphGetNodes",
        "cuGraphGetNodes",
        "cuGraphNodeGetType",
        "cuGraphNodeGetType",
        "cuGraphInstantiate",
        "cuGraphUpload",
        "cuGraphLaunch",
    ]
    assert api.asked[0] == "cuStreamBeginCapture 7 global"
    assert api.asked[-1] == "cuGraphLaunch executable 7"


@pytest.mark.parametrize("kind", ["MEMCPY", "HOST", "MEM_ALLOC", "CONDITIONAL"])
def test_a_graph_that_touches_other_memory_is_not_replayable(kind: str) -> None:
    api = Bindings("KERNEL", kind)
    assert not capture(api, STREAM, lambda: None, 1).replayable
    assert "cuGraphInstantiate graph 0" not in api.asked


def test_closing_a_graph_destroys_it_once() -> None:
    api = Bindings("KERNEL")
    graph = capture(api, STREAM, lambda: None, 1)
    graph.close()
    graph.close()
    assert api.asked[-2:] == ["cuGraphExecDestroy executable", "cuGraphDestroy graph"]


def test_a_graph_that_is_forgotten_is_destroyed() -> None:
    api = Bindings("KERNEL")
    capture(api, STREAM, lambda: None, 1)
    assert api.asked[-2:] == ["cuGraphExecDestroy executable", "cuGraphDestroy graph"]


def failing(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def test_a_call_that_fails_ends_the_capture_and_discards_it() -> None:
    api = Bindings()
    with pytest.raises(CannotCapture, match=r"^CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED$"):
        capture(api, STREAM, failing(DeviceError("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")), 3)
    assert api.asked == [
        "cuStreamBeginCapture 7 global",
        "cuStreamEndCapture 7",
        "cuGraphDestroy graph",
    ]


def test_an_interrupt_ends_the_capture() -> None:
    api = Bindings()
    with pytest.raises(KeyboardInterrupt):
        capture(api, STREAM, failing(KeyboardInterrupt()), 1)
    assert "cuStreamEndCapture 7" in api.asked


def test_a_lost_device_is_no_refusal() -> None:
    with pytest.raises(DeviceLostError):
        capture(Bindings(), STREAM, failing(DeviceLostError("gone")), 1)


@pytest.mark.parametrize(
    ("refuses", "destroyed"),
    [
        ("cuStreamBeginCapture", []),
        ("cuStreamEndCapture", []),
        ("cuGraphInstantiate", ["cuGraphDestroy graph"]),
        ("cuGraphUpload", ["cuGraphExecDestroy executable", "cuGraphDestroy graph"]),
    ],
)
def test_what_the_driver_refuses_is_no_graph(refuses: str, destroyed: list[str]) -> None:
    api = Bindings("KERNEL", refuses=refuses)
    with pytest.raises(CannotCapture) as refusal:
        capture(api, STREAM, lambda: None, 1)
    assert str(refusal.value) == "the driver answers CUDA_ERROR_NOT_SUPPORTED"
    assert [line for line in api.asked if "Destroy" in line] == destroyed


def test_the_stream_waits_for_the_next_ticket_until_it_is_written() -> None:
    api = Bindings()
    made = Gate(api, STREAM)
    for ticket in (1, 2):
        with made.shut() as release:
            assert api.asked[-1] == f"cuStreamWaitValue32 7 4711 {ticket} 0"
            assert api.word.value == ticket - 1
            release()
            assert api.word.value == ticket


def test_leaving_a_gate_opens_it_whatever_happened() -> None:
    api = Bindings()
    with pytest.raises(ZeroDivisionError), Gate(api, STREAM).shut():
        raise ZeroDivisionError
    assert api.word.value == 1


def test_tickets_begin_again_after_the_last_number() -> None:
    api = Bindings()
    made = Gate(api, STREAM)
    made._ticket = 2**32 - 1
    with made.shut():
        assert api.asked[-1] == "cuStreamWaitValue32 7 4711 0 0"
    assert api.word.value == 0


@pytest.mark.parametrize(
    "refuses",
    ["cuMemHostAlloc", "cuMemHostGetDevicePointer", "cuStreamWaitValue32", "cuStreamSynchronize"],
)
def test_a_driver_that_cannot_wait_has_no_gate(refuses: str) -> None:
    api = Bindings(refuses=refuses)
    with pytest.raises(CUDAError):
        Gate(api, STREAM)
    given_back = f"cuMemFreeHost {api.address}" in api.asked
    assert given_back is (refuses != "cuMemHostAlloc")


def test_the_bindings_answers_are_checked() -> None:
    assert checked((0,)) == ()
    assert checked((0, "one")) == "one"
    assert checked((0, "one", "two")) == ("one", "two")
    with pytest.raises(CUDAError, match=r"^the driver answers CUDA_ERROR_NOT_SUPPORTED$"):
        checked((Result(1), "one"))
