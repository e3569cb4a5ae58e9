"""The table's file saves reading, and never changes what a report says."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
import numpy as np
import pytest
from result_files import CommitFiles
from stored_asv_project import PAIR, write_benchmarks, write_format_2

from gpubench.errors import DamagedTable
from gpubench.results import ABSENT, Table, open_table, reading, schema, store, table_path
from gpubench.statuses import STATUSES
from gpubench.table_file import CACHE_FOLDER

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
DAY = 86_400


def write_commit(directory: Path, day: int) -> CommitFiles:
    """A commit with a case of every kind."""
    files = CommitFiles(directory, f"{day:x}" * 40, DAY * day)
    files.facts(numba=f"0.{day}", run=day, threads=2)
    baseline = {"baseline_benchmark": NUMPY, "baseline_case": "n=4"}
    files.time(NUMPY, "n=4", 2.0).record(NUMPY, "n=4").rounds(NUMPY, "n=4", 2.0, 2.1, 1.9)
    files.time(NUMBA, "n=4 block=1", 1.0 + day / 100)
    files.record(NUMBA, "n=4 block=1", **baseline, pair_ratios=(2.0, 2.1, 1.9), pair_rounds=(3,))
    files.missing(NUMBA, "n=4 block=2").record(NUMBA, "n=4 block=2", "failed", reason="no memory")
    files.not_applicable(NUMBA, "n=4 block=3")
    files.time(NUMBA, "n=4 block=4", 1.0, count=1).record(NUMBA, "n=4 block=4", "verified")
    files.record(NUMBA, "n=4 block=5", "started", timeout=60.0)
    files.missing(NUMBA, "n=4 block=6")
    files.record(NUMBA, "n=4 block=7", "skipped", reason="no device", max_abs_error=math.nan)
    return files.write()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for day in (1, 2, 3):
        write_commit(tmp_path / "results", day)
    return tmp_path / "results"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read, as they are."""
    read: list[str] = []
    one = reading._read

    def noted(number: int, files: reading.SnapshotFiles, *rest: Any) -> reading.SnapshotHead:
        read.append(files.name.rpartition("/")[2])
        return one(number, files, *rest)

    monkeypatch.setattr(reading, "_read", noted)
    return read


def kept(directory: Path) -> Table:
    return open_table(directory, path=table_path(directory))


def content(table: Table) -> str:
    """All that a table says, but for the numbers of its snapshots."""
    snapshots = [s for setup in table.setups for s in table.snapshots(setup)]
    rows = [
        (s.setup, s.commit, s.facts, s.params, s.measured_at, s.superseded, s.digest, table.rows(s))
        for s in snapshots
    ]
    histories = [
        (h.names, h.statuses.tolist(), h.times.tolist(), h.speedups.tolist(), h.baselines.tolist())
        for h in map(table.history, table.setups)
    ]
    table.close()
    return repr((rows, histories, table.commits, table.problems, table.machines))


def test_a_score_is_a_column_and_stays_over_reading(tmp_path: Path) -> None:
    results = tmp_path / "results"
    files = CommitFiles(results, "a" * 40, DAY).time(NUMPY, "n=4", 2.0).time(NUMPY, "n=8", 2.0)
    files.record(NUMPY, "n=4", score=0.125).record(NUMPY, "n=8").write()
    for _ in range(2):  # read, and kept
        table = kept(results)
        query = 'select "case", score from results order by 1'
        assert table.query(query)[1] == [("n=4", 0.125), ("n=8", None)]
        (rows,) = (table.rows(s) for setup in table.setups for s in table.snapshots(setup))
        assert [row.score for row in rows.values()] == [0.125, None]
        table.close()
    described = {name: meaning for _, name, _, meaning in kept(results).described()[1]}
    assert described["score"] == "what its outputs are worth, where the suite has a score"


def test_another_process_gets_the_same_table(directory: Path) -> None:
    table = kept(directory)
    other = pickle.loads(pickle.dumps(table))

    assert content(other) == content(table)


