"""Four kinds of projects, each from its first command to a report: a package in ``src``, scripts,
a project that has asv, and one of several packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from asv_project import HERE, Project, isolated_environment

pytestmark = [pytest.mark.thorough, pytest.mark.end_to_end]

FUNCTIONS = """\
import numpy as np
from numba import njit


def double_numpy(x, out):
    np.multiply(x, 2, out=out)


@njit
def double_numba(x, out):
    for i in range(x.size):
        out[i] = 2 * x[i]
"""
PYPROJECT = """\
[project]
name = "{name}"
version = "1"

[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
"""
ASV = '{"version": 1, "project": "tool", "repo": ".", "branches": ["main"]}\n'
OWN_BENCHMARK = "def time_nothing():\n    pass\n"

KINDS = {
    "src": (
        {"pyproject.toml": PYPROJECT.format(name="tool"), "src/tool/__init__.py": ""},
        "src/tool/double.py", "tool.double", "src",
    ),
    "scripts": ({}, "double.py", "double", ""),
    "asv": (
        {"asv.conf.json": ASV, "benchmarks/__init__.py": "", "benchmarks/own.py": OWN_BENCHMARK},
        "tool/double.py", "tool.double", "",
    ),
    "several packages": (
        {
            "packages/one/pyproject.toml": PYPROJECT.format(name="one"),
            "packages/one/one/__init__.py": "",
            "packages/two/pyproject.toml": PYPROJECT.format(name="two"),
            "packages/two/two/__init__.py": "",
        },
        "packages/one/one/double.py", "one.double", "packages/one",
    ),
}  # fmt: skip
"""Files of a project, its module by path and by name, and where Python imports it from. An install
that ``pip install -e`` makes is a path of this kind."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_project_of_each_kind_gets_from_init_to_a_report(tmp_path: Path, kind: str) -> None:
    files, path, module, root = KINDS[kind]
    home = tmp_path / "home"
    home.mkdir()
    environment = isolated_environment(home)
    project = Project(tmp_path / "work", environment)
    for name, text in {**files, path: FUNCTIONS}.items():
        (project.path / name).parent.mkdir(parents=True, exist_ok=True)
        (project.path / name).write_text(text)
    environment["PYTHONPATH"] = str(project.path / root)
    project.git("init", "--quiet", "--initial-branch=main")
    gpubench = (sys.executable, "-m", "gpubench")

    project.run(*gpubench, "init")
    project.run(
        *gpubench, "add", f"{module}:double_numba", "--baseline", f"{module}:double_numpy",
        "--size", "n=1000,1001",
    )  # fmt: skip
    assert "right" in project.run(*gpubench, "verify", "double_numba").stdout
    project.git("add", ".")
    project.git("commit", "--quiet", "--message", "Benchmarks")
    project.git("tag", "only")
    project.asv("machine", "--yes")
    project.asv("run", *HERE, "--bench", "double_numba", GPUBENCH_PRESET="smoke")

    report = project.run(*gpubench, "report").stdout.strip()
    page = (project.path / report).read_text()
    assert "double_numba" in page
    assert "the speed of the baseline" in page
