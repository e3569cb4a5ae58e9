"""asv's benchmarks of memory and of tracked numbers, and what a report takes of its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from stored_asv_project import PAIR, PARAMETERS, write_benchmarks, write_format_2

from gpubench.asv_config import find_config
from gpubench.cli import main
from gpubench.report.render import view_models
from gpubench.results import open_table

PEAK, ERROR = "linalg.peakmem_norm", "linalg.track_error"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(PARAMETERS, PEAK, {})
    write_benchmarks(tmp_path / "results")
    for day in range(1, 4):
        values: dict[str, list[float | None]] = {
            PAIR.baseline: [1.0, 2.0, 3.0, 4.0],
            PEAK: [2**20 * day],
            ERROR: [None if day == 3 else -1.5 * (day - 1)],
        }
        write_format_2(tmp_path / "results", day, values)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_memory_and_numbers_have_pages_with_their_units(results: Path) -> None:
    pages = view_models(open_table(results))

    rows = {row["kernel"]["label"]: row for row in pages["index.html"]["matrix"]["rows"]}
    (cell,) = rows[PEAK]["cells"]
    assert cell["value"] == "3.00\u202fMiB"
    page = pages[rows[PEAK]["kernel"]["address"]]
    assert page["verdict"] == "3.00\u202fMiB at this commit."
    assert page["history"]["unit"] == "bytes"
    assert page["cases"][0]["row"]["value"] == 3 * 2**20
    assert page["cases"][0]["row"]["seconds"] is None


def test_a_benchmark_that_fails_keeps_its_chart_and_says_its_last_value(results: Path) -> None:
    pages = view_models(open_table(results))

    (page,) = (page for address, page in pages.items() if "track_error" in address)

    (series,) = page["history"]["series"]
    assert series["times"]["values"][:2] == [0, -1.5]
    assert "; the last value was -1.50" in series["sentence"]


def test_without_implementations_there_is_nothing_to_choose(results: Path) -> None:
    pages = view_models(open_table(results))

    assert not {"choose.html", "advise.html"} & pages.keys()
    links = pages["index.html"]["navigation"]["pages"]
    assert [link["label"] for link in links] == ["Changes", "Compare", "Machines and data"]


def test_with_pairs_the_others_stay(results: Path) -> None:
    table = open_table(results, pairs=[PAIR])

    names = {(name.kernel, name.implementation) for name in table.outline(table.setups[0]).names}
    assert {("norm", "baseline"), ("peakmem_norm", "time"), ("track_error", "time")} <= names


def test_what_benchmarks_json_does_not_list_is_named(results: Path) -> None:
    path = results / "benchmarks.json"
    content = json.loads(path.read_text())
    del content[PEAK]
    path.write_text(json.dumps(content))

    problems = open_table(results).problems

    message = f"{PEAK} is left out: it has results, and benchmarks.json does not list it"
    assert (problems[-1].path, problems[-1].message) == ("benchmarks.json", message)


def test_a_value_that_cannot_be_is_named_as_asv_names_its_benchmark(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {PAIR.baseline: [-1.0, 2.0, 3.0, 4.0]})

    said = [problem.message for problem in open_table(tmp_path).problems]

    assert f"{PAIR.baseline} is left out: -1.0 s is no time" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--results", "nosuch"], "there are no results: nosuch does not exist; run `asv run`"),
        (["--results", "empty"], "nothing in empty can be read; it holds no result file of asv"),
        (["--pair", "time_nosuch=x"], "pair time_nosuch=x: no time benchmark of 2 matches"),
    ],
)
def test_a_report_of_nothing_is_refused_and_leaves_the_old_one(
    results: Path, arguments: list[str], said: str
) -> None:
    Path("empty").mkdir()
    Path("html").mkdir()
    Path("html/index.html").write_text("the old one")

    result = run("report", "--output", "html", "--results", "results", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert Path("html/index.html").read_text() == "the old one"


def test_folders_and_links_are_those_of_asv_conf_json(results: Path) -> None:
    config = {"results_dir": "results", "html_dir": "site", "show_commit_url": "https://a.b/c/"}
    Path("asv.conf.json").write_text(json.dumps({"version": 1, **config}))

    result = run("report")

    assert result.exit_code == 0, result.output
    html = Path("site/gpubench/index.html").read_text(encoding="utf-8")
    assert 'href="https://a.b/c/' in html


def test_wrong_thresholds_are_told_and_others_count(tmp_path: Path) -> None:
    thresholds = {"time_a": 0.5, "time_(": 0.1, "time_b": "x"}
    path = tmp_path / "asv.conf.json"
    path.write_text(json.dumps({"regressions_thresholds": thresholds}))

    config = find_config(tmp_path / "results")

    assert config.thresholds == (("time_a", 0.5),)
    said = [fault.message for fault in config.faults]
    assert said[0].startswith("`regressions_thresholds` of 'time_(' is not used: ")
    assert said[1].endswith("'x' is no share; write one such as 0.1")


def test_a_repository_beside_the_store_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repository" / ".git").mkdir(parents=True)

    config = find_config(tmp_path / "repository" / "store" / "results")

    assert config.repository == tmp_path / "repository"
