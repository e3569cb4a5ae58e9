"""A project with a suite and the results of two commits, and its commands in processes."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from result_files import CommitFiles

COMMANDS = (
    ["check"],
    ["plan"],
    ["plan", "--json"],
    ["schema"],
    ["report"],
    ["choose"],
    ["compare", "aaaa", "bbbb", "--all", "--markdown"],
    ["query", "select * from results"],
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


def as_anybody() -> None:
    """Without root's rights to write and to read where nobody may: PR_CAPBSET_DROP of
    CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH; a ``preexec_fn``."""
    for right in (1, 2):
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # which only root needs to, and can
