"""The hook of pre-commit: a command that there is, with keys that pre-commit knows."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from gpubench.cli import main

CHECKOUT = Path(__file__).parents[2]
KEYS = {
    "id", "name", "description", "entry", "language", "files", "pass_filenames", "require_serial",
}  # fmt: skip
"""Of https://pre-commit.com/#creating-new-hooks."""


def hook() -> dict[str, object]:
    (only,) = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text())
    return dict(only)


def test_the_hook_has_keys_that_pre_commit_knows() -> None:
    assert set(hook()) == KEYS
    assert hook()["language"] == "python"


def test_it_calls_a_command_that_takes_no_files_for_all_suites() -> None:
    program, command = str(hook()["entry"]).split()
    assert program == "gpubench"
    assert command in main.commands
    assert hook()["pass_filenames"] is False


def test_it_runs_for_suites_and_for_code_that_they_name() -> None:
    pattern = re.compile(str(hook()["files"]))
    assert all(map(pattern.search, ("suites/saxpy.yaml", "suites/a/b.yml", "mine/kernels.py")))
    assert not pattern.search("README.md")
