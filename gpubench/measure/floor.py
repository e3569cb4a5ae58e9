"""The dispatch floor on the CPU: what a call costs before any work is done, beside short times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from gpubench.backends.protocol import Call, Sampler, Session
from gpubench.measure.sampling import Sampling
from gpubench.names import Value

NEAR = 10
"""A time of fewer floors than this is mostly dispatch."""

SHORT = 10e-6
"""Seconds of a run from which no floor is looked for: a hundred calls of Python or of Numba."""

CALLS = 2000
BATCHES = 5


@runtime_checkable
class TellsEmptyCall(Protocol):
    """A session that can call a function that does nothing."""

    def empty(self) -> Call: ...
    def sampler(self, call: Call) -> Sampler: ...


@dataclass(frozen=True, slots=True)
class Floor:
    """What is put on record beside a time."""

    conditions: Mapping[str, Value] = field(default_factory=dict)
    """``floor_seconds`` of one empty call, where it was measured."""
    warnings: tuple[str, ...] = ()


_measured: dict[type, float] = {}


def floor_of(session: Session, sampling: Sampling, time: str) -> Floor:
    """The floor of a session's backend, measured once in a process where a run is short.

    Only ``kernel`` is one call after another, as the floor is.

    A session that does not tell its empty call has no floor here (CUDA sessions measure their own,
    with an empty kernel).
    """
    if time != "kernel" or not isinstance(session, TellsEmptyCall):
        return Floor()
    run = sampling.run_seconds
    if run is None or run >= SHORT:
        return Floor()
    kind = type(session)
    if kind not in _measured:
        _measured[kind] = _seconds(session)
    floor = _measured[kind]
    near = run < NEAR * floor
    return Floor({"floor_seconds": floor}, (near_floor(run, floor),) if near else ())


def _seconds(session: TellsEmptyCall) -> float:
    """The quickest of a few batches: what else runs on the machine only adds."""
    sampler = session.sampler(session.empty())
    sampler.seconds(1)
    return min(sampler.seconds(CALLS) for _ in range(BATCHES)) / CALLS


def near_floor(run: float, floor: float) -> str:
    """The warning for a run of so many seconds."""
    return f"near the floor: a run takes {run * 1e6:.2f} µs and an empty call {floor * 1e6:.2f} µs"
