"""``gpubench query``: SQL over stored results."""

from __future__ import annotations

import csv
import json
import os
from io import StringIO
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.results import Table, table_path

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = CommitFiles(tmp_path / ".asv" / "results", "a" * 40, 86_400)
    files.time(NUMPY, "n=4", 4.0).record(NUMPY, "n=4", backend="numpy", device="cpu")
    files.time(NUMBA, "n=4 block=2", 2.0)
    against = {"baseline_benchmark": NUMPY, "baseline_case": "n=4"}
    files.record(
        NUMBA,
        "n=4 block=2",
        block=(2, 1),
        conditions={"threads": 3},
        runs_per_sample=500,
        **against,
    )
    files.rounds(NUMBA, "n=4 block=2", 1.9, 1.95, 2.0, 2.05, 2.1)
    files.write()
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["query", *arguments])


def rows(sql: str) -> list[dict[str, object]]:
    result = run("--json", sql)
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_a_query_over_the_view_gives_a_table(project: Path) -> None:
    result = run("select kernel, max(speedup) as best from results where speedup > 1 group by 1")

    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["kernel", "best"],
        ["add", "2"],
    ]


def test_the_view_has_what_a_report_shows_under_plain_names(project: Path) -> None:
    (row,) = rows("select * from results where implementation = 'numba'")

    assert (row["machine"], row["commit"], row["date"]) == (
        "runner",
        "a" * 40,
        "1970-01-02 00:00:00",
    )
    assert (row["status"], row["verdict"], row["seconds"], row["speedup"]) == ("ok", "faster", 2, 2)
    assert (row["low"], row["high"], row["rounds"]) == (1.9, 2.1, [1.9, 1.95, 2.0, 2.05, 2.1])
    assert (row["baseline"], row["baseline_case"], row["problem"]) == ("numpy", "n=4", "n=4")
    assert (row["block"], json.loads(str(row["conditions"]))) == ([2, 1], {"threads": 3})
    assert (row["samples"], row["runs_per_sample"], row["version"]) == (10, 500, "v1")
    assert "batch" not in row


def test_json_columns_are_looked_into_with_sql(project: Path) -> None:
    sql = "select conditions->>'threads' as threads from results where speedup is not null"

    assert rows(sql) == [{"threads": "3"}]


def strict(text: str) -> object:
    """Content of JSON as any reader takes it: without NaN, and with names that come once."""

    def refuse(word: str) -> object:
        raise AssertionError(f"{word} is not JSON")

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(found)) == len(found), found
        return dict(found)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


def test_numbers_that_json_has_not_are_texts_and_nulls_stay(project: Path) -> None:
    sql = (
        "select 'nan'::double a, 'inf'::float b, '-inf'::double c, null d, 1.5 e, "
        "[1, 'nan'::double] f, {'x': 'inf'::double} g, map {1: 'nan'::double} h"
    )
    assert strict(run("--json", sql).stdout) == [
        {
            "a": "NaN",
            "b": "Infinity",
            "c": "-Infinity",
            "d": None,
            "e": "1.5",
            "f": [1.0, "NaN"],
            "g": {"x": "Infinity"},
            "h": {"1": "NaN"},
        }
    ]


def test_columns_of_one_name_are_all_there(project: Path) -> None:
    sql = "select 1 a, 2 a, 'x' a, 3 a_1, 4 b, 5 a_1"
    assert strict(run("--json", sql).stdout) == [
        {"a": 1, "a_2": 2, "a_3": "x", "a_1": 3, "b": 4, "a_1_1": 5}
    ]
    header, values = run(sql).stdout.splitlines()
    assert (header.split(), values.split()) == (
        ["a", "a", "a", "a_1", "b", "a_1"],
        ["1", "2", "x", "3", "4", "5"],
    )
    assert run("--csv", sql).stdout == "a,a,a,a_1,b,a_1\n1,2,x,3,4,5\n"


def test_cells_stand_below_each_other_whatever_they_hold(project: Path) -> None:
    rows = "('数字', 1.25::double, null), (e'two\nlines', 10, '[bold]x')"
    sql = f"select * from (values {rows}) t(a, b, c)"
    assert run(sql).stdout.splitlines() == [
        "a         b  c",
        "数字   1.25",
        "two      10  [bold]x",
        "lines",
    ]
    assert run("select 1 a where false").stdout == "a\n"


def test_csv_has_the_names_of_the_columns_first(project: Path) -> None:
    result = run("--csv", "select implementation, seconds from results order by 2")

    lines = list(csv.reader(StringIO(result.stdout)))
    assert [line[0] for line in lines] == ["implementation", "numba", "numpy"]
    assert float(lines[1][1]) == pytest.approx(2.0)


