"""The plain way to take a sample: a loop between two readings of a clock."""

from __future__ import annotations

from itertools import repeat

from gpubench.backends.protocol import Call, Clock


class LoopSampler:
    """Runs a call in a loop. On a device, ``clock`` reads events and the calls only queue."""

    warnings: tuple[str, ...] = ()

    def __init__(self, clock: Clock, call: Call, method: str) -> None:
        self._clock = clock
        self._call = call
        self.method = method

    def seconds(self, runs: int) -> float:
        call = self._call
        start = self._clock.start()
        for _ in repeat(None, runs):
            call()
        return self._clock.stop() - start
