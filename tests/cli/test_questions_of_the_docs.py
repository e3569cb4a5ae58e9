"""The SQL of ``docs/reading-the-report.md`` is answered by a store of several kinds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from stored_asv_project import PAIR, PARAMETERS, write_benchmarks, write_format_2

from gpubench.cli import main

DOCS = Path(__file__).parents[2] / "docs/reading-the-report.md"
QUESTIONS = re.findall(r"^```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.M)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PARAMETERS, "linalg.peakmem_norm", {})
        write_benchmarks(folder)
        for day in range(1, 13):
            slow = 1.0 if day < 7 else 3.0
            values: dict[str, list[float | None]] = {
                PAIR.baseline: [slow, 2.0 * slow, 10.0, None if day > 9 else 20.0],
                "linalg.track_error": [0.0],
                "linalg.peakmem_norm": [1000.0 * day],
            }
            write_format_2(folder, day, values)
    return folder


def answer(results: Path, sql: str) -> list[dict[str, object]]:
    run = CliRunner().invoke(main, ["query", "--results", str(results), "--json", sql])
    assert run.exit_code == 0, run.output
    rows: list[dict[str, object]] = json.loads(run.stdout)
    return rows


def test_there_are_ten() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_question_is_answered(results: Path, sql: str) -> None:
    rows = answer(results, sql)

    assert rows or "tags" in sql  # which need a repository


def test_changes_name_their_commit_and_that_they_last(results: Path) -> None:
    rows = answer(results, "select identity, round(factor) as factor, recovered from changes")

    slower = [row for row in rows if row["factor"] == 3]
    assert len(slower) == 2
    assert all(row["recovered"] is None for row in slower)


def test_changes_say_what_decided_and_whether_most_cases_share_them(results: Path) -> None:
    rows = answer(results, "select distinct basis, is_shared from changes where unit = 'seconds'")

    assert rows == [{"basis": "time", "is_shared": False}]


def test_changes_of_memory_have_their_unit_and_no_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARAMETERS, "linalg.peakmem_norm", {})
    results = tmp_path / "results"
    write_benchmarks(results)
    for day in range(1, 13):
        memory = 1000.0 if day < 7 else 2000.0
        error = 3.0 - day  # of which no ratio can be told
        values: dict[str, list[float | None]] = {
            "linalg.peakmem_norm": [memory],
            "linalg.track_error": [error],
        }
        write_format_2(results, day, values)

    (row,) = answer(
        results,
        "select kernel, direction, basis, unit, round(old_value) as old_value, "
        "round(new_value) as new_value, old_seconds from changes",
    )

    assert row == {
        "kernel": "peakmem_norm",
        "direction": "larger",
        "basis": "value",
        "unit": "bytes",
        "old_value": 1000.0,
        "new_value": 2000.0,
        "old_seconds": None,
    }
    html = tmp_path / "html"
    run = CliRunner().invoke(main, ["report", "--results", str(results), "--output", str(html)])
    assert run.exit_code == 0, run.output
    for name in ("index.html", "changes.html"):
        page = (html / name).read_text(encoding="utf-8")
        assert "2.00\N{MULTIPLICATION SIGN} larger" in page
        assert "1.95\N{NARROW NO-BREAK SPACE}KiB" in page
        assert "slower by" not in page


def test_changes_are_those_of_the_projects_thresholds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    write_benchmarks(results)
    for day in range(1, 13):
        slow = 1.0 if day < 7 else 1.03
        write_format_2(results, day, {PAIR.baseline: [slow, 2.0 * slow, 10.0, 3 * slow]})
    config = {"version": 1, "results_dir": "results", "regressions_thresholds": {".*": 0.02}}
    question = "select round(factor, 2) as factor from changes"

    without = answer(results, question)
    Path("asv.conf.json").write_text(json.dumps(config))
    smaller = answer(results, question)
    config["regressions_thresholds"] = {".*": 0.04}
    Path("asv.conf.json").write_text(json.dumps(config))

    assert without == answer(results, question) == []
    assert smaller == [{"factor": 1.03}] * 3


@pytest.mark.parametrize("view", ["results", "runs", "commits", "benchmarks", "changes", "counts"])
def test_no_column_has_a_reserved_name(results: Path, view: str) -> None:
    import duckdb

    reserved = duckdb.sql(
        "select keyword_name from duckdb_keywords() where keyword_category = 'reserved'"
    )
    names = {name for (name,) in reserved.fetchall()}

    run = CliRunner().invoke(main, ["query", "--results", str(results), "--json"])

    columns = {row["column"] for row in json.loads(run.stdout) if row["view"] == view}
    assert columns and not columns & names


def test_the_old_name_of_identity_works_in_quotes(results: Path) -> None:
    sql = (
        """with a as (select "case", value from results) select "case" from a where "case" != ''"""
    )

    rows = answer(results, sql)

    assert {row["case"] for row in rows} == {
        f"n={n} dtype={dtype}" for n in (64, 1024) for dtype in ("float32", "float64")
    }


def test_a_wide_table_shows_its_first_columns_and_says_so(results: Path) -> None:
    arguments = ["query", "--results", str(results), "select * from results limit 1"]

    short = CliRunner().invoke(main, arguments)
    whole = CliRunner().invoke(main, [*arguments, "--all-columns"])

    assert "more columns: name those to see" in short.stderr
    assert len(short.stdout.splitlines()[0].split()) == 16
    assert "warnings" in whole.stdout
