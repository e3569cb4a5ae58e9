"""A history is one branch: what the pages count, and what they list beside it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from result_files import CommitFiles
from unpacked import unpacked

from gpubench.analysis.differences import side_of
from gpubench.project.opening import project_table
from gpubench.report import exports, machines, overview
from gpubench.report.choose import chosen_pages
from gpubench.report.render import view_models, write_report
from gpubench.report.site import Site
from gpubench.results import Table

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
CONFIG = '{"version": 1, "repo": ".", // of asv\n "branches": ["main"],}'


class Project:
    """Twelve commits of ``main``, four of ``exp``, which is slower; a configuration of asv's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / ".asv/results"
        self.days = 0
        self.git("init", "--quiet", "--initial-branch=main")
        self.main = [self.commit(f"main {n}") for n in range(1, 8)]
        self.git("checkout", "--quiet", "-b", "exp")
        self.exp = [self.commit(f"exp {n}", seconds=2.0) for n in range(1, 5)]
        self.git("checkout", "--quiet", "main")
        self.main += [self.commit(f"main {n}") for n in range(8, 13)]
        self.configure(CONFIG)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        stamp = f"@{self.days * 86_400} +0000"
        environment = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True,
            env={**environment, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, subject: str, seconds: float = 1.0) -> str:
        self.days += 1
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        hash_ = self.git("rev-parse", "HEAD")
        self.measure(hash_, seconds)
        return hash_

    def measure(self, hash_: str, seconds: float, machine: str = "runner") -> None:
        files = CommitFiles(self.results, hash_, self.days * 86_400, machine)
        for benchmark, its in ((NUMPY, 4.0), (NUMBA, seconds)):
            files.time(benchmark, "n=4", its)
        files.write()

    def configure(self, text: str, folder: str = ".") -> None:
        (self.folder / folder).mkdir(exist_ok=True)
        (self.folder / folder / "asv.conf.json").write_text(text)

    def said(self) -> list[str]:
        with self.table() as table:
            assert table.commits
        return self.faults

    @contextmanager
    def table(self) -> Iterator[Table]:
        results = self.results.relative_to(Path.cwd())
        table, faults = project_table(results, Path.cwd(), Path("suites"))
        self.faults = [*map(str, faults)]
        with closing(table):
            yield table


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def first(site: Site) -> overview.Overview:
    return overview.build(site.histories[0], site)


def branches_of(table: Table) -> dict[str, int]:
    """Branches of the histories and how many commits each has."""
    site = Site(table)
    return {site.branch_of(h.setup): len(h.commits) for h in site.histories}


def test_a_branch_that_was_never_merged_makes_no_change(project: Project) -> None:
    with project.table() as table:
        page = first(Site(table))
        beside = machines.build(Site(table))
        pages = view_models(table)

    assert page.regressions == page.improvements == ()
    assert page.commit and page.commit.subject == "main 12"
    assert (page.branch, page.outside) == ("main", 4)
    assert [(row.commit.subject, row.where) for row in beside.outside] == [
        (f"exp {n}", "exp") for n in (4, 3, 2, 1)
    ]
    assert pages["changes.html"]["verdict"] == "No change was found in 2 cases over 12 commits."
    assert beside.verdict.startswith("1 machine, 1 environment, 16 commits: 16 result files")


def test_compare_reaches_commits_outside_the_history(project: Project) -> None:
    project.measure(project.exp[0], 3.0, machine="elsewhere")
    with project.table() as table:
        write_report(table, project.folder / "html")
        (side,) = side_of("exp", table, project.exp[3]).snapshots

    assert side.commit.subject == "exp 4"
    setups = index_of(project.folder / "html")["setups"]
    assert {s["machine"]: len(s["commits"]) for s in setups} == {"runner": 16, "elsewhere": 1}
    for setup in setups:
        script = project.folder / f"html/compare-data/{setup['key']}-0.js"
        measured = unpacked(script.read_text())["commits"]
        assert all(commit[0] in measured for commit in setup["commits"])


def index_of(html: Path) -> Any:
    """What there is to choose from on the page of comparisons."""
    script = (html / "compare-data/index.js").read_text()
    (arguments,) = re.findall(r"gpubench.index\(\.\.\.(.*)\);", script)
    return json.loads(arguments)[0]


def test_a_moved_branch_makes_pages_again(project: Project) -> None:
    html = project.folder / "html"
    with project.table() as table:
        write_report(table, html)
    before = (html / "changes.html").read_text()
    project.git("merge", "--quiet", "--no-ff", "-m", "merge", "exp")

    with project.table() as table:
        write_report(table, html)

    assert "over 16 commits" in (html / "changes.html").read_text()
    assert "over 12 commits" in before
    assert "outside the history" not in (html / "index.html").read_text()


