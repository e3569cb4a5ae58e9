"""A report written again: the same bytes from what was kept, and no file touched without need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_sample import write_sample
from result_files import CommitFiles
from stored_asv_project import PAIR, write_benchmarks, write_format_2

from gpubench import parallel
from gpubench.analysis.history import SetupHistory
from gpubench.errors import GpubenchError
from gpubench.report import changes, choose, kernel, overview, render, written
from gpubench.report.history_chart import MOST_ROWS
from gpubench.report.render import view_models, write_report
from gpubench.results import Pair, digests, load_results
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


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which views were made: setup and page."""
    found: list[str] = []
    monkeypatch.setattr(render, "MANY", sys.maxsize)  # what forks make is not seen here
    for module in (kernel, overview, changes, choose):
        monkeypatch.setattr(module, "build", noting(module.build, module.__name__, found))
    return found


def noting(build: Callable[..., Any], module: str, found: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        history = next(each for each in arguments if isinstance(each, SetupHistory))
        found.append(f"{module.rpartition('.')[2]} {history.setup.machine}")
        return build(*arguments)

    return noted


def on_two_machines(directory: Path, days: range, *machines: str) -> None:
    for machine in machines:
        for day in days:
            files = CommitFiles(directory, f"{day:08x}" * 5, 86_400 * (day + 1), machine=machine)
            files.time("suites.add__numpy.time_kernel", "n=4", 2.0)
            files.time("suites.add__numba.time_kernel", "n=4", 1.0).write()


def report(folder: Path, overrides: Path | None = None) -> Path:
    results = load_results(folder / "results", cache=cache_path(folder / "results"))
    return write_report(results, folder / "html", overrides).parent


def test_a_page_is_made_again_only_where_its_sources_changed(
    tmp_path: Path, built: list[str]
) -> None:
    on_two_machines(tmp_path / "results", range(3), "a", "b")
    report(tmp_path)
    assert sorted(built) == [
        "changes a", "changes b", "choose a", "choose b",
        "kernel a", "kernel b", "overview a", "overview b",
    ]  # fmt: skip

    built.clear()
    report(tmp_path)
    assert built == []

    on_two_machines(tmp_path / "results", range(3, 4), "b")
    pages = contents(report(tmp_path))
    assert sorted(built) == ["changes b", "choose b", "kernel b", "overview a", "overview b"]

    assert contents(write_report(load_results(tmp_path / "results"), tmp_path / "anew").parent) == (
        pages
    )


def test_choices_are_made_again_where_another_machine_has_more_to_choose_from(
    tmp_path: Path, built: list[str]
) -> None:
    results = tmp_path / "results"
    on_two_machines(results, range(3), "a", "b")
    report(tmp_path)
    built.clear()
    files = CommitFiles(results, f"{3:08x}" * 5, 86_400 * 4, machine="b")
    files.time("suites.add__numpy.time_kernel", "n=4", 2.0)
    files.time("suites.add__cuda.time_kernel", "n=4", 1.0).write()

    pages = contents(report(tmp_path))

    assert {"choose a", "choose b"} <= set(built)
    assert b"cuda: measured on b" in pages["choose.html"]
    assert contents(write_report(load_results(results), tmp_path / "anew").parent) == pages


def test_several_processes_make_the_same_pages_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(tmp_path / "results")
    results = load_results(tmp_path / "results")
    monkeypatch.setattr(parallel, "processors", lambda: 3)
    monkeypatch.setattr(render, "MANY", 2)
    several = contents(write_report(results, tmp_path / "several").parent)

    monkeypatch.setattr(render, "MANY", sys.maxsize)

    assert contents(write_report(results, tmp_path / "one").parent) == several


def test_a_template_that_fails_in_another_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_two_machines(tmp_path / "results", range(3), "a", "b")
    own = tmp_path / "own"
    own.mkdir()
    (own / "choose.html").write_text("{{ page.nothing }}")
    monkeypatch.setattr(parallel, "processors", lambda: 11)

    with pytest.raises(GpubenchError, match=r"^the template of choose.*fails"):
        report(tmp_path, own)

    assert not (tmp_path / "html").exists()


def test_pages_are_made_again_where_a_pair_changes_its_roles(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_benchmarks(results)
    for day in range(1, 31):
        times = {PAIR.baseline: [8.0] * 4, PAIR.candidate: [4.0 if day < 15 else 2.0] * 4}
        write_format_2(results, day, times)
    swapped = Pair(PAIR.suite, PAIR.name, PAIR.candidate, PAIR.baseline)
    cache = cache_path(results)
    for pair in (PAIR, swapped):
        write_report(load_results(results, pairs=[pair], cache=cache), tmp_path / "html")

    write_report(load_results(results, pairs=[swapped]), tmp_path / "anew")

    assert contents(tmp_path / "html") == contents(tmp_path / "anew")


def test_a_page_that_was_changed_or_is_gone_is_made_again(tmp_path: Path, built: list[str]) -> None:
    on_two_machines(tmp_path / "results", range(3), "a")
    pages = contents(report(tmp_path))
    built.clear()
    (tmp_path / "html/kernel-add.html").write_text("mine")
    (tmp_path / "html/changes.html").unlink()
    for path in (tmp_path / "html/compare-data").iterdir():
        path.unlink()

    assert contents(report(tmp_path)) == pages
    assert sorted(built) == ["changes a", "kernel a"]


def test_pages_are_made_again_by_other_templates_and_other_code(
    tmp_path: Path, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_two_machines(tmp_path / "results", range(3), "a")
    report(tmp_path)
    built.clear()
    (tmp_path / "own").mkdir()
    (tmp_path / "own/kernel.html").write_text('{% extends "packaged/kernel.html" %}<!-- mine -->')

    report(tmp_path, tmp_path / "own")
    assert len(built) == 4

    built.clear()
    monkeypatch.setattr(written, "code_stamp", lambda: "of tomorrow")
    report(tmp_path, tmp_path / "own")
    assert len(built) == 4
