"""What stands in a suite is data: neither YAML nor a formula runs anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main

SUITE = """\
version: 1
suite: add
title: TITLE
kernels:
  add:
    sizes: {n: [4, 8]}
    arrays:
      a: {shape: [n], dtype: float32, intent: inout}
    call: [a]
    implementations:
      numpy: {function: "add_kernels:add"}
    devices: [cpu]
    exclude: [{when: "FORMULA"}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "add_kernels.py").write_text("def add(a): ...\n")
    return tmp_path


def check(project: Path, *, title: str = "t", formula: str = "n == 4") -> str:
    suite = SUITE.replace("TITLE", title).replace("FORMULA", formula)
    (project / "suites" / "add.yaml").write_text(suite)
    result = CliRunner().invoke(main, ["check"])
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert not (project / "ran").exists()
    return result.stderr


def test_the_suite_is_right_as_it_stands(project: Path) -> None:
    assert check(project) == ""


@pytest.mark.parametrize(
    "tagged",
    [
        '!!python/object/apply:os.system ["touch ran"]',
        "!!python/object/apply:os.mkdir [ran]",
        '!!python/object/new:os.mkdir ["ran"]',
        "!!python/name:os.system",
        '!!python/module:os ""',
        "!exec \"open('ran', 'w')\"",
    ],
)
def test_a_tag_of_yaml_makes_no_object(project: Path, tagged: str) -> None:
    assert "suites/add.yaml:3:" in check(project, title=tagged)


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').mkdir('ran')",
        "open('ran', 'w')",
        "exec('import os')",
        "().__class__.__mro__",
        "n.__class__",
        "[open('ran', 'w') for i in [1]]",
        "(lambda: open('ran', 'w'))()",
        "f'{n}'",
        "(x := 1)",
        "min.__self__.open('ran', 'w')",
    ],
)
def test_a_formula_calls_nothing_of_python(project: Path, formula: str) -> None:
    assert "suites/add.yaml:13:" in check(project, formula=formula)
