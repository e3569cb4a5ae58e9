"""Names, formulas and reasons come from files of others: a terminal never obeys them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.cli.console import ERR, watched
from gpubench.cli.safe_console import SafeConsole

NUMPY = "suites.add__numpy.time_kernel"
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b1m\u202eback\x7f"
IN_YAML = r"\e]0;owned\a\e[31mred\x9b1m\u202eback\x7f"

SUITE = f"""\
version: 1
suite: add
title: "{IN_YAML}"
kernels:
  add:
    sizes: {{n: [4, 8]}}
    parameters: {{kind: ["{IN_YAML}", "x[/x]", "[bold]y"]}}
    arrays:
      a: {{shape: [n], dtype: float32, intent: inout}}
    scalars: {{s: {{dtype: float32, value: "n if kind == 'x[/x]' else 1"}}}}
    call: [a, s]
    implementations:
      numpy: {{function: "add_kernels:add", title: "{IN_YAML}"}}
    devices: [cpu]
    exclude:
      - {{when: "kind == '{IN_YAML}' and n == 8"}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "add.yaml").write_text(SUITE)
    (tmp_path / "add_kernels.py").write_text("def add(a, s): ...\n")
    files = CommitFiles(tmp_path / ".asv" / "results", "a" * 40, 86_400, machine="m")
    files.time(NUMPY, f"n=4 kind={HOSTILE}", 4.0)
    files.record(NUMPY, f"n=4 kind={HOSTILE}", backend="numpy", device="cpu", title=HOSTILE)
    files.time(NUMPY, "n=8 kind=[/x]", 4.0)
    files.record(NUMPY, "n=8 kind=[/x]", "failed", reason=f"[/y]{HOSTILE}")
    files.facts(cpu=HOSTILE, gpu="[/gpu]")
    files.write()
    (tmp_path / ".asv" / "results" / "m" / f"bad{HOSTILE}-env.json").write_text("no JSON")
    return tmp_path


def run(*arguments: str) -> str:
    """Both outputs, with what rich itself styles by colour and weight."""
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout + result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("plan",),
        ("plan", "--list"),
        ("plan", "-a", "n=4"),
        ("plan", "--json"),
        ("plan", "--explain", f"n=4 kind={HOSTILE}"),
        ("choose",),
        ("choose", "--json"),
        ("advise", "add"),
        ("advise", "add", "-a", "n=4"),
        ("query", "select * from results"),
        ("query", "--json", "select * from results"),
        ("compare", ".asv/results", ".asv/results", "--all"),
        ("compare", ".asv/results", ".asv/results", "--all", "--markdown"),
        ("report",),
    ],
    ids=" ".join,
)
def test_no_output_has_control_characters_of_files(
    project: Path, arguments: tuple[str, ...]
) -> None:
    shown = run(*arguments)

    assert shown
    for sequence in ("\x1b]", "\x1b[31m", "\x9b", "\x07", "\x7f", "\u202e"):
        assert sequence not in shown


def test_faults_show_them_as_question_marks(project: Path) -> None:
    (project / "suites" / "add.yaml").write_text(SUITE.replace("n == 8", f"unheard == '{IN_YAML}'"))
    (project / "suites" / "\x1b[31mred.yaml").write_text("version: 2\n")

    shown = run("check")

    assert "\x1b[31m" not in shown
    assert "?[31mred.yaml" in shown


def test_markup_of_rich_in_a_parameter_is_text(project: Path) -> None:
    shown = run("plan", "-a", "n=4")

    assert "x[/x]" in shown
    assert "[bold]y" in shown


def test_csv_for_other_programs_is_as_it_is_and_on_a_terminal_it_is_not(project: Path) -> None:
    sql = 'select "case" from results where "case" like \'%owned%\''

    assert HOSTILE in run("query", "--csv", sql)
    shown = on_a_terminal("query", "--csv", sql)
    assert b"owned" in shown
    assert b"\x1b" not in shown


def on_a_terminal(*arguments: str) -> bytes:
    """What a process with a terminal for its standard output writes there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from gpubench.cli import main; main()", *arguments]
    subprocess.run(command, stdout=theirs, stderr=subprocess.DEVNULL, check=True, timeout=100)
    os.close(theirs)
    written = b""
    with suppress(OSError):  # Linux's way of saying that the other side has ended
        while part := os.read(ours, 65536):
            written += part
    os.close(ours)
    return written


def test_a_place_in_a_file_is_no_emoji(project: Path) -> None:
    blank = "\n" * 97
    (project / "suites" / "add.yaml").write_text(f"version: 1\nsuite: add\n{blank}unheard: 1\n")

    assert "suites/add.yaml:100:1: " in run("check")


def test_the_progress_bar_takes_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    console = SafeConsole(force_terminal=True, width=200, emoji=False)
    monkeypatch.setattr(ERR, "rich", console)

    with console.capture() as captured, watched(1) as work:
        work.advance("x[/x] \x1b[31mred", 1)

    shown = captured.get()
    assert "x[/x]" in shown
    assert "\x1b[31mred" not in shown
