"""Graphs and a gate on a CUDA stream, through NVIDIA's own bindings of the driver (cuda.bindings).

They work on the handle of any stream of the current context, whichever library made it. Where the
driver cannot, ``capture`` raises ``CannotCapture`` and ``Gate`` raises ``CUDAError``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import c_uint32, sizeof
from importlib import import_module
from typing import Any

from gpubench.backends.protocol import Call, DeviceLostError

_REPLAYABLE = ("CU_GRAPH_NODE_TYPE_KERNEL", "CU_GRAPH_NODE_TYPE_MEMSET")
"""Nodes that touch only the memory that they are given. A copy may name memory of the host that
is gone by the time of a replay, an allocation is no work of the kernel's."""


class CUDAError(Exception):
    """A call of the driver failed; ``CUDA_ERROR_ILLEGAL_ADDRESS`` ... is in the text."""


class CannotCapture(Exception):
    """Work that a graph cannot hold or that cannot be held back, because it does not only queue; or
    a library or driver that makes no graphs."""


def driver() -> Any:
    """Return the module ``cuda.bindings.driver``, imported only where a device is used."""
    return import_module("cuda.bindings.driver")


def checked(answer: tuple[Any, ...]) -> Any:
    """Return what the bindings return, without the result code; raises ``CUDAError`` for a
    failure."""
    result, *values = answer
    if result != 0:
        raise CUDAError(f"the driver answers {getattr(result, 'name', result)}")
    return values[0] if len(values) == 1 else tuple(values)


class Graph:
    """A captured graph with the stream on which it is replayed: replayed, it runs what the calls
    queued, in their order.

    Making it sends to the device what the first replay would have to send. The driver keeps a graph
    until it is destroyed, and so it is when it is closed or forgotten.
    """

    def __init__(self, api: Any, graph: Any, stream: int, call: Call) -> None:
        self._api, self._stream = api, stream
        self._call = call  # it holds the arrays whose addresses are in the nodes
        with ExitStack() as handles:
            handles.callback(api.cuGraphDestroy, graph)
            _, self.nodes = checked(api.cuGraphGetNodes(graph, 0))
            """Kernels, copies and fills in it."""
            nodes = checked(api.cuGraphGetNodes(graph, self.nodes))[0] if self.nodes else []
            kinds = [checked(api.cuGraphNodeGetType(node)).name for node in nodes]
            self.replayable = all(kind in _REPLAYABLE for kind in kinds)
            """False where a replay could touch memory of the host or memory that is given back: the
            graph then only shows that the calls queue and never wait."""
            if self.replayable:
                self._executable = checked(api.cuGraphInstantiate(graph, 0))
                handles.callback(api.cuGraphExecDestroy, self._executable)
                checked(api.cuGraphUpload(self._executable, stream))
            self.close = weakref.finalize(self, handles.pop_all().close)

    def replay(self) -> None:
        """Queue the whole graph."""
        checked(self._api.cuGraphLaunch(self._executable, self._stream))


def capture(api: Any, stream: int, call: Call, runs: int) -> Graph:
    """Capture ``runs`` calls on a stream. Raises ``CannotCapture``, and leaves the stream usable.

    The capture is global: while it lasts, a call that waits for the device or that allocates is
    refused by the driver (CUDA driver API, ``CUstreamCaptureMode``). So work that was captured
    only queues, which holding it back and replaying it both rest on.
    """
    global_mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    failure: Exception | None = None
    try:
        checked(api.cuStreamBeginCapture(stream, global_mode))
        try:
            for _ in range(runs):
                call()
        except Exception as error:
            failure = error
        finally:
            # Whatever the calls do, the capture ends and a broken graph is thrown away.
            result, graph = api.cuStreamEndCapture(stream)
            if failure is not None and graph is not None and result == 0:
                api.cuGraphDestroy(graph)
        if isinstance(failure, DeviceLostError):
            raise failure
        if failure is not None:
            raise CannotCapture(str(failure)) from failure
        return Graph(api, checked((result, graph)), stream, call)
    except CUDAError as error:
        raise CannotCapture(str(error)) from error


class Gate:
    """A word in host memory that a stream waits for: the device goes on when the host writes it.

    The stream waits until the word has reached a ticket, so that nothing is ever reset: an old
    ticket is open for good (``cuStreamWaitValue32`` with ``GEQ``, which compares cyclically).
    """

    def __init__(self, api: Any, stream: int) -> None:
        """Open the device once, so that it is known to open. Raises ``CUDAError`` where the driver
        allows no waiting."""
        self._api, self._stream, self._ticket = api, stream, 0
        mapped = api.CU_MEMHOSTALLOC_DEVICEMAP
        self._host = int(checked(api.cuMemHostAlloc(sizeof(c_uint32), mapped)))
        with ExitStack() as refused:
            refused.callback(self.close)
            self._device = checked(api.cuMemHostGetDevicePointer(self._host, 0))
            self._word = c_uint32.from_address(self._host)
            self._word.value = 0
            # Waiting for what has already come true tells whether the driver allows waiting.
            self._wait_for(0)
            checked(api.cuStreamSynchronize(stream))
            refused.pop_all()

    @contextmanager
    def shut(self) -> Iterator[Callable[[], None]]:
        """Everything queued inside waits until the given function is called, or the end."""
        self._ticket = (self._ticket + 1) % 2**32
        ticket = self._ticket

        def release() -> None:
            self._word.value = ticket

        try:
            self._wait_for(ticket)
            yield release
        finally:
            release()

    def _wait_for(self, ticket: int) -> None:
        reached = self._api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        checked(self._api.cuStreamWaitValue32(self._stream, self._device, ticket, int(reached)))

    def close(self) -> None:
        """Give the word back; only when nothing on the stream waits for it."""
        self._api.cuMemFreeHost(self._host)
