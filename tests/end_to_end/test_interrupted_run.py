"""A run that is interrupted or killed goes on where it was: nothing twice, nothing lost."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from asv_project import Project
from stepping_project import kill, processes_of, start

pytestmark = pytest.mark.ci

RUN = ("run", "--bench", "increment", "slower..main")
NEWER, OLDER = "mended", "wrong"
"""asv begins with the newest commit."""


def run_until_the_second_commit(project: Project, how: signal.Signals) -> int:
    """Start a run, stop it when it is measuring the second commit; the exit code."""
    process = subprocess.Popen(
        ["asv", *RUN],
        cwd=project.path,
        env=project.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while process.poll() is None and not begun(project, OLDER):
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, how)
    return process.wait(timeout=60)


def begun(project: Project, tag: str) -> bool:
    return project.has_record(tag) and bool(project.measured(tag))


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGINT, id="interrupted"),
        # test_killed_within_a_commit.py has runs that are killed, and go on within a commit.
        pytest.param(signal.SIGKILL, id="killed", marks=pytest.mark.thorough),
    ],
)
def test_a_stopped_run_is_resumed(project: Project, tmp_path: Path, how: signal.Signals) -> None:
    copy = project.copy(tmp_path / "toolkit")
    assert run_until_the_second_commit(copy, how) != 0
    assert copy.has_result(NEWER)
    assert not copy.has_result(OLDER)
    before = copy.result(NEWER), copy.records(NEWER)

    copy.asv(*RUN[:-1], "--skip-existing", RUN[-1])

    assert (copy.result(NEWER), copy.records(NEWER)) == before
    assert set(copy.times(OLDER)) == set(copy.times(NEWER))
    assert all(copy.times(OLDER).values())


def test_a_finished_run_is_not_measured_again(history: Project, tmp_path: Path) -> None:
    copy = history.copy(tmp_path / "toolkit", results=True)
    before = {tag: copy.records(tag) for tag in ("good", "slower", "wrong", "mended")}
    copy.asv("run", "--skip-existing", "start..main")
    assert {tag: copy.records(tag) for tag in before} == before


def test_a_run_that_is_interrupted_while_it_starts_its_server_ends(
    project: Project, tmp_path: Path
) -> None:
    """asv has begun to start the process that it forks for each case, and not yet heard of it."""
    copy = project.copy(tmp_path / "toolkit")
    process = start(copy, "asv", *RUN, "--launch-method", "forkserver")
    while process.poll() is None and not serving(process.pid):
        time.sleep(0.001)

    assert kill(process, "ctrl-c") != 0


INTERRUPTED = """
import os, signal, subprocess, sys
from gpubench.asv_plugin import ForkServer

class Environment:
    env_vars = {}

    def run(self, arguments, **options):
        program = "import socket, sys, time; "
        program += "socket.socket(socket.AF_UNIX).bind(sys.argv[1]); time.sleep(60)"
        command = [sys.executable, "-c", program, arguments[-1]]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        os.kill(os.getpid(), signal.SIGINT)
        return self.server

environment = Environment()
try:
    ForkServer(environment, ".")
except KeyboardInterrupt:
    print("left" if environment.server.poll() is None else "ended")
"""


def test_a_server_that_asv_does_not_know_yet_is_ended_too() -> None:
    """Ctrl-C comes after its process has begun and before asv has it in hand."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr


KILLED = """
import os, signal, subprocess, sys
from gpubench.asv_plugin import ForkServer

def end():
    os.kill(os.getpid(), signal.SIGKILL)

class Environment:
    env_vars = {}

    def run(self, arguments, **options):
        server = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=options["env"],
            start_new_session=True,
        )
        print(server.pid, flush=True)
        if sys.argv[1] == "starting":
            end()
        return server

ForkServer(Environment(), ".")
end()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process ends with its parent on Linux alone")
@pytest.mark.parametrize("moment", ["starting", "ready"])
def test_a_server_that_asv_has_asked_nothing_yet_ends_with_it(moment: str) -> None:
    """It has imported nothing of the benchmarks, and would wait for its first order for ever."""
    done = subprocess.run([sys.executable, "-c", KILLED, moment], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    server = int(done.stdout)
    try:
        with suppress(ProcessLookupError):  # it has ended, and somebody has seen it
            ended, _, _ = select.select([os.pidfd_open(server)], [], [], 60)
            assert ended
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


def serving(session: int) -> bool:
    commands = (Path(f"/proc/{one}/cmdline") for one in processes_of(session))
    return any(b"run_server" in command.read_bytes() for command in commands if command.exists())
