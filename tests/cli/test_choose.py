"""``gpubench choose``, and pairs of an asv project from the command line."""

# ruff: noqa: RUF001 (multiplication signs and en dashes are printed)

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from full_kernel import write_full_kernel
from result_files import CommitFiles
from stored_asv_project import PAIR, write_benchmarks, write_format_1, write_format_2

from gpubench.cli import main

PAIRS = f"""\
version: 1
suite: sums
pairs:
  - {{name: norm, baseline: {PAIR.baseline}, candidate: {PAIR.candidate}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def asv_project(project: Path) -> Path:
    results = project / ".asv" / "results"
    write_benchmarks(results)
    values: dict[str, list[float | None]] = {
        PAIR.baseline: [8.0, 8.0, 8.0, 8.0],
        PAIR.candidate: [16.0, 2.0] * 4,
    }
    write_format_1(results, 1, values)
    write_format_2(results, 2, values)
    (project / "suites").mkdir()
    (project / "suites" / "sums.yaml").write_text(PAIRS)
    return project


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_it_prints_one_thing_a_line_however_narrow_the_terminal(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    write_full_kernel(project / ".asv" / "results")

    lines = run("choose").stdout.replace("\N{NARROW NO-BREAK SPACE}", " ").splitlines()

    assert lines[0] == "At the largest size numba_cuda is the fastest."
    assert lines[3:] == [
        "scale at cccccccc",
        "  arrays already where the implementation works:",
        "    numba_cuda at every size measured",
        "  arrays in host memory, copies included:",
        "    numpy up to n = 4,096",
        "    numba from n = 65,536 on; the border lies above n = 4,096",
        "  against the baseline:",
        "    numba on cpu: 3.99× (3.83–4.15×) at n = 16,777,216",
        "      faster from n = 65,536 on; the crossover lies above n = 4,096",
        "      copies: nothing is copied",
        "      compilation: 400 ms, repaid after 40 calls (38–42)",
        "    numba_cuda on cuda:0: 311× (299–324×), end to end 2.37× (2.28–2.47×)"
        " at n = 16,777,216",
        "      faster at every size measured, from n = 4,096 on",
        "      copies: the gain outlasts the copies",
        "      compilation: 250 ms, repaid after 19 calls (18–20)",
    ]


def test_a_kernel_without_any_time_has_its_name_above_the_reasons(project: Path) -> None:
    files = CommitFiles(project / ".asv" / "results", "a" * 40, 86_400)
    name = "suites.sort__numba.time_kernel"
    files.missing(name, "n=4").record(name, "n=4", "failed", reason="no module").write()

    lines = run("choose").stdout.splitlines()

    assert lines[-2:] == ["sort at aaaaaaaa", "  1 case failed: no module"]


def test_json_is_the_view_model_of_the_page(project: Path) -> None:
    write_full_kernel(project / ".asv" / "results")

    (page,) = json.loads(run("choose", "scale", "--json").stdout)
    report = json.loads(run("report", "--json").stdout)

    assert page["kernels"] == report["choose.html"]["kernels"]


def test_an_unknown_kernel_exits_with_2(project: Path) -> None:
    write_full_kernel(project / ".asv" / "results")

    result = run("choose", "scall", code=2)

    assert result.stderr == "gpubench: there are no results of 'scall'; did you mean 'scale'?\n"


def test_without_results_it_says_what_to_run(project: Path) -> None:
    assert "does not exist; run `asv run`" in run("choose", code=2).stderr


def test_pairs_of_an_asv_project_are_reported_without_a_new_run(asv_project: Path) -> None:
    models = json.loads(run("report", "--json").stdout)

    page = models["kernel-sums.norm.html"]
    assert page["verdict"].startswith("candidate reaches 4.00")
    assert len(page["history"]["commits"]) == 2


def test_pairs_have_a_choice_too(asv_project: Path) -> None:
    text = run("choose", "norm").stdout

    assert "candidate from n = 1,024 on; the border lies above n = 64" in text
    assert "not known of a pair" in text


def test_a_faulty_suite_is_a_warning_and_the_report_is_written(asv_project: Path) -> None:
    path = asv_project / "suites" / "sums.yaml"
    path.write_text(PAIRS.replace("candidate:", "candidates:"))

    result = run("report")

    assert "suites/sums.yaml:4" in result.stderr
    assert "warning: " in result.stderr
    assert (asv_project / "reports" / "html" / "index.html").exists()


def test_suites_may_stand_elsewhere(asv_project: Path) -> None:
    (asv_project / "suites").rename(asv_project / "pairs")

    models = json.loads(run("report", "--json", "--suites", "pairs").stdout)

    assert "kernel-sums.norm.html" in models


def test_times_of_an_unfinished_run_are_told(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 300_000).facts(run="18-300000")
    for name, seconds in (("numpy", 4.0), ("numba", 1.0)):
        benchmark = f"suites.add__{name}.time_kernel"
        files.record(benchmark, "n=4", "started", version="v1")
        files.record(benchmark, "n=4", values={"n": 4}, sizes=("n",), version="v1")
        files.rounds(benchmark, "n=4", *[seconds] * 6)
    files.write()

    assert (
        "Unfinished run: There are 2 times of a run that asv has not stored. "
        "Next: asv run --skip-existing"
    ) in run("choose").stdout
