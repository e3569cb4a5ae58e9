"""``gpubench choose``, and pairs of an asv project from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "results"), str(HERE.parent / "report")]

from full_kernel import write_full_kernel  # noqa: E402
from stored_asv_project import PAIR, write_benchmarks, write_format_1, write_format_2  # noqa: E402

from gpubench.cli import main  # noqa: E402

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


def test_it_prints_words_and_a_table(project: Path) -> None:
    write_full_kernel(project / ".asv" / "results")

    lines = run("choose").stdout.splitlines()

    assert lines[0] == "At the largest size numba_cuda is the fastest."
    assert "    numba from n = 65,536 on; the border lies above n = 4,096" in lines
    assert any("repaid after 19 calls" in line for line in lines)


def test_json_is_the_view_model_of_the_page(project: Path) -> None:
    write_full_kernel(project / ".asv" / "results")

    (page,) = json.loads(run("choose", "scale", "--json").stdout)
    report = json.loads(run("report", "--json").stdout)

    assert page["kernels"] == report["choose.html"]["kernels"]


def test_an_unknown_kernel_exits_with_2(project: Path) -> None:
    write_full_kernel(project / ".asv" / "results")

    result = run("choose", "scall", code=2)

    assert result.stderr == "gpubench: no results of the kernel 'scall': there are scale\n"


def test_without_results_it_says_what_to_run(project: Path) -> None:
    assert "run `asv run`" in run("choose", code=2).stderr


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
