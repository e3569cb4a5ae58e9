"""Cases over commits: one series for each machine, environment and case."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.baseline import COMPARED_TIMES, Baselines, Compared, Standing, compare
from gpubench.analysis.changes import Change
from gpubench.analysis.found_changes import SetupTimes, find_changes_of, kept_path
from gpubench.analysis.paired import paired_speedup
from gpubench.analysis.speedup import Speedup, ratios_of, speedup
from gpubench.results import CaseName, Commit, Results, Snapshot, Status, Timing
from gpubench.results.columns import STATUSES, columns_of, timing_of

Times = NDArray[np.float64]
"""Median and both ends of its interval in seconds, shape (3, ...); NaN without a time."""

CURRENT = 10
"""A setup that was measured at one of so many newest commits still measures."""

Places = NDArray[np.intp]
"""Indices of commits."""

ABSENT = -1
"""Instead of an index into ``STATUSES``, where a snapshot does not know a case."""


@dataclass(frozen=True, order=True, slots=True)
class Setup:
    """Where cases are comparable over commits: one machine, one environment."""

    machine: str
    environment: str


@dataclass(frozen=True, slots=True)
class Point:
    """One case at one commit."""

    commit: Commit
    status: Status
    timing: Timing | None
    """Median and interval; the rest is known of ``compared`` only."""
    speedup: Speedup | None
    is_baseline: bool
    baseline: CaseName | None
    """Where it was measured; ``None`` for the baseline itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One case over commits in columns: for charts, which have a thousand of them."""

    statuses: tuple[Status | None, ...]
    """``None`` at commits that do not know the case."""
    times: Times
    """Shape (3, commits)."""
    speedups: Times
    """Ratio and both ends of its interval, shape (3, commits); NaN without one."""


class Series(Sequence[Point]):
    """One case at the commits that know it, oldest first."""

    def __init__(self, table: _Table, row: int) -> None:
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

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes of its time, as indices of points."""
        return self._table.changes[self._row]

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
    _table: _Table = field(repr=False, compare=False)

    @property
    def latest(self) -> Commit:
        return self.commits[-1]

    def changes(self, name: CaseName) -> tuple[Change, ...]:
        """Changes in one case's times, as indices into its points."""
        return self.cases[name].changes

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

    def compared_at(self, place: int) -> Mapping[CaseName, Compared]:
        """Each case of one snapshot beside its baseline."""
        return self._table.all_compared(place)

    def places_of(self, names: Sequence[CaseName]) -> Places:
        """Indices of the commits at which any of these cases is known, oldest first."""
        rows = [self._table.rows[name] for name in names]
        return np.flatnonzero(self._table.known[rows].any(axis=0))

    def over(self, name: CaseName, places: Places) -> Course:
        """One case at these commits."""
        return self._table.course(self._table.rows[name], places)


