"""The table's file: a DuckDB database that is brought up to date with the results directory.

The rows of a snapshot hold while its two files have the size and times of change that they had when
they were read, and columns, ``FORMAT``, pairs and old names are the same. That is the only rule of
what is stale: everything else in the file is derived from rows, or is named by what it was made
from.

The file is data: opening it executes nothing, and the connection reaches no other file, no network
and no extension. One process writes it; others read it meanwhile as it was, or do without.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from gpubench.errors import DamagedTable, GpubenchError, ResultsError
from gpubench.results.pairs import BenchmarkPairs
from gpubench.results.reading import Batch, SnapshotFiles, SnapshotHead, read_all
from gpubench.results.schema import schema
from gpubench.waiting import progress_words, say

FORMAT = 13
"""Raised when what is made of the files changes, and the columns that it stands in do not."""

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # A foreign file could hold a view that reads other files or asks for extensions.
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    # Nor is SQL that somebody was given to paste: it could have a log or a profile written.
    "lock_configuration": True,
    "python_enable_replacements": False,
}

WRITING: dict[str, str | int] = {
    # While the table is written, the processes that read files have the other processors.
    "threads": 1,
    # Beyond it DuckDB goes on with a temporary file. Who only reads the table has no such file: a
    # query would fail at a limit.
    "memory_limit": "64MB",
}

T = TypeVar("T")

Numbers = NDArray[np.int32]
"""Of rows in a table."""


_DAMAGED = (duckdb.Error, ValueError, RuntimeError)
"""What DuckDB raises for a file that is none of its own, or of another release."""

_FILES = ("", ".wal")
"""What the names of DuckDB's files have after the table's: the table, and what was not yet written
into it by a process that was killed."""


_given_up: set[Path] = set()
"""Damaged files that this process could not remove."""


class Busy(GpubenchError):
    """The file cannot be opened or written now."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends a query inside: DuckDB makes an error of it, as a damaged file could give one."""
    try:
        yield
    except (RuntimeError, duckdb.Error) as error:
        # The second where a query asked Python for something.
        if not re.search("Query interrupted|KeyboardInterrupt", str(error)):
            raise
        raise KeyboardInterrupt from error


def in_memory(files: Sequence[SnapshotFiles], pairs: BenchmarkPairs) -> DuckDBPyConnection:
    """Return a table of these files that is not kept."""
    connection = duckdb.connect(config=CONFIG)
    create_tables(connection)
    _update(connection, files, pairs)
    return connection


def up_to_date(
    path: Path, files: Sequence[SnapshotFiles], pairs: BenchmarkPairs
) -> DuckDBPyConnection:
    """Return the table's file, brought up to date; a damaged or foreign one is made anew.

    Most of the file is read later, and damage there shows then: see ``ask``. Raises ``Busy`` where
    it is not up to date and cannot be written.
    """
    if path in _given_up:
        raise Busy("it is damaged and cannot be removed")
    try:
        # DuckDB would write through a link, to wherever a repository has it lead.
        if path.parent.is_symlink():
            raise OSError(f"{path.parent.name} is a symbolic link; remove it")
        for suffix in (*_FILES, ".tmp"):
            beside = path.with_name(f"{path.name}{suffix}")
            if beside.is_symlink():
                beside.unlink()
            elif suffix in _FILES and beside.exists() and not beside.is_file():
                # DuckDB would wait for ever for what a pipe gives.
                raise OSError(f"{beside.name} is no file (a folder, a pipe or a device); remove it")
        try:
            return _up_to_date(path, files, pairs)
        except _DAMAGED:
            _remove(path)
            return _up_to_date(path, files, pairs)
    except (OSError, *_DAMAGED) as error:
        raise Busy(f"it cannot be written: {_first_line(error)}") from error


def ask(
    connection: DuckDBPyConnection, path: Path | None, question: Callable[[DuckDBPyConnection], T]
) -> T:
    """Return the answer of a question to the table, of whose file most is read only now.

    Raises ``DamagedTable`` where it cannot be read; the file is then removed, or given up.
    """
    try:
        with interruptible():
            return question(connection)
    except _DAMAGED as error:
        if path is None:
            raise ResultsError(f"the table cannot be read: {_first_line(error)}") from error
        connection.close()
        try:
            _remove(path)
        except OSError:
            _given_up.add(path)
        raise DamagedTable(f"{path} is damaged: {_first_line(error)}") from error


def records(connection: DuckDBPyConnection, sql: str, *parameters: Any) -> list[dict[str, Any]]:
    """Return the rows of a query, each by its columns' names."""
    result = connection.execute(sql, parameters)
    columns = [column[0] for column in result.description]
    return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]


