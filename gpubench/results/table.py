"""All results as one table: rows of a snapshot, and cases over commits as arrays."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpubench.errors import ResultsError
from gpubench.git import Repository, read_committed
from gpubench.links import leads_out
from gpubench.names import BenchmarkName, Value, parse_benchmark_name
from gpubench.results import store
from gpubench.results.acknowledgement import Acknowledgement
from gpubench.results.asv_files import (
    UnreadableFile,
    read_benchmarks,
    read_machine,
    read_names,
)
from gpubench.results.commits import CommitOrder, branches_with, histories_of, tags_of
from gpubench.results.counts import CaseCounts, LineCounts, read_lines, read_profile
from gpubench.results.model import (
    EVERY,
    NO_RENAMES,
    CaseName,
    Commit,
    Described,
    Pair,
    PairPattern,
    Problem,
    Renames,
    Row,
    Running,
    Setup,
    Snapshot,
)
from gpubench.results.pairs import BenchmarkPairs, alone, resolved, unfit, unreadable_kinds
from gpubench.results.ratio import MAX_DISTURBED, Times
from gpubench.results.reading import SnapshotFiles, snapshot_files
from gpubench.results.rows import INTERRUPTED, rows_from
from gpubench.results.running import running
from gpubench.results.unfinished import RUNNING, UNFINISHED
from gpubench.statuses import STATUSES, Status

T = TypeVar("T")

ABSENT = -1
"""Instead of an index into ``STATUSES``, where a snapshot does not have a case."""

_COUNTED_SQL = """
    select k.snapshot, k."case", k.profile, k.lines from counted k
    anti join superseded_cases old on old.snapshot = k.snapshot and old."case" = k."case"
"""
"""SQL of the cases with counts, without those of benchmarks that measured something else then."""

COMMIT_COLUMNS = {
    "commit": ("VARCHAR", "hash of the commit"),
    "place": ("INTEGER", "place in the order of all commits with results, 0 for the oldest"),
    "date": ("TIMESTAMP", "date of the commit, UTC"),
    "subject": ("VARCHAR", "first line of its message; null where git does not know it"),
    "branches": ("VARCHAR[]", "branches of asv.conf.json whose history has it"),
    "tags": ("VARCHAR[]", "its tags"),
    "in_history": ("BOOLEAN", "whether a history has it"),
}
"""SQL types and meanings of the columns of ``commits``."""

BENCHMARK_COLUMNS = {
    "benchmark": ("VARCHAR", "asv's name of the benchmark"),
    "suite": ("VARCHAR", "suite, as in results"),
    "kernel": ("VARCHAR", "kernel"),
    "implementation": ("VARCHAR", "implementation of the kernel"),
    "time": ("VARCHAR", "what it measures, as in results"),
    "type": ("VARCHAR", "asv's type: time, memory, peakmemory or track"),
    "unit": ("VARCHAR", "unit of its values"),
}
"""SQL types and meanings of the columns of ``benchmarks``."""

_UNITS_SQL = """
    select c.benchmark, any_value(d.content->>'unit') from cases c
    join (select "case", any_value(detail) as detail from rows group by 1) r on r."case" = c.id
    join details d on d.id = r.detail group by 1 order by 1
