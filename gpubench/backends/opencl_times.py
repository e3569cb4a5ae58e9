"""Times from a device's own counter: markers on a queue that records profiles.

OpenCL 3.0, ``clGetEventProfilingInfo``: nanoseconds. A marker on an in-order queue ends when
everything queued before it has ended.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

from gpubench.backends.opencl_devices import opencl
from gpubench.backends.opencl_errors import opencl_errors
from gpubench.backends.protocol import Call

MOST_HELD = 256
"""Runs that are held back at once; drivers bound the commands that a queue can hold."""


class MarkerClock:
    """Reads the time between markers around the work; a running total in seconds."""

    def __init__(self, device: str, queue: Any) -> None:
        self._device = device
        self._queue = queue
        self._begin: Any = None
        self._total = 0.0

    def start(self) -> float:
        """Mark the queue's present end, once everything before it has run.

        The mark itself is not waited for: a driver that holds commands back then starts it with
        the work that follows.
        """
        with opencl_errors(self._device):
            self._queue.finish()
            self._begin = opencl().enqueue_marker(self._queue)
        return self._total

    def stop(self) -> float:
        """Wait for what was queued since ``start`` and add the time between the two marks."""
        with opencl_errors(self._device):
            end = opencl().enqueue_marker(self._queue)
            self._total += _seconds(self._begin, end)
        return self._total


class HeldQueueSampler:
    """Queues a batch behind a gate and opens it: the host's launches are not in the time.

    Only for calls that do nothing but queue: one that waits for the device would wait for ever.
    """

    method = "held-back queue"
    warnings: tuple[str, ...] = ()

    def __init__(self, device: str, queue: Any, call: Call) -> None:
        self._device = device
        self._queue = queue
        self._call = call

    def seconds(self, runs: int) -> float:
        whole, rest = divmod(runs, MOST_HELD)
        batches = [*repeat(MOST_HELD, whole), *([rest] if rest else [])]
        return sum(map(self._batch, batches))

    def _batch(self, runs: int) -> float:
        cl = opencl()
        with opencl_errors(self._device):
            self._queue.finish()
            gate = cl.UserEvent(self._queue.context)
            try:
                begin = cl.enqueue_marker(self._queue, wait_for=[gate])
                for _ in repeat(None, runs):
                    self._call()
                end = cl.enqueue_marker(self._queue)
            finally:
                gate.set_status(cl.command_execution_status.COMPLETE)
            return _seconds(begin, end)


def _seconds(begin: Any, end: Any) -> float:
    """Between the ends of two markers; waits for the second."""
    end.wait()
    return float(end.profile.end - begin.profile.end) * 1e-9
