"""``gpubench count --cpu``: instructions beside each case that is right, and reasons elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main
from gpubench.measure.instructions import Instructions
from gpubench.plan.case import Case

SUITE = """\
version: 1
suite: scale
kernels:
  double:
    sizes: {n: [8]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
    implementations:
      numpy: {function: "doubling:double", backend: numpy}
      again: {function: "doubling:double", backend: numpy}
      threaded: {function: "doubling:double", backend: numpy}
      wrong: {function: "doubling:triple", backend: numpy}
"""

KERNELS = """\
import numpy as np

def double(a, out):
    np.multiply(a, 2, out=out)

def triple(a, out):
    np.multiply(a, 3, out=out)
"""


@pytest.fixture(autouse=True)
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the implementations whose instructions were asked for, all but one of them told."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/scale.yaml").write_text(SUITE)
    (tmp_path / "doubling.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    asked: list[str] = []

    def count(cases: Sequence[Case]) -> list[Instructions]:
        asked.extend(case.implementation_name for case in cases)
        return [
            Instructions(None, "two runs differ")
            if case.implementation_name == "threaded"
            else Instructions(1234567, None, "callgrind", "haswell", 10)
            for case in cases
        ]

    monkeypatch.setattr("gpubench.measure.instructions.count_instructions_of", count)
    return asked


def test_each_right_case_has_its_number_or_the_reason(counted: list[str]) -> None:
    result = CliRunner().invoke(main, ["count", "--cpu"])
    assert result.exit_code == 1, result.output  # for the wrong one
    assert counted == ["numpy", "again", "threaded"]
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["scale.double", "again", "n=8", "right", "1,234,567"] in rows
    assert ["scale.double", "threaded", "n=8", "right"] in rows
    assert "  not counted: scale.double threaded n=8: two runs differ" in result.stdout
    assert (
        "instructions of one call by callgrind, one thread, compiled for haswell; an empty call is "
        "taken off"
    ) in result.stdout
    assert "wrong: scale.double wrong n=8: differs from the baseline" in result.stdout


def test_json_has_the_number_and_how_it_was_counted(counted: list[str]) -> None:
    result = CliRunner().invoke(main, ["count", "--cpu", "-a", "implementation=again", "--json"])
    (case,) = json.loads(result.stdout)["cases"]
    assert case["instructions"] == {
        "count": 1234567,
        "missing": None,
        "counter": "callgrind",
        "processor": "haswell",
        "empty_call": 10,
    }
