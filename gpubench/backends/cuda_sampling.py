"""Three ways to time a batch of runs on a CUDA stream, and the sampler that chooses among them.

All read two events around the batch, which the device itself stamps. They differ in how far the
host can be seen between them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import repeat
from typing import Protocol

from gpubench.backends.cuda_facade import CannotCapture, Cuda, Graph
from gpubench.backends.protocol import Call

MOST_HELD = 500
"""Launches that are queued while the stream is held back. A launch beyond what the driver's queue
takes (1024 launches are known) would wait for a stream that waits for the host."""

MOST_CAPTURED = 200
"""Launches in one graph: hundreds of microseconds at least, far more than a replay costs."""

HOLD_LIMIT = 5.0
"""Seconds after which a stream that is still held back is let go: something waits for it."""

STARVED = 0.9
"""Part of a batch's time from which on the host that queued it is what took so long."""


class Unusable(Exception):
    """A way that turned out not to work for this call; the next one is tried."""


class Way(Protocol):
    """One way to time a batch."""

    method: str

    def seconds(self, runs: int) -> float:
        """Seconds that ``runs`` runs take together; ``Unusable`` where this way fails the call."""


class PlainEvents:
    """Events around calls as the host makes them: honest only while the device is the slower."""

    method = "plain events"

    def __init__(self, cuda: Cuda, call: Call, host_time: Callable[[], float]) -> None:
        self._cuda, self._call, self._host_time = cuda, call, host_time
        self._begin, self._end = cuda.event(), cuda.event()
        self.launch_bound = False
        """Whether the host took longer to queue the last batch than the device to run it."""

    def seconds(self, runs: int) -> float:
        cuda, call = self._cuda, self._call
        cuda.synchronize()
        cuda.record(self._begin)
        start = self._host_time()
        for _ in repeat(None, runs):
            call()
        queueing = self._host_time() - start
        cuda.record(self._end)
        seconds = cuda.seconds(self._begin, self._end)
        self.launch_bound = queueing >= STARVED * seconds
        return seconds