def test_each_of_several_branches_has_its_pages(project: Project) -> None:
    project.configure('{"branches": ["main", "exp"]}')
    with project.table() as table:
        site = Site(table)
        pages = view_models(table)
        index = write_report(table, project.folder / "html")
        (chosen,) = chosen_pages(table, [], None, None)
        exports.write(site, project.folder)
        assert branches_of(table) == {"main": 12, "exp": 11}

    labels = [link["label"] for link in pages["index.html"]["navigation"]["setups"]]
    assert labels == ["runner, virtualenv-py3.11, main", "runner, virtualenv-py3.11, exp"]
    exp = pages["index--runner-virtualenv-py3.11-exp.html"]
    assert exp["commit"]["subject"] == "exp 4"
    assert "over 11 commits" in pages["changes--runner-virtualenv-py3.11-exp.html"]["verdict"]
    assert "runner, virtualenv-py3.11, main" in chosen.details
    assert set(pages) <= {path.name for path in index.parent.iterdir()}
    assert len(index_of(index.parent)["setups"]) == 1
    assert all(not kernel["elsewhere"] for kernel in pages["choose.html"]["kernels"])
    records = json.loads((project.folder / "cases.json").read_text())
    assert {record["branch"] for record in records} == {"main", "exp"}


def test_a_branch_that_is_not_there_is_said(project: Project) -> None:
    project.configure('{"branches": ["dev"]}')

    assert project.said() == [
        "asv.conf.json: the branch 'dev' has no history: git knows no such branch or tag",
        "asv.conf.json: the history is that of 'main', which is checked out",
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "Unexpected end of input"),
        ("[]", "it holds no mapping"),
        ('{"branches": "main"}', '`branches` is a list of names, such as ["main"]'),
        ('{"branches": [1]}', '`branches` is a list of names, such as ["main"]'),
        ("[" * 9000, "it is nested too deep"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_said(
    project: Project, content: str, why: str
) -> None:
    project.configure(content)

    (said,) = project.said()

    assert said.startswith("asv.conf.json: it is not read, so that the history is that of HEAD: ")
    assert why in said


@pytest.mark.parametrize("content", ["{}", '{"branches": []}', '{"branches": [null]}', None])
def test_without_branches_the_history_is_of_what_is_checked_out(
    project: Project, content: str | None
) -> None:
    if content is None:
        (project.folder / "asv.conf.json").unlink()
    else:
        project.configure(content)
    with project.table() as table:
        assert branches_of(table) == {"main": 12}
    project.git("checkout", "--quiet", "exp")
    with project.table() as table:
        assert branches_of(table) == {"exp": 11}


def test_a_configuration_in_a_folder_of_the_repository_counts(project: Project) -> None:
    (project.folder / "asv.conf.json").unlink()
    for repo in ("..", "https://example.org/project.git", str(project.folder)):
        project.configure(json.dumps({"repo": repo, "branches": ["exp"]}), "bench")
        project.results.parent.rename(project.folder / "bench/.asv")
        project.results = project.folder / "bench/.asv/results"
        with project.table() as table:
            assert branches_of(table) == {"exp": 11}
        project.results.parent.rename(project.folder / ".asv")
        project.results = project.folder / ".asv/results"


def test_a_configuration_whose_results_lie_elsewhere_is_found(project: Project) -> None:
    (project.folder / "asv.conf.json").unlink()
    project.configure('{"repo": "..", "branches": ["exp"], "results_dir": "../.asv/results"}', "ci")

    with project.table() as table:
        assert branches_of(table) == {"exp": 11}


def test_benchmarks_apart_from_the_code_are_ordered_by_the_code_s_repository(
    project: Project, tmp_path: Path
) -> None:
    apart = tmp_path / "apart"
    apart.mkdir()
    subprocess.run(["git", "init", "--quiet", str(apart)], check=True)
    project.results.parent.rename(apart / ".asv")
    project.results = apart / ".asv/results"
    project.configure('{"repo": "..", "branches": ["main"]}', "apart")

    with project.table() as table:
        assert branches_of(table) == {"main": 12}


@pytest.mark.parametrize("repo", ["../bare.git", "https://example.org/toolkit.git"])
def test_a_repository_that_asv_has_cloned_is_asked(
    project: Project, tmp_path: Path, repo: str
) -> None:
    apart = tmp_path / "apart"
    apart.mkdir()
    clone = apart / "toolkit" if "https" in repo else tmp_path / "bare.git"
    project.git("clone", "--quiet", "--mirror", str(tmp_path), str(clone))
    project.results.parent.rename(apart / ".asv")
    (tmp_path / ".git").rename(tmp_path / "gone")
    project.results = apart / ".asv/results"
    content = {"repo": repo, "project": "toolkit", "branches": ["exp"]}
    project.configure(json.dumps(content), "apart")

    with project.table() as table:
        assert branches_of(table) == {"exp": 11}