"""
"""SQL of the benchmarks with results, by their names here, and of their units."""

_QUOTED = INTERRUPTED.replace("'", "''")
"""For SQL."""

_ENDS = (("seconds", "low", "high"), ("speedup", "speedup_low", "speedup_high"))
"""Columns of ``History.times`` and ``History.speedups``."""


@dataclass(frozen=True, eq=False)
class Newest:
    """Each case of a history at the newest of its snapshots that has it."""

    places: NDArray[np.intp]
    """Index of that snapshot."""
    statuses: NDArray[np.int8]
    """Index into ``STATUSES``."""
    baselines: NDArray[np.int32]
    """Index of the case that it was measured against there; -1 without."""

    @classmethod
    def of(cls, statuses: NDArray[np.int8], baselines: NDArray[np.int32]) -> Newest:
        """From arrays of ``CaseHistories``."""
        present = statuses != ABSENT
        places = present.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
        cases = np.arange(len(places))
        return cls(places, statuses[cases, places], baselines[cases, places])


@dataclass(frozen=True, eq=False)
class History:
    """The cases of one setup over its commits, oldest first, without their times: these are read
    for a few cases or a few commits at a time."""

    setup: Setup
    snapshots: tuple[Snapshot, ...]
    names: tuple[CaseName, ...]
    """In natural order."""
    newest: Newest

    @cached_property
    def rows_of(self) -> Mapping[CaseName, int]:
        """Index into ``names``."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """Return one for each snapshot."""
        return tuple(snapshot.commit for snapshot in self.snapshots)

    @cached_property
    def places(self) -> Mapping[Commit, int]:
        """Return the index of each commit."""
        return {commit: place for place, commit in enumerate(self.commits)}

    @cached_property
    def processors(self) -> tuple[str, ...]:
        """Return the names of the processors that measured it."""
        names = {snapshot.processor for snapshot in self.snapshots} - {""}
        return tuple(sorted(names))

    @cached_property
    def by_speedup(self) -> bool:
        """Whether it is of several machines with different processors: then a time says nothing of
        a commit, and a speedup does."""
        machines = {snapshot.measured_on for snapshot in self.snapshots}
        return len(machines) > 1 and len(self.processors) > 1

    @property
    def latest(self) -> Commit:
        """The newest commit."""
        return self.commits[-1]

    @cached_property
    def digest(self) -> str:
        """Changes with anything that a snapshot of it is made from."""
        return store.digest(*(snapshot.digest for snapshot in self.snapshots))

    @cached_property
    def digest_now(self) -> str:
        """Changes with any row of a case at the newest snapshot that has it, with the cases that
        there are, and with the newest commit."""
        places = {*self.newest.places.tolist(), len(self.snapshots) - 1}
        return store.digest(*(self.snapshots[place].digest for place in sorted(places)))


@dataclass(frozen=True, eq=False)
class CaseHistories(History):
    """Cases of one setup over commits with their times: all of them, or a part."""

    statuses: NDArray[np.int8]
    """Index into ``STATUSES`` or ``ABSENT``, shape (cases, snapshots)."""
    times: Times
    """Shape (3, cases, snapshots): seconds, or of what is no time its values in their unit."""
    speedups: Times
    """Ratio and both ends of its interval, shape (3, cases, snapshots); NaN without one."""
    baselines: NDArray[np.int32]
    """Index into ``names`` of what a case was measured against, shape (cases, snapshots); -1
    without."""
    disturbed: NDArray[np.bool_]
    """Whether others disturbed most of its samples, shape (cases, snapshots)."""
    in_turn: NDArray[np.bool_]
    """Whether its speedup is of pairs, shape (cases, snapshots)."""

    @cached_property
    def undisturbed(self) -> Times:
        """``times`` without those, which say nothing of a commit, and without what is no time."""
        is_time = np.array([name.is_time for name in self.names], np.bool_)
        left_out = self.disturbed | ~is_time[:, np.newaxis]
        return np.where(left_out, np.nan, self.times) if left_out.any() else self.times

    @cached_property
    def judged(self) -> Times:
        """What changes are sought in: ``undisturbed`` times, or where processors differ what takes
        their place, the time over the baseline's. Of what is no time its values, where all are
        above 0: only these have a ratio."""
        if not self.by_speedup:
            others = [case for case, name in enumerate(self.names) if not name.is_time]
            values = self.times[:, others]
            is_positive = ~(values[0] <= 0).any(axis=1)
            judged: Times = self.undisturbed.copy() if others else self.undisturbed
            judged[:, others] = np.where(is_positive[:, np.newaxis], values, np.nan)
            return judged
        with np.errstate(divide="ignore"):
            value, low, high = 1 / self.speedups
        times: Times = np.stack([value, high, low])
        times[:, self.disturbed] = np.nan
        return times

    def part(self, cases: Sequence[int]) -> CaseHistories:
        """Return some of the cases, by their indices; what they are compared with is among them."""
        if len(cases) == len(self.names):
            return self
        chosen: Any = [*cases]
        row_of = np.full(len(self.names) + 1, -1, np.int32)  # the last one is that of no baseline
        row_of[chosen] = np.arange(len(cases))
        if chosen and chosen[-1] - chosen[0] == len(chosen) - 1:  # neighbours, which need no copy
            chosen = slice(chosen[0], chosen[-1] + 1)
        statuses, baselines = self.statuses[chosen], row_of[self.baselines[chosen]]
        return CaseHistories(
            setup=self.setup,
            snapshots=self.snapshots,
            names=tuple(self.names[case] for case in cases),
            newest=Newest.of(statuses, baselines),
            statuses=statuses,
            times=self.times[:, chosen],
            speedups=self.speedups[:, chosen],
            baselines=baselines,
            disturbed=self.disturbed[chosen],
            in_turn=self.in_turn[chosen],
        )


@dataclass(eq=False)
class Table:
    """Every result file and its record, read once."""

    _connection: duckdb.DuckDBPyConnection
    _path: Path | None
    """Of its file; ``None`` where it is in memory alone."""
    commits: tuple[Commit, ...]
    """Those with results, oldest first."""
    order: CommitOrder
    """The same, and whose history has which of them."""
    machines: Mapping[str, Mapping[str, Any]]
    """asv's ``machine.json`` by the machine's name: ``cpu``, ``num_cpu``, ``os``, ``ram``."""
    problems: tuple[Problem, ...]
    """What was left out."""
    sources: Mapping[BenchmarkName, str]
    """What asv shows as the code of a benchmark, of the newest run."""
    folder: Path
    """asv's results directory."""
    _repository: Repository | None
    _snapshots: Mapping[Setup, list[Snapshot]]
    """What was measured on each setup, oldest commit first; by branch, and ``EVERY`` commit."""
    acknowledged: tuple[Acknowledgement, ...] = ()
    """Changes that the project knows of and accepts."""
    unmatched_patterns: frozenset[str] = frozenset()
    """Patterns of pairs that stand for none."""
    thresholds: tuple[tuple[str, float], ...] = ()
    """Regular expressions of asv's names of benchmarks, each with the share by which a value has
    to change so that it counts as a change; of several the largest."""
    asv_names: Mapping[BenchmarkName, str] = field(default_factory=dict)
    """asv's names of benchmarks that have another name here."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """asv's type of each benchmark that ``benchmarks.json`` describes."""
    selection: str = ""
    """Options that chose which cases it shows; empty where it shows all."""
    _kept: frozenset[int] | None = None
    """Numbers of the cases that it shows; ``None``: all."""
    _outlines: dict[Setup, History] = field(default_factory=dict, init=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what another process opens the file by; so the table has to have one."""
        same = tuple(getattr(self, each.name) for each in fields(self) if each.init)[1:]
        return _opened_again, same

    def keep(self, names: Collection[CaseName], selection: str) -> Table:
        """Return the table with these cases, at least one, and those that they are compared with.

        Queries (``query``) still see all. ``selection`` are the options that chose the cases. Both
        tables have one connection.
        """
        numbers = [self._numbers[name] for name in names]
        baselines = self._rows(
            'select distinct baseline from present where "case" in (select unnest($1::integer[]))',
            numbers,
        )
        kept = frozenset(numbers).union(number for (number,) in baselines if number is not None)
        found = self._rows(
            'select distinct snapshot from present where "case" in (select unnest($1::integer[]))',
            [*kept],
        )
        there = {snapshot for (snapshot,) in found}
        snapshots = {
            setup: of_setup
            for setup, every in self._snapshots.items()
            if (of_setup := [snapshot for snapshot in every if snapshot.id in there])
        }
        return replace(self, _snapshots=snapshots, selection=selection, _kept=kept)

    @cached_property
    def branches(self) -> tuple[str, ...]:
        """Branches that have a history, that of the first page first; empty where no repository
        tells which commits are whose."""
        return tuple(filter(None, self.order.histories))

    @cached_property
    def outside(self) -> tuple[Commit, ...]:
        """Commits that no history has, oldest first."""
        return self.order.outside

    def threshold(self, name: CaseName) -> float | None:
        """Return the factor from which a change of a case counts, by asv.conf.json; ``None`` where
        that says nothing of it."""
        if not self.thresholds:
            return None
        asv_name = self.asv_names.get(name.benchmark, name.benchmark.asv_name)
        shares = [share for pattern, share in self.thresholds if re.match(pattern, asv_name)]
        return 1 + max(shares) if shares else None

    @property
    def is_kept(self) -> bool:
        """Whether it has a file."""
        return self._path is not None

    def close(self) -> None:
        """Let other processes write the table's file."""
        self._connection.close()

    def _rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; raises ``DamagedTable``."""
        return self._ask(lambda table: table.execute(sql, parameters).fetchall())

    def _columns(self, sql: str, *parameters: Any) -> dict[str, NDArray[Any]]:
        """Return the columns of a query by their names; raises ``DamagedTable``."""
        return self._ask(lambda table: table.execute(sql, parameters).fetchnumpy())

    def _records(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a query, each by its columns' names; raises ``DamagedTable``."""
        return self._ask(lambda table: store.records(table, sql, *parameters))

    def _ask(self, question: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        return store.ask(self._connection, self._path, question)

    @cached_property
    def setups(self) -> tuple[Setup, ...]:
        """Those with a history, of the first branch first; of one branch the one with the newest
        commit first, then the one with the most results."""
        histories = self.order.histories
        places = {
            branch: {hash_: place for place, hash_ in enumerate(hashes)}
            for branch, hashes in histories.items()
        }
        first = next(iter(histories))
        counts = dict(self._rows("select snapshot, count(*) from rows group by snapshot"))

        def order(setup: Setup) -> tuple[int, int, int, Setup]:
            snapshots = self._snapshots[setup]
            branch = setup.branch or first
            newest = places[branch][snapshots[-1].commit.hash]
            results = sum(counts.get(snapshot.id, 0) for snapshot in snapshots)
            return [*histories].index(branch), -newest, -results, setup

        return tuple(sorted((s for s in self._snapshots if s.branch != EVERY), key=order))

    @cached_property
    def measured(self) -> tuple[Setup, ...]:
        """All machines and environments with results, each with all of its commits."""
        return tuple(sorted(setup for setup in self._snapshots if setup.branch == EVERY))

    def snapshots(self, setup: Setup) -> tuple[Snapshot, ...]:
        """Return what was measured on a setup, oldest commit first."""
        return tuple(self._snapshots.get(setup, ()))

    @cached_property
    def running(self) -> tuple[tuple[Snapshot, Running], ...]:
        """Snapshots that a run of asv measures now."""
        every = chain.from_iterable(map(self.snapshots, self.measured))
        return tuple((snapshot, snapshot.running) for snapshot in every if snapshot.running)

    @cached_property
    def branches_outside(self) -> Mapping[str, str]:
        """By hash a branch of each of the commits ``outside`` that is on one."""
        return branches_with(self.outside, self._repository)

    @cached_property
    def _names(self) -> dict[int, CaseName]:
        """All cases by their number in the table, in natural order."""
        rows = self._rows("""
            select id, suite, kernel, implementation, time, "case" from cases
            order by suite, kernel, implementation, time
        """)
        names: dict[int, CaseName] = {}
        for (suite, kernel, implementation, time), cases in groupby(rows, lambda row: row[1:5]):
            ordered = sorted(
                ((case, number) for number, *_, case in cases), key=lambda item: natural(item[0])
            )
            for case, number in ordered:
                names[number] = CaseName(suite, kernel, implementation, time, case)
        return names

    @cached_property
    def _numbers(self) -> dict[CaseName, int]:
        return {name: number for number, name in self._names.items()}

    @cached_property
    def _order(self) -> dict[int, int]:
        return {number: place for place, number in enumerate(self._names)}

    @cached_property
    def _present(self) -> str:
        """SQL of the rows that count: of the cases that are kept. Of a run that is at work, a case
        that it has begun was not killed: it is not there yet."""
        conditions = []
        if self._kept is not None:
            conditions.append(f""""case" in ({", ".join(map(str, sorted(self._kept)))})""")
        if running := [str(snapshot.id) for snapshot, _ in self.running]:
            conditions.append(f"""not (
                snapshot in ({", ".join(running)})
                and detail in (select id from details where content->>'reason' = '{_QUOTED}')
            )""")
        return (
            f"(select * from present where {' and '.join(conditions)})" if conditions else "present"
        )

    @cached_property
    def _paired(self) -> list[int]:
        """Details of speedups from pairs."""
        rows = self._rows("select id from details where (content->>'pairs')::int > 0")
        return [number for (number,) in rows]

    def cases_on(self, kinds: Collection[str]) -> Set[CaseName]:
        """Return the cases that ran on a device of these kinds: ``cuda`` has ``cuda:0``."""
        found = self._rows(
            "select id from details "
            "where split_part(content->>'device', ':', 1) in (select unnest($1))",
            [*kinds],
        )
        if not found:  # as in most stores: the rows are many
            return set()
        rows = self._rows(
            'select distinct "case" from rows where detail in (select unnest($1::integer[]))',
            [number for (number,) in found],
        )
        return {self._names[number] for (number,) in rows}

    def rows(
        self, snapshot: Snapshot, names: Collection[CaseName] | None = None
    ) -> dict[CaseName, Row]:
        """Return each case of a snapshot, or some with what they are compared with, in natural
        order of their names."""
        wanted = (
            ""
            if names is None
            else """and (p."case" in (select unnest($2)) or p."case" in (
            select baseline from present where snapshot = $1 and "case" in (select unnest($2))
        ))"""
        )
        numbers = [] if names is None else [[self._numbers[name] for name in names]]
        stored = self._records(
            f"""
            select d.content, p.* replace (
                if(p.unmeasured, d.content->>'missing', p.missing) as missing
            ) from {self._present} p join details d on d.id = p.detail
            where p.snapshot = $1 {wanted}
            """,
            snapshot.id,
            *numbers,
        )
        stored.sort(key=lambda cells: self._order[cells["case"]])
        details: list[dict[str, Any]] = [
            {
                "name": self._names[cells["case"]],
                "status": STATUSES[cells["status"]],
                **_detail(cells["content"]),
            }
            for cells in stored
        ]
        if snapshot.running:
            for detail in details:
                warnings = (RUNNING if said == UNFINISHED else said for said in detail["warnings"])
                detail["warnings"] = tuple(warnings)
        rows = rows_from(details, stored)
        if names is None:
            return rows
        return {name: rows[name] for name in names if name in rows}

    def outline(self, setup: Setup) -> History:
        """Return the cases of a setup over its commits, without their times."""
        if setup not in self._outlines:
            snapshots = self.snapshots(setup)
            columns = self._columns(
                f"""
                select "case", max(place) as place, arg_max(status, place) as status,
                    arg_max(coalesce(baseline, -1), place) as baseline
                from {self._present} join (
                    select unnest($1) as snapshot, generate_subscripts($1, 1) - 1 as place
                ) using (snapshot) group by "case"
                """,
                [snapshot.id for snapshot in snapshots],
            )
            order = np.array([self._order[case] for case in columns["case"].tolist()], np.int64)
            by_name = np.argsort(order)
            cases, places, statuses, baselines = (
                columns[name][by_name] for name in ("case", "place", "status", "baseline")
            )
            newest = Newest(
                places.astype(np.intp),
                statuses.astype(np.int8),
                self._rows_of(cases.tolist())[baselines],
            )
            names = tuple(self._names[case] for case in cases.tolist())
            self._outlines[setup] = History(setup, snapshots, names, newest)
        return self._outlines[setup]

    def newest_rows(self, setup: Setup) -> dict[CaseName, Row]:
        """Return each case of a setup at the newest snapshot that has it."""
        outline = self.outline(setup)
        names_at: dict[int, list[CaseName]] = defaultdict(list)
        for name, place in zip(outline.names, outline.newest.places.tolist(), strict=True):
            names_at[place].append(name)
        rows: dict[CaseName, Row] = {}
        for place, names in names_at.items():
            rows |= self.rows(outline.snapshots[place], names)
        return rows

    def _rows_of(self, cases: Sequence[int]) -> NDArray[np.int32]:
        """Index into these cases by their numbers; -1 for another, and at the end for none."""
        rows = np.full(max(self._names, default=0) + 2, -1, np.int32)
        rows[cases] = np.arange(len(cases))
        return rows

    def history(
        self,
        setup: Setup,
        names: Sequence[CaseName] | None = None,
        snapshots: Sequence[Snapshot] | None = None,
    ) -> CaseHistories:
        """Cases of a setup over its commits with their times: all, or these over these."""
        outline = self.outline(setup)
        chosen = outline.names if names is None else tuple(names)
        snapshots = outline.snapshots if snapshots is None else tuple(snapshots)
        ids, cases = [s.id for s in snapshots], [self._numbers[name] for name in chosen]
        unknown = {"low": "-inf", "high": "inf", "speedup_low": "0", "speedup_high": "inf"}
        ends = ", ".join(
            f"coalesce({end}, if({value} is null, 'nan', '{unknown[end]}')::double) as {end}"
            for value, *both in _ENDS
            for end in both
        )
        columns = self._columns(
            f"""
            select snapshot, "case", status, coalesce(baseline, -1) as baseline, {ends},
                coalesce(disturbed > {MAX_DISTURBED}, false) as disturbed,
                detail in (select unnest($3::integer[])) as in_turn,
                coalesce(seconds, 'nan') as seconds, coalesce(speedup, 'nan') as speedup
            from {self._present} where snapshot in (select unnest($1))
                and ($2 is null or "case" in (select unnest($2::integer[])))
            """,
            ids,
            None if names is None else cases,
            self._paired,
        )
        row_of = self._rows_of(cases)
        place_of = np.full(max(ids, default=0) + 1, -1)
        place_of[ids] = np.arange(len(ids))
        at = row_of[columns["case"]], place_of[columns["snapshot"]]

        def placed(values: NDArray[Any], absent: float, dtype: Any) -> NDArray[Any]:
            array = np.full((len(cases), len(ids)), absent, dtype)
            array[at] = values
            return array

        statuses = placed(columns["status"], ABSENT, np.int8)
        baselines = placed(row_of[columns["baseline"]], -1, np.int32)
        times, speedups = (np.full((3, len(cases), len(ids)), np.nan) for _ in _ENDS)
        for target, of_target in zip((times, speedups), _ENDS, strict=True):
            for row, name in enumerate(of_target):
                target[row][at] = columns.pop(name)
        return CaseHistories(
            setup=setup,
            snapshots=snapshots,
            names=chosen,
            newest=Newest.of(statuses, baselines),
            statuses=statuses,
            times=times,
            speedups=speedups,
            baselines=baselines,
            disturbed=placed(columns["disturbed"], False, np.bool_),
            in_turn=placed(columns["in_turn"], False, np.bool_),
        )

    def process_variances(
        self, snapshots: Sequence[Snapshot], column: Literal["processes", "process_speedups"]
    ) -> Mapping[CaseName, tuple[float, int]]:
        """Return how much the processes of each case differ within these snapshots: the sum of the
        squared deviations of their logarithms from those of their snapshot's mean, and its degrees
        of freedom. Cases that never had two processes, or were disturbed, are left out."""
        rows = self._rows(
            f"""
            select "case", sum(list_var_samp(logs) * (len(logs) - 1)), sum(len(logs) - 1) from (
                select "case", list_transform({column}, lambda x: ln(x)) as logs
                from {self._present} where snapshot in (select unnest($1))
                    and len({column}) > 1 and not coalesce(disturbed > {MAX_DISTURBED}, false)
            ) group by 1
            """,
            [snapshot.id for snapshot in snapshots],
        )
        return {self._names[case]: (squares, int(freedom)) for case, squares, freedom in rows}

    @cached_property
    def tags(self) -> Mapping[str, Sequence[str]]:
        """Return the tags of each commit that has some, by its hash."""
        return tags_of(self._repository)

    @cached_property
    def _counted_snapshots(self) -> frozenset[int]:
        return frozenset(
            snapshot for (snapshot,) in self._rows("select distinct snapshot from counted")
        )

    def counted(self, snapshots: Sequence[Snapshot]) -> Mapping[CaseName, Mapping[int, int]]:
        """Return which cases were counted at which of these snapshots: by the snapshot's index, the
        number of what was counted. Two equal numbers are equal counts."""
        places = {
            snapshot.id: place
            for place, snapshot in enumerate(snapshots)
            if snapshot.id in self._counted_snapshots
        }
        if not places:  # as in every project without the device in software
            return {}
        rows = self._rows(f"{_COUNTED_SQL} where k.snapshot in (select unnest($1))", [*places])
        counted: dict[CaseName, dict[int, int]] = defaultdict(dict)
        for snapshot, case, profile, _ in rows:
            if self._kept is not None and case not in self._kept:
                continue
            counted[self._names[case]][places[snapshot]] = profile
        return {name: counted[name] for name in sorted(counted, key=natural_order)}

    def profiles(self, numbers: Iterable[int]) -> Mapping[int, CaseCounts]:
        """Return the counts that ``counted`` numbers."""
        wanted = {*numbers}
        if not wanted:
            return {}
        rows = self._rows(
            "select id, content from profiles where id in (select unnest($1))", [*wanted]
        )
        return {number: read_profile(content) for number, content in rows}

    def counts(self, snapshot: Snapshot) -> Mapping[CaseName, CaseCounts]:
        """Return the counts of each case of a snapshot that was counted."""
        counted = self.counted([snapshot])
        profiles = self.profiles(
            number for of_case in counted.values() for number in of_case.values()
        )
        return {name: profiles[of_case[0]] for name, of_case in counted.items()}

    def count_lines(self, snapshot: Snapshot, name: CaseName) -> tuple[LineCounts, ...]:
        """Return what each line of Python did in a case of a snapshot; empty where it was not
        counted, or compiled without lines."""
        rows = self._rows(
            f"""
            select content from ({_COUNTED_SQL}) join count_line_sets l on l.id = lines
            where snapshot = $1 and "case" = $2
            """,
            snapshot.id,
            self._numbers.get(name, -1),
        )
        return read_lines(rows[0][0]) if rows else ()

    def committed(self, commit: Commit, file: str) -> str | None:
        """Return a file of a commit as text, given by its path or by the end of its path, as Python
        imports it; ``None`` where the repository does not have it."""
        content = self._repository and read_committed(self._repository, commit.hash, file)
        return None if not content else content.decode(errors="replace")

    def reasons(
        self, snapshots: Iterable[Snapshot], statuses: Collection[Status]
    ) -> dict[int, dict[CaseName, str | None]]:
        """Return why cases are one of these statuses, by the snapshot's id; ``None`` for times that
        others disturbed."""
        rows = self._rows(
            f"""
            select p.snapshot, p."case",
                if(p.disturbed > {MAX_DISTURBED}, null, coalesce(d.content->>'reason', ''))
            from {self._present} p join details d on d.id = p.detail
            where p.snapshot in (select unnest($1))
                and (p.status in (select unnest($2)) or p.disturbed > {MAX_DISTURBED})
            """,
            [snapshot.id for snapshot in snapshots],
            [STATUSES.index(status) for status in statuses],
        )
        reasons: dict[int, dict[CaseName, str | None]] = defaultdict(dict)
        for snapshot, case, reason in rows:
            reasons[snapshot][self._names[case]] = reason
        return reasons

    @store.interruptible()
    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of the columns and rows of a query; raises ``ResultsError``."""

        def take(
            table: duckdb.DuckDBPyConnection, sql: str
        ) -> tuple[list[str], list[tuple[Any, ...]]]:
            found = table.execute(sql)
            return [column[0] for column in found.description or ()], found.fetchall()

        return self.answer(sql, take)

    def answer(self, sql: str, take: Callable[[duckdb.DuckDBPyConnection, str], T]) -> T:
        """Return what ``take`` gets from the database for a query, as it is to be asked; raises
        ``ResultsError``."""
        try:
            sql = store.with_old_names(sql)
            self._add_tables(sql)
            if not self._connection.extract_statements(sql):
                raise ResultsError(
                    f"{sql!r} holds no query; give one such as 'select * from results limit 10', "
                    "or none to list the columns"
                )
            return take(self._connection, sql)
        except duckdb.Error as error:
            self._ask(store.read_everything)  # the query is at fault only where the file is not
            raise ResultsError(str(error).partition("\n")[0]) from error

    def _add_tables(self, sql: str | None) -> None:
        """Add what other files know, where a query names it: the tables ``commits`` and
        ``benchmarks``. They are not in the table's file, since the repository and
        ``benchmarks.json`` change without results."""
        tables = {
            "commits": (COMMIT_COLUMNS, self._commit_rows),
            "benchmarks": (BENCHMARK_COLUMNS, self._benchmark_rows),
        }
        for name, (columns, rows) in tables.items():
            if sql is None or re.search(rf"\b{name}\b", sql, re.IGNORECASE):
                self.add_table(name, columns, rows() if sql else ())

    def add_table(
        self, name: str, columns: Mapping[str, tuple[str, str]], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Add a table that queries can read; ``columns`` have SQL types and meanings by name."""
        types = ", ".join(f'"{column}" {kind}' for column, (kind, _) in columns.items())
        self._connection.execute(f"create or replace temp table {name} ({types})")
        for column, (_, meaning) in columns.items():
            text = meaning.replace("'", "''")
            self._connection.execute(f"""comment on column temp.{name}."{column}" is '{text}'""")
        if values := [*rows]:
            cells = zip(columns, zip(*values, strict=True), strict=True)
            store.insert(self._connection, name, **dict(cells))

    def _commit_rows(self) -> Iterator[tuple[Any, ...]]:
        branches = defaultdict[str, list[str]](list)
        for branch, hashes in self.order.histories.items():
            for hash_ in hashes:
                branches[hash_].append(branch)
        outside = {commit.hash for commit in self.outside}
        tags = self.tags
        for place, commit in enumerate(self.commits):
            date = datetime.fromtimestamp(commit.date, UTC).replace(tzinfo=None)
            names = [*filter(None, branches[commit.hash])]
            its_tags = list(tags.get(commit.hash, ()))
            is_in = commit.hash not in outside
            yield commit.hash, place, date, commit.subject, names, its_tags, is_in

    def _benchmark_rows(self) -> Iterator[tuple[Any, ...]]:
        units = dict(self._connection.execute(_UNITS_SQL).fetchall())
        places = {place.asv_name: place for place in self.asv_names}
        for text, unit in units.items():
            name = places.get(text) or parse_benchmark_name(text)
            if name is not None:
                asv_name = self.asv_names.get(name, text)
                parts = name.suite, name.kernel, name.implementation, name.time
                yield asv_name, *parts, self.kinds.get(asv_name), unit

    def described(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns of the views, ``results`` first: view, name, type and meaning."""
        self._add_tables(None)
        return self.query("""
            select table_name as "view", column_name as "column", data_type as "type",
                comment as meaning
            from duckdb_columns() where comment is not null
            order by table_name != 'results', table_name, column_index
        """)


@store.interruptible()
def open_table(
    results_dir: Path,
    repository: Repository | None = None,
    pairs: Iterable[Pair | PairPattern] = (),
    path: Path | None = None,
    renames: Renames = NO_RENAMES,
    branches: Sequence[str] = (),
    name_of: Callable[[str], str] = str,
    thresholds: Sequence[tuple[str, float]] = (),
    commit_url: str = "",
) -> Table:
    """Read asv's results and the records beside them.

    ``results_dir`` is asv's (``.asv/results``); one that does not exist holds no results.
    ``repository`` orders the commits and gives their subjects; each of ``branches`` makes a history
    of the commits that it contains (``histories_of``). ``name_of`` gives the name under which a
    machine's results are shown: of machines with one name, a commit's newest result counts, and
    ``problems`` names the others. ``pairs`` are benchmarks of an asv
    project that are reported as kernels; all others that are not gpubench's are reported alone.
    ``renames`` are names that results appear under
    instead of those that they were measured under. ``path`` is the file that keeps the table;
    without it, or where it is locked or cannot be written, which ``problems`` names, the table is
    in memory alone.
    Files that are damaged, foreign or half-written are named in ``problems``. Raises
    ``ResultsError`` where ``results_dir`` is a file, and ``DamagedTable``, here and where the table
    is asked later, where a part of its file cannot be read: done again, it is made anew.
    """
    if results_dir.exists() and not results_dir.is_dir():
        raise ResultsError(f"{results_dir} is a file; give the directory, such as .asv/results")
    problems: list[Problem] = []
    refused: list[Problem] = []
    files = snapshot_files(results_dir, lambda file, why: refused.append(Problem(file, why)))
    machines = {
        file.parent.name: facts
        for file in sorted(folder / "machine.json" for folder in results_dir.glob("*/"))
        if (facts := _read(read_machine, file, results_dir, problems))
    }
    described = _described(files, results_dir, problems)
    given = tuple(pairs)
    in_pairs, said, unmatched = resolved(given, described)
    said += unreadable_kinds(described)
    chosen = (*in_pairs, *alone(described, in_pairs))
    benchmark_pairs = BenchmarkPairs.of(chosen, described, renames)
    problems += [*said, *refused]
    # Without results there is no folder to keep the table in.
    connection, path = _connect(path if files else None, files, benchmark_pairs, problems)
    stored, started, ran = store.ask(connection, path, _heads)
    problems += [Problem(*fault) for head in stored for fault in json.loads(head["faults"])]
    problems += _unlisted(stored)
    stored = [head for head in stored if not head["is_empty"]]
    dates: dict[str, float] = {}
    for head in sorted(stored, key=lambda head: not head["has_result"]):
        dates.setdefault(head["commit"], head["date"])  # a record knows its own date only
    order = histories_of(dates, repository, branches)
    if commit_url:
        linked = (replace(one, address=f"{commit_url}{one.hash}") for one in order.commits)
        order = replace(order, commits=tuple(linked))
    commit_of = {commit.hash: commit for commit in order.commits}
    key = store.key_of(benchmark_pairs)
    # Without a benchmark of gpubench's there is no record either.
    planned = sum(each.cases for name, each in described.items() if parse_benchmark_name(name))
    files_of = {file.name: file for file in files}
    snapshots = []
    for head in stored:
        facts = json.loads(head["facts"])
        at_work = running(files_of[head["name"]], facts, planned or None)
        setup = Setup(name_of(head["machine"]), head["environment"])
        snapshots.append(_snapshot(head, commit_of[head["commit"]], key, facts, setup, at_work))
    if any(snapshot.setup.machine != snapshot.measured_on for snapshot in snapshots):
        snapshots, again = _newest_of_each(snapshots, started)
        problems += again
    paired = {
        place.asv_name: place for of_name in benchmark_pairs.places.values() for place in of_name
    }
    benchmarks = {name for text in ran if (name := paired.get(text) or parse_benchmark_name(text))}
    problems += unfit(benchmark_pairs.every, benchmarks, described)
    return Table(
        connection,
        path,
        order.commits,
        order,
        machines,
        tuple(problems),
        _find_sources(described, benchmark_pairs, benchmarks),
        results_dir,
        repository,
        _divide_by_setup(snapshots, order),
        unmatched_patterns=unmatched,
        thresholds=tuple(thresholds),
        asv_names={
            place: name for name, places in benchmark_pairs.places.items() for place in places
        },
        kinds={name: entry.kind for name, entry in described.items() if entry.kind},
    )


def _unlisted(stored: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Name the benchmarks with results that ``benchmarks.json`` does not list."""
    for name in sorted({name for head in stored for name in json.loads(head["unlisted"])}):
        message = f"{name} is left out: it has results, and benchmarks.json does not list it"
        yield Problem("benchmarks.json", message)


def _connect(
    path: Path | None,
    files: Sequence[SnapshotFiles],
    pairs: BenchmarkPairs,
    problems: list[Problem],
) -> tuple[duckdb.DuckDBPyConnection, Path | None]:
    """Open the table's file, brought up to date, and return it with its path; where it cannot be,
    which is added to ``problems``, a table in memory."""
    if path is not None:
        try:
            return store.up_to_date(path, files, pairs), path
        except store.Busy as error:
            message = f"{error}; all results were read anew, and are not kept"
            problems.append(Problem(f"{path.parent.name}/{path.name}", message))
    return store.in_memory(files, pairs), None


def _divide_by_setup(
    snapshots: Sequence[Snapshot], order: CommitOrder
) -> dict[Setup, list[Snapshot]]:
    """Return the snapshots of each setup in the order of its branch's commits; of several branches
    each makes a setup, and ``EVERY`` has all commits."""
    of_commit = defaultdict[str, list[Snapshot]](list)
    for snapshot in snapshots:
        of_commit[snapshot.commit.hash].append(snapshot)
    by_setup = defaultdict[Setup, list[Snapshot]](list)
    every = tuple(commit.hash for commit in order.commits)
    for branch, hashes in {**order.histories, EVERY: every}.items():
        own = branch if len(order.histories) > 1 or branch == EVERY else ""
        for snapshot in chain.from_iterable(of_commit[hash_] for hash_ in hashes):
            by_setup[replace(snapshot.setup, branch=own)].append(snapshot)
    return by_setup


def _find_sources(
    described: Mapping[str, Described], pairs: BenchmarkPairs, benchmarks: Set[BenchmarkName]
) -> dict[BenchmarkName, str]:
    """Return the source of each benchmark, as asv describes it under its name of now, or else under
    an old one."""
    sources: dict[BenchmarkName, str] = {}
    for asv_name, entry in described.items():
        measured = parse_benchmark_name(asv_name)
        now = pairs.renames.benchmark(measured) if measured else None
        for name in (now, *pairs.places.get(asv_name, ())):
            if name is None or name not in benchmarks or not entry.source:
                continue
            if name == measured or name not in sources:
                sources[name] = entry.source
    return sources


def _heads(
    table: duckdb.DuckDBPyConnection,
) -> tuple[list[dict[str, Any]], dict[int, float], set[str]]:
    """Return what the table says of snapshots, when the newest benchmark of each began, and asv's
    names of all benchmarks."""
    heads = store.records(
        table,
        """
        select s.*, t.benchmarks as superseded from snapshots s left join (
            select snapshot, list(benchmark) as benchmarks from superseded group by snapshot
        ) t on t.snapshot = s.id
        order by s.name
        """,
    )
    newest = "select snapshot, max(started_at) from versions group by snapshot"
    names = table.execute("select distinct benchmark from versions").fetchall()
    return heads, dict(table.execute(newest).fetchall()), {name for (name,) in names}


def _read(
    reader: Callable[[Path], Mapping[str, T]],
    file: Path,
    results_dir: Path,
    problems: list[Problem],
) -> Mapping[str, T]:
    """Return what a file of asv's says; nothing where it is missing or damaged, which is told."""
    if not os.path.lexists(file) or leads_out(file, results_dir):  # told with the other links
        return {}
    try:
        return reader(file)
    except UnreadableFile as error:
        problems.append(Problem(file.relative_to(results_dir).as_posix(), str(error)))
        return {}


def _described(
    files: Sequence[SnapshotFiles], results_dir: Path, problems: list[Problem]
) -> Mapping[str, Described]:
    """Return what asv says of its benchmarks, by their names."""
    described = _read(read_benchmarks, results_dir / "benchmarks.json", results_dir, problems)
    if not described:
        # Those that it would list: the largest file of a machine has most of its benchmarks.
        by_size = sorted(files, key=lambda item: item.sizes[0])
        largest = {item.name.partition("/")[0]: item for item in by_size}
        for file in filter(None, (item.result for item in largest.values())):
            with suppress(UnreadableFile):  # which is told where its times are read
                described = {**described, **read_names(file)}
    return described


def _opened_again(path: Path, *same: Any) -> Table:
    return Table(store.connect(path, read_only=True), path, *same)


@lru_cache(maxsize=2**12)
def _detail(content: str) -> Mapping[str, Any]:
    """Fields of a ``Row``, mostly the same in many snapshots."""
    fields: dict[str, Any] = json.loads(content)
    for name in ("block", "grid", "tags", "warnings", "capabilities"):
        fields[name] = None if fields[name] is None else tuple(fields[name])
    return fields


def _snapshot(
    head: Mapping[str, Any],
    commit: Commit,
    key: str,
    facts: Mapping[str, Value | None],
    setup: Setup,
    at_work: Running | None,
) -> Snapshot:
    superseded = tuple(sorted(head["superseded"] or ()))
    return Snapshot(
        id=head["id"],
        setup=setup,
        measured_on=head["machine"],
        commit=commit,
        facts=facts,
        concerns={name: tuple(facts) for name, facts in json.loads(head["concerns"]).items()},
        params=json.loads(head["params"]),
        measured_at=head["measured_at"],
        superseded=superseded,
        running=at_work,
        digest=store.digest(
            repr((key, head["name"], head["stamp"], commit, setup, superseded, at_work))
        ),
    )


def _newest_of_each(
    snapshots: Sequence[Snapshot], started: Mapping[int, float]
) -> tuple[list[Snapshot], list[Problem]]:
    """Return one snapshot for each commit of a setup, the one measured last, and say which others
    there are. ``started`` has the seconds since 1970 at which its newest benchmark began."""
    newest: dict[tuple[Setup, str], Snapshot] = {}
    problems = []
    for snapshot in sorted(
        snapshots, key=lambda s: (started.get(s.id) or 0.0, s.measured_at or "", s.measured_on)
    ):
        place = snapshot.setup, snapshot.commit.hash
        if older := newest.get(place):
            path = f"{older.measured_on}/{older.commit.hash[:8]}-{older.setup.environment}.json"
            later = f"as {snapshot.measured_on}, {snapshot.setup.machine} measured the commit later"
            problems.append(Problem(path, f"another result counts: {later}"))
        newest[place] = snapshot
    return [*newest.values()], problems


@lru_cache(maxsize=2**14)
def natural_order(name: CaseName) -> tuple[object, ...]:
    """Sorts cases by their names with the numbers in them as numbers: ``n=64`` before ``n=256``."""
    case = natural(name.case), name.case  # the numbers alone do not tell 0.1 from 0.01
    return name.suite, name.kernel, name.implementation, name.time, *case


def natural(text: str) -> tuple[Any, ...]:
    """Sorts texts with the numbers in them as numbers."""
    # By length, then by digits: without int(), which refuses numbers of thousands of digits.
    parts = ((part, part.lstrip("0")) for part in re.split(r"([0-9]+)", text))
    return tuple(
        (len(digits), digits) if place % 2 else (-1, text)
        for place, (text, digits) in enumerate(parts)
    )
