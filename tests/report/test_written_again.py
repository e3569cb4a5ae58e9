"""A report written again: the same bytes from what was kept, and no file touched without need."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_sample import write_sample
from result_files import CommitFiles

from gpubench.report.history_chart import MOST_ROWS
from gpubench.report.render import view_models, write_report
from gpubench.results import digests, load_results
from gpubench.results.cache import cache_path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_pages_from_the_cache_are_the_same_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    write_sample(results)
    cache = cache_path(results)
    write_report(load_results(results), tmp_path / "without")
    write_report(load_results(results, cache=cache), tmp_path / "first")
    monkeypatch.setattr(digests, "digest", None)  # nothing may be read into columns again

    write_report(load_results(results, cache=cache), tmp_path / "second")

    expected = contents(tmp_path / "without")
    assert contents(tmp_path / "first") == expected
    assert contents(tmp_path / "second") == expected


def test_files_that_hold_the_same_are_left_alone(tmp_path: Path) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    write_sample(results)
    write_report(load_results(results), site)
    before = {path: path.stat().st_ino for path in site.rglob("*") if path.is_file()}
    index = site / "index.html"
    index.write_text(index.read_text().replace("<h1>", "<h1>X"))
    untouched = index.stat().st_ino

    write_report(load_results(results), site)

    after = {path: path.stat().st_ino for path in site.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} == {index}
    assert index.stat().st_ino != untouched
    assert "<h1>X" not in index.read_text()


def test_the_table_of_a_long_history_has_its_newest_commits(tmp_path: Path) -> None:
    commits = MOST_ROWS + 3
    for day in range(commits):
        files = CommitFiles(tmp_path / "results", f"{day:08x}" * 5, 86_400 * (day + 1))
        files.time("suites.add__numpy.time_kernel", "n=4", 2.0)
        files.time("suites.add__numba.time_kernel", "n=4", 1.0).write()
    results = load_results(tmp_path / "results")

    history = view_models(results)["kernel-add.html"]["history"]
    page = (write_report(results, tmp_path / "html").parent / "kernel-add.html").read_text()

    assert history["listed"] == list(range(commits - 1, 2, -1))
    assert len(history["commits"]) == commits
    assert f"the newest first ({MOST_ROWS} of {commits})" in page
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert table.count("<tr>") == MOST_ROWS