class _Held:
    """Queues work on a stream that is held back, and never for longer than ``HOLD_LIMIT``."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda

    def queue(self, first: Callable[[], None], rest: Callable[[], None]) -> None:
        """Queue ``first`` behind the gate, open it, queue ``rest``; ``Unusable`` where the watch
        had to open the gate because the host waited for the device."""
        overdue = threading.Event()
        with self._cuda.held() as release:

            def let_go() -> None:
                overdue.set()
                release()

            watch = threading.Timer(HOLD_LIMIT, let_go)
            watch.daemon = True
            watch.start()
            try:
                first()
                release()
                rest()
            finally:
                watch.cancel()
                watch.join()  # it must not write to a gate that is gone
        if overdue.is_set():
            raise Unusable("the call waits for the device")


class HeldBack:
    """Events around calls that all wait in the stream until the last is queued.

    Only for calls that a capture has shown to queue and never to wait. A large batch is taken in
    parts and their times are added.
    """

    method = "held-back stream"

    def __init__(self, cuda: Cuda, call: Call, launches: int) -> None:
        self._cuda, self._call = cuda, call
        self._held = _Held(cuda)
        self._most = max(1, MOST_HELD // launches)
        self._begin, self._end = cuda.event(), cuda.event()

    def seconds(self, runs: int) -> float:
        whole, rest = divmod(runs, self._most)
        parts = [self._most] * whole + [rest] * bool(rest)
        return sum(map(self._part, parts))

    def _part(self, runs: int) -> float:
        def batch() -> None:
            self._cuda.record(self._begin)
            for _ in repeat(None, runs):
                self._call()
            self._cuda.record(self._end)

        self._cuda.synchronize()
        self._held.queue(batch, lambda: None)
        return self._cuda.seconds(self._begin, self._end)


class GraphReplay:
    """Replays of a graph that holds many runs: the host is seen once in hundreds of launches.

    The first replay waits behind the gate, so that even that one is not seen. A replay needs no
    check of its own: the nodes are the launches that were verified, with the same arguments, as
    many as runs (counted), and no node can touch memory that is gone (``Graph.replayable``).
    """

    method = "graph replay"

    def __init__(self, cuda: Cuda, call: Call, launches: int) -> None:
        self._cuda, self._call, self._launches = cuda, call, launches
        self._held = _Held(cuda)
        self._most = max(1, MOST_CAPTURED // launches)
        self._graphs: dict[int, Graph] = {}
        self._begin, self._end = cuda.event(), cuda.event()

    def seconds(self, runs: int) -> float:
        whole, rest = divmod(runs, self._most)
        replays = [self._graph(self._most).replay] * whole if whole else []
        if rest:
            replays.append(self._graph(rest).replay)
        self._cuda.synchronize()
        self._replay(replays)
        return self._cuda.seconds(self._begin, self._end)

    def _replay(self, replays: list[Callable[[], None]]) -> None:
        first, *others = replays

        def begin() -> None:
            self._cuda.record(self._begin)
            first()

        def end() -> None:
            for replay in others:
                replay()
            self._cuda.record(self._end)

        if self._cuda.can_hold:
            self._held.queue(begin, end)
        else:  # the launch of one graph is then in the time of many runs
            begin()
            end()

    def _graph(self, runs: int) -> Graph:
        if runs not in self._graphs:
            self._forget_rests()
            try:
                self._graphs[runs] = self._captured(runs)
            except CannotCapture as error:
                raise Unusable(str(error)) from error
        return self._graphs[runs]

    def _captured(self, runs: int) -> Graph:
        graph = self._cuda.capture(self._call, runs)
        if graph.nodes != runs * self._launches or not graph.replayable:
            graph.close()
            raise CannotCapture(f"{runs} runs queue {graph.nodes} nodes: not the same each time")
        return graph

    def _forget_rests(self) -> None:
        """Sizes change only while a sample is being sized: keep the largest graph alone."""
        for runs in [runs for runs in self._graphs if runs != self._most]:
            self._graphs.pop(runs).close()


class BestWay:
    """The best of the three that works for a call: one run is held back, many are replayed.

    A call that cannot be captured may wait for the device, so it is never held back.
    """

    def __init__(
        self, cuda: Cuda, call: Call, host_time: Callable[[], float] = time.perf_counter
    ) -> None:
        self._plain = PlainEvents(cuda, call, host_time)
        self._ways: list[Way] = [self._plain]
        self._last: Way = self._plain
        cuda.synchronize()
        with suppress(CannotCapture):
            self._ways = [*_captured_ways(cuda, call), self._plain]

    @property
    def method(self) -> str:
        """Of the last batch."""
        return self._last.method

    @property
    def launch_bound(self) -> bool:
        return self._last is self._plain and self._plain.launch_bound

    def seconds(self, runs: int) -> float:
        while True:
            self._last = self._way(runs)
            try:
                return self._last.seconds(runs)
            except Unusable:
                self._ways.remove(self._last)

    def _way(self, runs: int) -> Way:
        """A graph of one run measures its own start, so one run is rather held back."""
        singles = [way for way in self._ways if not isinstance(way, GraphReplay)]
        return singles[0] if runs == 1 else self._ways[0]


def _captured_ways(cuda: Cuda, call: Call) -> list[Way]:
    """Raises ``CannotCapture`` for a call that a capture refuses or that queues nothing."""
    graph = cuda.capture(call, 1)
    launches = graph.nodes
    graph.close()
    if not launches:
        raise CannotCapture("the call queues nothing on its stream")
    ways: list[Way] = [GraphReplay(cuda, call, launches)]
    return [*ways, HeldBack(cuda, call, launches)] if cuda.can_hold else ways
