"""asv's own commands work on the generated benchmarks as its users know them.

``make test`` has one ``asv run`` of one case. A whole history is measured in ``.ci/run``, as cheap
tests have its rules: of wrong kernels tests/measure/test_wrong_kernels.py, of limits and missing
devices tests/measure/test_preparation.py, of commits and their order tests/results.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from asv_project import HISTORY, Project

NUMPY = "suites.vector_add__numpy.time_kernel"
NUMBA = "suites.vector_add__numba.time_kernel"
CUDA = "suites.vector_add__numba_cuda.time_kernel"
INCREMENT = ("suites.increment__numba.time_kernel", "suites.increment__numpy.time_kernel")
ALL = {NUMPY, NUMBA, CUDA, *INCREMENT}

NEWEST = "main^!"


def has_time(seconds: float | None) -> bool:
    return seconds is not None and math.isfinite(seconds)


def row_of(table: str, benchmark: str) -> str:
    """The line of a table of asv that is about a benchmark."""
    (row,) = (line for line in table.splitlines() if f"{benchmark}(" in line)
    return row


def test_asv_check_accepts_the_benchmarks(project: Project) -> None:
    assert "No problems found" in project.asv("check")


@pytest.mark.ci
def test_asv_run_as_it_is_measures_the_newest_commit(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("run")
    assert copy.has_result("mended")
    assert not copy.has_result("good")
    assert set(copy.result("mended")["results"]) == ALL


@pytest.mark.ci  # the test below has samples and --bench
def test_asv_run_quick_takes_one_sample_of_each_case_that_bench_asks_for(
    project: Project, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("run", "--quick", "--record-samples", "--bench", "vector_add", NEWEST)
    row = copy.result("mended")["results"][NUMBA]
    assert [len(samples) for samples in row["samples"]] == [1]
    assert set(copy.result("mended")["results"]) == {NUMPY, NUMBA, CUDA}
    assert {benchmark for benchmark, _ in copy.measured("mended")} == {NUMPY, NUMBA, CUDA}


def test_attributes_on_the_command_line_reach_the_benchmarks(
    project: Project, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("run", "-a", "repeat=4", "--record-samples", "--bench", "increment__numpy", NEWEST)
    row = copy.result("mended")["results"][INCREMENT[1]]
    assert [len(samples) for samples in row["samples"]] == [4]


@pytest.mark.thorough  # test_where_records_go.py has both methods keep the same record
def test_the_spawn_launch_method_works_too(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("run", "--quick", "--launch-method", "spawn", "--bench", "increment", NEWEST)
    assert all(map(has_time, copy.times("mended").values()))
    assert set(copy.result("mended")["results"]) == set(INCREMENT)


@pytest.mark.ci
def test_asv_run_over_a_range_measures_every_commit_of_it(history: Project) -> None:
    for tag in HISTORY:
        assert set(history.result(tag)["results"]) == ALL
        assert has_time(history.times(tag)[NUMPY, "n=16384"])


@pytest.mark.ci
def test_every_case_is_prepared_once_for_each_commit(history: Project) -> None:
    for tag in HISTORY:
        begun = history.measured(tag)
        assert len(begun) == len(set(begun)) == 2 + 4 + 2


@pytest.mark.ci
def test_a_wrong_kernel_gets_no_time_and_says_why(history: Project) -> None:
    assert history.times("wrong")[NUMBA, "n=16384"] is None
    outcome = history.outcome("wrong", NUMBA, "n=16384")
    assert outcome.status == "wrong"
    assert outcome.reason is not None
    assert outcome.reason.startswith(
        "differs from the baseline 'numpy': b: 1 of 16384 elements are off by more than "
    )


@pytest.mark.ci
def test_a_kernel_that_is_right_again_has_a_time_again(history: Project) -> None:
    assert has_time(history.times("mended")[NUMBA, "n=16384"])
    assert history.outcome("mended", NUMBA, "n=16384").status == "ok"


@pytest.mark.ci
def test_a_case_for_a_gpu_is_skipped_where_there_is_none(history: Project) -> None:
    case = "n=16384 block=128 device=cuda:0"
    outcome = history.outcome("good", CUDA, case)
    assert outcome.status == "skipped"
    assert outcome.reason is not None and "GPU" in outcome.reason
    seconds = history.times("good")[CUDA, case]
    assert seconds is not None and math.isnan(seconds)  # n/a, not failed


@pytest.mark.ci
def test_a_block_beyond_the_limit_is_skipped_and_the_limit_named(history: Project) -> None:
    (reason,) = {
        record.reason
        for record in history.records("good")
        if record.block == (2048, 1, 1) and record.status == "skipped" and record.grid[0] < 2**50
    }
    assert reason == (
        "block of 2048 threads: the limit is 1024 threads per block (every CUDA architecture); "
        "use a smaller block"
    )


@pytest.mark.ci
def test_a_grid_beyond_the_limit_is_skipped_and_the_limit_named(history: Project) -> None:
    (reason,) = {
        record.reason
        for record in history.records("good")
        if record.block == (128, 1, 1) and record.grid == (2**50, 1, 1)
    }
    assert reason is not None
    assert str(2**50) in reason and str(2**31 - 1) in reason


@pytest.mark.ci
def test_asv_continuous_reports_the_slowdown_and_fails(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    output = copy.asv(
        "continuous", "--bench", "vector_add__(numpy|numba)\\.", "good", "slower", code=1
    )
    assert "PERFORMANCE DECREASED" in output
    assert row_of(output, NUMBA).startswith("| + ")


@pytest.mark.ci
def test_asv_find_names_the_slower_commit_and_keeps_what_it_measured(
    project: Project, tmp_path: Path
) -> None:
    copy = project.copy(tmp_path / "toolkit")
    said = copy.asv("find", "start..main", NUMBA)
    slower = copy.git("rev-parse", "slower")[:8]
    assert f"Greatest regression found: {slower}" in said
    for tag in ("good", "slower", "mended"):
        assert {*copy.result(tag)["results"]} == {NUMBA}
        assert {benchmark for benchmark, _ in copy.measured(tag)} == {NUMBA}
    (shown,) = json.loads(
        copy.run(
            "gpubench", "query", "select count(distinct commit) as n from results", "--json"
        ).stdout
    )
    assert shown["n"] >= 3


@pytest.mark.ci
def test_asv_profile_runs_a_case_and_records_nothing(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    said = copy.asv("profile", rf"{NUMPY}\('n=16384'\)", "mended")
    assert "vector_add_numpy" in said
    assert not copy.has_record("mended")


@pytest.mark.ci
def test_asv_compare_shows_the_slowdown_and_the_failure(history: Project) -> None:
    slower = row_of(history.asv("compare", "good", "slower"), NUMBA)
    assert slower.startswith("| + ")
    assert float(re.split(r"\s*\|\s*", slower)[4]) > 5
    wrong = row_of(history.asv("compare", "good", "wrong"), NUMBA)
    assert wrong.startswith("| ! ")
    assert "failed" in wrong


@pytest.mark.ci
def test_asv_show_prints_the_times_of_a_commit(history: Project) -> None:
    output = history.asv("show", "mended")
    for benchmark in ALL:
        assert benchmark in output
    assert "n=16384" in output


@pytest.mark.ci
def test_asv_publish_writes_a_graph_for_each_benchmark(history: Project, tmp_path: Path) -> None:
    output = tmp_path / "html"
    history.asv("publish", "--html-dir", str(output))
    index = json.loads((output / "index.json").read_text())
    assert set(index["benchmarks"]) == ALL
    assert all(any(output.glob(f"graphs/**/{benchmark}.json")) for benchmark in ALL)


@pytest.mark.ci
def test_asv_shows_the_kernels_source_as_the_benchmarks_code(history: Project) -> None:
    assert "def vector_add_numba(a, b, n):" in history.benchmarks()[NUMBA]["code"]
