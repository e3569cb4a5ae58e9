"""Why a time changed: the kernel, its baseline, or the software and hardware they ran on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpubench.analysis.changes import THRESHOLD, Change, undone_by
from gpubench.analysis.headline import RowsOf, newest_places
from gpubench.names import Value
from gpubench.results import CaseName, Commit, History, Ratio, Row, Snapshot

Cause = Literal["kernel", "baseline", "environment", "shared"]
"""``shared``: the kernel and its baseline moved alike, and no recorded fact changed with them."""

PASSING = frozenset({"run", "host", "machine", "version", "no_gpu", "ram", "memory_bytes"})
"""Facts that tell one run from another and explain no speed."""

MEASURED = ("_per_second", "_seconds", "_mhz", "_c", "_w")
"""Endings of facts that are readings, which differ from run to run."""

EARLIER_CONCERNS = {
    "cpu": ("gpu", "driver", "cuda", "numba_cuda", "nvrtc", "cupy"),
    "numpy": ("numba", "llvmlite", "NUMBA_"),
}
"""For the records of earlier releases, which do not say which facts concern which backend:
beginnings of facts that a case on such a device, or of such a backend, does not depend on."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact that differs between two measurements."""

    name: str
    old: Value | None
    """``None``: not there, for example not installed."""
    new: Value | None


@dataclass(frozen=True, slots=True)
class ExplainedChange:
    """One change of one case's time, and why it is thought to have changed."""

    name: CaseName
    change: Change
    before: Commit
    after: Commit
    cause: Cause
    facts: tuple[FactChange, ...] | None
    """What changed in the environment between the two commits, of what the case depends on;
    ``None`` where no record says."""
    recovered: Commit | None
    """Commit at which the change was undone; ``None`` while it lasts."""
    speedups: tuple[Ratio | None, Ratio | None]
    """At the commit before and the one after; ``None`` for a baseline or without one."""
    is_baseline: bool
    baseline: CaseName | None
    """What its speedup is against after the change."""
    dependents: tuple[CaseName, ...] = ()
    """Cases whose speedup moved because this one is their baseline."""
    baseline_change: Change | None = None
    """A change of its baseline between the same two commits."""


def explained_changes(
    history: History, changes: Mapping[CaseName, Sequence[Change]], rows: RowsOf
) -> tuple[ExplainedChange, ...]:
    """Every change on a setup with its cause, the newest first, then the largest."""
    newest = newest_places(history)
    described = [i for i, s in enumerate(history.snapshots) if s.facts or s.params]
    dependents = _dependents(history, newest.tolist())
    explained = []
    for name, steps in changes.items():
        if not steps:
            continue
        index = history.rows_of[name]
        row = rows(history.snapshots[newest[index]])[name]
        theirs = dependents.get(name, ()) if row.is_baseline else ()
        for number, change in enumerate(steps):
            baseline = _name_at(history, int(history.baselines[index, change.after]))
            beside = [
                other
                for related in ((baseline,) if baseline else theirs)
                for other in changes.get(related, ())
                if (other.before, other.after) == (change.before, change.after)
            ]
            facts = _facts_between(history.snapshots, described, change, row)
            undone = undone_by(steps, number)
            explained.append(
                ExplainedChange(
                    name=name,
                    change=change,
                    before=history.commits[change.before],
                    after=history.commits[change.after],
                    cause="environment" if facts else _cause(row, change, beside, theirs),
                    facts=facts,
                    recovered=None if undone is None else history.commits[steps[undone].after],
                    speedups=(
                        _ratio_at(history, index, change.before),
                        _ratio_at(history, index, change.after),
                    ),
                    is_baseline=row.is_baseline,
                    baseline=baseline,
                    dependents=theirs,
                    baseline_change=beside[0] if baseline and beside else None,
                )
            )
    return tuple(sorted(explained, key=lambda item: (-item.change.after, -item.change.size)))


def changed_facts(old: Snapshot, new: Snapshot) -> tuple[FactChange, ...]:
    """Facts that differ between two snapshots, of those that both have, and can explain a speed.

    The record's facts count; asv's own (``params`` of its result files) where no record has them.
    """
    recorded = old.facts.keys() & new.facts.keys()
    pairs = {name: (old.facts[name], new.facts[name]) for name in recorded}
    for name in (old.params.keys() & new.params.keys()) - recorded:
        pairs[name] = (old.params[name], new.params[name])
    return tuple(
        FactChange(name, *pairs[name])
        for name in sorted(pairs)
        if pairs[name][0] != pairs[name][1] and explains(name)
    )


def explains(name: str) -> bool:
    """Whether a fact of that name can explain a change of speed."""
    return name not in PASSING and not name.endswith(MEASURED)


def concerns(fact: str, row: Row, snapshots: Iterable[Snapshot]) -> bool:
    """Whether a case depends on a fact: a driver says nothing about a case on the CPU.

    A fact that no backend lists concerns all.
    """
    backend = row.backend or row.name.implementation
    listed = [snapshot.concerns for snapshot in snapshots if snapshot.concerns]
    if listed:
        backends = {name for names in listed for name, facts in names.items() if fact in facts}
        return not backends or backend in backends
    device = row.device.partition(":")[0]
    return not any(fact.startswith(EARLIER_CONCERNS.get(what, ())) for what in (device, backend))


def _facts_between(
    snapshots: Sequence[Snapshot], described: Sequence[int], change: Change, row: Row
) -> tuple[FactChange, ...] | None:
    """Facts that changed between two snapshots; where one has none, its neighbour outside counts.

    ``described`` are the indices of those that have facts. ``None`` where no snapshot up to the
    first, or none from the second on, has any.
    """
    last_before = bisect_right(described, change.before) - 1
    first_after = bisect_left(described, change.after)
    if last_before < 0 or first_after == len(described):
        return None
    ends = snapshots[described[last_before]], snapshots[described[first_after]]
    return tuple(fact for fact in changed_facts(*ends) if concerns(fact.name, row, ends))


def _cause(
    row: Row, change: Change, beside: Iterable[Change], dependents: Sequence[CaseName]
) -> Cause:
    """Where no fact changed: whether what it is compared with moved alike, most of it at least."""
    factor = change.ratio.value
    alike = sum(1 / THRESHOLD < other.ratio.value / factor < THRESHOLD for other in beside)
    if row.is_baseline:
        return "shared" if alike and 2 * alike >= len(dependents) else "baseline"
    return "shared" if alike else "kernel"


def _dependents(history: History, newest: Sequence[int]) -> dict[CaseName, tuple[CaseName, ...]]:
    """Cases with a speedup by the baseline that it is measured against, as they are now."""
    dependents: dict[CaseName, tuple[CaseName, ...]] = defaultdict(tuple)
    for index, (name, place) in enumerate(zip(history.names, newest, strict=True)):
        baseline = _name_at(history, int(history.baselines[index, place]))
        if baseline and not np.isnan(history.speedups[0, index, place]):
            dependents[baseline] += (name,)
    return dependents


def _name_at(history: History, index: int) -> CaseName | None:
    return history.names[index] if index >= 0 else None


def _ratio_at(history: History, index: int, place: int) -> Ratio | None:
    value, low, high = history.speedups[:, index, place].tolist()
    return None if np.isnan(value) else Ratio(value, low, high)
