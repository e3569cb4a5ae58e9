"""`gpubench changes`: what changed, as a plain list."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main

NARROW_SPACE = "\u202f"
NUMBA = "suites.add__numba.time_kernel"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Write a case that becomes 1.8 times as slow, and then four times."""
    for place in range(36):
        files = CommitFiles(tmp_path / "results", f"{place:02x}" * 20, (place + 1) * 86_400)
        seconds = (1.0, 1.8, 7.2)[place // 12]
        files.time(NUMBA, "n=4", seconds).write()
    return tmp_path / "results"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_lasting_regression_names_its_largest_step_and_lists_its_chain(results: Path) -> None:
    (one,) = json.loads(run("changes", "--lasting", "--json", "--results", str(results)))

    assert one["factor"] == pytest.approx(7.2)
    assert one["commit"].startswith("1818")
    assert [step["commit"][:2] for step in one["chain"]] == ["0c", "18"]
    assert one["command"].startswith("gpubench since --good 17171717 --bad 18181818 add -a ")
    shown = run("changes", "--lasting", "--results", str(results))
    assert "at 0c0c0c0c, 4.00" in shown


def test_a_newest_value_that_is_off_its_level_stands_beside_the_level(results: Path) -> None:
    CommitFiles(results, "ff" * 20, 40 * 86_400).time(NUMBA, "n=4", 0.9).write()

    (one,) = json.loads(run("changes", "--lasting", "--json", "--results", str(results)))

    assert (one["now"], one["level"]) == (0.9, 7.2)
    shown = run("changes", "--lasting", "--results", str(results)).replace(NARROW_SPACE, " ")
    assert "900 ms (level 7.20 s)" in shown


def test_a_name_chooses_cases(results: Path) -> None:
    assert "0 lasting regressions" in run("changes", "no", "--lasting", "--results", str(results))


def test_the_file_of_the_table_has_what_queries_know(results: Path) -> None:
    path = run("query", "--path", "--results", str(results)).strip()

    with duckdb.connect(path, read_only=True) as connection:
        tables = {name for (name,) in connection.execute("show tables").fetchall()}
        assert {"changes", "commits", "benchmarks"} <= tables
        assert connection.execute("select count(*) from changes").fetchall() == [(2,)]
    asked = run("query", "select count(*) as n from changes", "--json", "--results", str(results))
    assert json.loads(asked) == [{"n": 2}]
