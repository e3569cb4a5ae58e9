"""``gpubench report`` over what asv stored: what became slower, what is wrong, what was skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asv_project import HISTORY, Project

pytestmark = pytest.mark.ci  # tests/report has its rules, with results written by hand

View = dict[str, Any]


def views(project: Project) -> View:
    """What the report's pages show, by the pages' names."""
    found: View = json.loads(project.run("gpubench", "report", "--json").stdout)
    return found


def series_of(page: View, implementation: str) -> View:
    (found,) = (s for s in page["history"]["series"] if s["implementation"] == implementation)
    return dict(found)


def cell_of(overview: View, kernel: str, implementation: str) -> View:
    matrix = overview["matrix"]
    (row,) = (row for row in matrix["rows"] if row["kernel"]["label"] == kernel)
    names = [column["name"] for column in matrix["columns"]]
    return dict(row["cells"][names.index(implementation)])


@pytest.fixture(scope="module")
def kernel_page(history: Project) -> View:
    return dict(views(history)["kernel-vector_add.html"])


@pytest.fixture(scope="module")
def wrong_is_newest(history: Project, tmp_path_factory: pytest.TempPathFactory) -> View:
    """The report as it was before the kernel was mended."""
    copy = history.copy(tmp_path_factory.mktemp("wrong") / "toolkit", results=True)
    for file in copy.results.glob(f"*/{copy.git('rev-parse', 'mended')[:8]}-*"):
        file.unlink()
    return views(copy)


def test_commits_are_in_the_order_of_the_repository(kernel_page: View) -> None:
    assert [commit["subject"] for commit in kernel_page["history"]["commits"]] == list(HISTORY)


def test_the_slower_commit_is_shown_and_is_no_step_yet(kernel_page: View) -> None:
    """One commit before and one after tell no step: that takes neighbours that agree."""
    series = series_of(kernel_page, "numba")
    newest_first = series["points"]
    by_tag = dict(zip(reversed(HISTORY), newest_first, strict=True))
    assert by_tag["slower"]["seconds"] / by_tag["good"]["seconds"] > 5
    assert not [change for change in series["changes"] if change["kind"] == "step"]


def test_the_page_of_few_commits_is_written(history: Project, tmp_path: Path) -> None:
    history.run("gpubench", "report", "--output", tmp_path / "html")
    text = (tmp_path / "html/kernel-vector_add.html").read_text()
    assert all(tag in text for tag in HISTORY)
    assert (tmp_path / "html/index.html").is_file()


def test_the_wrong_commit_has_no_time_and_no_speedup(kernel_page: View) -> None:
    newest_first = series_of(kernel_page, "numba")["points"]
    point = newest_first[list(reversed(HISTORY)).index("wrong")]
    assert point == {"seconds": None, "speedup": None, "status": "wrong"}


def test_the_mended_commit_has_a_speedup_again(kernel_page: View) -> None:
    point = series_of(kernel_page, "numba")["points"][0]
    assert point["status"] == "ok"
    assert point["speedup"]["low"] <= point["speedup"]["value"] <= point["speedup"]["high"]


def test_the_overview_of_a_wrong_commit_says_so_in_place_of_a_speedup(
    wrong_is_newest: View,
) -> None:
    overview = wrong_is_newest["index.html"]
    cell = cell_of(overview, "vector_add", "numba")
    assert (cell["status"], cell["speedup"]) == ("wrong", None)
    assert overview["counts"]["wrong"] == 1


def test_the_reason_of_a_wrong_result_is_shown(wrong_is_newest: View) -> None:
    (wrong,) = (r for r in wrong_is_newest["index.html"]["reasons"] if r["status"] == "wrong")
    assert wrong["examples"] == ["vector_add numba n=16384"]
    assert wrong["reason"].startswith("differs from the baseline 'numpy': b: 1 of 16384 elements")


def test_cases_for_a_gpu_are_skipped_and_every_reason_is_shown(kernel_page: View) -> None:
    reasons = [reason for reason in kernel_page["reasons"] if reason["status"] == "skipped"]
    assert sum(reason["count"] for reason in reasons) == 4
    text = "\n".join(reason["reason"] for reason in reasons)
    assert "GPU" in text
    assert "block of 2048 threads: the limit is 1024 threads per block" in text
    assert f"grid of {2**50}: the limit is {2**31 - 1} blocks along x" in text
    assert cell_of_launches(kernel_page) == {"skipped"}


def cell_of_launches(page: View) -> set[str]:
    (launches,) = page["launches"]
    return {row["status"] for rows in launches["rows"].values() for row in rows}


def test_no_file_of_asv_is_reported_as_damaged(history: Project) -> None:
    assert views(history)["index.html"]["problems"] == []
