"""Suites that are read, and would measure something else than they say, or nothing: ``gpubench
check`` says so, as a fault or as a warning, and ``gpubench plan`` repeats it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpubench.cli import main

SUITE = """\
version: 1
suite: told
backend: numpy
kernels:
  add:
    sizes: {n: [4]}
    arrays:
      a: {shape: [n], dtype: float64}
      b: {shape: [n], dtype: float64, intent: out}
    call: [a, b]
    implementations:
      numpy: {function: "told_module:add"}
      other: {function: "told_module:add_otherwise"}
"""
CALL = "    call: [a, b]\n"
OTHER = '      other: {function: "told_module:add_otherwise"}\n'
KERNEL = 'function: "told_module:kernel", backend: numba_cuda'
DEFAULT = "parameters: {t: {values: [float64], default: float99}}\n    arrays:\n      "

FAULTS = {
    "a device of another spelling": (
        (CALL, f'{CALL}    devices: [cpu, "cudda:0"]\n'),
        "no backend runs on 'cudda:0'; the processor is cpu, a GPU is cuda:0",
    ),
    "a half as a whole number": (
        (CALL, "    scalars: {s: {value: 1.5, dtype: int32}}\n    call: [a, b, s]\n"),
        "scalars.s.value",
    ),
    "a fill of a half into whole numbers": (
        ("{shape: [n], dtype: float64}", "{shape: [n], dtype: int32, fill: 1.5}"),
        "int32 takes whole numbers",
    ),
    "a default that is no dtype": (
        ("arrays:\n      a: {shape: [n], dtype: float64}", f"{DEFAULT}a: {{shape: [n], dtype: t}}"),
        "unknown dtype 'float99'",
    ),
    "a block for an implementation that has none": (
        (CALL, f"    include: [{{implementation: other, values: {{n: 8}}, block: [32]}}]\n{CALL}"),
        "the backend numpy launches nothing: remove `block`",
    ),
    "a function that is not there, in a preset's kernel": (
        ("told_module:add_otherwise", "told_module:ad"),
        "module 'told_module' has no 'ad'",
    ),
}
WARNINGS = {
    "a rule that skips every case": (
        (CALL, f"{CALL}    skip: [{{when: n > 0, reason: none is wanted}}]\n"),
        "warning: these rules skip every case",
    ),
    "one function under two names": (
        ("told_module:add_otherwise", "told_module:add"),
        "warning: 'other' is 'numpy' under another name; remove one of them",
    ),
    "a rule without a case": (
        (CALL, f"{CALL}    exclude: [{{when: n == 50}}]\n"),
        "warning: this rule excludes no case: `n == 50`",
    ),
    "an implementation that no device serves": (
        (OTHER, f"      other: {{{KERNEL}, launch: {{block: [32], grid: cover}}}}\n"),
        "warning: 'other' has no cases",
    ),
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "suites").mkdir()
    (tmp_path / "told_module.py").write_text(
        "def add(a, b): ...\ndef add_otherwise(a, b): ...\ndef kernel(a, b): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    return tmp_path


def told(command: str, change: tuple[str, str] = ("", "")) -> tuple[int, str]:
    """Exit code and errors."""
    old, new = change
    assert old in SUITE
    Path("suites/told.yaml").write_text(SUITE.replace(old, new, 1) if old else SUITE)
    done = CliRunner().invoke(main, [command])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stderr


def test_of_the_suite_itself_nothing_is_told() -> None:
    assert told("check") == told("plan") == (0, "")


@pytest.mark.parametrize("name", FAULTS)
def test_a_suite_that_cannot_mean_what_it_says_is_refused(name: str) -> None:
    change, words = FAULTS[name]

    code, said = told("check", change)

    assert code == 2
    assert "suites/told.yaml:" in said and words in said


@pytest.mark.parametrize("name", WARNINGS)
def test_a_suite_that_measures_less_than_it_says_is_warned_of(name: str) -> None:
    change, words = WARNINGS[name]
    for command in ("check", "plan"):
        code, said = told(command, change)

        assert code == 0
        assert "suites/told.yaml:" in said and words in said


@pytest.mark.parametrize("name", FAULTS)
def test_plan_tells_of_what_check_refuses(name: str) -> None:
    change, words = FAULTS[name]

    _, said = told("plan", change)

    assert words in said