def test_histories_hold_what_the_rows_do(directory: Path) -> None:
    table = open_table(directory)
    history = table.history(table.setups[0])

    assert history.times.shape == (3, len(history.names), 3)
    for place, snapshot in enumerate(history.snapshots):
        rows = table.rows(snapshot)
        assert list(rows) == [n for n in history.names if n in rows], "in the same order"
        for index, name in enumerate(history.names):
            row, status = rows.get(name), history.statuses[index, place]
            seconds, low, high = history.times[:, index, place].tolist()
            ratio, least, most = history.speedups[:, index, place].tolist()
            if row is None:
                assert status == ABSENT
                continue
            assert STATUSES[status] == row.status
            assert (row.seconds is None) == math.isnan(seconds)
            assert row.seconds is None or row.seconds == seconds
            assert row.low is None or (row.low, row.high) == (low, high)
            assert (row.speedup is None) == math.isnan(ratio)
            assert row.speedup is None or row.speedup.low == least
            assert row.speedup is None or row.speedup.high == most
            against = history.baselines[index, place]
            assert (history.names[against] if against >= 0 else None) == row.baseline


def test_the_second_time_says_the_same_and_reads_nothing(directory: Path, reads: list[str]) -> None:
    in_memory = content(open_table(directory))
    first = content(kept(directory))
    reads.clear()

    second = content(kept(directory))

    assert first == in_memory
    assert second == in_memory
    assert reads == []


def test_only_what_is_new_or_has_changed_is_read(directory: Path, reads: list[str]) -> None:
    kept(directory).close()
    write_commit(directory, 4)
    changed = CommitFiles(directory, "2" * 40, DAY * 2)
    with changed.record_path.open("a") as record:
        record.write("half a li")
    removed = CommitFiles(directory, "3" * 40, DAY * 3)
    removed.result_path.unlink()
    removed.record_path.unlink()
    reads.clear()

    table = kept(directory)

    assert reads == ["22222222-virtualenv-py3.11", "44444444-virtualenv-py3.11"]
    assert [problem.message.partition(":")[0] for problem in table.problems] == [
        "line 9 is left out"
    ]
    assert content(table) == content(open_table(directory))


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 10))]
)
def test_after_any_changes_it_is_as_if_read_anew(tmp_path: Path, seed: int) -> None:
    chance, directory = random.Random(seed), tmp_path / "results"
    for _ in range(5):
        for _ in range(chance.randrange(1, 5)):
            files = write_commit(directory, chance.randrange(1, 10))
            what = chance.random()
            if what < 0.2:
                files.result_path.unlink()
            elif what < 0.4:
                files.record_path.unlink()
            elif what < 0.7:
                files.versions[NUMPY] = chance.choice(("v1", "v2"))
                files.started_at = DAY * chance.randrange(20)
                files.write()
            elif what < 0.8:
                files.result_path.unlink()
                files.record_path.unlink()
        assert content(kept(directory)) == content(open_table(directory))


def test_faults_are_named_the_second_time_too(directory: Path, reads: list[str]) -> None:
    folder = directory / "runner"
    (folder / "55555555-broken.json").write_text("{")
    (folder / "66666666-foreign.json").write_text(json.dumps({"version": 99}))
    first = kept(directory)
    first.close()
    reads.clear()

    assert kept(directory).problems == first.problems
    assert [problem.path for problem in first.problems] == [
        "runner/55555555-broken.json",
        "runner/66666666-foreign.json",
    ]
    assert reads == []


