"""A report written again: only what is made from something else, and no file without need."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_sample import START, commit_hash, write_sample
from result_files import CommitFiles, write_machine
from stored_asv_project import PAIR, PARAMETERS, write_benchmarks, write_format_2

from gpubench.errors import GpubenchError
from gpubench.parallel import in_processes
from gpubench.report import compare, kernel, overview, render
from gpubench.report.charts import MAX_TABLE_COMMITS
from gpubench.report.pages import all_pages
from gpubench.report.render import view_models, write_report
from gpubench.results import History, Pair, Snapshot, open_table


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_pages_from_a_kept_table_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    results, kept = tmp_path / "results", tmp_path / "kept.table"
    write_sample(results)
    expected = contents(write_report(open_table(results), tmp_path / "in-memory").parent)

    for folder in (tmp_path / "first", tmp_path / "second"):
        with closing(open_table(results, path=kept)) as table:
            assert contents(write_report(table, folder).parent) == expected


def test_pages_made_in_several_processes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for machine in ("a", "b", "c"):
        stepping(tmp_path / "results", range(12), machine)
    expected = contents(write_report(open_table(tmp_path / "results"), tmp_path / "alone").parent)
    by_others: list[int] = []
    monkeypatch.setattr(render, "PARALLEL_RENDER_TIMES", 1)
    monkeypatch.setattr(render, "processors", lambda: 2)
    monkeypatch.setattr(render, "in_processes", noting_parts(by_others))
    monkeypatch.chdir(tmp_path)  # where paths begin, in other processes too

    with closing(open_table(Path("results"), path=tmp_path / "kept.table")) as table:
        found = contents(write_report(table, Path("html")).parent)

    assert found == expected
    assert by_others == [2, 4]  # of each machine, and of all


def noting_parts(seen: list[int]) -> Callable[..., Any]:
    """``in_processes`` that notes how many processes it is given, and how many parts it did."""

    def noted(function: Any, parts: Any, processes: int, **how: int) -> Any:
        done = [*in_processes(function, parts, processes, **how)]
        seen.extend((processes, len(done)))
        return done

    return noted


def stepping(directory: Path, days: range, machine: str) -> None:
    """A kernel that became slower after six days, on one machine."""
    for day in days:
        files = CommitFiles(directory, f"{day:08x}" * 5, 86_400 * (day + 1), machine=machine)
        files.time("suites.add__numpy.time_kernel", "n=4", 4.0)
        files.time("suites.add__numba.time_kernel", "n=4", 2.0 if day > 5 else 1.0).write()


def test_a_template_that_fails_in_another_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_two_machines(tmp_path / "results", range(3), "a", "b")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/kernel.html").write_text("{{ page.nothing }}")
    monkeypatch.setattr(render, "PARALLEL_RENDER_TIMES", 1)
    monkeypatch.setattr(render, "processors", lambda: 2)

    with pytest.raises(GpubenchError, match=r"^the template of kernel-add.*fails: .*nothing"):
        report(tmp_path, tmp_path / "own")

    assert not (tmp_path / "html").exists()


def test_files_that_hold_the_same_are_left_alone(tmp_path: Path) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    write_sample(results)
    write_report(open_table(results), site)
    before = {path: path.stat().st_ino for path in site.rglob("*") if path.is_file()}
    foreign = [site / "index.html", site / "cases.csv", *sorted(site.glob("compare-data/*.js"))[:1]]
    for path in foreign:
        path.write_text("of somebody else")

    write_report(open_table(results), site)

    after = {path: path.stat().st_ino for path in site.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} == set(foreign)
    assert not any(path.read_text() == "of somebody else" for path in foreign)


def test_the_table_of_a_long_history_has_its_newest_commits(tmp_path: Path) -> None:
    commits = MAX_TABLE_COMMITS + 3
    for day in range(commits):
        files = CommitFiles(tmp_path / "results", f"{day:08x}" * 5, 86_400 * (day + 1))
        files.time("suites.add__numpy.time_kernel", "n=4", 2.0)
        files.time("suites.add__numba.time_kernel", "n=4", 1.0).write()
    table = open_table(tmp_path / "results")

    history = view_models(table)["kernel-add.html"]["history"]
    page = (write_report(table, tmp_path / "html").parent / "kernel-add.html").read_text()

    assert history["listed"] == list(range(commits - 1, 2, -1))
    assert len(history["commits"]) == commits
    assert f"the newest first ({MAX_TABLE_COMMITS} of {commits})" in page
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert table.count("<tr>") == MAX_TABLE_COMMITS


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which views were made: page and machine."""
    names: list[str] = []
    for module in (kernel, overview):
        monkeypatch.setattr(module, "build", noting(module.build, module.__name__, names))
    pages = tuple(
        page if page.is_shared else replace(page, build=noting(page.build, page.name, names))
        for page in all_pages()
        if page.folder is None  # of the core
    )
    monkeypatch.setattr(render, "all_pages", lambda: pages)
    return names