class _Table:
    """Statuses and times of all cases (rows) at all snapshots (places) of one setup."""

    def __init__(
        self, snapshots: Sequence[Snapshot], commits: Sequence[Commit], all_changes: _AllChanges
    ) -> None:
        self.commits = commits
        self._all = all_changes
        self._snapshots = snapshots
        self._columns = [columns_of(snapshot.outcomes) for snapshot in snapshots]
        shared = {id(columns.cases): columns.cases for columns in self._columns}
        names = {name for cases in shared.values() for name in cases.names}
        self.names = tuple(sorted(names, key=natural_order))
        self.rows = {name: row for row, name in enumerate(self.names)}
        self._own = {
            key: np.array([self.rows[name] for name in cases.names], np.intp)
            for key, cases in shared.items()
        }
        self._baselines: dict[int, Baselines] = {}
        self._compared: dict[int, dict[CaseName, Compared]] = {}
        shape = (len(self.names), len(snapshots))
        self.codes = np.full(shape, ABSENT, np.int8)
        self.times = np.full((3, *shape), np.nan)
        for place, columns in enumerate(self._columns):
            rows = self._own[id(columns.cases)]
            self.codes[rows, place] = columns.statuses
            self.times[:, rows, place] = columns.times
        self.known = self.codes != ABSENT

    @property
    def changes(self) -> list[tuple[Change, ...]]:
        """Changes of every case."""
        return self._all.changes[id(self)]

    def changing(self, results: Results, setup: Setup) -> SetupTimes:
        """What its changes are found in."""
        kept = results.kept and kept_path(results.kept, setup.machine, setup.environment)
        return SetupTimes(self.digest, self._series, kept)

    def _series(self) -> list[Times]:
        return [self.times[:, row, known] for row, known in enumerate(self.known)]

    @cached_property
    def digests(self) -> list[bytes]:
        """Of each snapshot; of what is read of it later, by the stamp of its files."""
        cases = {id(columns.cases): columns.cases for columns in self._columns}
        shared = {key: _digest(repr((own.names, own.links))) for key, own in cases.items()}
        return [
            _digest(
                shared[id(columns.cases)] + columns.statuses.tobytes() + columns.times.tobytes(),
                repr((columns.ratios, commit, snapshot.params, snapshot.facts)),
                repr((snapshot.superseded, snapshot.measured_at, snapshot.stamp)),
            )
            for columns, commit, snapshot in zip(
                self._columns, self.commits, self._snapshots, strict=True
            )
        ]

    @cached_property
    def digest(self) -> bytes:
        """Of all snapshots."""
        return _digest(b"".join(self.digests))

    def points(self, row: int, places: Places) -> Iterator[Point]:
        """One case at snapshots that know it."""
        name, theirs = self.names[row], dict[CaseName, list[list[float]]]()
        codes, times = self.codes[row, places].tolist(), self._times(row, places)
        for index, place in enumerate(places.tolist()):
            timing, standing = timing_of(*times[index]), self._standing(name, place)
            known = standing.name in self._columns[place].cases.rows
            baseline = standing.name if known else None
            if baseline and baseline not in theirs:
                theirs[baseline] = self._times(self.rows[baseline], places)
            measured = timing_of(*theirs[baseline][index]) if baseline else None
            yield Point(
                commit=self.commits[place],
                status=STATUSES[codes[index]],
                timing=timing,
                speedup=self._speedup(name, place, measured, timing),
                is_baseline=standing.is_baseline,
                baseline=baseline,
            )

    def course(self, row: int, places: Places) -> Course:
        """One case at these snapshots, whether they know it or not."""
        name, known = self.names[row], self.known[row, places]
        ratios = np.full((3, len(places)), np.nan)
        tables = np.array([id(self._columns[place].cases) for place in places.tolist()])
        for table in np.unique(tables[known]) if name.time in COMPARED_TIMES else ():
            of_table = np.flatnonzero(known & (tables == table))
            baseline = self._standing(name, int(places[of_table[0]])).name
            if baseline in self.rows:
                theirs = self.times[:, self.rows[baseline], places[of_table]]
                ratios[:, of_table] = ratios_of(theirs, self.times[:, row, places[of_table]])
        for index, place in enumerate(places.tolist()):
            if known[index] and self._columns[place].ratios:
                (point,) = self.points(row, places[index : index + 1])
                if point.speedup:
                    found = point.speedup
                    ratios[:, index] = found.value, found.low, found.high
        return Course(statuses_of(self.codes[row, places]), self.times[:, row, places], ratios)

    def compared(self, row: int, place: int) -> Compared:
        """The same with all that is stored, which may be read from the files only now."""
        return self.all_compared(place)[self.names[row]]

    def all_compared(self, place: int) -> Mapping[CaseName, Compared]:
        """All cases of a snapshot like that."""
        if place not in self._compared:
            self._compared[place] = compare(self._snapshots[place].outcomes)
        return self._compared[place]

    def _times(self, row: int, places: Places) -> list[list[float]]:
        times: list[list[float]] = self.times[:, row, places].T.tolist()
        return times

    def _standing(self, name: CaseName, place: int) -> Standing:
        cases = self._columns[place].cases
        if id(cases) not in self._baselines:
            self._baselines[id(cases)] = Baselines(cases.names, cases.links)
        return self._baselines[id(cases)].of(cases.rows[name])

    def _speedup(
        self, name: CaseName, place: int, baseline: Timing | None, timing: Timing | None
    ) -> Speedup | None:
        if timing is None or baseline is None or name.time not in COMPARED_TIMES:
            return None
        columns = self._columns[place]
        ratios = columns.ratios and columns.ratios.get(columns.cases.rows[name])
        return (paired_speedup(*ratios) if ratios else None) or speedup(baseline, timing)


def _digest(*content: bytes | str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for each in content:
        digest.update(each if isinstance(each, bytes) else each.encode())
    return digest.digest()


def statuses_of(codes: NDArray[np.int8]) -> tuple[Status | None, ...]:
    """Statuses by their codes."""
    return tuple(None if code == ABSENT else STATUSES[code] for code in codes.tolist())


class _AllChanges:
    """Changes on all setups, looked for together when the first is asked for."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self.tables: dict[Setup, _Table] = {}

    @cached_property
    def changes(self) -> dict[int, list[tuple[Change, ...]]]:
        """By the identity of the table."""
        asked = [table.changing(self._results, setup) for setup, table in self.tables.items()]
        tables = map(id, self.tables.values())
        return dict(zip(tables, find_changes_of(asked), strict=True))


class _Cases(Mapping[CaseName, Series]):
    """Series by the case's name, in natural order, each made when it is asked for."""

    def __init__(self, table: _Table) -> None:
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
    found = _AllChanges(results)
    histories = []
    for setup, snapshots in sorted(groups.items()):
        own = tuple(commits[snapshot.commit] for snapshot in snapshots)
        table = found.tables[setup] = _Table(snapshots, own, found)
        histories.append(SetupHistory(setup, tuple(snapshots), own, _Cases(table), table))

    def order(history: SetupHistory) -> tuple[int, int]:
        latest = place[history.latest.hash]
        is_current = latest >= len(commits) - CURRENT
        return (0, place[history.commits[0].hash]) if is_current else (1, -latest)

    return tuple(sorted(histories, key=order))


def natural_order(name: CaseName) -> tuple[object, ...]:
    """Sorts cases by their names with the numbers in them as numbers: ``n=64`` before ``n=256``."""
    parts = re.split(r"(\d+)", name.case)
    identity = tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
    return name.suite, name.kernel, name.implementation, name.time, identity
