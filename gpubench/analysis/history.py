"""Cases over commits: one series for each machine, environment and case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.baseline import Compared
from gpubench.analysis.changes import Change
from gpubench.analysis.setup_table import AllChanges, Course, Places, Point, SetupTable, Times
from gpubench.results import CaseName, Commit, Results, Snapshot

CURRENT = 10
"""A setup that was measured at one of so many newest commits still measures."""


@dataclass(frozen=True, order=True, slots=True)
class Setup:
    """Where cases are comparable over commits: one machine, one environment."""

    machine: str
    environment: str


class Series(Sequence[Point]):
    """One case at the commits that know it, oldest first."""

    def __init__(self, table: SetupTable, row: int) -> None:
        self._table, self._row = table, row
        self._places = np.flatnonzero(table.known[row])
        self.times: Times = table.times[:, row, self._places]
        """Of each point, shape (3, points)."""

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Point, ...]: ...
    def __getitem__(self, index: int | slice) -> Point | tuple[Point, ...]:
        if isinstance(index, slice):
            return tuple(self._table.points(self._row, self._places[index]))
        return self[slice(index, index + 1 or None)][0]

    def __iter__(self) -> Iterator[Point]:
        return self._table.points(self._row, self._places)

    def commit(self, index: int) -> Commit:
        """The commit of one point."""
        return self._table.commits[int(self._places[index])]

    @property
    def medians(self) -> Times:
        """Of each point, NaN without a time."""
        medians: Times = self.times[0]
        return medians

    @property
    def newest(self) -> Compared:
        """The newest point with all that is stored of it."""
        return self._table.compared(self._row, int(self._places[-1]))

    @cached_property
    def stopped(self) -> int | None:
        """Index of the first point since which there is no time, where there was one before."""
        timed = np.flatnonzero(~np.isnan(self.medians))
        return int(timed[-1]) + 1 if timed.size and timed[-1] + 1 < len(self) else None

    @property
    def has_time(self) -> bool:
        """Whether there is a time at any of its commits."""
        return not bool(np.isnan(self.medians).all())


@dataclass(frozen=True)
class SetupHistory:
    """Everything measured on one setup, oldest commit first."""

    setup: Setup
    snapshots: tuple[Snapshot, ...]
    commits: tuple[Commit, ...]
    """One for each snapshot."""
    cases: Mapping[CaseName, Series]
    _table: SetupTable = field(repr=False, compare=False)

    @property
    def latest(self) -> Commit:
        return self.commits[-1]

    def changes(self, name: CaseName) -> tuple[Change, ...]:
        """Changes in one case's times, as indices into its points."""
        return self._table.changes[self._table.rows[name]]

    def at(self, place: int) -> tuple[NDArray[np.int8], Times]:
        """Statuses and times of all ``cases``, in their order, at one snapshot.

        A status is an index into ``STATUSES``, or ``ABSENT``.
        """
        return self._table.codes[:, place], self._table.times[:, :, place]

    @property
    def digest(self) -> bytes:
        """Changes with anything that histories are made from."""
        return self._table.digest

    def digest_at(self, place: int) -> bytes:
        """The same of one snapshot."""
        return self._table.digests[place]

    def changes_looked_for(self) -> AbstractContextManager[None]:
        """Within it another process looks for the changes of this setup and of those beside it;
        who asks for them waits for it."""
        return self._table.all_changes.looked_for()

    @property
    def waits_for_changes(self) -> bool:
        """Whether another process still looks for changes."""
        return self._table.all_changes.are_looked_for

    def compared_at(self, place: int) -> Mapping[CaseName, Compared]:
        """Each case of one snapshot beside its baseline."""
        return self._table.all_compared(place)

    def places_of(self, names: Sequence[CaseName]) -> Places:
        """Indices of the commits at which any of these cases is known, oldest first."""
        rows = [self._table.rows[name] for name in names]
        return np.flatnonzero(self._table.known[rows].any(axis=0))

    def newest_places(self) -> dict[CaseName, int]:
        """Index of the newest commit at which each case is known."""
        known = self._table.known
        places = known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
        return dict(zip(self._table.names, places.tolist(), strict=True))

    def over(self, name: CaseName, places: Places) -> Course:
        """One case at these commits."""
        return self._table.course(self._table.rows[name], places)


class _Cases(Mapping[CaseName, Series]):
    """Series by the case's name, in natural order, each made when it is asked for."""

    def __init__(self, table: SetupTable) -> None:
        self._table = table
        self._made: dict[CaseName, Series] = {}

    def __getitem__(self, name: CaseName) -> Series:
        if name not in self._made:
            self._made[name] = Series(self._table, self._table.rows[name])
        return self._made[name]

    def __iter__(self) -> Iterator[CaseName]:
        return iter(self._table.names)

    def __len__(self) -> int:
        return len(self._table.names)

    def __contains__(self, name: object) -> bool:
        return name in self._table.rows


def by_setup(results: Results) -> tuple[SetupHistory, ...]:
    """A history for each machine and environment, those that still measure first.

    Of these the longest-standing is the first, so that machines that take turns keep their order.
    """
    commits = {commit.hash: commit for commit in results.commits}
    place = {commit.hash: index for index, commit in enumerate(results.commits)}
    groups: dict[Setup, list[Snapshot]] = defaultdict(list)
    for snapshot in results.snapshots:
        groups[Setup(snapshot.machine, snapshot.environment)].append(snapshot)
    found = AllChanges(results.kept)
    histories = []
    for setup, snapshots in sorted(groups.items()):
        own = tuple(commits[snapshot.commit] for snapshot in snapshots)
        table = SetupTable(snapshots, own, found)
        found.add(table, setup.machine, setup.environment)
        histories.append(SetupHistory(setup, tuple(snapshots), own, _Cases(table), table))

    def order(history: SetupHistory) -> tuple[int, int]:
        latest = place[history.latest.hash]
        is_current = latest >= len(commits) - CURRENT
        return (0, place[history.commits[0].hash]) if is_current else (1, -latest)

    return tuple(sorted(histories, key=order))
