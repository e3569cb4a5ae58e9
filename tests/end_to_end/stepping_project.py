"""A small project that is killed while asv measures it, and how it is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from asv_project import CHECKOUT, CUDA_SAMPLE, HERE, Project

from gpubench.record import CaseRecord, RoundsRecord, RunRecord, parse_line

SUITE = """\
version: 1
suite: steps
kernels:
  add:
    sizes: {n: [8, 16, 32]}
    measure: [kernel, compile]
    arrays: {a: {shape: [n], dtype: float64, fill: normal, intent: inout}}
    call: [a]
    implementations:
      numpy: {function: "steps_kernels:add", backend: numpy}
      numba: {function: "steps_kernels:add_numba", backend: numba}
    sampling: {rounds: 1, repeat: 30, warmup_time: 0, sample_time: 0.0001}
  twice:
    sizes: {n: [8, 16]}
    arrays: {a: {shape: [n], dtype: float64, fill: normal, intent: inout}}
    call: [a]
    implementations:
      numpy: {function: "steps_kernels:add", backend: numpy}
      failing: {function: "steps_kernels:fail", backend: numpy}
    sampling: {rounds: 2, repeat: 5, warmup_time: 0, sample_time: 0.0001}
"""
KERNELS = """\
import numba


def add(a):
    a += 1


@numba.njit
def add_numba(a):
    for i in range(a.size):
        a[i] += 1


def fail(a):
    raise ValueError("as it always does")
"""
RUN = ("run", *HERE)
"""Measures the one commit; exit code 2, since a benchmark fails."""

Place = tuple[str, str]
"""asv's benchmark, and a case."""


def make_stepping_project(path: Path, environment: dict[str, str]) -> Project:
    """A repository of one commit, ``only``, that is not measured."""
    (path / "suites").mkdir(parents=True)
    (path / "suites/steps.yaml").write_text(SUITE)
    (path / "steps_kernels.py").write_text(KERNELS)
    shutil.copy(CUDA_SAMPLE / "asv.conf.json", path)
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "benchmarks", path / "benchmarks", ignore=caches)
    (path / ".gitignore").write_text("/.asv/\n/reports/\n__pycache__/\n")
    project = Project(path, {**environment, "ASV_PYTHONPATH": str(path)})
    project.git("init", "--quiet", "--initial-branch=main")
    project.commit("only", 1)
    project.asv("machine", "--yes")
    return project


def lines(project: Project) -> list[RunRecord | CaseRecord | RoundsRecord]:
    """Read its records but for a last line that a running asv has not yet written to the end."""
    files = project.results.glob("*/*.gpubench.jsonl")
    written = (file.read_text().rpartition("\n")[0] for file in files)
    return [parse_line(line) for text in written for line in text.splitlines()]


def started(project: Project) -> list[Place]:
    """Each time that a case was begun."""
    records = (line for line in lines(project) if isinstance(line, CaseRecord))
    return [(record.benchmark, record.case) for record in records if record.status == "started"]


def start(
    project: Project, *command: str, errors: int | IO[bytes] = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """A command in a session of its own; ``errors`` gets what it writes to standard error."""
    return subprocess.Popen(
        command,
        cwd=project.path,
        env=project.environment,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )


def processes_of(session: int) -> list[int]:
    """Those of one session: asv gives each process that it starts a group of its own."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *fields = status.read_text().rpartition(") ")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[2]) == session and state != "Z":
            found.append(int(status.parent.name))
    return found


def kill(process: subprocess.Popen[bytes], how: str) -> int:
    """End a command: ``first`` is it alone, as by a user or a lack of memory, ``all`` its session,
    as by a batch system, ``SIGTERM`` and ``SIGHUP`` ask it alone to end, and ``ctrl-c`` is a
    terminal's; its exit code, when nobody of it is left."""
    if how in ("SIGTERM", "SIGHUP"):
        process.send_signal(signal.Signals[how])
    elif how == "first":  # what it had started goes on
        process.kill()
    elif how == "ctrl-c":
        with suppress(ProcessLookupError):  # ended meanwhile
            os.killpg(process.pid, signal.SIGINT)
    else:
        for member in processes_of(process.pid):
            with suppress(ProcessLookupError):  # ended meanwhile
                os.kill(member, signal.SIGKILL)
    code = process.wait(timeout=1200)
    deadline = time.monotonic() + 1200
    while processes_of(process.pid):
        assert time.monotonic() < deadline, "a process of the killed command does not end"
        time.sleep(0.02)
    return code
