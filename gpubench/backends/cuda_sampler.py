"""The sampler of a CUDA session: warm, in the best way, and with what a reader has to know."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from gpubench.backends.cuda_facade import ClockState, Cuda
from gpubench.backends.cuda_sampling import BestWay
from gpubench.backends.protocol import Call, Launch

WINDOW = 0.05
"""Seconds of one warm-up window, at least."""
AGREEMENT = 0.02
"""Relative difference of two successive windows that counts as steady."""
WARM_UP_LIMIT = 2.0
"""Seconds of device time after which warming up ends as it is."""

MOST_RUNS = 1_000_000
"""Runs in one window, for a call that does nothing on the device."""

FLOOR_RUNS = 100
FLOOR_SAMPLES = 9
NEAR_FLOOR = 10
"""A time under so many floors is marked."""

SLOW_CLOCK = 0.75
"""Part of its normal value under which a clock counts as throttled."""


class Floors:
    """What an empty kernel takes, by each method; measured once in a session."""

    def __init__(self, cuda: Cuda, host_time: Callable[[], float]) -> None:
        self._cuda, self._host_time = cuda, host_time
        self._known: dict[tuple[str, bool], float | None] = {}
        self._way: BestWay | None = None
        self.last: float | None = None
        """Seconds of the method that was asked for last; ``None`` before."""

    def seconds(self, method: str, single: bool) -> float | None:
        """Seconds of an empty run by that method, one run at a time or in a batch; ``None`` where
        the empty kernel is timed in another way than the case."""
        key = (method, single)
        if key not in self._known:
            self._known[key] = self._measured(method, 1 if single else FLOOR_RUNS)
        self.last = self._known[key]
        return self.last

    def _measured(self, method: str, runs: int) -> float | None:
        """Median of some samples."""
        if self._way is None:
            call = self._cuda.kernel("empty", Launch(block=(1, 1, 1), grid=(1, 1, 1)))
            call()  # compiles
            self._way = BestWay(self._cuda, call, self._host_time)
        samples = sorted(self._way.seconds(runs) / runs for _ in range(FLOOR_SAMPLES))
        return samples[FLOOR_SAMPLES // 2] if self._way.method == method else None


class CudaSampler:
    """Takes samples of one call. Making it runs the call until its time is steady.

    So the first sample is as good as the last, and restoring arrays or flushing the cache before a
    sample is not undone by a warm-up inside it.
    """

    def __init__(
        self,
        cuda: Cuda,
        call: Call,
        floors: Floors,
        host_time: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cuda, self._floors = cuda, floors
        call()  # compiles and loads, which nothing below may do
        self._way = BestWay(cuda, call, host_time)
        self._throttled: str | None = None
        self.warnings: tuple[str, ...] = ()
        self._inspect(warm_up(self._way.seconds), single=False)

    def seconds(self, runs: int) -> float:
        seconds = self._way.seconds(runs)
        self._inspect(seconds / runs, single=runs == 1)
        return seconds

    def _inspect(self, run: float, single: bool) -> None:
        """After a sample and outside of its time. A throttled sample is remembered."""
        self.method = self._way.method
        self._throttled = throttling(self._cuda.clock_state()) or self._throttled
        floor = self._floors.seconds(self.method, single)
        bound = _LAUNCH_BOUND if self._way.launch_bound else None
        found = (bound, near_floor(run, floor), self._throttled)
        self.warnings = tuple(warning for warning in found if warning is not None)


_LAUNCH_BOUND = (
    "launch-bound: the host takes longer to queue a run than the device to run it, and the call "
    "can neither be captured into a graph nor held back"
)


def warm_up(seconds: Callable[[int], float]) -> float:
    """Run until two successive windows agree or ``WARM_UP_LIMIT`` is over.

    ``seconds(runs)`` takes a window of so many runs. Returns seconds of one run in the last.
    """
    runs, spent, last = 1, 0.0, math.inf
    while True:
        window = seconds(runs)
        spent, run = spent + window, window / runs
        if spent >= WARM_UP_LIMIT or runs >= MOST_RUNS:
            return run
        if window < WINDOW:
            runs = _grown(runs, window)
            continue
        if last < math.inf and abs(run - last) <= AGREEMENT * last:
            return run
        last = run


def _grown(runs: int, window: float) -> int:
    """Runs that fill a window with something to spare; tenfold at most, as early runs are slow."""
    growth = 1.1 * WINDOW / window if window > 0 else 10.0
    return math.ceil(runs * min(10.0, growth))


def throttling(clock: ClockState | None) -> str | None:
    """Warning for a clock under ``SLOW_CLOCK`` of its normal value."""
    if clock is None or clock.now >= SLOW_CLOCK * clock.normal:
        return None
    reasons = ", ".join(clock.reasons) or "the driver gives no reason"
    return f"throttled: {clock.now} MHz of {clock.normal} MHz ({reasons})"


def near_floor(run: float, floor: float | None) -> str | None:
    """Warning for a run that takes less than ``NEAR_FLOOR`` empty kernels."""
    if floor is None or run >= NEAR_FLOOR * floor:
        return None
    return (
        f"near the floor: a run takes {run * 1e6:.2f} µs and an empty kernel {floor * 1e6:.2f} µs"
    )
