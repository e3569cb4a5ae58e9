"""All results as one table: rows of a snapshot, and cases over commits as arrays."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpubench.errors import ResultsError
from gpubench.git import Repository, read_committed
from gpubench.names import BenchmarkName
from gpubench.results import store
from gpubench.results.acknowledgement import Acknowledgement
from gpubench.results.added_tables import (
    BENCHMARK_COLUMNS,
    COMMIT_COLUMNS,
    benchmark_rows,
    commit_rows,
    write_table,
)
from gpubench.results.commits import CommitOrder, branches_with, tags_of
from gpubench.results.counts import CaseCounts, LineCounts, read_lines, read_profile
from gpubench.results.histories import (
    ABSENT,
    CaseHistories,
    History,
    Newest,
    natural,
    natural_order,
)
from gpubench.results.model import EVERY, CaseName, Commit, Problem, Row, Running, Setup, Snapshot
from gpubench.results.ratio import MAX_DISTURBED
from gpubench.results.rows import rows_from
from gpubench.results.schema import with_old_names
from gpubench.results.settling import INTERRUPTED
from gpubench.results.unfinished import RUNNING, UNFINISHED
from gpubench.statuses import STATUSES, Status

T = TypeVar("T")


_COUNTED_SQL = """
    select k.snapshot, k."case", k.profile, k.lines from counted k
    anti join superseded_cases old on old.snapshot = k.snapshot and old."case" = k."case"
"""
"""SQL of the cases with counts, without those of benchmarks that measured something else then."""

_QUOTED = INTERRUPTED.replace("'", "''")
"""For SQL."""

_ENDS = (("seconds", "low", "high"), ("speedup", "speedup_low", "speedup_high"))
"""Columns of ``History.times`` and ``History.speedups``."""


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
    rates: frozenset[str] = frozenset()
    """asv's names of benchmarks of which more is better, by their unit or by asv.conf.json."""
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
        """Return the table with these cases, at least one, and with the baselines of these cases.

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
        asv_name = self.asv_name(name)
        shares = [share for pattern, share in self.thresholds if re.match(pattern, asv_name)]
        return 1 + max(shares) if shares else None

    def asv_name(self, name: CaseName) -> str:
        """Return asv's name of the benchmark of a case."""
        return self.asv_names.get(name.benchmark, name.benchmark.asv_name)

    def is_rate(self, name: CaseName) -> bool:
        """Return whether more of a value is better."""
        return self.asv_name(name) in self.rates

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
            sql = with_old_names(sql)
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
        write_table(self._connection, "temp", name, columns, rows)

    def keep_tables(
        self, **more: tuple[Mapping[str, tuple[str, str]], Iterable[Sequence[Any]]]
    ) -> None:
        """Write the tables that queries add, and ``more``, into the table's file as they are now,
        for programs that open it by themselves. It ends the table. Nothing is written where it is
        in memory alone."""
        tables: dict[str, tuple[Mapping[str, tuple[str, str]], list[Sequence[Any]]]] = {
            "commits": (COMMIT_COLUMNS, [*self._commit_rows()]),
            "benchmarks": (BENCHMARK_COLUMNS, [*self._benchmark_rows()]),
            **{name: (columns, [*rows]) for name, (columns, rows) in more.items()},
        }
        if self._path is None:
            return
        self._connection.close()
        with closing(store.connect(self._path, read_only=False)) as connection:
            for name, (columns, rows) in tables.items():
                write_table(connection, "main", name, columns, rows)

    def _commit_rows(self) -> Iterator[tuple[Any, ...]]:
        return commit_rows(self.order, self.outside, self.tags)

    def _benchmark_rows(self) -> Iterator[tuple[Any, ...]]:
        return benchmark_rows(self._connection, self.asv_names, self.kinds)

    def described(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns of the views, ``results`` first: view, name, type and meaning."""
        self._add_tables(None)
        return self.query("""
            select distinct on (table_name, column_index)
                table_name as "view", column_name as "column", data_type as "type",
                comment as meaning
            from duckdb_columns() where comment is not null
            order by table_name != 'results', table_name, column_index
        """)


def _opened_again(path: Path, *same: Any) -> Table:
    return Table(store.connect(path, read_only=True), path, *same)


@lru_cache(maxsize=2**12)
def _detail(content: str) -> Mapping[str, Any]:
    """Fields of a ``Row``, mostly the same in many snapshots."""
    fields: dict[str, Any] = json.loads(content)
    for name in ("block", "grid", "tags", "warnings", "capabilities"):
        fields[name] = None if fields[name] is None else tuple(fields[name])
    return fields