def test_without_sql_every_column_is_told_with_its_meaning(project: Path) -> None:
    result = run("--json")

    listed = json.loads(result.stdout)
    columns = {row["column"]: row for row in listed if row["view"] == "results"}
    (row,) = rows("select * from results limit 1")
    assert list(columns) == list(row)
    assert all(column["meaning"] for column in columns.values())
    assert columns["speedup"]["meaning"] == "the baseline's seconds over the case's"


def test_the_file_is_named_for_a_notebook(project: Path) -> None:
    path = run("--path").stdout.strip()

    with duckdb.connect(path, read_only=True) as connection:
        assert connection.execute("select count(*) from results").fetchone() == (2,)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select kernl from results", 'Binder Error: Referenced column "kernl" not found'),
        ("delete from rows", "attached in read-only mode"),
        ("copy (select 1) to 'stolen.csv'", "file system operations are disabled"),
        ("install httpfs", "file system operations are disabled"),
        ("select", "Parser Error"),
    ],
)
def test_an_error_is_one_line(project: Path, sql: str, message: str) -> None:
    result = run(sql)

    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(project.glob("*.csv"))


def test_two_answers_at_once_are_refused(project: Path) -> None:
    assert run("--json", "--csv", "select 1").exit_code == 2
    assert run("--path", "select 1").exit_code == 2


def test_a_statement_without_rows_shows_none(project: Path) -> None:
    assert run("--json", "select * from results where false").stdout == "[]\n"


def test_text_in_square_brackets_is_shown_as_it_is(project: Path) -> None:
    result = run("select '[bold]' as \"[red]\"")

    assert result.stdout.split() == ["[red]", "[bold]"]


def test_faults_of_suites_are_warnings_and_the_results_are_shown(project: Path) -> None:
    (project / "suites").mkdir()
    (project / "suites" / "add.yaml").write_text("version: 1\nsuite: add\npairs: 1\n")

    result = run("--json", "select count(*) as n from results")

    assert json.loads(result.stdout) == [{"n": 2}]
    assert "suites/add.yaml:3:8: warning: " in result.stderr


def flip_bits(path: Path) -> None:
    """One in each block of DuckDB's, behind the heads of the file."""
    damaged = bytearray(path.read_bytes())
    for place in range(20_000, len(damaged), 4_096):
        damaged[place] ^= 4
    path.write_bytes(damaged)


def test_damage_that_a_query_comes_upon_makes_the_table_anew(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = 'select "case", seconds from results order by 1'
    expected = rows(sql)
    path = table_path(project / ".asv" / "results")
    query = Table.query

    def damaged(table: Table, sql: str) -> object:
        monkeypatch.undo()
        monkeypatch.chdir(project)
        table._connection.close()  # as DuckDB does itself where a file is damaged
        return query(table, sql)

    os.utime(path, ns=(0, 0))
    monkeypatch.setattr(Table, "query", damaged)
    result = run("--json", sql)

    assert json.loads(result.stdout) == expected
    assert result.stderr.startswith(f"{path} is damaged: ")
    assert result.stderr.endswith("; all results are read anew\n")
    assert path.stat().st_mtime_ns > 0


@pytest.mark.parametrize("command", [["query", "select * from results"], ["report", "--json"]])
def test_no_damage_is_seen_in_what_a_command_prints(project: Path, command: list[str]) -> None:
    expected = CliRunner().invoke(main, command).stdout
    flip_bits(table_path(project / ".asv" / "results"))

    result = CliRunner().invoke(main, command)

    assert (result.exit_code, result.stdout) == (0, expected)


def test_a_query_at_fault_leaves_the_table_alone(project: Path) -> None:
    rows("select 1 as one")
    path = table_path(project / ".asv" / "results")
    before = path.stat()

    result = run("select kernel::integer from results")

    assert result.exit_code == 2
    assert "Conversion Error" in result.stderr
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_first_parts_that_are_left_out_are_named_and_the_others_counted(project: Path) -> None:
    machine = next((project / ".asv" / "results").glob("*/"))
    for number in range(7):
        (machine / f"{number}{'b' * 7}-broken.json").write_text("{")

    said = run("select count(*) from results").stderr.splitlines()

    assert [line.partition("-broken.json: ")[1] != "" for line in said] == [True] * 5 + [False]
    assert said[-1] == "parts of the results that are left out: 2 more; the report lists all"


@pytest.mark.parametrize("sql", ["", " ", ";", "--", "-- only a remark", "/* so is this */ ;"])
def test_a_text_without_a_query_says_what_to_give(project: Path, sql: str) -> None:
    result = run("--", sql)

    assert result.exit_code == 2
    assert result.stderr == (
        f"gpubench: {sql!r} holds no query; give one such as "
        "'select * from results limit 10', or none to list the columns\n"
    )
