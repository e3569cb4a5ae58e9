"""Counted work in the table of results: what a record says of launches, for SQL and for pages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles, launch

from gpubench.cli import main
from gpubench.record import CountsRecord, LaunchRecord, LineRecord, to_line
from gpubench.results import CaseName, KernelNames, Renames, open_table, table_path
from gpubench.results.table import Table

CUDA = "suites.add__numba_cuda.time_kernel"
CASE = "n=1024 block=256"
NAME = CaseName("add", "add", "numba_cuda", "kernel", CASE)
LOADS = {"global_load_requests": 32, "global_load_sectors": 128, "global_load_ideal_sectors": 128}


def counted(
    folder: Path, commit: str = "a", status: str = "verified", **how: object
) -> CommitFiles:
    files = CommitFiles(folder, commit * 40, 86_400 * (1 + ord(commit) - ord("a")))
    files.not_applicable(CUDA, CASE)
    files.record(CUDA, CASE, status, values={"n": 1024}, sizes=("n",))
    return files


def rows(table: Table, sql: str) -> list[tuple[object, ...]]:
    return table.query(sql)[1]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    files = counted(tmp_path)
    lines = {7: {"global_load_sectors": 64}, 8: {"global_store_sectors": 1}}
    first = launch(times=2, lines=lines, resources={"registers": 18}, **LOADS)
    second = launch("kernels.finish", block=32, lines={8: {"barriers": 1}}, barriers=4)
    files.counts(CUDA, CASE, first, second).write()
    return tmp_path


def test_every_count_is_a_row_of_its_launch(results: Path) -> None:
    found = rows(
        open_table(results),
        'select kernel, implementation, "case", model, launch, launch_kernel, launches, grid, '
        "block, architecture, count, value from counts order by launch, count",
    )

    first = ("add", "numba_cuda", CASE, 1, 1, "kernels.add", 2, [4, 1, 1], [256, 1, 1], "8.0")
    assert found == [
        (*first, "global_load_ideal_sectors", 256),
        (*first, "global_load_requests", 64),
        (*first, "global_load_sectors", 256),
        (*first, "registers", 18),
        ("add", "numba_cuda", CASE, 1, 2, "kernels.finish", 1, [4, 1, 1], [32, 1, 1], "8.0",
         "barriers", 4),
    ]  # fmt: skip


def test_a_line_counts_what_all_launches_did_there(results: Path) -> None:
    sql = "select launch_kernel, file, line, count, value from count_lines order by all"

    assert rows(open_table(results), sql) == [
        ("kernels.add", "kernels.py", 7, "global_load_sectors", 128),
        ("kernels.add", "kernels.py", 8, "global_store_sectors", 2),
        ("kernels.finish", "kernels.py", 8, "barriers", 1),
    ]


def test_a_snapshot_gives_its_counts_in_total(results: Path) -> None:
    table = open_table(results)
    (snapshot,) = table.snapshots(table.setups[0])

    counts = table.counts(snapshot)[NAME]

    assert counts.totals == {
        "global_load_requests": 64, "global_load_sectors": 256, "global_load_ideal_sectors": 256,
        "barriers": 4,
    }  # fmt: skip
    assert counts.kernels == ({"registers": 18}, None)
    assert [line.line for line in table.count_lines(snapshot, NAME)] == [7, 8, 8]


def test_a_case_without_counts_says_why(tmp_path: Path) -> None:
    counted(tmp_path).counts(CUDA, CASE, missing="it read out of bounds").write()
    table = open_table(tmp_path)

    assert rows(table, "select kernel, missing from missing_counts") == [
        ("add", "it read out of bounds")
    ]
    assert rows(table, "select * from counts") == []


@pytest.mark.parametrize("status", ["wrong", "failed", "timed_out", "killed"])
def test_what_gave_no_right_result_has_no_counts(tmp_path: Path, status: str) -> None:
    counted(tmp_path, status=status).counts(CUDA, CASE, launch(**LOADS)).write()
    table = open_table(tmp_path)

    assert rows(table, "select * from counts") == []
    assert table.counts(table.snapshots(table.setups[0])[0]) == {}


def test_counts_stay_where_a_later_run_takes_times(tmp_path: Path) -> None:
    files = counted(tmp_path).counts(CUDA, CASE, launch(**LOADS))
    files.facts(run="later").record(CUDA, CASE, "started").record(CUDA, CASE)
    files.time(CUDA, CASE, 1e-3).write()
    table = open_table(tmp_path)

    assert rows(table, "select status from results") == [("ok",)]
    assert rows(table, "select count(*) from counts") == [(3,)]


def test_the_last_counts_of_a_case_count(tmp_path: Path) -> None:
    files = counted(tmp_path).counts(CUDA, CASE, launch(barriers=1))
    files.counts(CUDA, CASE, launch(barriers=2)).write()

    assert rows(open_table(tmp_path), "select value from counts") == [(2,)]


def test_equal_counts_of_two_commits_are_one_profile(tmp_path: Path) -> None:
    for commit, first_line in (("a", 7), ("b", 9)):
        lines = {first_line: {"barriers": 1}}
        counted(tmp_path, commit).counts(CUDA, CASE, launch(barriers=1, lines=lines)).write()
    table = open_table(tmp_path)
    snapshots = table.snapshots(table.setups[0])

    profiles = table.counted(snapshots)[NAME]

    assert profiles[0] == profiles[1]
    assert [table.count_lines(snapshot, NAME)[0].line for snapshot in snapshots] == [7, 9]
    assert len(rows(table, "select * from counts")) == 2


def test_counts_of_another_version_of_the_benchmark_are_left_out(tmp_path: Path) -> None:
    for commit, version in (("a", "v1"), ("b", "v2")):
        files = counted(tmp_path, commit).counts(CUDA, CASE, launch(barriers=1))
        files.versions[CUDA] = version
        files.write()
    table = open_table(tmp_path)

    assert rows(table, 'select "commit"[:1] from counts') == [("b",)]
    assert [*table.counted(table.snapshots(table.measured[0]))[NAME]] == [1]


def test_counts_have_the_names_of_now(tmp_path: Path) -> None:
    counted(tmp_path).counts(CUDA, CASE, launch(barriers=1)).write()
    names = KernelNames("sums", "sum", {"numba_cuda": "tiled"}, {"n": "size"}, ("size",))
    table = open_table(tmp_path, renames=Renames({("add", "add"): names}))

    found = rows(table, 'select suite, kernel, implementation, "case" from counts')
    assert found == [("sums", "sum", "tiled", "size=1024 block=256")]


def test_a_kept_table_follows_the_record(results: Path) -> None:
    path = table_path(results)
    record = next(results.glob("*/*.jsonl"))

    def values() -> list[tuple[object, ...]]:
        table = open_table(results, path=path)
        try:
            assert table.is_kept
            return rows(table, "select value from counts where count = 'barriers'")
        finally:
            table.close()

    assert values() == values() == [(4,)]
    record.write_text(record.read_text().replace('"barriers": 4', '"barriers": 9'))
    os.utime(record, ns=(1, 1))
    assert values() == [(9,)]
    record.write_text("")
    assert values() == []


def test_the_query_command_lists_the_views_and_answers(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(results)

    def run(*arguments: str) -> list[dict[str, object]]:
        command = ["query", "--results", str(results), "--json", *arguments]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
        found: list[dict[str, object]] = json.loads(result.stdout)
        return found

    listed = run()
    by_view = {row["view"]: [each["column"] for each in listed if each["view"] == row["view"]]
               for row in listed}  # fmt: skip
    assert [*by_view] == [
        *("results", "benchmarks", "changes", "commits"),
        *("count_lines", "counts", "declared_work", "missing_counts", "runs"),
    ]
    assert all(row["meaning"] for row in listed)
    for view in by_view:
        for row in run(f"select * from {view}")[:1]:
            assert [*row] == by_view[view]
    sql = "select sum(value) as sectors from counts where count = 'global_load_sectors'"
    assert run(sql) == [{"sectors": 256}]


def test_declared_work_stands_beside_counted_work(tmp_path: Path) -> None:
    files = counted(tmp_path)
    files.record(
        CUDA, CASE, "verified", values={"n": 1024}, sizes=("n",), bytes=8192, flops=2048
    ).counts(CUDA, CASE, launch(times=2, flops_float32=512, special_functions=8, **LOADS)).write()

    columns = "declared_bytes, accessed_bytes, declared_flops, counted_flops, special_functions"
    (found,) = rows(
        open_table(tmp_path), f"select {columns}, are_bytes_off, are_flops_off from declared_work"
    )

    assert found == (8192, 8192, 2048, 1024, 16, False, True)


def test_without_declared_work_nothing_is_off(results: Path) -> None:
    assert rows(open_table(results), "select * from declared_work") == []


HOSTILE = "'); drop table rows; --\ud800<script>"


def test_hostile_names_are_text(tmp_path: Path) -> None:
    one = LaunchRecord(
        HOSTILE, (1, 1, 1), (1, 1, 1), counts={HOSTILE: 3},
        lines=(LineRecord(HOSTILE, 1, {HOSTILE: 3}),),
    )  # fmt: skip
    counted(tmp_path).counts(CUDA, CASE, one, missing=HOSTILE).write()
    table = open_table(tmp_path)
    clean = HOSTILE.replace("\ud800", "\ufffd")

    assert rows(table, "select launch_kernel, count, value from counts") == [(clean, clean, 3)]
    assert rows(table, "select file, count, value from count_lines") == [(clean, clean, 3)]
    assert rows(table, "select missing from missing_counts") == [(clean,)]
    assert len(rows(table, "select * from results")) == 1


@pytest.mark.parametrize(
    "broken",
    [
        launch(barriers=-1),
        launch(barriers=2**63),
        launch(times=2**40, barriers=2**40),
        launch(times=2**40, lines={1: {"barriers": 2**40}}),
        launch(resources={"registers": 2**70}),
    ],
)
def test_numbers_that_no_launch_has_are_left_out_with_their_line(
    tmp_path: Path, broken: LaunchRecord
) -> None:
    files = counted(tmp_path).write()
    with files.record_path.open("a") as record:
        record.write(to_line(CountsRecord(CUDA, CASE, 1, None, (broken,))))
    table = open_table(tmp_path)

    (problem,) = table.problems
    assert "a count that is not between 0 and" in problem.message
    assert rows(table, "select * from counts") == []
    assert len(rows(table, "select * from results")) == 1
