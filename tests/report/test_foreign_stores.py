"""Reports of asv projects that know nothing of gpubench: times alone, and pairs by a pattern."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from generated_store import PAIRS, SHAPES, hashes, write_store
from result_files import CommitFiles
from stored_asv_project import PAIR, PARAMETERS, write_benchmarks, write_format_1, write_format_2
from stored_asv_project import commit_hash as stored_hash

from gpubench.cli import main
from gpubench.report import render, site
from gpubench.report.render import view_models, write_report
from gpubench.results import PairPattern, Table, open_table, reading

VALUES = {PAIR.baseline: [1.0, 2.0, 10.0, 20.0], PAIR.candidate: [2.0, 5.0, 1.0, 2.5] * 2}
DOCS = Path(__file__).parents[2] / "docs/reading-the-report.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As numpy-bench, small: two environments, 24 files, some in asv's older format."""
    results = tmp_path_factory.mktemp("store") / "results"
    shape = SHAPES["numpy"].part(0.04)
    shape = replace(shape, files=24, environments=shape.environments[:2], series=400)
    assert write_store(shape, hashes(15), results) == 24
    return results


def by_pattern(results: Path) -> Table:
    baseline, _, candidate = PAIRS.rpartition("=")
    return open_table(results, pairs=[PairPattern("", baseline, candidate)])


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_every_time_of_a_store_is_in_the_report(store: Path) -> None:
    table = open_table(store)
    described = json.loads((store / "benchmarks.json").read_text())
    del described["version"]
    versions = {name: of["version"] for name, of in described.items() if of["type"] == "time"}

    pages = view_models(table)

    assert all("benchmarks.json does not list it" in one.message for one in table.problems)
    assert len(table.setups) == 2
    shown = {row["kernel"]["label"] for row in pages["index.html"]["matrix"]["rows"]}
    assert shown == {*versions}
    for setup in table.setups:
        for snapshot in table.snapshots(setup):
            path = f"{setup.machine}/{snapshot.commit.hash[:8]}-{setup.environment}.json"
            assert seconds_in(json.loads((store / path).read_text()), versions) == sorted(
                row.seconds for row in table.rows(snapshot).values() if row.seconds is not None
            )


def seconds_in(content: dict[str, Any], versions: Mapping[str, str]) -> list[float]:
    """All times of these versions in a result file, of either format."""
    is_old, results = content["version"] == 1, content["results"]
    stored = {name: of[2] for name, of in results.items()} if not is_old else {}
    stored |= content.get("benchmark_version", {})
    of_benchmarks = [
        of["result"] if is_old else of[0]
        for name, of in results.items()
        if versions.get(name) == stored[name]
    ]
    values = [value for of_benchmark in of_benchmarks for value in of_benchmark]
    return sorted(value for value in values if value is not None and value == value)


def test_no_page_without_pairs_speaks_of_speedups_or_baselines(tmp_path: Path) -> None:
    write_benchmarks(tmp_path / "results")
    for day in range(1, 13):
        slower = 1.0 if day < 7 else 3.0
        times = {name: [slower * value for value in of] for name, of in VALUES.items()}
        (write_format_1 if day < 3 else write_format_2)(tmp_path / "results", day, times)

    pages = view_models(open_table(tmp_path / "results"))

    first = pages["index.html"]
    assert first["verdict"].startswith("No lasting regression in 12 cases over 12 commits")
    assert first["counts"] == {"time only": 12}
    assert [row["cells"][0]["is_baseline"] for row in first["matrix"]["rows"]] == [True, True]
    (page,) = (page for address, page in pages.items() if "time_numpy" in address)
    assert page["verdict"].startswith("From 3")
    assert page["history"]["series"][0]["sentence"].startswith("time: ")
    assert len(page["history"]["series"][0]["changes"]) == 1
    assert page["rooflines"] == {"devices": [], "missing": []}
    assert not {"choose.html", "advise.html"} & pages.keys()
    assert pages["compare.html"]["verdict"].endswith("no case is known to have changed.")
    (commit,) = pages["changes.html"]["commits"]
    assert [row["claim"] for row in commit["shared"]] == ["12 of 12 cases changed alike"]
    assert commit["rows"] == []
    assert not re.search(r"baseline became|speedups? of", json.dumps(pages["changes.html"]))


