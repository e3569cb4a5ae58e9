"""What `make bench` prints: a line of progress to a terminal, a summary and no more elsewhere."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from gpubench.tables import run_summary

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import bench  # noqa: E402

LINES = [
    "· Creating environments\n",
    "[  0.00%] · For gpubench commit 10bd919a:\n",
    *(f"[ {n / 10:.2f}%] ··· suites.sums__total.time_kernel   ok\n" for n in range(999)),
    "· gpubench: best speedup 4.0x\n",
    f"gpubench: {run_summary.NEXT}\n",
]


def test_a_file_gets_the_lines_of_gpubench_but_for_the_next_command_and_the_log_has_all() -> None:
    log = io.StringIO()

    summary = bench.follow(LINES, log, None)

    assert summary == ["gpubench: best speedup 4.0x"]
    assert log.getvalue() == "".join(LINES)


def test_a_terminal_gets_one_line_that_is_written_again() -> None:
    terminal = io.StringIO()

    bench.follow(LINES, io.StringIO(), terminal)

    shown = terminal.getvalue()
    assert "\n" not in shown
    assert "99.80 % suites.sums__total.time_kernel   ok" in shown
    assert shown.endswith("\r\x1b[K"), "nothing is left of it"


def test_many_lines_are_shortened_to_the_last_ones() -> None:
    said = list(bench.shortened([f"gpubench: {n} {'x' * 999}" for n in range(300)]))

    assert len(said) < 30
    assert said[0] == f"275 more lines: {bench.LOG}"
    assert said[-1].startswith("gpubench: 299 ")
    assert max(map(len, said)) <= bench.MAX_LINE_CHARACTERS


@pytest.mark.parametrize(
    ("preset", "gpu", "asked", "expected"),
    [
        ("smoke", "none here", None, "1"),
        ("full", "none here", None, None),
        ("smoke", None, None, None),
        ("smoke", "none here", "0", "0"),
    ],
)
def test_cuda_runs_in_software_for_smoke_alone_and_only_without_a_gpu(
    preset: str,
    gpu: str | None,
    asked: str | None,
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".asv-machine.json").write_text("{}")
    monkeypatch.setenv("GPUBENCH_PRESET", preset)
    monkeypatch.setenv(bench.softcuda_here.SWITCH, "")
    monkeypatch.delenv(bench.softcuda_here.SWITCH)
    if asked is not None:
        monkeypatch.setenv(bench.softcuda_here.SWITCH, asked)
    monkeypatch.setattr(bench.gpu_here, "why_none", lambda: gpu)
    monkeypatch.setattr(bench.softcuda_here, "why_none", lambda: None)

    bench.prepare()

    assert bench.os.environ.get(bench.softcuda_here.SWITCH) == expected


def test_ctrl_c_ends_asv_and_what_asv_says_of_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "asv").write_text('#!/bin/sh\nkill -INT "$PPID"\necho interrupted\nexit 1\n')
    (tmp_path / "asv").chmod(0o755)
    monkeypatch.setattr(bench, "program", lambda name: str(tmp_path / name))
    monkeypatch.setattr(bench, "prepare", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench.py", "HEAD^!"])
    monkeypatch.chdir(tmp_path)

    assert bench.main() == 1
    assert capfd.readouterr().out.splitlines()[-1] == "interrupted"


@pytest.mark.parametrize(("code", "reported"), [(0, True), (2, True), (1, False)])
def test_the_report_is_written_unless_asv_itself_fails(
    code: int,
    reported: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = "".join(LINES)
    programs = {"asv": f"cat <<'END'\n{said}END\nexit {code}", "gpubench": "echo /the/page.html"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(bench, "program", lambda name: str(tmp_path / name))
    monkeypatch.setattr(bench, "prepare", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench.py", "HEAD^!"])
    monkeypatch.chdir(tmp_path)

    assert bench.main() == code

    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "$ asv run HEAD^!   (all that it says: .asv/bench.log)"
    assert len(lines) <= 40
    assert (lines[-1] == "/the/page.html") == reported
    assert (tmp_path / bench.LOG).read_text() == said
