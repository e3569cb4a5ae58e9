"""How a time is taken on a CUDA stream: in the best of three ways, by a sampler that is warm and
says what a reader has to know.

All ways read two events around the batch, which the device itself stamps. They differ in how far
the host can be seen between them.
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cached_property
from itertools import repeat
from statistics import median
from typing import Any

from gpubench.backends.cuda_driver import (
    CannotCapture,
    CUDAError,
    Gate,
    Graph,
    capture,
    checked,
    driver,
)
from gpubench.backends.devices import ClockState, GpuClocks
from gpubench.backends.protocol import Call, DeviceError, Errors, Sampler, Session
from gpubench.errors import BackendError

MAX_HELD_LAUNCHES = 500
"""Launches that are queued while the stream is held back. A launch beyond what the driver's queue
takes (1024 launches are known) would wait for a stream that waits for the host."""

MAX_CAPTURED = 200
"""Launches in one graph: hundreds of microseconds at least, far more than a replay costs."""

HOLD_LIMIT = 5.0
"""Seconds after which a stream that is still held back is let go: something waits for it. Queueing
500 launches takes milliseconds."""

STARVED = 0.9
"""Part of a batch's time from which on the host that queued it is what took so long."""

WARM_UP_SECONDS = 0.05
"""Seconds of one warm-up window, at least."""
AGREEMENT = 0.02
"""Relative difference of two successive windows that counts as steady. A larger one would take a
clock that still rises for steady, a smaller one warms up to the limit where times scatter."""
WARM_UP_LIMIT = 2.0
"""Seconds of device time after which warming up ends as it is."""
MAX_WINDOW_RUNS = 1_000_000
"""Runs in one window, for a call that does nothing on the device."""

NEAR_FLOOR = 10
"""A time under so many floors is marked: a tenth of it is the launch."""

SLOW_CLOCK = 0.75
"""Part of its normal value under which a clock counts as throttled. The highest clock is a boost
that few kernels reach: a higher part would mark times of healthy devices."""

FLOOR_RUNS, FLOOR_SAMPLES = 100, 9
"""The floor is the median of so many samples, each of ``FLOOR_RUNS`` runs."""

REPLAY, HELD, PLAIN = "graph replay", "held-back stream", "plain events"
"""What the record calls the three ways."""

