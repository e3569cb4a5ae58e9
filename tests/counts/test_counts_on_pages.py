"""Counts on the CPU from the record to the table and the page of a kernel."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from result_files import CommitFiles

from gpubench.record import LaunchRecord, LineRecord
from gpubench.report.render import view_models, write_report
from gpubench.results import Table, open_table

NUMBA = "suites.fill__numba.time_kernel"
CASE = "n=4"
MADE_BY = "numba 0.68.1, LLVM 22.1.0, haswell"
REASON = "cannot prove it is safe to reorder floating-point operations"


def work(**counts: int) -> LaunchRecord:
    totals = {"ir_instructions": 400, "load_bytes": 800, "flops_float64": 100, "flops_lanes_1": 100}
    line = {"ir_instructions": 390, "load_bytes": 800, "flops_float64": 100, "flops_lanes_1": 100}
    return LaunchRecord(
        kernel="sums.total",
        grid=(1, 1, 1),
        block=(1, 1, 1),
        counts=totals | counts,
        lines=(LineRecord("sums.py", 7, line, REASON), LineRecord("sums.py", 8, {"stores": 1})),
    )


def write(folder: Path, *commits: LaunchRecord, made_by: list[str] | None = None) -> Table:
    """One kernel on the CPU whose counts each commit has on record."""
    for number, launch in enumerate(commits):
        files = CommitFiles(folder, f"{number + 1:x}" * 40, 86_400 * (20_000 + number))
        files.facts()
        files.not_applicable(NUMBA, CASE).record(
            NUMBA, CASE, "verified", reason="no times", values={"n": 4}, sizes=("n",), flops=100
        )
        maker = made_by[number] if made_by else MADE_BY
        files.counts(NUMBA, CASE, launch, target="cpu", made_by=maker).write()
    return open_table(folder)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    grown = work(ir_instructions=800, load_bytes=801)
    return write(tmp_path_factory.mktemp("counted"), work(), grown)


@pytest.fixture(scope="module")
def page(table: Table) -> dict[str, Any]:
    model: dict[str, Any] = view_models(table)["kernel-fill.html"]["work"]
    return model


def test_the_table_has_counts_with_what_made_the_code(table: Table) -> None:
    sql = (
        "select distinct target, made_by, count, value from counts "
        "where count = 'load_bytes' order by value"
    )
    assert table.query(sql)[1] == [
        ("cpu", MADE_BY, "load_bytes", 800),
        ("cpu", MADE_BY, "load_bytes", 801),
    ]


def test_a_line_has_the_reason_of_llvm(table: Table) -> None:
    sql = "select distinct line, reason from count_lines order by line"
    assert table.query(sql)[1] == [(7, REASON), (8, None)]


def test_declared_work_stands_beside_counts_on_the_cpu(table: Table) -> None:
    sql = "select declared_flops, counted_flops, accessed_bytes from declared_work order by all"
    assert table.query(sql)[1] == [(100, 100, 800), (100, 100, 801)]


def test_the_page_shows_costs_of_the_cpu_and_no_bound_of_a_gpu(page: dict[str, Any]) -> None:
    (row,) = page["rows"]
    assert row["launch"] == f"one call, one thread, {MADE_BY}"
    cells = dict(zip(page["columns"], row["cells"], strict=True))
    assert (cells["LLVM instructions"], cells["Vectorized"]) == ("800", "0.0 %")
    assert row["bounds"] == []


def test_the_page_names_what_changed_and_not_what_moved_a_little(page: dict[str, Any]) -> None:
    assert [change["count"] for change in page["changes"]] == ["LLVM instructions"]


def test_the_page_says_beside_a_line_why_its_loop_is_not_vectorized(
    table: Table, tmp_path: Path
) -> None:
    pages = write_report(table, tmp_path / "html").parent
    markup = (pages / "kernel-fill.html").read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())
    assert f"(LLVM: {REASON}). To do: compile with fastmath={{'reassoc'}}" in text
    assert "Bytes moved" in text


def test_another_compiler_is_no_change(tmp_path: Path) -> None:
    makers = [MADE_BY, "numba 0.69.0, LLVM 23.1.0, haswell"]
    table = write(tmp_path, work(), work(ir_instructions=9_000), made_by=makers)
    assert view_models(table)["kernel-fill.html"]["work"]["changes"] == []