def noting(build: Callable[..., Any], module: str, names: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        history = next(one for one in arguments if isinstance(one, History))
        names.append(f"{module.rpartition('.')[2]} {history.setup.machine}")
        return build(*arguments)

    return noted


def on_two_machines(directory: Path, days: range, *machines: str) -> None:
    for machine in machines:
        for day in days:
            files = CommitFiles(directory, f"{day:08x}" * 5, 86_400 * (day + 1), machine=machine)
            files.time("suites.add__numpy.time_kernel", "n=4", 2.0)
            files.time("suites.add__numba.time_kernel", "n=4", 1.0).write()


def report(folder: Path, overrides: Path | None = None) -> Path:
    with closing(open_table(folder / "results", path=folder / "kept.table")) as table:
        return write_report(table, folder / "html", overrides).parent


def anew(folder: Path) -> dict[str, bytes]:
    """The same report, made of nothing that is kept."""
    shutil.rmtree(folder / "anew", ignore_errors=True)
    return contents(write_report(open_table(folder / "results"), folder / "anew").parent)


def test_a_page_is_made_again_only_where_its_sources_changed(
    tmp_path: Path, built: list[str]
) -> None:
    on_two_machines(tmp_path / "results", range(3), "a", "b")
    report(tmp_path)
    assert sorted(built) == [
        "changes a", "changes b", "choose a", "choose b", "compare a", "compare b",
        "kernel a", "kernel b", "overview a", "overview b",
    ]  # fmt: skip

    built.clear()
    report(tmp_path)
    assert built == []

    on_two_machines(tmp_path / "results", range(3, 4), "a")
    pages = contents(report(tmp_path))
    assert sorted(built) == [
        "changes a", "choose a", "compare a", "compare b", "kernel a", "overview a",
    ]  # fmt: skip
    assert anew(tmp_path) == pages

    built.clear()
    on_two_machines(tmp_path / "results", range(3, 4), "b")
    pages = contents(report(tmp_path))
    assert sorted(built) == [
        "changes b", "choose b", "compare a", "compare b", "kernel b", "overview a", "overview b",
    ]  # fmt: skip
    assert anew(tmp_path) == pages


def test_a_comparison_is_made_again_only_where_a_side_of_it_changed(
    tmp_path: Path, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "MAX_SETUPS", 1)  # a against b, b and c against a
    on_two_machines(tmp_path / "results", range(3), "a", "b", "c")
    report(tmp_path)

    for day, machine, expected in (
        # How much times of a setup differ between runs is learned from old commits too.
        (3, "a", ["a", "b", "c"]), (3, "b", ["a", "b"]), (3, "c", ["c"]), (0, "a", ["a", "b", "c"]),
    ):  # fmt: skip
        built.clear()
        on_two_machines(tmp_path / "results", range(day, day + 1), machine)
        pages = contents(report(tmp_path))
        assert sorted(name[-1] for name in built if name.startswith("compare")) == expected
        assert anew(tmp_path) == pages


def test_an_old_commit_measured_again_changes_no_first_page(
    tmp_path: Path, built: list[str]
) -> None:
    on_two_machines(tmp_path / "results", range(4), "a", "b")
    report(tmp_path)
    built.clear()
    files = CommitFiles(tmp_path / "results", f"{1:08x}" * 5, 86_400 * 2, machine="b")
    files.time("suites.add__numba.time_kernel", "n=4", 1.5).write()

    pages = contents(report(tmp_path))

    assert sorted(built) == ["changes b", "compare a", "compare b", "kernel b", "overview b"]
    assert anew(tmp_path) == pages


def measured(results: Path, index: int, machine: str = "runner") -> Path:
    """One kernel at a commit of the sample, or a later one, in place of what there was."""
    files = CommitFiles(results, commit_hash(index), START + index * 90_000, machine=machine)
    files.time("suites.norm__numpy.time_kernel", "n=1024", 3.0)
    files.time("suites.norm__numba_parallel.time_kernel", "n=1024", 2.0)
    return files.write().result_path


def one_more_commit(results: Path) -> None:
    measured(results, 12)


def one_more_machine(results: Path) -> None:
    measured(results, 11, "another")


def changed_at_first(results: Path) -> None:
    measured(results, 0)


def changed_at_last(results: Path) -> None:
    measured(results, 11)


def removed_at_first(results: Path) -> None:
    path = measured(results, 0)
    path.unlink()
    path.with_suffix(".gpubench.jsonl").unlink()


def removed_at_last(results: Path) -> None:
    path = measured(results, 11)
    path.unlink()
    path.with_suffix(".gpubench.jsonl").unlink()


def one_machine_less(results: Path) -> None:
    shutil.rmtree(results / "gpu-box")


def another_description(results: Path) -> None:
    write_machine(results, "runner", cpu="Example 9999")


@pytest.mark.parametrize(
    "change",
    [
        one_more_commit,
        changed_at_last,
        removed_at_last,
        another_description,
        *(
            pytest.param(change, marks=pytest.mark.ci)
            for change in (one_more_machine, changed_at_first, removed_at_first, one_machine_less)
        ),
    ],
)
def test_a_report_after_a_change_is_a_first_report(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    write_sample(tmp_path / "results")
    before = contents(report(tmp_path))
    change(tmp_path / "results")

    after = contents(report(tmp_path))

    assert after != before
    assert anew(tmp_path) == after


def test_scripts_of_other_commits_stay_when_one_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_two_machines(tmp_path / "results", range(3), "a", "b")
    monkeypatch.setattr(compare, "MAX_SCRIPT_CELLS", 4)  # two commits of two cases
    report(tmp_path)
    on_two_machines(tmp_path / "results", range(3, 4), "b")
    made: list[tuple[str, list[str]]] = []
    script = compare.snapshots_script

    def noted(address: str, history: History, snapshots: Sequence[Snapshot], *others: Any) -> str:
        made.append((history.setup.machine, [one.commit.hash[:8] for one in snapshots]))
        return script(address, history, snapshots, *others)

    monkeypatch.setattr(compare, "snapshots_script", noted)
    report(tmp_path)

    assert made == [("b", ["00000002", "00000003"])]


def test_choices_are_made_again_where_another_machine_has_more_to_choose_from(
    tmp_path: Path, built: list[str]
) -> None:
    results = tmp_path / "results"
    on_two_machines(results, range(3), "a", "b")
    report(tmp_path)
    built.clear()
    on_two_machines(results, range(3, 4), "a")
    files = CommitFiles(results, f"{3:08x}" * 5, 86_400 * 4, machine="b")
    files.time("suites.add__numpy.time_kernel", "n=4", 2.0)
    files.time("suites.add__cuda.time_kernel", "n=4", 1.0).write()

    pages = contents(report(tmp_path))

    assert {"choose a", "choose b"} <= set(built)
    assert b"cuda: measured on b" in pages["choose.html"]
    assert anew(tmp_path) == pages


def test_a_template_that_fails_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    on_two_machines(tmp_path / "results", range(3), "a", "b")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/choose.html").write_text("{{ page.nothing }}")

    with pytest.raises(GpubenchError, match=r"^the template of choose.*fails"):
        report(tmp_path, tmp_path / "own")

    assert not (tmp_path / "html").exists()


def test_pages_are_made_again_where_a_pair_changes_its_roles(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_benchmarks(results)
    for day in range(1, 31):
        times = {PAIR.baseline: [8.0] * 4, PAIR.candidate: [4.0 if day < 15 else 2.0] * 4}
        write_format_2(results, day, times)
    swapped = Pair(PAIR.suite, PAIR.name, PAIR.candidate, PAIR.baseline)
    for pair in (PAIR, swapped):
        with closing(open_table(results, pairs=[pair], path=tmp_path / "kept.table")) as table:
            write_report(table, tmp_path / "html")

    write_report(open_table(results, pairs=[swapped]), tmp_path / "anew")

    assert contents(tmp_path / "html") == contents(tmp_path / "anew")


def test_a_page_that_was_replaced_or_is_gone_is_made_again(
    tmp_path: Path, built: list[str]
) -> None:
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
    assert len(built) == 5

    built.clear()
    monkeypatch.setattr(render, "code_stamp", lambda: "of tomorrow")
    report(tmp_path, tmp_path / "own")
    assert len(built) == 5


@pytest.mark.parametrize("setting", ["higher_is_better", "thresholds", "unit"])
def test_pages_are_made_again_by_a_setting_that_changes_what_they_say(
    tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    monkeypatch.setitem(PARAMETERS, "grid.track_score", {})
    write_benchmarks(results)
    for day in range(1, 31):
        write_format_2(results, day, {"grid.track_score": [8.0 if day < 15 else 4.0]})
    with closing(open_table(results, path=tmp_path / "kept.table")) as table:
        write_report(table, tmp_path / "html")
    before = contents(tmp_path / "html")
    changed: dict[str, Any] = {}
    if setting == "unit":
        described = json.loads((results / "benchmarks.json").read_text())
        described["grid.track_score"]["unit"] = "points"
        (results / "benchmarks.json").write_text(json.dumps(described))
    else:
        of_setting = {"higher_is_better": ["grid"], "thresholds": [("grid", 9.0)]}
        changed = {setting: of_setting[setting]}

    with closing(open_table(results, path=tmp_path / "kept.table", **changed)) as table:
        write_report(table, tmp_path / "html")

    write_report(open_table(results, **changed), tmp_path / "anew")
    assert contents(tmp_path / "html") == contents(tmp_path / "anew")
    assert contents(tmp_path / "html")["changes.html"] != before["changes.html"]
