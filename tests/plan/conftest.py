"""Plans of suites that a test writes as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

from gpubench.plan.plan import Plan, build_plan
from gpubench.suite.loading import load_suite

PlanOf = Callable[..., Plan]

PACKAGE = (
    "\n".join(f"def {name}(*arguments): ..." for name in "fgho")
    + """
def make(**constants): ...
def build(**constants): ...
def init(values, generator): ...
def start(values, generator): ...
def draw(values, generator): ...
def another(*arguments): ...
"""
)
"""Text of a module ``pkg`` that has every function which the suites of these tests name."""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pkg.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


HEAD = "version: 1\nsuite: small\nkernels:\n  small:\n"


@pytest.fixture
def plan_of(tmp_path: Path) -> PlanOf:
    """Plan of one kernel, given as the YAML of its fields, in a suite and a kernel ``small``."""

    def made(kernel: str, gpu_count: int = 0) -> Plan:
        text = HEAD + indent(dedent(kernel), "    ")
        return plan_of_text(tmp_path / "small.yaml", text, gpu_count)

    return made


def plan_of_text(path: Path, text: str, gpu_count: int = 0) -> Plan:
    path.write_text(text, encoding="utf-8")
    return build_plan([load_suite(path)], gpu_count)
