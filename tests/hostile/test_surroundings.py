"""Where a command runs: no room, no rights, no home, no git, odd paths, others at work.

It ends with what it was asked for, or with one line, and leaves nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from result_files import CommitFiles
from small_project import (
    COMMANDS,
    as_anybody,
    make_small_project,
    run,
    run_each,
    run_here,
    thorough,
)

from gpubench.record import to_line
from gpubench.report.render import NEW_FOLDER_PREFIX, locked
from gpubench.results import open_table

READING = [["report"], ["choose"], ["query", "select count(*) from results", "--csv"]]
NUMPY = "suites.small__numpy.time_kernel"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_small_project(tmp_path / "project")


def pages(project: Path) -> dict[str, bytes]:
    """What stands in the report."""
    folder = project / "reports/html"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def small_files(most: int) -> Callable[[], None]:
    """As on a disk with so many bytes left: what writes a larger file gets an error.

    It needs Python's ``-B``: where a file may not grow, Python keeps the part of a compiled module
    that it could write, and every later process fails to import it.
    """

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return limit


@pytest.mark.parametrize("most", [thorough(0), 1000, thorough(20_000)])
def test_a_report_for_which_there_is_no_room_leaves_no_half_page(project: Path, most: int) -> None:
    code, _, said = run(project, ["report"], "-B", how={"preexec_fn": small_files(most)})

    assert (code, len(said.splitlines())) == (2, 1), said
    assert said.startswith("gpubench: ") and "File too large" in said
    written = pages(project)
    assert not [name for name in written if NEW_FOLDER_PREFIX in name]
    assert run_here(project, [["report"]])[0][0] == 0
    assert {name: pages(project)[name] for name in written} == written


def test_results_that_cannot_be_kept_are_read_all_the_same(project: Path) -> None:
    code, said, _ = run(
        project, ["query", "select count(*) from results", "--csv"], "-B",
        how={"preexec_fn": small_files(0)},
    )  # fmt: skip

    assert (code, said.splitlines()[-1]) == (0, "4")


def test_what_is_another_user_s_and_read_only_is_read_and_no_report_is_written_there(
    project: Path, tmp_path: Path
) -> None:
    theirs = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}  # git then answers nothing
    elsewhere = ["report", "--output", str(tmp_path / "html")]
    folders = [project, *(path for path in project.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        table, report, other = (
            run(project, c, how={"preexec_fn": as_anybody}, **theirs)
            for c in (READING[-1], READING[0], elsewhere)
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)

    assert (table[0], table[1].splitlines()[-1]) == (0, "4")
    assert (report[0], len(report[2].splitlines())) == (2, 1), report
    assert report[2].startswith("gpubench: ") and "Permission denied" in report[2]
    assert not (project / "reports").exists()
    assert other[0] == 0 and (tmp_path / "html/index.html").exists(), other


@pytest.mark.parametrize("home", [None, "/nonexistent", "/dev/null"])
def test_nobody_needs_a_home(
    project: Path, home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    if home:
        monkeypatch.setenv("HOME", home)
    for code, _, said in run_here(project, [["check"], *READING]):
        assert (code, said) == (0, "")


def test_nobody_needs_git(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project))
    commands = [["check"], ["compare", "aaaa", "bbbb"], *READING]
    for code, _, said in run_here(project, commands):
        assert (code, said) == (0, "")


@pytest.mark.parametrize("level", [thorough("-O"), "-OO"])
def test_an_optimizing_python_reads_the_same(project: Path, level: str) -> None:
    commands = [["plan"], *READING]
    expected = run_here(project, commands), pages(project)
    shutil.rmtree(project / "reports")

    assert (run_each(project, commands, level), pages(project)) == expected
    assert all(code == 0 for code, *_ in expected[0])


@pytest.mark.parametrize(
    "name", ["a b", 'it\'s "that"', "two\nlines", "%s {x} $HOME #&", "-o", "?", "\udcff\udcfe"]
)
def test_a_project_may_lie_anywhere(tmp_path: Path, name: str) -> None:
    project = make_small_project(tmp_path / name)
    done = run_here(project, COMMANDS[:9])
    assert [code for code, *_ in done] == [0] * 9, done
    for line in "".join(said for *_, said in done).splitlines():  # DuckDB has no file there
        assert name in ("?", "\udcff\udcfe")
        assert line.endswith("all results were read anew, and are not kept")
    assert "small" in (project / "reports/html/index.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_lines_may_end_as_on_windows(project: Path) -> None:
    commands = [["plan", "--json"], READING[2]]
    expected = run_here(project, commands)
    files = CommitFiles(project / ".asv/results", "b" * 40, 19_001 * 86_400)
    files.facts(run="one").record(NUMPY, "n=4", values={"n": 4}, sizes=("n",))
    files.record_path.write_text("".join(map(to_line, files.lines)))
    for path in (project / "suites/small.yaml", *project.glob(".asv/results/*/*.json*")):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert run_here(project, commands) == expected
    assert open_table(project / ".asv/results").problems == ()


def test_a_report_while_asv_writes_shows_what_is_whole(project: Path) -> None:
    result = project / ".asv/results/runner/bbbbbbbb-virtualenv-py3.11.json"
    content, writing = result.read_bytes(), threading.Event()

    def write() -> None:  # in place and in pieces, as asv does
        while not writing.is_set():
            with result.open("wb", buffering=0) as file:
                for start in range(0, len(content), 100):
                    file.write(content[start : start + 100])
                    time.sleep(0.0005)

    asv = threading.Thread(target=write)
    asv.start()
    try:
        done = run_here(project, READING * 2)
    finally:
        writing.set()
        asv.join()

    assert [(code, "Traceback" in said) for code, _, said in done] == [(0, False)] * len(done)
    assert run_here(project, [READING[2]])[0][1].splitlines()[-1] == "4"


@pytest.mark.parametrize("share", [thorough(0.3), 0.6, thorough(0.9)])
def test_a_report_that_was_killed_is_made_again(project: Path, share: float) -> None:
    begun = time.monotonic()
    assert run(project, ["report"])[0] == 0  # in a process, as the one that is killed
    lasting, whole = time.monotonic() - begun, pages(project)
    shutil.rmtree(project / "reports")
    shutil.rmtree(project / ".asv/.gpubench-cache")

    process = subprocess.Popen([sys.executable, "-m", "gpubench", "report"], cwd=project)
    time.sleep(share * lasting)
    process.kill()
    process.wait()

    for name, content in pages(project).items():
        assert name.startswith(NEW_FOLDER_PREFIX) or content == whole[name]
    assert run_here(project, [["report"]])[0][::2] == (0, "")
    assert pages(project) == whole


def test_of_what_reports_have_left_only_that_of_killed_ones_is_removed(
    project: Path, tmp_path: Path
) -> None:
    html, victim = project / "reports/html", tmp_path / "victim"
    html.mkdir(parents=True)
    victim.mkdir()
    (victim / "page.html").write_text("theirs")
    for name in ("at-work", "killed"):
        (html / f"{NEW_FOLDER_PREFIX}{name}").mkdir()
        (html / f"{NEW_FOLDER_PREFIX}{name}/page.html").write_text("half a pa")
    (html / f"{NEW_FOLDER_PREFIX}link").symlink_to(victim)
    (html / f"{NEW_FOLDER_PREFIX}file").touch()
    os.mkfifo(html / f"{NEW_FOLDER_PREFIX}pipe")

    with locked(html / f"{NEW_FOLDER_PREFIX}at-work"):
        ((code, _, said),) = run_here(project, [["report"]])

    assert (code, said) == (0, "")
    left = {
        path.name.removeprefix(NEW_FOLDER_PREFIX) for path in html.glob(f"{NEW_FOLDER_PREFIX}*")
    }
    assert left == {"at-work", "link", "file", "pipe"}
    assert (victim / "page.html").read_text() == "theirs"


def test_a_clock_that_jumps_back_ends_nothing(project: Path) -> None:
    files = CommitFiles(project / ".asv/results", "c" * 40, 19_002 * 86_400)
    files.started_at = 4_000_000_000  # in a hundred years
    files.facts(run="17-4000000100").time(NUMPY, "n=4", 2e-3)
    files.record(NUMPY, "n=4", "started", at="2099-01-01T00:00:00+00:00", timeout=60.0)
    files.record(NUMPY, "n=4", at="2026-01-01T00:00:00+00:00")
    files.record(NUMPY, "n=8", "started", at="2099-01-01T00:00:00+00:00", timeout=60.0)
    files.record(NUMPY, "n=16", "failed", at="1970-01-01T00:00:00+00:00", reason="as it does")
    files.write()

    asked = "select \"case\", status from results where commit[:1] = 'c' order by 1"
    done = run_here(project, [*READING, ["query", asked, "--json"]])

    assert all((code, said) == (0, "") for code, _, said in done)
    said = done[-1][1]
    assert {row["case"]: row["status"] for row in json.loads(said)} == {
        "n=4": "ok",
        "n=8": "killed",
        "n=16": "failed",
    }


@pytest.mark.parametrize("module", ["gpubench.cli.console", "gpubench.errors"])
def test_ctrl_c_while_commands_are_imported_says_so(project: Path, module: str) -> None:
    command = [sys.executable, "-c", _INTERRUPTED, module]
    done = subprocess.run(command, cwd=project, capture_output=True)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"interrupted\n")


_INTERRUPTED = """
import runpy, sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
runpy.run_module("gpubench", run_name="__main__")
"""


@pytest.mark.parametrize(
    "module",
    [
        "suite/schema",  # which a command imports
        thorough("cli/suites"),  # which has the command
        thorough("cli/console"),  # which all commands need
    ],
)
@pytest.mark.parametrize("damage", ["cut", thorough("zeros")])
def test_a_damaged_file_of_python_s_cache_is_named(
    project: Path, tmp_path: Path, module: str, damage: str
) -> None:
    cached = {"PYTHONPYCACHEPREFIX": f"{tmp_path}/cache", "PYTHONDONTWRITEBYTECODE": ""}
    assert run(project, ["schema", "--path"], **cached)[0] == 0
    (file,) = (tmp_path / "cache").rglob(f"gpubench/{module}.*.pyc")
    whole = file.read_bytes()
    file.write_bytes(whole[:-100] + bytes(100 if damage == "zeros" else 0))

    code, output, said = run(project, ["schema"], **cached)

    assert (code, output) == (2, "")
    assert said.startswith(f"gpubench: {file}, which Python has compiled, is damaged (")
    assert said.endswith("): remove it\n")