_EMPTY = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry empty()
{
    ret;
}
\0"""
"""PTX of a kernel that does nothing: what a launch costs the device. 6.0 and sm_50 are older than
every driver and device that the libraries here run on."""


class TimedStream(Session):
    """A session with a stream of a CUDA library, as far as time is taken on it.

    "Queue" means: on that stream. Whichever library made it, events, graphs, the gate and the empty
    kernel are the driver's.
    """

    host_time = staticmethod(time.perf_counter)
    """The host's clock in seconds."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._errors = Errors(self._translated)
        self.floor_seconds: float | None = None
        """Of the way of timing that ``floor`` was asked for last; ``None`` before."""
        self._floors: dict[tuple[str, bool], float | None] = {}
        self._cleanup = ExitStack()
        self.stream: Any = None
        """The library's own stream, which launchers get."""

    @abstractmethod
    def _translated(self, error: Exception) -> DeviceError | None:
        """Return what CUDA raised, in gpubench's words; ``None`` for an error that is not
        CUDA's."""

    @cached_property
    def _driver(self) -> Any:
        return driver()

    def _use(self, stream: Any, handle: int) -> None:
        """Work on this stream of the context that is current."""
        api = self._driver
        self.stream, self._handle = stream, handle
        here = checked(api.cuCtxGetDevice())
        l2 = api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        self.l2_bytes = int(checked(api.cuDeviceGetAttribute(l2, here)))
        self._uuid = f"GPU-{uuid.UUID(bytes=bytes(checked(api.cuDeviceGetUuid(here)).bytes))}"

    def synchronize(self) -> None:
        with self._errors:
            checked(self._driver.cuStreamSynchronize(self._handle))

    def sampler(self, call: Call) -> Sampler:
        """Run the call until it is warm, and find the best way to time it."""
        return CudaSampler(self, call)

    def sampler_again(self, call: Call) -> Sampler:
        return CudaSampler(self, call, warm=True)

    def event(self) -> Any:
        """Return an event that keeps time."""
        with self._errors:
            event = checked(self._driver.cuEventCreate(0))
        self._cleanup.callback(self._driver.cuEventDestroy, event)
        return event

    def record(self, event: Any) -> None:
        """Queue an event: it takes the time when all before it has run."""
        with self._errors:
            checked(self._driver.cuEventRecord(event, self._handle))

    def seconds(self, begin: Any, end: Any) -> float:
        """Wait for ``end``; seconds between the two events on the device's own clock."""
        with self._errors:
            checked(self._driver.cuEventSynchronize(end))
            # Events tell milliseconds.
            return float(checked(self._driver.cuEventElapsedTime(begin, end))) * 1e-3

    def capture(self, call: Call, runs: int) -> Graph:
        """Capture so many runs of a call into a graph; none of them runs.

        Refuses what waits for the device or takes or gives back memory, from the library's own
        store of memory too: a replay would write where other arrays lie by then. Raises
        ``CannotCapture``; the stream is then as usable as before.
        """
        with self._memory_stays():
            return capture(self._driver, self._handle, call, runs)

    def _memory_stays(self) -> AbstractContextManager[None]:
        """Inside, the library neither takes memory for an array nor gives any back."""
        return nullcontext()

    @cached_property
    def _gate(self) -> Gate | None:
        """Made where something is timed: a check of results alone needs none."""
        with suppress(CUDAError):
            gate = Gate(self._driver, self._handle)
            self._cleanup.callback(gate.close)
            return gate
        return None

    @property
    def can_hold(self) -> bool:
        """Whether the driver can hold the stream back."""
        return self._gate is not None

    @contextmanager
    def held(self) -> Iterator[Callable[[], None]]:
        """Hold back all that is queued from here on, until what the context gives is called, or the
        context is left. Calling it twice, or from another thread, is allowed.

        No memory is given back meanwhile: that would wait for the stream that waits for the host.
        """
        if self._gate is None:
            raise BackendError(f"{self.device}: its driver cannot hold a stream back")
        with self._errors, self._memory_stays(), self._gate.shut() as release:
            yield release

    @cached_property
    def _clocks(self) -> GpuClocks:
        """Opened where something is timed: starting NVML takes milliseconds."""
        clocks = GpuClocks(self._uuid)
        self._cleanup.callback(clocks.close)
        return clocks

    def clock_state(self) -> ClockState | None:
        """Return the clock now; ``None`` where the driver does not tell."""
        return self._clocks.state()

    def _nothing(self) -> Call:
        """Queues a kernel that does nothing."""
        api = self._driver
        with self._errors:
            module = checked(api.cuModuleLoadData(_EMPTY))
            self._cleanup.callback(api.cuModuleUnload, module)
            kernel = checked(api.cuModuleGetFunction(module, b"empty"))

        def call() -> None:
            checked(api.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, self._handle, 0, 0))

        return call

    @cached_property
    def _empty_kernel(self) -> BestWay:
        return BestWay(self, self._nothing())

    def floor(self, method: str, single: bool) -> float | None:
        """Seconds of an empty run by that method, one run at a time or in a batch, measured once;
        ``None`` where the empty kernel is timed in another way than the case."""
        key = (method, single)
        if key not in self._floors:
            runs, way = 1 if single else FLOOR_RUNS, self._empty_kernel
            seconds = median(way.seconds(runs) / runs for _ in range(FLOOR_SAMPLES))
            self._floors[key] = seconds if way.method == method else None
        self.floor_seconds = self._floors[key]
        return self.floor_seconds


