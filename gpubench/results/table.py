"""All results as one table: rows of a snapshot, and cases over commits as arrays."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpubench.errors import ResultsError
from gpubench.links import leads_out
from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.results import store
from gpubench.results.asv_files import UnreadableFile, read_benchmarks, read_machine
from gpubench.results.commits import order_commits
from gpubench.results.model import STATUSES, CaseName, Commit, Pair, Problem, Row, Setup, Snapshot
from gpubench.results.pairs import roles_of, unfit
from gpubench.results.ratio import MOST_DISTURBED, Times
from gpubench.results.reading import snapshot_files
from gpubench.results.rows import rows_from

T = TypeVar("T")

ABSENT = -1
"""Instead of an index into ``STATUSES``, where a snapshot does not have a case."""

CURRENT = 10
"""A setup that was measured at one of so many newest commits still measures. A choice: machines
that take turns may miss some commits, and one that is gone should soon not come first."""


_ENDS = (("seconds", "low", "high"), ("speedup", "speedup_low", "speedup_high"))
"""Columns of ``History.times`` and ``History.speedups``."""


@dataclass(frozen=True, eq=False)
class History:
    """All cases of one setup over its commits, oldest first."""

    setup: Setup
    snapshots: tuple[Snapshot, ...]
    names: tuple[CaseName, ...]
    """In natural order."""
    statuses: NDArray[np.int8]
    """Index into ``STATUSES`` or ``ABSENT``, shape (cases, snapshots)."""
    times: Times
    """Shape (3, cases, snapshots)."""
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
        """``times`` without those, which say nothing of a commit."""
        return np.where(self.disturbed, np.nan, self.times)

    @cached_property
    def rows_of(self) -> Mapping[CaseName, int]:
        """Index into ``names``."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """One for each snapshot."""
        return tuple(snapshot.commit for snapshot in self.snapshots)

    @property
    def latest(self) -> Commit:
        """The newest commit."""
        return self.commits[-1]

    @cached_property
    def digest(self) -> str:
        """Changes with anything that a snapshot of it is made from."""
        return store.digest(*(snapshot.digest for snapshot in self.snapshots))


@dataclass(eq=False)
class Table:
    """Every result file and its record, read once."""

    _connection: duckdb.DuckDBPyConnection
    _path: Path | None
    """Of its file; ``None`` where it is in memory alone."""
    commits: tuple[Commit, ...]
    """Those with results, oldest first."""
    machines: Mapping[str, Mapping[str, Any]]
    """asv's ``machine.json`` by the machine's name: ``cpu``, ``num_cpu``, ``os``, ``ram``."""
    problems: tuple[Problem, ...]
    """What was left out."""
    sources: Mapping[BenchmarkName, str]
    """What asv shows as the code of a benchmark, of the newest run."""
    _snapshots: Mapping[Setup, list[Snapshot]]
    """What was measured on each setup, oldest commit first."""

    def close(self) -> None:
        """Let other processes write the table's file."""
        self._connection.close()

    def _run(self, sql: str, *parameters: Any) -> duckdb.DuckDBPyConnection:
        """Raises ``ResultsError`` for a damaged file."""
        try:
            return self._connection.execute(sql, parameters)
        except duckdb.Error as error:
            what = str(error).partition("\n")[0]
            raise ResultsError(f"{self._path} is damaged; remove it: {what}") from error

    @cached_property
    def setups(self) -> tuple[Setup, ...]:
        """Those that still measure first, and of these the longest-standing: machines that take
        turns keep their order."""
        place = {commit.hash: index for index, commit in enumerate(self.commits)}

        def order(setup: Setup) -> tuple[int, int, Setup]:
            first, *_, last = (place[s.commit.hash] for s in self._snapshots[setup] * 2)
            is_current = last >= len(self.commits) - CURRENT
            return (0, first, setup) if is_current else (1, -last, setup)

        return tuple(sorted(self._snapshots, key=order))

    def snapshots(self, setup: Setup) -> tuple[Snapshot, ...]:
        """What was measured on a setup, oldest commit first."""
        return tuple(self._snapshots.get(setup, ()))

    @cached_property
    def _names(self) -> dict[int, CaseName]:
        """All cases by their number in the table, in natural order."""
        rows = self._run('select id, suite, kernel, implementation, time, "case" from cases')
        names = {number: CaseName(*parts) for number, *parts in rows.fetchall()}
        return dict(sorted(names.items(), key=lambda item: natural_order(item[1])))

    def rows(self, snapshot: Snapshot) -> dict[CaseName, Row]:
        """Each case of a snapshot, in natural order of their names."""
        result = self._run(
            """
            select d.content, p.* replace (
                if(p.unmeasured, d.content->>'missing', p.missing) as missing
            ) from present p join details d on d.id = p.detail where p.snapshot = ?
            """,
            snapshot.id,
        )
        columns = [column[0] for column in result.description]
        of_case = {row[columns.index("case")]: row for row in result.fetchall()}
        ordered = [of_case[number] for number in self._names if number in of_case]
        cells = {name: [row[place] for row in ordered] for place, name in enumerate(columns)}
        details = []
        for case, status, content in zip(
            cells["case"], cells["status"], cells["content"], strict=True
        ):
            fields = json.loads(content)
            for name in ("block", "grid", "warnings"):
                fields[name] = None if fields[name] is None else tuple(fields[name])
            details.append(Row(self._names[case], STATUSES[status], **fields))
        return rows_from(details, cells)

    def history(self, setup: Setup) -> History:
        """All cases of a setup over its commits."""
        snapshots = self.snapshots(setup)
        ids = [snapshot.id for snapshot in snapshots]
        unknown = {"low": "-inf", "high": "inf", "speedup_low": "0", "speedup_high": "inf"}
        ends = ", ".join(
            f"coalesce({end}, if({value} is null, 'nan', '{unknown[end]}')::double) as {end}"
            for value, *both in _ENDS
            for end in both
        )
        columns = self._run(
            f"""
            select snapshot, "case", status, coalesce(baseline, -1) as baseline, {ends},
                coalesce(disturbed > {MOST_DISTURBED}, false) as disturbed,
                detail in (select id from details where (content->>'pairs')::int > 0) as in_turn,
                coalesce(seconds, 'nan') as seconds, coalesce(speedup, 'nan') as speedup
            from present where snapshot in (select unnest(?))
            """,
            ids,
        ).fetchnumpy()
        present = set(np.flatnonzero(np.bincount(columns["case"])).tolist())
        numbers = [number for number in self._names if number in present]
        row_of = np.full(max(self._names, default=0) + 2, -1, np.int32)  # the last: no baseline
        row_of[numbers] = np.arange(len(numbers))
        place_of = np.full(max(ids, default=0) + 1, -1)
        place_of[ids] = np.arange(len(ids))
        shape = len(numbers), len(snapshots)
        at = row_of[columns["case"]] * len(snapshots) + place_of[columns["snapshot"]]
        statuses = np.full(shape, ABSENT, np.int8)
        statuses.reshape(-1)[at] = columns["status"]
        baselines = np.full(shape, -1, np.int32)
        baselines.reshape(-1)[at] = row_of[columns["baseline"]]
        disturbed, in_turn = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        disturbed.reshape(-1)[at] = columns["disturbed"]
        in_turn.reshape(-1)[at] = columns["in_turn"]
        times, speedups = (np.full((3, *shape), np.nan) for _ in _ENDS)
        for target, names in zip((times, speedups), _ENDS, strict=True):
            for row, name in enumerate(names):
                target[row].reshape(-1)[at] = columns[name]
        return History(
            setup=setup,
            snapshots=snapshots,
            names=tuple(self._names[number] for number in numbers),
            statuses=statuses,
            times=times,
            speedups=speedups,
            baselines=baselines,
            disturbed=disturbed,
            in_turn=in_turn,
        )

    def fits(self, setup: Setup) -> dict[bytes, tuple[int, ...]]:
        """Stepwise fits of series, by a digest of their values."""
        rows = self._run(
            "select key, stops from fits where machine = ? and environment = ?",
            setup.machine,
            setup.environment,
        ).fetchall()
        return {bytes.fromhex(key): tuple(stops) for key, stops in rows}

    def keep_fits(self, setup: Setup, fits: Mapping[bytes, Sequence[int]]) -> None:
        """Keep these fits of a setup in place of others; where the table's file cannot be written,
        leave them."""
        try:
            if self._path:
                self.close()
                self._connection = store.connect(self._path, read_only=False)
            place = [setup.machine, setup.environment]
            self._connection.execute(
                "delete from fits where machine = ? and environment = ?", place
            )
            store.insert(
                self._connection,
                "fits",
                machine=[setup.machine] * len(fits),
                environment=[setup.environment] * len(fits),
                key=[key.hex() for key in fits],
                stops=fits.values(),
            )
        except (store.Busy, duckdb.Error):
            pass
        finally:
            if self._path:
                self.close()
                self._connection = store.connect(self._path, read_only=True)

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns and rows of a query; raises ``ResultsError``."""
        try:
            result = self._connection.execute(sql)
            return [column[0] for column in result.description or ()], result.fetchall()
        except duckdb.Error as error:
            raise ResultsError(str(error).partition("\n")[0]) from error

    def described(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns of the view ``results``: name, type and meaning."""
        return self.query("""
            select column_name as "column", data_type as "type", comment as meaning
            from duckdb_columns() where table_name = 'results' order by column_index
        """)