def read_everything(connection: DuckDBPyConnection) -> None:
    """Read every value of every table; raises what a damaged file does."""
    tables = connection.execute("select table_name from duckdb_tables()").fetchall()
    for (name,) in tables:
        connection.execute(f'select max(hash(each)) from "{name}" each').fetchall()


def _remove(path: Path) -> None:
    for suffix in _FILES:
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@interruptible()
def _up_to_date(
    path: Path, files: Sequence[SnapshotFiles], pairs: BenchmarkPairs
) -> DuckDBPyConnection:
    is_new = not path.exists()
    if not is_new:
        connection = connect(path, read_only=True)
        try:
            if connection.execute("select key from meta").fetchall() != [(key_of(pairs),)]:
                raise ValueError("it is of another format, of other pairs or of other old names")
            if not any(_outdated(connection, files)):
                return connection
        except _DAMAGED:
            connection.close()
            raise
        connection.close()
    path.parent.mkdir(exist_ok=True)
    with suppress(FileExistsError), (path.parent / ".gitignore").open("x") as ignored:
        ignored.write("*\n")  # "x" follows no link
    with closing(connect(path, read_only=False)) as connection:
        if is_new:
            create_tables(connection)
        _update(connection, files, pairs)
        if is_new:  # last: a file without it, whose making was stopped, is made anew
            connection.execute("insert into meta values (?)", [key_of(pairs)])
    return connect(path, read_only=True)


def create_tables(connection: DuckDBPyConnection) -> None:
    """Make all tables and views, without rows."""
    # In one transaction: each of some hundred statements is written to the disk otherwise.
    connection.execute(f"begin; {schema()}; commit")


def connect(path: Path, *, read_only: bool) -> DuckDBPyConnection:
    """Open the table. Raises ``Busy`` while another process writes the table, and while another
    process reads it where this process wants to write. Raises one of ``_DAMAGED`` for a foreign
    file."""
    try:
        config = CONFIG if read_only else CONFIG | WRITING
        return duckdb.connect(path, read_only=read_only, config=config)
    except (duckdb.IOException, duckdb.ConnectionException) as error:
        if "set lock" in str(error) or "different configuration" in str(error):
            raise Busy("another process has it open") from error
        raise


def _outdated(
    connection: DuckDBPyConnection, files: Sequence[SnapshotFiles]
) -> tuple[list[SnapshotFiles], list[int]]:
    """Files that are new or have changed, and snapshots that no longer hold."""
    rows = connection.execute("select name, id, stamp from snapshots").fetchall()
    stamps = {name: stamp for name, _, stamp in rows}
    changed = [file for file in files if stamps.get(file.name) != [*file.stamp]]
    hold = {file.name for file in files} - {file.name for file in changed}
    return changed, [number for name, number, _ in rows if name not in hold]


def _update(
    connection: DuckDBPyConnection,
    files: Sequence[SnapshotFiles],
    pairs: BenchmarkPairs,
) -> None:
    """Read what is new or has changed, and forget what is no longer there, in one transaction."""
    changed, lost = _outdated(connection, files)
    run = connection.execute
    run("begin")
    if lost:
        run("delete from snapshots where id in (select unnest(?))", [lost])
        for table in ("rows", "versions", "counted"):
            run(f"delete from {table} where snapshot in (select unnest(?))", [lost])
    shared: dict[str, dict[str, Numbers]] = {}
    done = 0
    for batch in read_all(changed, pairs):
        _insert(connection, batch, shared)
        done += len(batch.heads)
        say(progress_words("reading results", done, len(changed)))
    # A record alone knows eight characters of its commit; other files may know the rest.
    run("""
        update snapshots set "commit" = coalesce(
            (select max(f."commit") from snapshots f
            where f.has_result and f."commit"[:8] = snapshots."commit"[:8]),
            "commit"[:8]
        ) where not has_result
    """)
    # Values of another version than the newest that ran are another history. Older files of
    # asv do not say when a benchmark started: then its commit's date stands for it.
    run("""
        create or replace table superseded as
        with ran as (
            select v.*, s.name, if(v.started_at > 0, v.started_at, s.date) as moment
            from versions v join snapshots s on s.id = v.snapshot
        ), newest as (
            select benchmark, last(version order by moment, name) as version
            from ran group by benchmark
        )
        select ran.snapshot, benchmark from ran join newest using (benchmark)
        where ran.version is not null and ran.version is distinct from newest.version
    """)
    run("commit")


