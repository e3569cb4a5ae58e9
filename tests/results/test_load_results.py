"""asv's files and the records beside them become rows; what cannot be read is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from result_files import CommitFiles, write_machine

from gpubench.errors import ResultsError
from gpubench.files import MAX_BYTES, TooLarge, read_regular
from gpubench.results import (
    CaseName,
    Problem,
    Row,
    Snapshot,
    Table,
    natural_order,
    open_table,
)

FIRST, SECOND = "a" * 40, "b" * 40
ADD = "suites.vector_add__numba.time_kernel"
CASE = "n=1024"
NAME = CaseName("vector_add", "vector_add", "numba", "kernel", CASE)


def commit(directory: Path, hash_: str = FIRST, date: int = 1_000) -> CommitFiles:
    return CommitFiles(directory, hash_, date)


def snapshots_of(table: Table) -> list[Snapshot]:
    """Oldest commit first."""
    return [snapshot for setup in table.setups for snapshot in table.snapshots(setup)]


def only_rows(table: Table) -> dict[CaseName, Row]:
    (snapshot,) = snapshots_of(table)
    return table.rows(snapshot)


def only_row(directory: Path) -> Row:
    rows = only_rows(open_table(directory))
    assert list(rows) == [NAME]
    return rows[NAME]


def test_a_time_comes_with_its_interval_quartiles_and_counts(tmp_path: Path) -> None:
    commit(tmp_path).time(ADD, CASE, 2e-3).write()

    row = only_row(tmp_path)

    assert (row.status, row.reason, row.recorded) == ("ok", None, False)
    assert row.seconds == pytest.approx(2e-3)
    ends = row.low, row.q25, row.seconds, row.q75, row.high
    assert list(ends) == sorted(ends)  # type: ignore[type-var]
    assert (row.runs_per_sample, row.samples, row.version) == (None, 10, "v1")


def test_a_single_sample_leaves_the_interval_unknown(tmp_path: Path) -> None:
    commit(tmp_path).time(ADD, CASE, 1.0, count=1).write()

    row = only_row(tmp_path)

    assert (row.seconds, row.low, row.high) == (1.0, None, None)


def test_the_record_gives_conditions_to_a_time(tmp_path: Path) -> None:
    commit(tmp_path).time(ADD, CASE, 1.0).record(ADD, CASE, "started").record(
        ADD, CASE, "ok", bytes=4096
    ).write()

    row = only_row(tmp_path)

    assert row.status == "ok"
    assert (row.recorded, row.bytes, row.bytes_per_second) == (True, 4096, 4096.0)


@pytest.mark.parametrize("status", ["wrong", "failed", "skipped"])
def test_a_status_of_the_record_hides_asv_s_time(tmp_path: Path, status: str) -> None:
    commit(tmp_path).time(ADD, CASE, 1.0).record(ADD, CASE, status, reason="because").write()

    row = only_row(tmp_path)

    assert (row.status, row.reason, row.seconds) == (status, "because", None)


def test_a_case_that_was_verified_in_software_has_no_time(tmp_path: Path) -> None:
    commit(tmp_path).time(ADD, CASE, 1.0).record(ADD, CASE, "verified", reason="because").write()

    row = only_row(tmp_path)

    assert (row.status, row.reason, row.seconds) == ("verified", "because", None)


def test_no_value_and_no_record_is_a_failure_with_the_next_step(tmp_path: Path) -> None:
    commit(tmp_path).missing(ADD, CASE).write()

    row = only_row(tmp_path)

    expected = "asv stored no value and there is no record; run `asv run --show-stderr`"
    assert (row.status, row.reason) == ("failed", expected)


def test_not_applicable_without_a_record_is_skipped(tmp_path: Path) -> None:
    commit(tmp_path).not_applicable(ADD, CASE).write()

    assert only_row(tmp_path).status == "skipped"


def test_wrong_in_one_round_of_a_run_outlives_a_later_ok(tmp_path: Path) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0).facts(run=7)
    files.record(ADD, CASE, "wrong", reason="differs").record(ADD, CASE, "ok").write()

    assert only_row(tmp_path).status == "wrong"


def test_a_failure_of_an_earlier_run_gives_way_to_a_later_one(tmp_path: Path) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0)
    files.facts(run=7).record(ADD, CASE, "failed", reason="out of memory")
    files.facts(run=8).record(ADD, CASE, "ok").write()

    assert only_row(tmp_path).status == "ok"


def test_a_failure_in_one_round_of_a_run_outlives_a_later_ok(tmp_path: Path) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0).facts(run=7)
    files.record(ADD, CASE, "failed", reason="out of memory").record(ADD, CASE, "ok").write()

    assert only_row(tmp_path).status == "failed"


def test_started_until_its_timeout_is_timed_out(tmp_path: Path) -> None:
    other = "n=2048"
    files = commit(tmp_path).missing(ADD, CASE).time(ADD, other, 1.0)
    files.record(ADD, CASE, "started", at="2026-03-01T10:00:00+00:00", timeout=60.0)
    files.record(ADD, other, "ok", at="2026-03-01T10:01:01+00:00").write()

    row = only_rows(open_table(tmp_path))[NAME]

    assert row.status == "timed_out"
    assert row.reason == (
        "started and never finished, most likely stopped by its timeout of 60 s; "
        "raise `timeout` under `sampling`, or make the case smaller"
    )


def test_started_and_gone_before_its_timeout_was_killed(tmp_path: Path) -> None:
    other = "n=2048"
    files = commit(tmp_path).missing(ADD, CASE).time(ADD, other, 1.0)
    files.record(ADD, CASE, "started", at="2026-03-01T10:00:00+00:00", timeout=60.0)
    files.record(ADD, other, "ok", at="2026-03-01T10:00:04+00:00").write()

    row = only_rows(open_table(tmp_path))[NAME]

    assert row.status == "killed"
    assert row.reason is not None
    assert "before its timeout of 60 s, most likely killed" in row.reason


def test_started_in_a_run_that_asv_never_stored_was_interrupted(tmp_path: Path) -> None:
    commit(tmp_path).record(ADD, CASE, "started", timeout=60.0).write()

    row = only_row(tmp_path)

    assert row.status == "killed"
    assert row.reason == (
        "asv was stopped before it stored a time; run `asv run --skip-existing-successful`"
    )


def test_values_of_an_older_version_are_another_history(tmp_path: Path) -> None:
    old = commit(tmp_path).time(ADD, CASE, 1.0)
    old.versions[ADD] = "v0"
    old.write()
    commit(tmp_path, SECOND, 2_000).time(ADD, CASE, 2.0).write()

    table = open_table(tmp_path)
    first, second = snapshots_of(table)

    assert (table.rows(first), first.superseded) == ({}, (ADD,))
    assert list(table.rows(second)) == [NAME]


def test_an_old_commit_measured_again_lately_decides_the_version(tmp_path: Path) -> None:
    again = commit(tmp_path).time(ADD, CASE, 1.0)
    again.versions[ADD], again.started_at = "v2", 9_000
    again.write()
    commit(tmp_path, SECOND, 2_000).time(ADD, CASE, 2.0).write()

    table = open_table(tmp_path)
    first, second = snapshots_of(table)

    assert list(table.rows(first)) == [NAME]
    assert second.superseded == (ADD,)


def test_benchmarks_of_others_stand_beside_those_of_suites(tmp_path: Path) -> None:
    commit(tmp_path).time("bench_io.Read.time_read", "x", 1.0).time(ADD, CASE, 1.0).write()

    table = open_table(tmp_path)

    other = CaseName("bench_io", "Read.time_read", "time", "kernel", "param1=x")
    assert list(only_rows(table)) == [other, NAME]
    assert table.problems == ()


def test_format_1_is_read(tmp_path: Path) -> None:
    write_machine(tmp_path, "runner")
    stats = {"ci_99": [0.9, 1.1], "q_25": 0.95, "q_75": 1.05, "number": 3, "repeat": 5}
    content = {
        "version": 1,
        "commit_hash": FIRST,
        "date": 1_000_000,
        "env_name": "py3.11",
        "params": {"machine": "runner"},
        "python": "3.11",
        "requirements": {},
        "results": {ADD: {"result": [1.0], "stats": [stats], "params": [[repr(CASE)]]}},
    }
    (tmp_path / "runner" / "aaaaaaaa-py3.11.json").write_text(json.dumps(content))

    row = only_row(tmp_path)

    assert (row.low, row.seconds, row.high, row.samples) == (0.9, 1.0, 1.1, 5)


DAMAGED = {
    "truncated.json": ('{"version": 2, "commit_h', "damaged or half-written, it is no JSON"),
    "list.json": ("[1, 2]", "not a file of asv: it holds a list"),
    "foreign.json": ('{"version": 2, "rows": []}', "not a result file of asv: "),
    "newer.json": ('{"version": 3}', "its format is 3; this release reads 1 and 2"),
    "empty.json": ("", "damaged or half-written, it is no JSON"),
    "nested.json": ("[" * 100_000, "damaged or half-written, it is no JSON"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_shown(
    tmp_path: Path, name: str
) -> None:
    commit(tmp_path).time(ADD, CASE, 1.0).write()
    content, message = DAMAGED[name]
    (tmp_path / "runner" / name).write_text(content)

    table = open_table(tmp_path)

    (problem,) = table.problems
    assert problem.path == f"runner/{name}"
    assert problem.message.startswith(message)
    assert len(snapshots_of(table)) == 1


def test_a_hash_that_is_none_is_refused_before_git_sees_it(tmp_path: Path) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0).write()
    content = json.loads(files.result_path.read_text())
    content["commit_hash"] = "--all"
    files.result_path.write_text(json.dumps(content))

    table = open_table(tmp_path, tmp_path)

    assert table.setups == ()
    assert [p.message for p in table.problems] == ["'--all' is no commit hash"]


def test_a_benchmark_of_other_shape_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    other = "suites.norm__numba.time_kernel"
    files = commit(tmp_path).time(ADD, CASE, 1.0).time(other, CASE, 1.0).write()
    content = json.loads(files.result_path.read_text())
    content["results"][other][1] = [["'n=1'"], ["2"]]
    files.result_path.write_text(json.dumps(content))

    table = open_table(tmp_path)

    assert list(only_rows(table)) == [NAME]
    (problem,) = table.problems
    assert problem.message.startswith(f"{other} is left out: it has parameters")


def test_a_half_written_line_of_a_record_is_named_and_the_others_count(tmp_path: Path) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0).record(ADD, CASE, "wrong", reason="differs")
    files.write()
    with files.record_path.open("a") as record:
        record.write('{"format": 1, "kind": "case", "bench')

    table = open_table(tmp_path)

    assert only_rows(table)[NAME].status == "wrong"
    (problem,) = table.problems
    assert problem.path.endswith(".gpubench.jsonl")
    assert problem.message.startswith("line 2 is left out: no line of a gpubench record")


@pytest.mark.parametrize(
    "fields", [{"status": "splendid"}, {"case": 3}, {"values": [1]}, {"sizes": "n"}]
)
def test_a_record_line_with_foreign_fields_is_left_out(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0).write()
    line = {"format": 1, "kind": "case", "benchmark": ADD, "case": CASE, "status": "ok", "at": ""}
    files.record_path.write_text(json.dumps(line | fields) + "\n")

    table = open_table(tmp_path)

    assert [problem.message for problem in table.problems] == [
        "line 1 is left out: a field holds what gpubench does not write"
    ]
    assert only_rows(table)[NAME].status == "ok"


def test_a_file_in_another_machine_s_folder_is_left_out(tmp_path: Path) -> None:
    files = commit(tmp_path).time(ADD, CASE, 1.0).write()
    files.result_path.rename(tmp_path / "aside.json")
    write_machine(tmp_path, "other")
    (tmp_path / "aside.json").rename(tmp_path / "other" / files.result_path.name)

    table = open_table(tmp_path)

    expected = "it is of the machine 'runner', in the folder of another"
    assert table.problems == (Problem(f"other/{files.result_path.name}", expected),)


def test_a_directory_that_does_not_exist_holds_no_results(tmp_path: Path) -> None:
    assert open_table(tmp_path / "none").setups == ()


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")

    with pytest.raises(ResultsError, match=r"is a file; give the directory, such as \.asv/results"):
        open_table(tmp_path / "results")


def test_a_file_whose_size_does_not_say_what_it_holds_is_read_whole_up_to_a_bound() -> None:
    path = Path("/proc/self/mountinfo")  # 0 bytes, by its size
    content = path.read_bytes()

    assert path.stat().st_size == 0 < len(content)
    assert read_regular(path, MAX_BYTES) == content
    with pytest.raises(TooLarge, match="it has 11 bytes; at most 10 are read"):
        read_regular(path, 10)


def test_no_two_cases_are_alike_in_their_order() -> None:
    names = [replace(NAME, case=case) for case in ("n=01", "n=1", "d=0.01", "d=0.1")]

    for given in (names, names[::-1]):
        ordered = [name.case for name in sorted(given, key=natural_order)]
        assert ordered == ["d=0.01", "d=0.1", "n=01", "n=1"]
