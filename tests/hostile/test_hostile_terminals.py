"""Output that nobody reads, that has no room, or that cannot show a character."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    (project / "suites").mkdir()
    (project / "suites" / "small.yaml").write_text(SUITE, encoding="utf-8")
    (project / "terminal_module.py").write_text("def add(a):\n    a += 1\n")
    for day, commit in enumerate("ab", 19_000):
        files = CommitFiles(project / ".asv" / "results", commit * 40, day * 86_400)
        for name, seconds in (("numpy", 2e-3), ("numba", 1e-3)):
            files.time(f"suites.small__{name}.time_kernel", "n=4", seconds)
        files.write()
    return project


def run(project: Path, command: list[str], *python: str, **variables: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, in a process of its own."""
    done = subprocess.run(
        [sys.executable, *python, "-m", "gpubench", *command],
        cwd=project,
        env={**os.environ, **variables},
        capture_output=True,
        timeout=300,
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_disk_is_told_in_a_line(project: Path, command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gpubench", *command],
            cwd=project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )

    assert (done.returncode, done.stderr) == (2, "gpubench: No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS[2:4], ids=" ".join)
def test_who_has_seen_enough_of_an_output_is_told_nothing(
    project: Path, command: list[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", *command],
        cwd=project,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", COMMANDS[4:9], ids=" ".join)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_cannot_show_ends_nothing(
    project: Path, command: list[str], encoding: str
) -> None:
    code, _, said = run(project, command, PYTHONIOENCODING=encoding, COLUMNS="40", TERM="dumb")

    assert (code, said) == (0, "")


@pytest.mark.parametrize("level", ["-O", "-OO"])
def test_an_optimizing_python_changes_nothing(project: Path, level: str) -> None:
    assert run(project, ["check"], level) == run(project, ["check"])


def test_a_schema_without_its_texts_is_refused(project: Path) -> None:
    code, output, said = run(project, ["schema", "--reference"], "-OO")

    assert (code, output) == (2, "")
    assert said.startswith("gpubench: the meanings of fields are docstrings, which Python leaves")
