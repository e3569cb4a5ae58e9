"""Cases over commits: one series for each machine, environment and case."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from gpubench.analysis.baseline import Compared, compare
from gpubench.analysis.changes import Change, find_changes
from gpubench.results import CaseName, Commit, Results, Snapshot


@dataclass(frozen=True, order=True, slots=True)
class Setup:
    """Where cases are comparable over commits: one machine, one environment."""

    machine: str
    environment: str


@dataclass(frozen=True, slots=True)
class Point:
    """One case at one commit."""

    commit: Commit
    compared: Compared


@dataclass(frozen=True)
class SetupHistory:
    """Everything measured on one setup, oldest commit first."""

    setup: Setup
    snapshots: tuple[Snapshot, ...]
    commits: tuple[Commit, ...]
    """One for each snapshot."""
    cases: dict[CaseName, tuple[Point, ...]]
    _changes: dict[CaseName, tuple[Change, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def latest(self) -> Commit:
        return self.commits[-1]

    def changes(self, name: CaseName) -> tuple[Change, ...]:
        """Changes in one case's times, as indices into its points; found once, since they cost."""
        if name not in self._changes:
            timings = [point.compared.outcome.timing for point in self.cases[name]]
            self._changes[name] = find_changes(timings)
        return self._changes[name]


def by_setup(results: Results) -> tuple[SetupHistory, ...]:
    """A history for each machine and environment, the one measured at the newest commit first."""
    commits = {commit.hash: commit for commit in results.commits}
    place = {commit.hash: index for index, commit in enumerate(results.commits)}
    groups: dict[Setup, list[Snapshot]] = defaultdict(list)
    for snapshot in results.snapshots:
        groups[Setup(snapshot.machine, snapshot.environment)].append(snapshot)
    histories = [
        _history(setup, snapshots, [commits[s.commit] for s in snapshots])
        for setup, snapshots in sorted(groups.items())
    ]
    return tuple(sorted(histories, key=lambda h: -place[h.latest.hash]))


def natural_order(name: CaseName) -> tuple[object, ...]:
    """Sorts cases by their names with the numbers in them as numbers: ``n=64`` before ``n=256``."""
    parts = re.split(r"(\d+)", name.case)
    identity = tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
    return name.suite, name.kernel, name.implementation, name.time, identity


def _history(setup: Setup, snapshots: list[Snapshot], commits: list[Commit]) -> SetupHistory:
    cases: dict[CaseName, list[Point]] = defaultdict(list)
    for snapshot, commit in zip(snapshots, commits, strict=True):
        for name, compared in compare(snapshot.outcomes).items():
            cases[name].append(Point(commit, compared))
    series = {name: tuple(cases[name]) for name in sorted(cases, key=natural_order)}
    return SetupHistory(setup, tuple(snapshots), tuple(commits), series)
