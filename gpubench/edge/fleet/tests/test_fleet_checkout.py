"""A worker's checkout: it is brought to the commit that is asked for, and what it starts ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from asv_project import Project, isolated_environment

from gpubench.edge.fleet.checkout import Checkout, git
from gpubench.edge.fleet.shares import Share
from gpubench.errors import GpubenchError

PATIENCE = 60.0
"""Seconds in which processes have begun and ended, on a busy machine."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository of two commits."""
    path = tmp_path / "project"
    path.mkdir()
    made = Project(path, isolated_environment(tmp_path))
    made.git("init", "--quiet", "--initial-branch=main")
    for day, word in enumerate(("first", "second"), 1):
        (path / "file").write_text(word)
        made.commit(word, day)
    return made


def checkout(tmp_path: Path, python: str | None = None) -> Checkout:
    made = Checkout(tmp_path / "deep/checkout", "alpha", python)
    made.say = lambda line: None
    return made


def test_where_nothing_is_it_clones_and_follows(tmp_path: Path, project: Project) -> None:
    own = checkout(tmp_path)
    own.update(str(project.path), project.git("rev-parse", "first"))
    assert (own.folder / "file").read_text() == "first"
    (own.folder / "file").write_text("left over")
    (project.path / "file").write_text("third")
    project.commit("third", 3)
    own.update(str(project.path), project.git("rev-parse", "third"))
    assert (own.folder / "file").read_text() == "third"


def test_a_checkout_of_somebody_else_is_left_as_it_is(tmp_path: Path, project: Project) -> None:
    own = checkout(tmp_path)
    own.folder.parent.mkdir()
    project.git("clone", "--quiet", ".", str(own.folder))
    own.update(str(project.path), project.git("rev-parse", "second"))
    first = project.git("rev-parse", "first")
    with pytest.raises(GpubenchError, match=rf"of alpha is at \w{{8}}, .* {first[:8]}: check that"):
        own.update(str(project.path), first)
    assert (own.folder / "file").read_text() == "second"


def test_a_commit_that_was_not_pushed_is_named(tmp_path: Path, project: Project) -> None:
    missing = "0123456789abcdef0123456789abcdef01234567"
    with pytest.raises(GpubenchError, match=rf"git checkout in .*: .*{missing}"):
        checkout(tmp_path).update(str(project.path), missing)
    with pytest.raises(GpubenchError, match=r"git clone in .*nowhere"):
        Checkout(tmp_path / "other", "alpha").update(str(tmp_path / "nowhere"), missing)


def test_a_python_of_its_own_measures_what_is_checked_out(tmp_path: Path, project: Project) -> None:
    own = checkout(tmp_path, sys.executable)
    own.update(str(project.path), project.git("rev-parse", "second"))
    share = Share(project.git("rev-parse", "first"), "adding", ("adding__plain",), "alpha", 1.0)
    with pytest.raises(GpubenchError, match="--python measures what is checked out"):
        own.measure(share, {})


def test_what_fails_says_its_last_words(tmp_path: Path) -> None:
    own = Checkout(tmp_path, "alpha")
    said: list[str] = []
    own.say = said.append
    program = "import os\nfor n in range(50): print(n)\nprint(os.environ['A'])\nraise SystemExit(3)"
    with pytest.raises(GpubenchError, match=r"ended with code 3:\n31\n(.*\n)*49\nb$"):
        own.run([sys.executable, "-c", program], {"A": "b"})
    assert said == [*map(str, range(50)), "b"]
    assert own.run([sys.executable, "-c", "raise SystemExit(3)"], ok=(3,)) == []


def test_dask_that_is_measured_does_not_find_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DASK_CONFIG", "DASK_SCHEDULER_ADDRESS", "DASK_DISTRIBUTED__COMM__TLS__CA_FILE"):
        monkeypatch.setenv(name, "of the fleet")
    own = Checkout(tmp_path, "alpha")
    program = "import os; print(*(name for name in os.environ if name.startswith('DASK_')))"
    assert own.run([sys.executable, "-c", program]) == [""]


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
if len(sys.argv) < 2:
    child = [sys.executable, __file__, "child"]
    subprocess.Popen(child, preexec_fn=lambda: os.setpgid(0, 0))
else:
    open("ready", "w").close()
time.sleep(3600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_is_ended_takes_with_it_what_it_started_in_groups_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psutil", reason="Dask has it")
    from gpubench.edge.fleet import checkout as module

    monkeypatch.setattr(module, "ASV_SHUTDOWN_SECONDS", 0.1)
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    own, failures = Checkout(tmp_path, "alpha"), list[GpubenchError]()
    own.say = lambda line: None

    def run() -> None:
        try:
            own.run([sys.executable, str(tmp_path / "stubborn.py")])
        except GpubenchError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until((tmp_path / "ready").exists)
    assert len(left(tmp_path)) == 2
    own.end()
    thread.join(PATIENCE)
    wait_until(lambda: not left(tmp_path))
    assert str(failures[0]).startswith("ended with code -9")
    with pytest.raises(GpubenchError, match="ended before it began"):
        own.run([sys.executable, "-c", ""])
    own.begin()
    assert own.run([sys.executable, "-c", ""]) == []


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def left(tmp_path: Path) -> list[str]:
    """Processes that run the program of this test."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            command = (path / "cmdline").read_text()
        except OSError:
            continue
        if state != "Z" and str(tmp_path / "stubborn.py") in command:
            found.append(command)
    return found


def test_git_says_its_own_last_words(tmp_path: Path) -> None:
    with pytest.raises(GpubenchError, match=r"git rev-parse in .*: fatal: not a git repository"):
        git(tmp_path, "rev-parse", "HEAD")
