"""What differs between the conditions of two measurements: software, hardware, settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from gpubench.names import Value
from gpubench.record import CaseRecord
from gpubench.results import Snapshot

Facts = Mapping[str, Value | None]

PASSING = frozenset({"run", "host", "machine", "version", "no_gpu", "ram", "memory_bytes"})
"""Facts that tell one run from another and explain no speed."""

MEASURED = ("_per_second", "_seconds", "_mhz", "_c", "_w")
"""Endings of facts that are readings, which differ from run to run."""

GPU_ONLY = ("gpu", "driver", "cuda", "numba_cuda", "nvrtc", "cupy")
"""Beginnings of facts that a case on the CPU does not depend on."""

NUMBA_ONLY = ("numba", "llvmlite", "NUMBA_")
"""Beginnings of facts that a NumPy case does not depend on."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact that differs between two measurements."""

    name: str
    old: Value | None
    """``None``: not there, for example not installed."""
    new: Value | None


def differences(old: Snapshot, new: Snapshot) -> tuple[FactChange, ...]:
    """Facts that differ between two snapshots, of those that both tell.

    The record's facts count; asv's own (``params`` of its result files) where no record tells.
    """
    told = differing(old.facts, new.facts)
    known = old.facts.keys() & new.facts.keys()
    asv_told = (fact for fact in differing(old.params, new.params) if fact.name not in known)
    return tuple(sorted((*told, *asv_told), key=lambda fact: fact.name))


def differing(old: Facts, new: Facts) -> tuple[FactChange, ...]:
    """Facts in both that differ and can explain a change of speed."""
    return tuple(
        FactChange(name, old[name], new[name])
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name] and explains(name)
    )


def explains(name: str) -> bool:
    """Whether a fact of that name can explain a change of speed."""
    return name not in PASSING and not name.endswith(MEASURED)


def relevant(
    changes: Iterable[FactChange], record: CaseRecord | None, implementation: str
) -> tuple[FactChange, ...]:
    """Those that a case depends on: a driver says nothing about a case on the CPU.

    Without a record every one counts, but for NumPy's own implementation.
    """
    on_cpu = record is not None and record.device.startswith("cpu")
    backend = record.backend if record and record.backend else implementation
    excluded = (*(GPU_ONLY if on_cpu else ()), *(NUMBA_ONLY if backend == "numpy" else ()))
    return tuple(fact for fact in changes if not fact.name.startswith(excluded))


class Timeline:
    """Facts of one setup over its snapshots; what a snapshot does not tell, neighbours do."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._snapshots = tuple(snapshots)
        self._place = {snapshot.commit: i for i, snapshot in enumerate(self._snapshots)}
        told = [snapshot for snapshot in self._snapshots if snapshot.facts or snapshot.params]
        self._changed = [
            (self._place[old.commit], self._place[new.commit], differences(old, new))
            for old, new in pairwise(told)
        ]

    def between(self, before: str, after: str) -> tuple[FactChange, ...] | None:
        """Facts that changed between two commits, or may have where those in between tell none.

        ``None`` where no snapshot up to the first, or none from the second on, tells any.
        """
        first, last = self._place[before], self._place[after]
        spans = [changes for old, new, changes in self._changed if old < last and new > first]
        return _joined(change for changes in spans for change in changes) if spans else None


def _joined(changes: Iterable[FactChange]) -> tuple[FactChange, ...]:
    """One change for each fact, from its first value to its last; none where it came back."""
    ends: dict[str, FactChange] = {}
    for change in changes:
        first = ends.get(change.name, change)
        ends[change.name] = FactChange(change.name, first.old, change.new)
    lasting = (change for change in ends.values() if change.old != change.new)
    return tuple(sorted(lasting, key=lambda change: change.name))