def key_of(pairs: BenchmarkPairs) -> str:
    """Return what rows depend on beside the files."""
    return digest(schema(), repr((FORMAT, pairs)))


def _insert(
    connection: DuckDBPyConnection, batch: Batch, shared: dict[str, dict[str, Numbers]]
) -> None:
    """``shared`` has what earlier batches of a reader brought, the numbers by table: cases,
    details, profiles and sets of lines."""
    (first,) = connection.execute("select coalesce(max(id) + 1, 0) from snapshots").fetchall()[0]
    heads = {f.name: [getattr(head, f.name) for head in batch.heads] for f in fields(SnapshotHead)}
    versions = [
        (number, *version)
        for number, of_file in enumerate(heads.pop("versions"), first)
        for version in of_file
    ]
    texts = {
        name: [json.dumps(value) for value in heads[name]]
        for name in (
            *("facts", "concerns", "params", "faults"),
            *("requirements", "env_vars", "unlisted"),
        )
    }
    numbers = range(first, first + len(batch.heads))
    insert(connection, "snapshots", id=numbers, **heads | texts)
    names = "snapshot", "benchmark", "version", "started_at"
    insert(connection, "versions", **dict(zip(names, zip(*versions, strict=True), strict=False)))

    numbers_of = shared.setdefault(batch.reader, {})

    def add(table: str, keys: Sequence[str], **columns: Sequence[str]) -> None:
        before = numbers_of.get(table, np.empty(0, np.int32))
        new = _shared(connection, table, keys, **columns) if columns[keys[0]] else before[:0]
        numbers_of[table] = np.concatenate([before, new])

    parts = "suite", "kernel", "implementation", "time", "case"
    add(
        "cases",
        parts,
        benchmark=[name.benchmark.asv_name for name in batch.names],
        **{part: [getattr(name, part) for name in batch.names] for part in parts},
    )
    texts_of = {
        "details": batch.details,
        "profiles": batch.profiles,
        "count_line_sets": batch.count_lines,
    }
    for table, contents in texts_of.items():
        add(table, ("key",), key=[*map(digest, contents)], content=contents)
    cases = numbers_of["cases"]
    if batch.counted:
        heads_of, names, profiles, lines = np.array(batch.counted).T
        insert(
            connection,
            "counted",
            snapshot=heads_of + first,
            case=cases[names],
            profile=numbers_of["profiles"][profiles],
            lines=numbers_of["count_line_sets"][lines],
        )
    if not len(batch.cells["case"]):
        return
    cells = batch.cells
    baseline = np.ma.masked_array(cases[cells["baseline"]], np.ma.getmaskarray(cells["baseline"]))
    numbers_of_table = {
        "snapshot": cells["snapshot"] + first,
        "case": cases[cells["case"]],
        "detail": numbers_of["details"][cells["detail"]],
        "baseline": baseline,
    }
    insert(connection, "rows", **{**cells, **numbers_of_table})


def _shared(
    connection: DuckDBPyConnection, table: str, keys: Sequence[str], **columns: Sequence[str]
) -> Numbers:
    """Numbers of these rows in a table of what many snapshots share; new ones are added."""
    using = ", ".join(f'"{key}"' for key in keys)
    with _registered(connection, place=range(len(columns[keys[0]])), **columns):
        connection.execute(f"""
            insert into {table} by name
            select (select count(*) from {table}) + row_number() over (order by place) - 1 as id,
                * exclude place
            from (select distinct on ({using}) * from batch anti join {table} using ({using}))
        """)
        numbers = connection.execute(
            f"select {table}.id from batch join {table} using ({using}) order by place"
        ).fetchnumpy()
    return np.asarray(numbers["id"], np.int32)


def insert(connection: DuckDBPyConnection, table: str, **columns: Iterable[Any]) -> None:
    """Append rows; ``None`` and what is masked become NULL."""
    if columns:
        with _registered(connection, **columns):
            connection.execute(f"insert into {table} by name select * from batch")


@contextmanager
def _registered(connection: DuckDBPyConnection, **columns: Iterable[Any]) -> Iterator[None]:
    """Columns as the table ``batch`` of queries."""
    arrays = {
        name: column if isinstance(column, np.ndarray) else np.fromiter(column, object)
        for name, column in columns.items()
    }
    connection.register("batch", arrays)
    try:
        yield
    finally:
        arrays.clear()  # DuckDB keeps what was registered until the transaction ends


def digest(*texts: str) -> str:
    """Return a text that changes with any of the texts."""
    value = hashlib.blake2b(digest_size=16)
    for text in texts:
        value.update(text.encode())
    return value.hexdigest()