class BestWay:
    """Times batches of one call in the best of three ways that works for it.

    Many runs are replayed from a graph, one run is held back: a graph of one run measures its own
    start. A call that cannot be captured may wait for the device, so it is never held back.
    """

    def __init__(self, cuda: TimedStream, call: Call) -> None:
        self._cuda, self._call = cuda, call
        self._begin, self._end = cuda.event(), cuda.event()
        self._graphs: dict[int, Graph] = {}
        self._launches = 0
        """Of one run."""
        self.method = PLAIN
        """Of the last batch."""
        self.launch_bound = False
        """Whether the host took longer to queue the last batch than the device to run it."""
        cuda.synchronize()
        with suppress(CannotCapture):
            graph = cuda.capture(call, 1)
            self._launches = graph.nodes
            graph.close()
        self._ways = {PLAIN: self.plain_events}
        """Methods that work, the best first."""
        if self._launches:  # else the call queues nothing on its stream, or refuses a capture
            held_back = {HELD: self.held_back} if cuda.can_hold else {}
            self._ways = {REPLAY: self.graph_replay, **held_back, **self._ways}

    def seconds(self, runs: int) -> float:
        """Seconds that ``runs`` runs take together."""
        while True:
            self.method = next(way for way in self._ways if runs > 1 or way != REPLAY)
            self.launch_bound = False
            try:
                return self._ways[self.method](runs)
            except CannotCapture:
                del self._ways[self.method]

    def plain_events(self, runs: int) -> float:
        """Events around calls as the host makes them: honest only while the device is slower."""
        cuda, call = self._cuda, self._call
        cuda.synchronize()
        cuda.record(self._begin)
        start = cuda.host_time()
        for _ in repeat(None, runs):
            call()
        queueing = cuda.host_time() - start
        cuda.record(self._end)
        seconds = cuda.seconds(self._begin, self._end)
        self.launch_bound = queueing >= STARVED * seconds
        return seconds

    def held_back(self, runs: int) -> float:
        """Events around calls that all wait in the stream until the last is queued.

        Only for calls that a capture has shown to queue and never to wait. A large batch is taken
        in parts and their times are added.
        """

        def part(size: int) -> float:
            self._cuda.synchronize()
            with self._gate_shut() as release:
                self._cuda.record(self._begin)
                for _ in repeat(None, size):
                    self._call()
                self._cuda.record(self._end)
                release()
            return self._cuda.seconds(self._begin, self._end)

        most = max(1, MAX_HELD_LAUNCHES // self._launches)
        whole, rest = divmod(runs, most)
        return sum(map(part, [most] * whole + [rest] * bool(rest)))

    def graph_replay(self, runs: int) -> float:
        """Replays of a graph that holds many runs: the host is seen once in hundreds of launches.

        The first replay waits behind the gate, so that even that one is not seen. A replay needs no
        check of its own: the nodes are the launches that were verified, with the same arguments, as
        many as runs (counted), and no node can touch memory that is gone (``Graph.replayable``).
        """
        most = max(1, MAX_CAPTURED // self._launches)
        whole, rest = divmod(runs, most)
        replays = [self._graph(most, most).replay] * whole if whole else []
        if rest:
            replays.append(self._graph(rest, most).replay)
        first, *others = replays

        self._cuda.synchronize()
        # Without a gate, the launch of one graph is in the time of many runs.
        gate = self._gate_shut() if self._cuda.can_hold else nullcontext(lambda: None)
        with gate as release:
            self._cuda.record(self._begin)
            first()
            release()
            for replay in others:
                replay()
            self._cuda.record(self._end)
        return self._cuda.seconds(self._begin, self._end)

    def _graph(self, runs: int, most: int) -> Graph:
        """Return the graph of so many runs. Sizes change only while a sample is being sized, so of
        all others the largest alone, of ``most`` runs, is kept."""
        if runs in self._graphs:
            return self._graphs[runs]
        for size in [size for size in self._graphs if size != most]:
            self._graphs.pop(size).close()
        graph = self._cuda.capture(self._call, runs)
        if graph.nodes != runs * self._launches or not graph.replayable:
            graph.close()
            raise CannotCapture(f"{runs} runs queue {graph.nodes} nodes: not the same each time")
        self._graphs[runs] = graph
        return graph

    @contextmanager
    def _gate_shut(self) -> Iterator[Callable[[], None]]:
        """Hold what is queued inside back until the function is called that this gives.

        A watch opens the gate after ``HOLD_LIMIT``, because the host then waits for the device,
        which waits for the host; ``CannotCapture`` says so.
        """
        overdue = threading.Event()
        with self._cuda.held() as release:

            def let_go() -> None:
                overdue.set()
                release()

            watch = threading.Timer(HOLD_LIMIT, let_go)
            watch.daemon = True
            watch.start()
            try:
                yield release
            finally:
                watch.cancel()
                watch.join()  # it must not write to a gate that is gone
        if overdue.is_set():
            raise CannotCapture("the call waits for the device")


class CudaSampler:
    """Takes samples of one call. Making it runs the call until its time is steady.

    So the first sample is as good as the last, and restoring arrays or flushing the cache before a
    sample is not undone by a warm-up inside it.
    """

    def __init__(self, cuda: TimedStream, call: Call, warm: bool = False) -> None:
        """``warm``: the same kernel has just run on other arrays, so that one run is enough."""
        self._cuda = cuda
        call()  # compiles and loads, which nothing below may do
        self._way = BestWay(cuda, call)
        self._throttled: tuple[str, ...] = ()
        run = self._way.seconds(1) if warm else warm_up(self._way.seconds)
        self._inspect(run, single=warm)

    def seconds(self, runs: int) -> float:
        seconds = self._way.seconds(runs)
        self._inspect(seconds / runs, single=runs == 1)
        return seconds

    def _inspect(self, run: float, single: bool) -> None:
        """After a sample and outside of its time. A throttled sample is remembered."""
        self.method = self._way.method
        clock = self._cuda.clock_state()  # first: the floor may have to be measured
        if clock is not None and clock.now < SLOW_CLOCK * clock.normal:
            reasons = ", ".join(clock.reasons) or "the driver gives no reason"
            self._throttled = (f"throttled: {clock.now} MHz of {clock.normal} MHz ({reasons})",)
        warnings = []
        if self._way.launch_bound:
            warnings.append(
                "launch-bound: the host takes longer to queue a run than the device to run it. The "
                "call can neither be captured into a graph nor held back"
            )
        floor = self._cuda.floor(self.method, single)
        if floor is not None and run < NEAR_FLOOR * floor:
            warnings.append(
                f"near the floor: a run takes {run * 1e6:.2f} µs "
                f"and an empty kernel {floor * 1e6:.2f} µs"
            )
        self.warnings: tuple[str, ...] = (*warnings, *self._throttled)


def warm_up(seconds: Callable[[int], float]) -> float:
    """Run until two successive windows agree or ``WARM_UP_LIMIT`` is over.

    ``seconds(runs)`` takes a window of so many runs. Returns seconds of one run in the last.
    """
    runs, spent, last = 1, 0.0, math.inf
    while True:
        window = seconds(runs)
        spent, run = spent + window, window / runs
        if spent >= WARM_UP_LIMIT or runs >= MAX_WINDOW_RUNS:
            return run
        if window < WARM_UP_SECONDS:
            # As many as fill a window with something to spare; tenfold at most, as early runs are
            # slow.
            growth = 1.1 * WARM_UP_SECONDS / window if window > 0 else 10.0
            runs = math.ceil(runs * min(10.0, growth))
            continue
        if last < math.inf and abs(run - last) <= AGREEMENT * last:
            return run
        last = run