def open_table(
    results_dir: Path,
    repository: Path | None = None,
    pairs: Iterable[Pair] = (),
    path: Path | None = None,
) -> Table:
    """Read asv's results and the records beside them.

    ``results_dir`` is asv's (``.asv/results``); one that does not exist holds no results.
    ``repository`` orders the commits and gives their subjects. ``pairs`` are benchmarks of an asv
    project that are reported as kernels. ``path`` is the file that keeps the table; without it, and
    where it is locked or cannot be written, which ``problems`` names, the table is in memory alone.
    Files that are damaged, foreign or half-written are named in ``problems``. Raises
    ``ResultsError`` where ``results_dir`` is a file.
    """
    if results_dir.exists() and not results_dir.is_dir():
        raise ResultsError(f"{results_dir} is a file; give the directory, such as .asv/results")
    problems: list[Problem] = []

    def read(reader: Callable[[Path], Mapping[str, T]], file: Path) -> Mapping[str, T]:
        if leads_out(file, results_dir):  # told with the other links
            return {}
        try:
            return reader(file)
        except UnreadableFile as error:
            problems.append(Problem(file.relative_to(results_dir).as_posix(), str(error)))
            return {}

    pairs = tuple(pairs)
    machines = {
        file.parent.name: facts
        for file in sorted(folder / "machine.json" for folder in results_dir.glob("*/"))
        if os.path.lexists(file) and (facts := read(read_machine, file))
    }
    file = results_dir / "benchmarks.json"
    described = read(read_benchmarks, file) if os.path.lexists(file) else {}
    roles = roles_of(pairs, described)
    links: list[str] = []
    files = snapshot_files(results_dir, links.append)
    message = "a symbolic link that leads out of the results, which is not followed; copy the file"
    problems += [Problem(link, message) for link in links]
    connection = None
    if path is not None:
        try:
            connection = store.up_to_date(path, files, roles, pairs)
        except store.Busy as error:
            message = f"{error}; all results were read anew, and are not kept"
            problems.append(Problem(f"{path.parent.name}/{path.name}", message))
            path = None
    if connection is None:
        connection = store.in_memory(files, roles, pairs)
    result = connection.execute("""
        select s.*, t.benchmarks as superseded from snapshots s left join (
            select snapshot, list(benchmark) as benchmarks from superseded group by snapshot
        ) t on t.snapshot = s.id
        order by s.name
    """)
    columns = [column[0] for column in result.description]
    stored = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
    problems += [Problem(*fault) for head in stored for fault in json.loads(head["faults"])]
    stored = [head for head in stored if not head["is_empty"]]
    dates: dict[str, float] = {}
    for head in sorted(stored, key=lambda head: not head["has_result"]):
        dates.setdefault(head["commit"], head["date"])  # a record knows its own date only
    commits = order_commits(dates, repository)
    place = {commit.hash: index for index, commit in enumerate(commits)}
    key = repr((store.FORMAT, roles, pairs))
    snapshots = [_snapshot(head, commits[place[head["commit"]]], key) for head in stored]
    by_setup: dict[Setup, list[Snapshot]] = defaultdict(list)
    for snapshot in sorted(snapshots, key=lambda s: (place[s.commit.hash], s.setup)):
        by_setup[snapshot.setup].append(snapshot)
    rows = connection.execute("select distinct benchmark from versions").fetchall()
    benchmarks = {name for (text,) in rows if (name := parse_benchmark_name(text))}
    problems += unfit(pairs, benchmarks, described)
    sources = {
        name: entry.source
        for asv_name, entry in described.items()
        for name in (parse_benchmark_name(asv_name), *roles.places.get(asv_name, ()))
        if name in benchmarks and entry.source
    }
    return Table(connection, path, commits, machines, tuple(problems), sources, by_setup)


def _snapshot(head: Mapping[str, Any], commit: Commit, key: str) -> Snapshot:
    superseded = tuple(sorted(head["superseded"] or ()))
    return Snapshot(
        id=head["id"],
        setup=Setup(head["machine"], head["environment"]),
        commit=commit,
        facts=json.loads(head["facts"]),
        concerns={name: tuple(facts) for name, facts in json.loads(head["concerns"]).items()},
        params=json.loads(head["params"]),
        measured_at=head["measured_at"],
        superseded=superseded,
        digest=store.digest(repr((key, head["name"], head["stamp"], commit, superseded))),
    )


def natural_order(name: CaseName) -> tuple[object, ...]:
    """Sorts cases by their names with the numbers in them as numbers: ``n=64`` before ``n=256``."""
    # By length, then by digits: without int(), which refuses numbers of thousands of digits.
    parts = ((part, part.lstrip("0")) for part in re.split(r"([0-9]+)", name.case))
    identity = tuple(
        (len(digits), digits) if place % 2 else (-1, text)
        for place, (text, digits) in enumerate(parts)
    )
    return name.suite, name.kernel, name.implementation, name.time, identity
