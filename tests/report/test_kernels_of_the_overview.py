"""Which rows and columns the table of kernels has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench.report.render import write_report
from gpubench.results import open_table

KERNELS = ("k10", "k1", "k2", "a11", "a9")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    add_commit(tmp_path / "results", "a" * 40, 86_400)
    return tmp_path / "results"


def add_commit(results: Path, commit: str, date: int) -> None:
    files = CommitFiles(results, commit, date)
    for kernel in KERNELS:
        for implementation, seconds in (("numpy", 2e-3), ("numba", 1e-3)):
            files.time(f"suites.{kernel}__{implementation}.time_kernel", "n=4", seconds)
    files.write()


def overview(results: Path, output: Path) -> str:
    return write_report(open_table(results), output).read_text()


def test_kernels_stand_in_the_order_of_their_numbers(results: Path, tmp_path: Path) -> None:
    page = overview(results, tmp_path / "html")

    named = re.findall(r'<th scope="row"><a href="kernel-([ak][0-9]+)', page)
    assert named == ["a9", "a11", "k1", "k2", "k10"]


def test_changes_have_a_column_from_the_second_commit_on(results: Path, tmp_path: Path) -> None:
    assert "Newest change" not in overview(results, tmp_path / "one")

    add_commit(results, "b" * 40, 172_800)

    page = overview(results, tmp_path / "two")
    assert page.count("Newest change") == 1
    assert page.count('<td class="size">none</td>') == len(KERNELS)


def test_kernels_are_filtered_by_the_tags_of_their_suite(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path / "results", "a" * 40, 86_400)
    for kernel, tags in (("k1", ("memory-bound", "stencil")), ("k2", ())):
        benchmark = f"suites.{kernel}__numpy.time_kernel"
        files.time(benchmark, "n=4", 1e-3).record(benchmark, "n=4", tags=tags)
    files.write()

    table = open_table(tmp_path / "results")
    page = write_report(table, tmp_path / "html").read_text()

    rows = re.findall(r'"tag":(\[[^]]*\])', page)
    assert rows == ['["memory-bound","stencil"]']  # and none of the other kernel
    _, found = table.query("select kernel, tags from results order by kernel")
    assert [*map(tuple, found)] == [("k1", ["memory-bound", "stencil"]), ("k2", [])]
