"""Whoever waits reads what a command does and how far it is: on a terminal in one line that
changes, in a log one line in half a minute."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench import waiting
from gpubench.backends.software import build_ahead
from gpubench.cli import console, main
from gpubench.waiting import heard_by, looked_at, say, say_each

SUITE = """
version: 1
suite: {name}
kernels:
  scale:
    sizes: {{n: [4]}}
    arrays: {{x: {{dtype: float64, shape: [n]}}, out: {{dtype: float64, shape: [n], intent: out}}}}
    call: [x, out]
    baseline: numpy
    implementations:
      numpy: {{backend: numpy, function: "functions:scale"}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "NARRATION_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "SECONDS_BETWEEN_WORDS", 0.0)
    for index in range(3):
        files = CommitFiles(tmp_path / ".asv" / "results", f"{index}" * 40, index * 90_000)
        files.time("suites.add__numpy.time_kernel", "n=4", 4.0).write()
    (tmp_path / "functions.py").write_text("def scale(x, out):\n    out[:] = x\n")
    (tmp_path / "suites").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"suites/{name}.yaml").write_text(SUITE.format(name=name))
    return tmp_path


def said(*command: str) -> list[str]:
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    return result.stderr.splitlines()


def test_reading_results_says_how_many_files_of_all_are_read(project: Path) -> None:
    assert "reading results: 3 of 3" in said("query", "select count(*) from results")


def test_a_report_says_how_many_pages_of_all_are_written(project: Path) -> None:
    assert any(line.startswith("writing pages: 0 of ") for line in said("report"))


def test_changes_say_which_machine_of_all_is_judged(project: Path) -> None:
    words = "judging machines and environments: 1 of 1"

    assert words in said("changes")
    assert words in said("query", "select count(*) from changes")


def test_check_and_plan_say_which_suite_and_which_kernel_of_all_is_next(project: Path) -> None:
    for command in ("check", "plan"):
        lines = said(command)

        assert "reading suites: 2 of 2" in lines
        assert "checking kernels: 1 of 2" in lines


def test_work_within_work_is_said_in_the_line_of_the_outer_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.narrated("comparing"), console.narrated("reading results"):
        say("reading results: 2 of 7")

    assert capsys.readouterr().err.splitlines() == ["reading results", "reading results: 2 of 7"]


def test_a_device_that_is_compiled_first_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = pytest.importorskip("softcuda.build")
    monkeypatch.setattr(build, "build_libraries", lambda told: told(3, 58))
    heard: list[str] = []

    with heard_by(heard.append):
        build_ahead()

    assert heard == ["compiling softcuda, once: 3 of 58"]


def test_without_a_listener_nothing_is_looked_at_and_items_are_as_they_are() -> None:
    before = threading.active_count()

    with looked_at(lambda: "never asked"):
        assert threading.active_count() == before
        assert [*say_each("abc", 3, "letters")] == ["a", "b", "c"]


def test_what_other_processes_do_is_looked_at_until_the_block_ends() -> None:
    heard: list[str] = []
    before = threading.active_count()

    with heard_by(heard.append), looked_at(lambda: "writing pages: 5 of 9"):
        pass

    assert set(heard) <= {"writing pages: 5 of 9"}
    assert threading.active_count() == before
