"""Why a time changed: the kernel, its baseline, or what they ran on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.changes import THRESHOLD, Change, undone_by
from gpubench.analysis.environment import FactChange, Timeline, relevant
from gpubench.analysis.history import Series, SetupHistory
from gpubench.analysis.setup_table import Point
from gpubench.analysis.speedup import Speedup
from gpubench.results import CaseName, Commit

Cause = Literal["kernel", "baseline", "environment", "shared"]
"""``shared``: the kernel and its baseline moved alike, and no recorded fact changed with them."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One change of one case's time, and what is known of why."""

    name: CaseName
    points: Series
    """The case's whole history; ``change`` indexes it."""
    change: Change
    cause: Cause
    facts: tuple[FactChange, ...] | None
    """What changed in the environment between the two commits, of what the case depends on;
    ``None`` where no record tells."""
    recovered: Commit | None
    """Commit at which the change was undone; ``None`` while it lasts."""
    speedups: tuple[Speedup | None, Speedup | None]
    """At the commit before and the one after; ``None`` for a baseline or without one."""
    dependents: tuple[CaseName, ...] = ()
    """Cases whose speedup moved because this one is their baseline."""
    baseline_change: Change | None = None
    """A change of its baseline between the same two commits."""

    @property
    def before(self) -> Commit:
        return self.points.commit(self.change.before)

    @property
    def after(self) -> Commit:
        return self.points.commit(self.change.after)

    @property
    def is_baseline(self) -> bool:
        return self.points[self.change.after].is_baseline


def explained_changes(history: SetupHistory) -> tuple[Explained, ...]:
    """Every change on a setup with its cause, the newest first, then the largest."""
    explainer = _Explainer(history)
    found = [
        explainer.explain(name, index)
        for name in history.cases
        for index in range(len(history.changes(name)))
    ]
    place = {commit.hash: index for index, commit in enumerate(history.commits)}
    return tuple(sorted(found, key=lambda item: (-place[item.after.hash], -item.change.size)))


class _Explainer:
    """Holds a change against the facts and against what it is compared with."""

    def __init__(self, history: SetupHistory) -> None:
        self._history = history
        self._timeline = Timeline(history.snapshots)
        self._dependents = _dependents(history)

    def explain(self, name: CaseName, index: int) -> Explained:
        points, changes = self._history.cases[name], self._history.changes(name)
        change, undone = changes[index], undone_by(changes, index)
        old, new = points[change.before], points[change.after]
        dependents = self._dependents.get(name, ()) if new.is_baseline else ()
        beside = self._beside((new.baseline,) if new.baseline else dependents, old, new)
        facts = self._facts(name, old, new)
        return Explained(
            name=name,
            points=points,
            change=change,
            cause="environment" if facts else _cause(new, change, beside, dependents),
            facts=facts,
            recovered=points.commit(changes[undone].after) if undone is not None else None,
            speedups=(old.speedup, new.speedup),
            dependents=dependents,
            baseline_change=beside[0] if new.baseline and beside else None,
        )

    def _facts(self, name: CaseName, old: Point, new: Point) -> tuple[FactChange, ...] | None:
        record = self._history.cases[name].newest.outcome.record
        between = self._timeline.between(old.commit.hash, new.commit.hash)
        return None if between is None else relevant(between, record, name.implementation)

    def _beside(self, names: Iterable[CaseName], old: Point, new: Point) -> list[Change]:
        """Changes of other cases between the same two commits."""
        return [
            other
            for name in names
            if name in self._history.cases
            for other in self._history.changes(name)
            if self._ends(name, other) == (old.commit, new.commit)
        ]

    def _ends(self, name: CaseName, change: Change) -> tuple[Commit, Commit]:
        points = self._history.cases[name]
        return points.commit(change.before), points.commit(change.after)


def _cause(
    new: Point, change: Change, beside: Iterable[Change], dependents: Sequence[CaseName]
) -> Cause:
    """Where no fact changed: whether what it is compared with moved alike, most of it at least."""
    alike = sum(1 / THRESHOLD < other.factor / change.factor < THRESHOLD for other in beside)
    if new.is_baseline:
        return "shared" if alike and 2 * alike >= len(dependents) else "baseline"
    return "shared" if alike else "kernel"


def _dependents(history: SetupHistory) -> Mapping[CaseName, tuple[CaseName, ...]]:
    """Cases with a speedup by the baseline that it is measured against, as they are now."""
    found: dict[CaseName, list[CaseName]] = defaultdict(list)
    for name, points in history.cases.items():
        newest = points[-1]
        if newest.speedup and newest.baseline:
            found[newest.baseline].append(name)
    return {baseline: tuple(names) for baseline, names in found.items()}
