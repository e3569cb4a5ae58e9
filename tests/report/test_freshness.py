"""A report with nothing new is known from entries of files; every change that can change a page
is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.report import freshness, render
from gpubench.report.freshness import Receipt, ReportSources

RESULT = Path("results/runner/0123abcd-py.json")


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    git("-C", str(folder), "init", "--quiet", "--template=", "--initial-branch=main")
    git("-C", str(folder), "commit", "--quiet", "--allow-empty", "-m", "First")
    return folder / ".git"


@pytest.fixture
def project(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one of everything that decides a page, and its report."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(freshness, "TOUCHED_SECONDS", -60.0)  # files of this second hold too
    monkeypatch.setattr(freshness, "code_stamp", lambda: "code")  # which looks at 300 files
    shutil.copytree(repository, ".git")
    for name in (
        "results/runner",
        "suites",
        "reports/parts",
        "html/compare-data",
        ".gpubench-cache",
    ):
        Path(name).mkdir(parents=True)
    RESULT.write_text("old")
    Path("results/runner/machine.json").write_text("{}")
    Path("asv.conf.json").write_text('{"branches": ["main"]}')
    Path("suites/sums.yaml").write_text("version: 1\n")
    Path("reports/overview.html").write_text("mine")
    Path("html/index.html").write_text("page")
    Path("html/compare-data/a.js").write_text("data")
    return tmp_path


def receipt(**changed: object) -> Receipt:
    sources = {
        "results": Path("results"),
        "suites": Path("suites"),
        "output": Path("html"),
        "overrides": Path("reports"),
        "options": ((), None, ()),
    }
    return Receipt(ReportSources(**{**sources, **changed}))  # type: ignore[arg-type]


def edit_keeping_size_and_moment() -> None:
    before = RESULT.stat()
    RESULT.write_text("new")
    os.utime(RESULT, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_a_file_of_its_size() -> None:
    moment = RESULT.stat().st_mtime_ns
    new = RESULT.with_suffix(".new")
    new.write_text("new")
    os.utime(new, ns=(moment, moment))
    new.replace(RESULT)


def link_to_another_file() -> None:
    RESULT.rename("results/elsewhere")
    RESULT.symlink_to("../elsewhere")


def check_out_another_branch() -> None:
    git("checkout", "--quiet", "-b", "other")


def move_a_branch() -> None:
    git("update-ref", "refs/heads/far", "HEAD")


def fetch_a_commit() -> None:
    Path(".git/FETCH_HEAD").write_text("0123abcd\n")


CHANGES: dict[str, Callable[[], object]] = {
    "a result, its size and moment kept": edit_keeping_size_and_moment,
    "a result replaced": replace_by_a_file_of_its_size,
    "a result that became a link": link_to_another_file,
    "a new result": lambda: RESULT.with_name("4567abcd-py.json").write_text("new"),
    "a result removed": lambda: RESULT.unlink(),
    "a record": lambda: RESULT.with_suffix(".gpubench.jsonl").write_text("{}"),
    "a machine": lambda: Path("results/runner/machine.json").write_text('{"cpu": "new"}'),
    "benchmarks.json": lambda: Path("results/benchmarks.json").write_text("{}"),
    "asv.conf.json": lambda: Path("asv.conf.json").write_text('{"branches": ["next"]}'),
    "acknowledged changes": lambda: Path("gpubench-acknowledged.yaml").write_text("version: 1"),
    "machines that are one": lambda: Path("gpubench.yaml").write_text("version: 1"),
    "a suite": lambda: Path("suites/sums.yaml").write_text("version: 1\nsuite: sums\n"),
    "a template": lambda: Path("reports/overview.html").write_text("ours"),
    "a part of a template": lambda: Path("reports/parts/head.html").write_text("ours"),
    "a page": lambda: Path("html/index.html").write_text("nope"),
    "a script removed": lambda: Path("html/compare-data/a.js").unlink(),
    "another branch checked out": check_out_another_branch,
    "the tip of a branch": move_a_branch,
    "a tag": lambda: git("tag", "v1"),
    "a commit fetched": fetch_a_commit,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_what_pages_are_made_from_is_seen(project: Path, change: str) -> None:
    receipt().keep()
    assert receipt().is_valid()

    CHANGES[change]()

    assert not receipt().is_valid()


@pytest.mark.parametrize(
    "changed",
    [
        {"options": ((), "n > 4", ())},
        {"options": ((), None, ("implementation=numpy",))},
        {"overrides": None},
        {"output": Path("elsewhere")},
        {"suites": Path("more")},
    ],
)
def test_other_options_make_another_report(project: Path, changed: dict[str, object]) -> None:
    receipt().keep()
    assert not receipt(**changed).is_valid()
    assert receipt().is_valid()


def test_another_engine_makes_another_report(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(project)
    monkeypatch.setattr(freshness, "TOUCHED_SECONDS", -60.0)
    receipt().keep()
    assert receipt().is_valid()
    monkeypatch.setattr(freshness, "VERSION", "99")
    assert not receipt().is_valid()


def test_a_change_while_the_report_is_made_is_seen(project: Path) -> None:
    before = receipt()
    RESULT.write_text("newer")
    before.keep()
    assert not receipt().is_valid()


def test_a_file_of_this_moment_may_change_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "TOUCHED_SECONDS", 2.0)
    receipt().keep()
    assert not receipt().is_valid()


def test_a_suite_that_extends_another_file_is_read_each_time(project: Path) -> None:
    Path("suites/sums.yaml").write_text("version: 1\nextends: ../base.yaml\n")
    receipt().keep()
    assert not receipt().is_valid()


def test_nothing_is_written_through_a_link(project: Path) -> None:
    (project / "outside").mkdir()
    Path(".gpubench-cache").rmdir()
    Path(".gpubench-cache").symlink_to("outside")
    receipt().keep()
    assert not receipt().is_valid()
    assert list((project / "outside").iterdir()) == []


def test_a_report_with_nothing_new_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(freshness, "TOUCHED_SECONDS", -60.0)
    files = CommitFiles(tmp_path / "results", "1" * 40, 86_400)
    files.time("suites.add__numpy.time_kernel", "n=4", 1.0)
    files.write()
    written: list[Path] = []

    def write(table: object, output: Path, overrides: Path | None) -> Path:
        written.append(output)
        output.mkdir(exist_ok=True)
        (output / "index.html").write_text("page")
        return output / "index.html"

    monkeypatch.setattr(render, "write_report", write)
    command = ["report", "--results", "results", "--output", "html"]
    runs = [CliRunner().invoke(main, command) for _ in range(2)]

    assert [run.exit_code for run in runs] == [0, 0]
    assert runs[0].output == runs[1].output == f"{tmp_path / 'html/index.html'}\n"
    assert len(written) == 1
    assert CliRunner().invoke(main, [*command, "-a", "implementation=numpy"]).exit_code == 0
    assert len(written) == 2
    Path("asv.conf.json").write_text('{"branches": 1}')
    warned = [CliRunner().invoke(main, command).output for _ in range(2)]
    assert "`branches` is a list of names" in warned[0]
    assert warned[1] == warned[0]
