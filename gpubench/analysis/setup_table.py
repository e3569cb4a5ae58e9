"""Statuses and times of all cases of one setup at all its commits: what histories are views of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.baseline import COMPARED_TIMES, Baselines, Compared, Standing, compare
from gpubench.analysis.changes import Change
from gpubench.analysis.found_changes import Found, Search, SetupTimes, kept_path
from gpubench.analysis.paired import paired_speedup
from gpubench.analysis.speedup import Speedup, ratios_of, speedup
from gpubench.parallel import Fork
from gpubench.results import CaseName, Commit, Snapshot, Status, Timing
from gpubench.results.columns import STATUSES, columns_of, timing_of

Times = NDArray[np.float64]
"""Median and both ends of its interval in seconds, shape (3, ...); NaN without a time."""

Places = NDArray[np.intp]
"""Indices of commits."""

ABSENT = -1
"""Instead of an index into ``STATUSES``, where a snapshot does not know a case."""


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


class SetupTable:
    """Statuses and times of all cases (rows) at all snapshots (places) of one setup."""

    def __init__(
        self, snapshots: Sequence[Snapshot], commits: Sequence[Commit], all_changes: AllChanges
    ) -> None:
        self.commits = commits
        self.all_changes = all_changes
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
        by_place = np.full((len(snapshots), 3, len(self.names)), np.nan)
        for place, columns in enumerate(self._columns):
            rows = self._own[id(columns.cases)]
            self.codes[rows, place] = columns.statuses
            by_place[place][:, rows] = columns.times
        self.times: Times = np.ascontiguousarray(by_place.transpose(1, 2, 0))
        self.known = self.codes != ABSENT

    @property
    def changes(self) -> list[tuple[Change, ...]]:
        """Changes of every case."""
        return self.all_changes.of(self)

    def series(self) -> list[Times]:
        """Times of each case at the snapshots that know it."""
        return [self.times[:, row, known] for row, known in enumerate(self.known)]

    @cached_property
    def digests(self) -> list[bytes]:
        """Of each snapshot; of what its files tell, by their stamp, where it has one."""
        cases = {id(columns.cases): columns.cases for columns in self._columns}
        shared = {key: _digest(repr((own.names, own.links))) for key, own in cases.items()}
        return [
            _digest(
                shared[id(columns.cases)],
                b"" if snapshot.stamp else columns.statuses.tobytes() + columns.times.tobytes(),
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
        return Course(_statuses(self.codes[row, places]), self.times[:, row, places], ratios)

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


def _statuses(codes: NDArray[np.int8]) -> tuple[Status | None, ...]:
    return tuple(None if code == ABSENT else STATUSES[code] for code in codes.tolist())


class AllChanges:
    """Changes on all setups, looked for together when the first is asked for, or before."""

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._tables: list[tuple[SetupTable, Path | None]] = []
        self._elsewhere: Fork[list[Found]] | None = None

    def add(self, table: SetupTable, machine: str, environment: str) -> None:
        """Look for changes of that setup, too."""
        kept = self._kept and kept_path(self._kept, machine, environment)
        self._tables.append((table, kept))

    def of(self, table: SetupTable) -> list[tuple[Change, ...]]:
        """Of each case of one setup."""
        return self._found[id(table)]

    @contextmanager
    def looked_for(self) -> Iterator[None]:
        """Another process looks for them from now on, unless it would take several to do so."""
        if not self._search.is_short:
            yield
            return
        with Fork(self._search.found) as self._elsewhere:
            yield
        self._elsewhere = None

    @property
    def are_looked_for(self) -> bool:
        """Whether another process has not found them yet."""
        return self._elsewhere is not None and not self._elsewhere.is_done

    @cached_property
    def _search(self) -> Search:
        asked = [SetupTimes(table.digest, table.series, kept) for table, kept in self._tables]
        return Search(asked)

    @cached_property
    def _found(self) -> dict[int, Found]:
        found = self._elsewhere.result() if self._elsewhere else self._search.found()
        return dict(zip((id(table) for table, _ in self._tables), found, strict=True))


@lru_cache(maxsize=2**14)
def natural_order(name: CaseName) -> tuple[object, ...]:
    """Sorts cases by their names with the numbers in them as numbers: ``n=64`` before ``n=256``."""
    parts = re.split(r"(\d+)", name.case)
    identity = tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
    return name.suite, name.kernel, name.implementation, name.time, identity
