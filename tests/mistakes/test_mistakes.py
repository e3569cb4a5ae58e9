"""Forty mistakes that new users make, each with its message and with the mend that it names.

``mistakes.yaml`` is written to be read: what the commands say of a wrong suite, a wrong name and a
wrong command line stands there as text.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gpubench.cli import main

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))

MAX_LINES = 2
"""Of what a mistake prints."""

PROJECT = {
    "suites/scale.yaml": """\
version: 1
suite: scale
kernels:
  scale:
    sizes: {n: [64, 4096]}
    arrays:
      a: {shape: [n], dtype: float32}
      out: {shape: [n], dtype: float32, intent: out}
    scalars: {factor: {value: 2.5, dtype: float32}}
    call: [factor, a, out]
    implementations:
      numpy: {function: "mine:scale"}
      numba: {function: "mine:scale_loop"}
      numba_cuda: {function: "mine:scale_threads", launch: {block: [64]}}
    devices: [cpu, "cuda:0"]
    work: {bytes: 2 * n * itemsize(a), flops: n}
presets:
  smoke: {sizes: {n: [8]}}
""",
    "suites/sums.yaml": """\
version: 1
suite: sums
kernels:
  total:
    sizes: {n: [64]}
    arrays:
      a: {shape: [n], dtype: float64, fill: uniform}
      out: {shape: [1], dtype: float64, intent: inout, fill: zeros}
    call: [a, out]
    implementations:
      numpy: {function: "mine:total"}
      numba_cuda: {function: "mine:total_threads", launch: {block: [32], over: [n]}}
    devices: [cpu, "cuda:0"]
presets:
  smoke: {sizes: {n: [8]}}
""",
    "mine.py": """\
import numpy as np
from numba import cuda, njit


def scale(factor, a, out):
    np.multiply(a, factor, out=out)


@njit
def scale_loop(factor, a, out):
    for i in range(a.size):
        out[i] = factor * a[i]


@cuda.jit
def scale_threads(factor, a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = factor * a[i]


def total(a, out):
    out[0] = a.sum()


@cuda.jit
def total_threads(a, out):
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(out, 0, a[i])
""",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    monkeypatch.delenv("GPUBENCH_SUITES", raising=False)
    monkeypatch.setattr("gpubench.backends.devices.gpu_count", lambda: 0)
    return tmp_path


def change(project: Path, edits: list[list[str]]) -> None:
    for name, old, new in edits:
        text = (project / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        (project / name).write_text(text.replace(old, new, 1), encoding="utf-8")


def run(command: str | list[str]) -> Result:
    program, *arguments = shlex.split(command) if isinstance(command, str) else command
    assert program == "gpubench"
    return CliRunner().invoke(main, arguments, prog_name="gpubench")


def printed(result: Result, project: Path) -> list[str]:
    """Lines on standard error, without the count of faults at the end."""
    lines = result.stderr.replace(f"{project}/", "HERE/").splitlines()
    return [line for line in lines if not line.endswith((" fault", " faults"))]


@pytest.mark.parametrize("one", MISTAKES, ids=[one["mistake"] for one in MISTAKES])
def test_a_mistake_is_told_in_two_lines_whose_mend_works(
    one: dict[str, Any], project: Path
) -> None:
    change(project, one.get("change", []))
    result = run(one["run"])
    lines = printed(result, project)
    assert lines == one["prints"]
    assert 0 < len(lines) <= MAX_LINES
    assert result.exit_code == (0 if all(": warning: " in line for line in lines) else 2)
    match one.get("mend"):
        case [[*_], *_] as edits:
            change(project, edits)
            mended = run(one["run"])
        case None:  # it would measure, or needs results
            return
        case command:
            mended = run(command)
    assert (mended.exit_code, mended.stderr) == (0, "")


def test_the_project_has_no_fault_and_the_table_has_forty(project: Path) -> None:
    result = run("gpubench check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert sum("mend" in one for one in MISTAKES) >= 40
    assert len({one["mistake"] for one in MISTAKES}) == len(MISTAKES)
