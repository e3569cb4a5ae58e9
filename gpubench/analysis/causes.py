"""Why a time changed: the kernel, its baseline, or the software and hardware they ran on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.changes import THRESHOLD, Change, undone_by
from gpubench.analysis.headline import RowsOf
from gpubench.names import Value
from gpubench.results import CaseHistories, CaseName, Commit, Ratio, Row, Snapshot
from gpubench.results.facts import concerns_case, explains

Cause = Literal["kernel", "baseline", "environment", "shared", "either"]
"""``shared``: the kernel and its baseline moved alike, and no recorded fact changed with them.
``either``: the kernel or its baseline, where speedups are judged and no time confirms which."""

MAX_CONFIRMING_COMMITS = 10
"""Measured commits on either side of a change of a speedup whose times have to confirm it."""


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
    dependents: tuple[CaseName, ...]
    """Cases whose speedup moved because this one is their baseline."""
    baseline_change: Change | None
    """A change of its baseline between the same two commits."""


def explained_changes(
    history: CaseHistories, changes: Mapping[CaseName, Sequence[Change]], rows: RowsOf
) -> tuple[ExplainedChange, ...]:
    """Return every change of these cases with its cause, the newest first, then the largest."""
    dependents = _dependents(history)
    explained = []
    for index, name in enumerate(history.names):
        steps = changes.get(name, ())
        if not steps:
            continue
        row = rows(history.snapshots[history.newest.places[index]], [name])[name]
        theirs = dependents.get(name, ()) if row.is_baseline else ()
        speedups = history.speedups[:, index]
        for number, change in enumerate(steps):
            place = history.baselines[index, change.after]
            baseline = history.names[place] if place >= 0 else None
            beside = [
                other
                for related in ((baseline,) if baseline else theirs)
                for other in changes.get(related, ())
                if (other.before, other.after) == (change.before, change.after)
            ]
            facts = _facts_between(history.snapshots, change, row)
            undone = undone_by(steps, number)
            explained.append(
                ExplainedChange(
                    name=name,
                    change=change,
                    cause=_cause_in(history, row, change, beside, theirs, facts),
                    facts=facts,
                    recovered=None if undone is None else history.commits[steps[undone].after],
                    speedups=(
                        _ratio(speedups[:, change.before]),
                        _ratio(speedups[:, change.after]),
                    ),
                    is_baseline=row.is_baseline,
                    baseline=baseline,
                    dependents=theirs,
                    baseline_change=beside[0] if baseline and beside else None,
                )
            )
    return tuple(sorted(explained, key=newest_first))


def newest_first(item: ExplainedChange) -> tuple[int, float]:
    """Sorts changes: the newest first, then the largest."""
    return -item.change.after, -item.change.ratio.factor


def changed_facts(old: Snapshot, new: Snapshot) -> tuple[FactChange, ...]:
    """Return the facts that both snapshots have, that differ, and that can explain a speed.

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


def _facts_between(
    snapshots: Sequence[Snapshot], change: Change, row: Row
) -> tuple[FactChange, ...] | None:
    """Facts that changed between two snapshots, of those that a case depends on
    (``concerns_case``).

    Where one of the two has no facts, its neighbour outside counts. ``None`` where no snapshot up
    to the first, or none from the second on, has any.
    """
    before, after = snapshots[change.before :: -1], snapshots[change.after :]
    old, new = (next((s for s in side if s.facts or s.params), None) for side in (before, after))
    if old is None or new is None:
        return None
    listed = [*old.concerns.items(), *new.concerns.items()]
    backend = row.backend or row.name.implementation
    return tuple(
        fact
        for fact in changed_facts(old, new)
        if concerns_case(fact.name, backend, row.conditions, listed)
    )


def _cause_in(
    history: CaseHistories,
    row: Row,
    change: Change,
    beside: Iterable[Change],
    dependents: Sequence[CaseName],
    facts: Sequence[FactChange] | None,
) -> Cause:
    if facts:
        return "environment"
    if history.by_speedup or not _times_confirm(history, row.name, change):
        return "either"
    return _cause(row, change, beside, dependents)


def _times_confirm(history: CaseHistories, name: CaseName, change: Change) -> bool:
    """Return whether the times of a case moved too, by half as much as its speedup or more.

    If not, it may be the baseline that moved, too little to be a change of its own.
    """
    if change.basis == "time":
        return True
    times = history.judged[0, history.rows_of[name]]
    sides = times[: change.before + 1], times[change.after :]
    count = min(max(change.commits, 1), MAX_CONFIRMING_COMMITS)
    old, new = (side[~np.isnan(side)] for side in sides)
    if not len(old) or not len(new):
        return False
    moved = math.log(float(np.median(new[:count])) / float(np.median(old[-count:])))
    return moved * math.log(change.new / change.old) >= math.log(change.new / change.old) ** 2 / 2


def _cause(
    row: Row, change: Change, beside: Iterable[Change], dependents: Sequence[CaseName]
) -> Cause:
    """Return whether, with no fact changed, what it is compared with moved alike, most of it at
    least."""
    factor = change.ratio.value
    alike = sum(1 / THRESHOLD < other.ratio.value / factor < THRESHOLD for other in beside)
    if row.is_baseline and not row.is_alone:
        return "shared" if alike and 2 * alike >= len(dependents) else "baseline"
    return "shared" if alike else "kernel"


def _dependents(history: CaseHistories) -> Mapping[CaseName, tuple[CaseName, ...]]:
    """Cases with a speedup by the baseline that it is measured against, as they are now."""
    dependents: dict[CaseName, tuple[CaseName, ...]] = defaultdict(tuple)
    newest, baselines = history.newest.places, history.newest.baselines
    compared = (baselines >= 0) & ~np.isnan(history.speedups[0, np.arange(len(newest)), newest])
    for case in np.flatnonzero(compared):
        dependents[history.names[baselines[case]]] += (history.names[case],)
    return dependents


def _ratio(ends: NDArray[np.float64]) -> Ratio | None:
    value, low, high = ends.tolist()
    return None if np.isnan(value) else Ratio(value, low, high)
