"""The floor under a short time: what an empty call costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpubench.backends.protocol import Session
from gpubench.measure.observers.protocol import Observer
from gpubench.names import Value

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun

NEAR = 10
"""A time of fewer empty calls than this is mostly the cost of a call: over a tenth of it."""
SHORT = 10e-6
"""Seconds of a run from which no floor is looked for: a hundred empty calls of Python or of Numba,
which cost 0.05 to 0.13 µs."""
FLOOR_CALLS = 2000
"""Calls in a batch: 0.1 ms, far more than the clock needs."""
FLOOR_BATCHES = 5


class FloorObserver(Observer):
    """Measure the floor under a short ``kernel``, and warn where a run is near it."""

    def on_size(self, run: CaseRun) -> None:
        """Put the floor on record."""
        condition, near = floor(run.session, run.sampler.run_seconds, run.time)
        run.put(conditions=condition, warnings=near)


def floor(
    session: Session, run_seconds: float | None, time: str
) -> tuple[Mapping[str, Value], tuple[str, ...]]:
    """Return the condition ``floor_seconds`` of one empty call, measured where a run is short, and
    a warning where the run is near it. ``run_seconds``: ``None`` where no run was tried.

    Only ``kernel`` is one call after another, as the floor is. The quickest of a few batches
    counts: what else runs on the machine only adds.
    """
    run = run_seconds
    if time != "kernel" or run is None or run >= SHORT or (empty := session.empty()) is None:
        return {}, ()
    sampler = session.sampler(empty)
    sampler.seconds(1)
    seconds = min(sampler.seconds(FLOOR_CALLS) for _ in range(FLOOR_BATCHES)) / FLOOR_CALLS
    if run >= NEAR * seconds:
        return {"floor_seconds": seconds}, ()
    runs, calls = f"{run * 1e6:.2f} µs", f"{seconds * 1e6:.2f} µs"
    near = f"near the floor: a run takes {runs} and an empty call {calls}"
    return {"floor_seconds": seconds}, (near,)
