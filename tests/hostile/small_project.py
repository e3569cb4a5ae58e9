"""A project with a suite and the results of two commits, and its commands in processes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main

COMMANDS = (
    ["check"],
    ["plan"],
    ["plan", "--json"],
    ["schema"],
    ["report"],
    ["choose"],
    ["compare", "aaaa", "bbbb", "--all", "--markdown"],
    ["query", "select kernel, identity, reason from results"],
    ["query", "select * from results", "--csv"],
    ["--help"],
)
SUITE = """\
version: 1
suite: small
title: "größe 日本"
kernels:
  small:
    sizes: {n: [4, 8]}
    arrays: {a: {shape: [n], dtype: float64, intent: inout}}
    call: [a]
    implementations:
      numpy: {function: "terminal_module:add"}
"""


def make_small_project(project: Path) -> Path:
    """Write it into a folder."""
    (project / "suites").mkdir(parents=True)
    (project / "suites" / "small.yaml").write_text(SUITE, encoding="utf-8")
    (project / "terminal_module.py").write_text("def add(a):\n    a += 1\n")
    for day, commit in enumerate("ab", 19_000):
        files = CommitFiles(project / ".asv" / "results", commit * 40, day * 86_400)
        for name, seconds in (("numpy", 2e-3), ("numba", 1e-3)):
            files.time(f"suites.small__{name}.time_kernel", "n=4", seconds)
        files.write()
    return project


def thorough(value: Any) -> Any:
    """Mark a parameter for ``make test-thorough``, whose rule another parameter of the test has."""
    return pytest.param(value, marks=pytest.mark.thorough)


def run(
    project: Path, command: list[str], *python: str, how: Any = None, **variables: str
) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, in a process of its own; ``how`` are arguments of
    ``subprocess.run``."""
    done = subprocess.run(
        [sys.executable, *python, "-m", "gpubench", *command],
        **{"cwd": project, "env": {**os.environ, **variables}, **(how or {})},
        capture_output=True,
        timeout=300,
    )
    decoded = (stream.decode(errors="surrogateescape") for stream in (done.stdout, done.stderr))
    return done.returncode, *decoded


def run_each(project: Path, commands: list[list[str]], *python: str) -> list[tuple[int, str, str]]:
    """Run several commands so, one after another in one process: to start it takes longer
    than most of them."""
    done = subprocess.run(
        [sys.executable, *python, "-c", _EACH, json.dumps(commands)],
        cwd=project,
        capture_output=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return [(code, said, told) for code, said, told in json.loads(done.stdout)]


def run_here(project: Path, commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """Run a command in the process of the tests."""
    with contextlib.chdir(project):
        done = [CliRunner().invoke(main, command) for command in commands]
    return [(each.exit_code, each.stdout, each.stderr) for each in done]


_EACH = """
import json, sys
from click.testing import CliRunner
from gpubench.cli import main
done = [CliRunner().invoke(main, command) for command in json.loads(sys.argv[1])]
print(json.dumps([(each.exit_code, each.stdout, each.stderr) for each in done]))
"""


@contextmanager
def ended_after(seconds: float = 120.0) -> Iterator[None]:
    """Fail a test whose block takes longer: who opens a pipe waits for ever. No code that is tested
    catches this failure."""

    def late(*_: object) -> None:
        pytest.fail(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def as_anybody() -> None:
    """Drop root's rights to write and to read where nobody may: PR_CAPBSET_DROP of
    CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH; a ``preexec_fn``."""
    for right in (1, 2):
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # which only root needs to, and can
