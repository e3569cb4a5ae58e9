"""Pools and clusters on the pages: workers as an axis, and what a start costs."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench.report.choose import chosen_pages
from gpubench.report.render import write_report
from gpubench.results import Table, open_table
from gpubench.tables.choices import choose_page

NARROW = "\N{NARROW NO-BREAK SPACE}"
BASELINE = {"baseline_benchmark": "suites.map__numpy.time_kernel", "baseline_case": "n=4"}


@pytest.fixture
def pools(tmp_path: Path) -> Table:
    """A map by one process, and by pools of one to four that need a second to start."""
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.time("suites.map__numpy.time_kernel", "n=4", 4.0)
    files.record("suites.map__numpy.time_kernel", "n=4", values={"n": 4}, sizes=("n",))
    for workers in (1, 2, 4):
        seconds = {"kernel": 4.0 / workers, "end_to_end": 5.0 / workers, "start": 1.0}
        for time, value in seconds.items():
            name, case = f"suites.map__pool.time_{time}", f"n=4 device=processes:{workers}"
            files.time(name, case, value)
            files.record(
                name, case, values={"n": 4}, sizes=("n",), device=f"processes:{workers}",
                conditions={"workers": workers}, **BASELINE,
            )  # fmt: skip
    files.write()
    return open_table(tmp_path)


def page(table: Table, directory: Path, name: str) -> str:
    site = write_report(table, directory / "html").parent
    html = (site / f"{name}.html").read_text(encoding="utf-8")
    return " ".join(unescape(html).split())


def test_a_kernel_shows_speedup_and_efficiency_over_workers(pools: Table, tmp_path: Path) -> None:
    html = page(pools, tmp_path, "kernel-map")
    part = html.partition('id="workers"')[2].partition("</section>")[0]
    assert "pool on processes<small>n=4</small>" in part
    assert "<b>2.00 s</b><small>2.00× (" in part
    assert "<small>100 %</small>" in part


def test_without_several_numbers_of_workers_nothing_is_said(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.time("suites.map__numpy.time_kernel", "n=4", 4.0).write()
    assert 'id="workers"' not in page(open_table(tmp_path), tmp_path, "kernel-map")


def test_choose_says_what_a_start_costs(pools: Table, tmp_path: Path) -> None:
    (chosen,) = chosen_pages(pools, ["map"], None, None)
    starts = {row.label: row.start for row in chosen.kernels[0].choices[0].rows}
    assert starts == {f"pool on processes:{n}": 1.0 for n in (1, 2, 4)}
    lines = [line.plain.strip() for line in choose_page(chosen)]
    assert lines.count(f"start of a fresh process: 1.00{NARROW}s") == 3
    html = page(pools, tmp_path, "choose")
    assert "Start: until a fresh process has its first result." in html
    assert '<td class="number">1.00 s</td>' in html
