"""Output that nobody reads, that has no room, or that cannot show a character."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from small_project import COMMANDS, make_small_project, run, thorough

FEW = (["check"], ["query", "select * from results", "--csv"])
"""Of the commands: a list and CSV."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_project(tmp_path_factory.mktemp("terminal") / "project")


@pytest.mark.parametrize(
    "command",
    [one if one in FEW else thorough(one) for one in COMMANDS],
    ids=map(" ".join, COMMANDS),
)
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


@pytest.mark.parametrize("command", COMMANDS[2:3], ids=" ".join)
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


@pytest.mark.parametrize("encoding", ["ascii", thorough("latin-1")])
def test_what_a_terminal_cannot_show_ends_nothing(project: Path, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EACH, json.dumps(COMMANDS[4:9])],
        cwd=project,
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "40", "TERM": "dumb"},
        capture_output=True,
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, b"")


_EACH = """
import json, sys
from gpubench.cli import main
for command in json.loads(sys.argv[1]):
    try:
        main(command)
    except SystemExit as end:
        assert not end.code, command
"""
"""One after another in one process, to a stream of that process."""


@pytest.mark.parametrize("command", ["time", "verify"])
def test_what_was_measured_is_told_on_a_terminal_of_ascii(project: Path, command: str) -> None:
    code, output, said = run(
        project, [command, "suites/small.yaml"], PYTHONIOENCODING="ascii", LANG="C", COLUMNS="40"
    )

    assert code == 0, said
    assert "Traceback" not in said
    assert "numpy" in output
    assert (output + said).isascii()


@pytest.mark.parametrize("level", [thorough("-O"), "-OO"])
def test_an_optimizing_python_changes_nothing(project: Path, level: str) -> None:
    assert run(project, ["check"], level) == run(project, ["check"])


def test_a_schema_without_its_texts_is_refused(project: Path) -> None:
    code, output, said = run(project, ["schema"], "-OO")

    assert (code, output) == (2, "")
    assert said.startswith("gpubench: the meanings of fields are docstrings, which Python leaves")


def test_a_write_that_is_cut_short_is_an_error_without_a_buffer_too(
    project: Path, tmp_path: Path
) -> None:
    with (tmp_path / "cut").open("w") as file:
        done = subprocess.run(
            # -B: Python would keep a compiled module of which it could write a part.
            [sys.executable, "-Bu", "-m", "gpubench", "schema"],
            cwd=project,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        )

    assert (done.returncode, done.stderr) == (2, "gpubench: File too large\n")


@pytest.mark.parametrize(
    ("closed", "ends"),
    [
        ("<&-", (0, "", True)),
        ("2>&-", (0, "", True)),
        (
            ">&-",
            (2, "gpubench: standard output is closed; send it to a file or to /dev/null\n", False),
        ),
        ("<&- >&- 2>&-", (2, "", False)),
    ],
)
def test_a_closed_stream_is_told_in_a_line(
    project: Path, closed: str, ends: tuple[int, str, bool]
) -> None:
    command = ["sh", "-c", f'"$0" -m gpubench check {closed}', sys.executable]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stderr, done.stdout != "") == ends