def test_huge_files_are_named_and_left_out(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CommitFiles(directory, "2" * 40, DAY * 2)
    size = files.record_path.stat().st_size
    assert max(size, files.result_path.stat().st_size) < 10_000
    with files.record_path.open("a") as record:
        record.write(" " * 10_000)
    monkeypatch.setattr("gpubench.results.asv_json.MAX_BYTES", 10_000)

    (problem,) = open_table(directory).problems

    assert problem.path == "runner/22222222-virtualenv-py3.11.gpubench.jsonl"
    assert problem.message == (
        f"it has {size + 10_000:,} bytes; at most 10,000 are read; move it away"
    )


def test_a_file_that_cannot_be_opened_is_tried_again(directory: Path, reads: list[str]) -> None:
    (directory / "runner" / "55555555-folder.json").mkdir()
    kept(directory).close()
    reads.clear()

    assert "it cannot be read" in kept(directory).problems[0].message
    assert reads == ["55555555-folder"]


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_format(path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("update meta set key = 'of another format'")


def without_a_table(path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("drop table versions")


def foreign(path: Path) -> None:
    path.unlink()
    with duckdb.connect(path) as connection:
        connection.execute("create table mine (x integer)")


def test_an_edit_that_keeps_size_and_moment_is_read(directory: Path, reads: list[str]) -> None:
    content(kept(directory))
    path = CommitFiles(directory, "1" * 40, DAY).result_path
    before = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    reads.clear()

    content(kept(directory))

    assert reads == [path.stem]


def no_database(path: Path) -> None:
    path.write_bytes(b"\x00" * 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [shorten, of_another_format, without_a_table, foreign, no_database]
)
def test_a_damaged_or_foreign_file_is_made_anew(
    directory: Path, reads: list[str], damage: Callable[[Path], None]
) -> None:
    expected = content(kept(directory))
    damage(table_path(directory))
    if damage is without_a_table:  # which nothing is asked of before a file changes
        os.utime(CommitFiles(directory, "1" * 40, DAY).result_path, ns=(1, 1))
        expected = content(open_table(directory))
    reads.clear()

    assert content(kept(directory)) == expected
    assert len(reads) == 3
    reads.clear()
    assert content(kept(directory)) == expected
    assert reads == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_TABLES", schema._TABLES.replace("missing varchar,", "missing varchar, extra double,")),
        ("DETAILS", {**schema.DETAILS, "score": "VARCHAR"}),
        ("_SOURCES", {**schema._SOURCES, "status": f"{[*STATUSES, 'lost']}[p.status + 1]"}),
    ],
)
def test_a_table_is_made_again_for_other_columns_and_statuses(
    directory: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    content(kept(directory))
    reads.clear()
    content(kept(directory))
    assert reads == []
    monkeypatch.setattr(schema, name, value)
    schema.schema.cache_clear()
    try:
        content(kept(directory))
    finally:
        schema.schema.cache_clear()

    assert len(reads) == 3


@pytest.mark.slow
@pytest.mark.parametrize("step", [120_000, pytest.param(40_000, marks=pytest.mark.thorough)])
def test_damage_that_shows_in_a_query_removes_the_file(directory: Path, step: int) -> None:
    """A part is read when it is asked for: by then who asks has answers of the old file."""
    for day in range(4, 16):
        write_commit(directory, day)
    expected = content(kept(directory))
    path = table_path(directory)
    good = path.read_bytes()
    removed = 0
    for place in range(20_000, len(good), step):  # behind its head
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        try:
            assert content(kept(directory)) == expected, "it was seen at once, or is of no use"
        except DamagedTable as error:
            assert str(error).startswith(f"{path} is damaged: ")
            assert not path.exists()
            removed += 1
            assert content(kept(directory)) == expected
    assert removed


def test_a_damaged_file_that_cannot_be_removed_is_given_up(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(path)

    table = kept(directory)
    monkeypatch.setattr(store, "_given_up", set())
    monkeypatch.setattr(store, "_remove", refuse)
    table._connection.close()
    with pytest.raises(DamagedTable, match="is damaged"):
        table.rows(table.snapshots(table.setups[0])[0])

    (problem,) = kept(directory).problems
    assert problem.message.startswith("it is damaged and cannot be removed; all results were read")


def test_what_was_left_beside_another_file_is_dropped(directory: Path) -> None:
    expected = content(kept(directory))
    path = table_path(directory)
    other = path.with_name("other.duckdb")
    leaving = (
        "import duckdb, os, sys; connection = duckdb.connect(sys.argv[1]);"
        "connection.execute('create table t as select 1'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", leaving, str(other)], check=True)
    left = path.with_name(f"{path.name}.wal")
    other.with_name("other.duckdb.wal").replace(left)

    assert content(kept(directory)) == expected
    assert not left.exists()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".wal"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_opened_and_said(
    directory: Path, suffix: str, make: Callable[[Path], None]
) -> None:
    expected = content(kept(directory))
    path = table_path(directory)
    place = path.with_name(f"{path.name}{suffix}")
    place.unlink(missing_ok=True)
    make(place)

    table = kept(directory)

    (problem,) = table.problems
    assert problem.message.startswith(
        f"it cannot be written: {place.name} is no file (a folder, a pipe or a device); remove it; "
    )
    assert content(table).replace(repr(table.problems), "()") == expected


def test_a_view_that_somebody_planted_reads_no_other_file(directory: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    kept(directory).close()
    with duckdb.connect(table_path(directory)) as connection:
        connection.execute(f"create view planted as select * from read_csv('{secret}')")

    table = kept(directory)

    with pytest.raises(Exception, match="file system operations are disabled"):
        table.query("select * from planted")


def test_other_pairs_make_it_anew(tmp_path: Path, reads: list[str]) -> None:
    write_benchmarks(tmp_path / "results")
    values = {PAIR.baseline: [8.0] * 4, PAIR.candidate: [4.0, None] * 4}
    write_format_2(tmp_path / "results", 1, values)
    directory, path = tmp_path / "results", table_path(tmp_path / "results")

    kept(directory).close()
    reads.clear()
    with_pair = open_table(directory, pairs=[PAIR], path=path)

    assert len(reads) == 1
    assert content(with_pair) == content(open_table(directory, pairs=[PAIR]))


def test_it_stands_beside_the_results_and_git_ignores_it(directory: Path) -> None:
    kept(directory).close()
    folder = directory.parent / ".gpubench-cache"

    assert table_path(directory).parent == folder
    assert (folder / ".gitignore").read_text() == "*\n"
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitignore",
        table_path(directory).name,
    ]


def test_where_it_cannot_be_written_all_is_read_and_said(directory: Path) -> None:
    (directory.parent / ".gpubench-cache").write_text("in the way")

    table = kept(directory)

    (problem,) = table.problems
    assert problem.path == f".gpubench-cache/{table_path(directory).name}"
    assert problem.message.startswith("it cannot be written: ")
    assert problem.message.endswith("; all results were read anew, and are not kept")
    history = table.history(table.setups[0])
    assert history.times.shape[2] == 3


OPENED_ELSEWHERE = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reading")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["reading", "writing"])
def test_while_another_process_has_it_open_nothing_is_lost(directory: Path, how: str) -> None:
    kept(directory).close()
    write_commit(directory, 4)
    command = [sys.executable, "-c", OPENED_ELSEWHERE, str(table_path(directory)), how]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout
    assert other.stdout.readline() == "open\n"

    table = kept(directory)
    other.communicate()

    assert [problem.message for problem in table.problems] == [
        "another process has it open; all results were read anew, and are not kept"
    ]
    assert table.history(table.setups[0]).times.shape[2] == 4
    table.close()
    assert kept(directory).problems == ()


def test_several_processes_read_it_at_once(directory: Path) -> None:
    first, second = kept(directory), kept(directory)

    assert first.problems == second.problems == ()
    assert content(first) == content(second)


def test_an_unchanged_file_is_not_written(directory: Path) -> None:
    kept(directory).close()
    os.utime(table_path(directory), ns=(0, 0))

    content(kept(directory))

    assert table_path(directory).stat().st_mtime_ns == 0


def test_what_is_read_by_several_processes_is_what_one_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 16):
        write_commit(tmp_path / "results", day)
    expected = content(open_table(tmp_path / "results"))
    monkeypatch.setattr(reading, "PARALLEL_READ_BYTES", 1)
    monkeypatch.setattr(reading, "BATCH", 10_000)

    assert content(open_table(tmp_path / "results")) == expected


def stop_at_batch(number: int, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin to make the table, and be interrupted before so many batches are in it."""
    insert, batches = store._insert, []

    def stopping(connection: duckdb.DuckDBPyConnection, batch: reading.Batch, shared: Any) -> None:
        batches.append(batch)
        if len(batches) == number:
            raise KeyboardInterrupt
        insert(connection, batch, shared)

    with monkeypatch.context() as stopped:
        stopped.setattr(store, "_insert", stopping)
        with pytest.raises(KeyboardInterrupt):
            kept(results)


def test_a_file_whose_making_was_stopped_is_made_anew(
    directory: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    expected = content(open_table(directory))
    monkeypatch.setattr(reading, "BATCH", 1)
    stop_at_batch(3, directory, monkeypatch)
    reads.clear()

    assert content(kept(directory)) == expected
    assert len(reads) == 3


@pytest.mark.slow
def test_a_file_whose_update_was_stopped_is_as_it_was(
    directory: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    def rows() -> object:
        with duckdb.connect(table_path(directory), read_only=True) as connection:
            return connection.execute("select count(*) from rows").fetchall()

    kept(directory).close()
    before = rows()
    monkeypatch.setattr(reading, "BATCH", 1)
    for day in (4, 5, 6):
        write_commit(directory, day)
    stop_at_batch(3, directory, monkeypatch)
    assert rows() == before

    reads.clear()
    assert content(kept(directory)) == content(open_table(directory))
    assert len(reads) == 3 + 6, "those that are new, and without the file all of them"


def test_a_batch_is_in_memory_until_it_is_in_the_table() -> None:
    """DuckDB keeps what was registered in a transaction until that ends: some 250 bytes of
    each row."""
    connection = duckdb.connect()
    connection.execute("create table numbers (number double); begin")
    numbers = np.arange(3.0)
    kept_there = weakref.ref(numbers)
    store.insert(connection, "numbers", number=numbers)
    del numbers
    assert kept_there() is None
    assert connection.execute("select number from numbers").fetchall() == [(0.0,), (1.0,), (2.0,)]


def test_who_reads_may_take_much_memory(directory: Path) -> None:
    """Up to a limit DuckDB would fail: it writes nothing to the disk where a file is read only."""
    with closing(kept(directory)) as table:
        (length,) = table.query("select len(list(range)) from range(20_000_000)")[1]  # 160 MB
    assert length == (20_000_000,)


ENDLESS = "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Asks for a Ctrl-C that comes while the next query runs."""
    timer = Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    yield timer.start
    timer.cancel()


def test_ctrl_c_ends_a_query(directory: Path, ctrl_c: Callable[[], None]) -> None:
    table = open_table(directory)
    # Of several threads another one may work, while this one waits for it and looks for no signal.
    table._connection = duckdb.connect(config={"threads": 1})
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        table.query(ENDLESS)


def test_ctrl_c_ends_an_update_and_is_no_damage(
    directory: Path, ctrl_c: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(directory).close()
    before = table_path(directory).stat().st_ino
    write_commit(directory, 4)
    monkeypatch.setattr(store, "_insert", lambda connection, *_: connection.execute(ENDLESS))
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
        kept(directory)
    monkeypatch.undo()

    assert table_path(directory).stat().st_ino == before
    table = kept(directory)
    assert len(table.snapshots(table.setups[0])) == 4


class Pressed:
    """Ctrl-C comes while a query asks for this value."""

    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


def test_ctrl_c_while_a_query_asks_python_is_no_damage(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(directory).close()
    before = table_path(directory).stat().st_ino
    write_commit(directory, 4)

    def interrupted(connection: duckdb.DuckDBPyConnection, *_: object) -> None:
        store.insert(connection, "meta", key=[Pressed()])

    monkeypatch.setattr(store, "_insert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kept(directory)

    assert table_path(directory).stat().st_ino == before


def test_the_name_of_the_file_is_that_of_the_results(tmp_path: Path) -> None:
    assert table_path(tmp_path / "a") != table_path(tmp_path / "b")
    assert table_path(tmp_path / "a").suffix == ".duckdb"
    assert CACHE_FOLDER == ".gpubench-cache"