@pytest.mark.parametrize("opened", [pytest.param(open_table, marks=pytest.mark.ci), by_pattern])
def test_a_store_read_and_shown_in_small_parts_gives_the_same_report(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    monkeypatch.setattr(render, "code_stamp", lambda: "whatever is changed meanwhile")
    with closing(opened(store)) as table:
        expected = contents(write_report(table, tmp_path / "at-once").parent)
    monkeypatch.setattr(reading, "BATCH", 100_000)
    monkeypatch.setattr(reading, "MAX_DETAILS", 100)
    monkeypatch.setattr(site, "MAX_CELLS_IN_MEMORY", 60)

    with closing(opened(store)) as table:
        found = contents(write_report(table, tmp_path / "in-parts").parent)

    assert found == expected


def test_a_pattern_pairs_the_benchmarks_of_a_store(store: Path) -> None:
    table = by_pattern(store)

    rows = [row for s in table.snapshots(table.setups[0]) for row in table.rows(s).values()]

    assert all("benchmarks.json does not list it" in one.message for one in table.problems)
    paired = [row for row in rows if row.name.implementation != "time"]
    assert {row.name.implementation for row in paired} == {"baseline", "candidate"}
    assert sum(row.speedup is not None for row in paired) > len(paired) / 3


def test_names_of_benchmarks_lead_to_no_file_outside_the_report(tmp_path: Path) -> None:
    names = ["../../x.time_y", "a/b.time_c", "m.time_" + "n" * 300, "a.time_b", "A.time_b"]
    results, output = tmp_path / "results", tmp_path / "a" / "b" / "html"
    described = {n: {"name": n, "type": "time", "param_names": [], "params": []} for n in names}
    results.mkdir()
    (results / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setitem(PARAMETERS, name, {})
        write_format_2(results, 1, {name: [1.0] for name in names})

    write_report(open_table(results), output)

    assert len({path.name.lower() for path in output.glob("kernel-*.html")}) == len(names)
    outside = {p for p in tmp_path.rglob("*.html") if not p.is_relative_to(output)}
    assert outside == set()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of benchmarks that are called as in the documentation."""
    monkeypatch.chdir(tmp_path)
    names = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", DOCS.read_text(), re.MULTILINE)
    assert len(names) == 2
    for number, name in enumerate(name for pair in names for name in pair):
        monkeypatch.setitem(PARAMETERS, name, {})
        VALUES_OF_DOCS[name] = [4.0 / (1 + number % 2)]
    write_format_2(tmp_path / "results", 1, VALUES_OF_DOCS)
    return tmp_path


VALUES_OF_DOCS: dict[str, list[float | None]] = {}


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_the_documented_commands_give_the_documented_pairs(project: Path) -> None:
    (command,) = re.findall(r"^gpubench report .*--pair.*$", DOCS.read_text(), re.MULTILINE)
    _, *arguments = shlex.split(command.replace("DIR", "results"))
    short = re.findall(r"`(time_cpu_\S+=\S+)`", DOCS.read_text())

    first = json.loads(run(*arguments, "--json").stdout)
    other = json.loads(run("report", "--results", "results", "--pair", *short, "--json").stdout)

    rows = {row["kernel"]["label"]: row for row in first["index.html"]["matrix"]["rows"]}
    assert {name: row["cells"][1]["speedup"]["value"] for name, row in rows.items()} == {
        "bench_cuda.Sort.time_cpu_all": 2.0,
        "bench_cuda.Sum.time_cpu_axis": 2.0,
    }
    assert other["index.html"]["matrix"] == first["index.html"]["matrix"]


def test_patterns_of_a_suite_are_the_same(project: Path) -> None:
    (yaml,) = re.findall(r"```yaml\n(version: 1\nsuite: sums\n.*?)```", DOCS.read_text(), re.DOTALL)
    (project / "suites").mkdir()
    (project / "suites/sums.yaml").write_text(yaml)

    assert run("check").exit_code == 0
    pages = json.loads(run("report", "--results", "results", "--json").stdout)

    labels = [row["kernel"]["label"] for row in pages["index.html"]["matrix"]["rows"]]
    assert labels == [
        "sums.bench_cuda.Sort.time_cpu_all", "sums.bench_cuda.Sum.time_cpu_axis",
    ]  # fmt: skip


def test_a_suite_with_a_wrong_pattern_is_refused_with_its_place(project: Path) -> None:
    (project / "suites").mkdir()
    text = "version: 1\nsuite: sums\npairs:\n  - {baseline: 'time_(', candidate: x}\n"
    (project / "suites/sums.yaml").write_text(text)

    said = run("check", code=2)

    assert "suites/sums.yaml:4:16: 'time_(' is no regular expression" in said.output


def test_what_a_pattern_misses_is_told_at_the_terminal(project: Path) -> None:
    pattern = r"time_gpu_(.*)=time_cuda_\1"
    said = run("report", "--results", "results", "--pair", pattern, code=2).stderr

    assert "pair time_gpu_(.*)=time_cuda_" in said
    assert "no time benchmark of 4 matches 'time_gpu_(.*)'" in said
    assert not (project / "reports").exists()


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("time_(=x", "is no regular expression"), ("time_a", "not two parts with '=' between")],
)
def test_a_wrong_pattern_is_refused(project: Path, pattern: str, words: str) -> None:
    said = run("report", "--results", "results", "--pair", pattern, code=2)

    assert words in re.sub(r"\s+", " ", said.output)
    assert not (project / "reports").exists()


def test_an_environment_of_which_nothing_is_measured_today_stands_last(tmp_path: Path) -> None:
    at = "suites.add__numpy.time_kernel"
    for letter, day, python, version in (("a", 2, "3.11", "v0"), ("b", 1, "3.12", "v1")):
        environment = f"virtualenv-py{python}"
        files = CommitFiles(tmp_path / "results", letter * 40, day * 86_400, "runner", environment)
        files.versions[at], files.started_at = version, (9 - day) * 86_400.0
        files.time(at, "n=4", 1.0).write()
    table = open_table(tmp_path / "results")

    write_report(table, tmp_path / "html")

    assert [setup.environment for setup in table.setups] == [
        "virtualenv-py3.11",
        "virtualenv-py3.12",
    ]
    first = (tmp_path / "html/index.html").read_text()
    last = (tmp_path / "html/index--runner-virtualenv-py3.11.html").read_text()
    assert "No speedup can be stated for 1 kernel" in first
    assert "Nothing is known at aaaaaaaa on runner of what is measured today." in last
    assert "What add measured has changed since" in last


def test_comparisons_and_exports_name_benchmarks_as_asv_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["ocean.Grid.time_step", "ocean.Grid.mem_mesh"]
    for name in names:
        monkeypatch.setitem(PARAMETERS, name, {})
    write_benchmarks(Path("results"))
    for day in (1, 2):
        write_format_2(Path("results"), day, {name: [float(day)] for name in names})
    one, other = (stored_hash(day) for day in (1, 2))

    (compared,) = json.loads(run("compare", one, other, "--results", "results", "--json").stdout)
    exported = json.loads(run("export", "--results", "results", "--format", "bencher").stdout)

    assert [row["benchmark"] for row in compared["cases"]] == names[:1]
    assert names[0] in exported
    shown = run("compare", one, other, "--results", "results", "--all").stdout
    assert "ocean.Grid.time_step" in shown
    assert "suites." not in shown


def test_a_comparison_names_commands_that_an_asv_project_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "ocean.Grid.time_step"
    monkeypatch.setitem(PARAMETERS, name, {})
    write_benchmarks(Path("results"))
    for day in (1, 2):
        write_format_2(Path("results"), day, {name: [float(day)]})
    one, other = (stored_hash(day)[:8] for day in (1, 2))

    shown = run("compare", one, other, "--results", "results").stdout
    page = view_models(open_table(Path("results")))["compare.html"]

    command = f"asv continuous {one} {other} -a rounds=4 --interleave-rounds --bench NAME"
    for words in (" ".join(shown.split()), json.dumps(page)):
        assert command in words and "`asv run -a rounds=4` takes four" in words
        assert not [word for word in ("--measure", "KERNEL", "sampling:") if word in words]


def test_what_asvs_benchmarks_share_is_said_without_threads_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"ocean.Grid.time_{number}" for number in range(40)]
    for name in names:
        monkeypatch.setitem(PARAMETERS, name, {})
    write_benchmarks(Path("results"))
    for day, factor in ((1, 1.0), (2, 1.4)):
        write_format_2(Path("results"), day, {name: [factor] for name in names})
    one, other = (stored_hash(day) for day in (1, 2))

    shown = " ".join(run("compare", one, other, "--results", "results").stdout.split())

    assert "faster together: times from 10 µs on 1.40" in shown


def test_the_newest_change_of_memory_is_larger_and_not_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ocean.Grid.mem_mesh"
    monkeypatch.setitem(PARAMETERS, name, {})
    write_benchmarks(tmp_path)
    for day in range(1, 13):
        write_format_2(tmp_path, day, {name: [1000.0 if day < 7 else 3000.0]})

    page = view_models(open_table(tmp_path))["index.html"]

    (row,) = (row for row in page["matrix"]["rows"] if "mem_mesh" in row["kernel"]["label"])
    assert (row["change"]["direction"], row["change"]["is_worse"]) == ("larger", True)
