"""The example of docs/suite-format.md, as a reader would run it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.suite.loading import load_suite
from gpubench.suite.reader import read_suite_text

PAGE = (Path(__file__).parents[2] / "docs/suite-format.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## A suite of one's own")[2].partition("\n## ")[0]
BLOCK = re.compile(r"(?:^`([\w.]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who wrote the page's files."""
    folder = tmp_path_factory.mktemp("reader")
    for name, _, text in BLOCK.findall(SECTION):
        if name:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def commands() -> list[str]:
    (lines,) = (text for name, language, text in BLOCK.findall(SECTION) if not (name or language))
    return lines.splitlines()


def run(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("preset", [None, "S"])
def test_the_example_has_no_fault(preset: str | None, folder: Path) -> None:
    assert list(load_suite(folder / "rods.yaml", preset).suite.kernels) == [
        "spread",
        "sums",
        "smallest",
    ]


@pytest.mark.slow
def test_its_commands_run(folder: Path) -> None:
    check, time = commands()

    assert run(check, folder)
    table = run(time, folder)

    for name in ("n=100 steps=5", "n=200 steps=5", "rows=50", "n=100", "cumulative", "partitioned"):
        assert name in table
    assert not {"wrong", "failed"} & set(table.split())


@pytest.mark.slow
def test_a_function_that_takes_other_arguments_is_a_fault_of_the_check(folder: Path) -> None:
    text = (folder / "rods.py").read_text(encoding="utf-8")
    (folder / "rods.py").write_text(text.replace("ragged(values, generator)", "ragged(values)"))
    try:
        with pytest.raises(AssertionError, match=r"rods.yaml:24:22: rods:ragged takes \(values\)"):
            run(commands()[0], folder)
    finally:
        (folder / "rods.py").write_text(text)


def test_every_fragment_of_the_page_is_yaml_that_a_suite_may_hold() -> None:
    fragments = [text for _, language, text in BLOCK.findall(PAGE) if language == "yaml"]

    assert len(fragments) > 5
    for text in fragments:
        assert read_suite_text(text, "page")[1] == (), text
