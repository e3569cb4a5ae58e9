"""The comment of a pull request: what its first line says, and what of it a reader sees at once."""

# ruff: noqa: RUF001 (the comment has multiplication signs and en dashes)

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from result_files import CommitFiles, launch

from gpubench.cli import main
from gpubench.record import Disturbance, HintRecord, LineRecord
from gpubench.report.pull_request import MARKER, MAX_LINES

CHECKOUT = Path(__file__).parents[2]
WORK = {"warps": 32, "threads": 1024, "ptx_instructions": 1, "ptx_thread_instructions": 32}
NAMES = [f"suites.kernel{number}__numba.time_kernel" for number in range(12)]


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CommitFiles, CommitFiles]:
    monkeypatch.chdir(tmp_path)
    old, new = (
        CommitFiles(tmp_path / ".asv/results", letter * 40, day * 86_400)
        for day, letter in ((1, "a"), (2, "b"))
    )
    return old, new


def comment(sides: tuple[CommitFiles, CommitFiles], code: int = 0) -> str:
    for files in sides:
        files.write()
    done = CliRunner().invoke(main, ["compare", "aaaa", "bbbb", "--markdown"])
    assert done.exit_code == code, done.output
    return done.stdout


def open_lines(text: str) -> list[str]:
    """Lines that are not folded; the line that unfolds them counts as one."""
    shown, inside = [], False
    for line in text.splitlines():
        if not inside:
            shown.append(line)
        inside = line.startswith("<details>") or (inside and line != "</details>")
    return shown


@pytest.fixture(scope="module")
def examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "comment_examples", CHECKOUT / "scripts/comment_examples.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_of_the_docs_are_what_the_commands_write(examples: ModuleType) -> None:
    _, _, rest = (CHECKOUT / "docs/continuous-integration.md").read_text().partition(examples.BEGIN)
    written, end, _ = rest.partition(examples.END)

    assert end and written.strip() == examples.section().strip(), (
        "write them again with `.venv/bin/python scripts/comment_examples.py`"
    )


def test_every_example_has_its_verdict_first_and_one_marker(examples: ModuleType) -> None:
    firsts = {}
    for name, text in examples.comments().items():
        assert text.count(MARKER) == 1
        assert len(open_lines(text)) <= MAX_LINES
        firsts[name] = text.splitlines()[1].partition(":")[0]
    assert firsts == {
        "nothing": "**No change was found",
        "slower": "**Slower",
        "wrong": "**Wrong or failed",
        "counts": "**More counted work",
        "busy": "**No change was found, and the machine was busy",
        "first": "**First run",
        "fork": "**Faster",
    }


def test_twelve_cases_of_one_fault_are_one_row(sides: tuple[CommitFiles, CommitFiles]) -> None:
    old, new = sides
    for place in range(12):
        old.processes(NAMES[0], f"n={place}", 1.0)
        new.missing(NAMES[0], f"n={place}")
        new.record(NAMES[0], f"n={place}", "wrong", reason=f"off at [{place}, 0]: -{place}.5e-3")
    new.missing(NAMES[0], "n=12").record(NAMES[0], "n=12", "failed", reason="TypeError: no")
    old.processes(NAMES[0], "n=12", 1.0)

    rows = [line for line in open_lines(comment(sides)) if line.startswith("| !")]

    assert ["and 11 cases more" in row for row in rows] == [True, False]
    assert "TypeError" in rows[1]


def test_cases_that_changed_together_are_one_row_with_the_largest_and_the_least(
    sides: tuple[CommitFiles, CommitFiles],
) -> None:
    old, new = sides
    for place in range(5):
        old.processes(NAMES[0], f"n={place}", 1.0)
        new.processes(NAMES[0], f"n={place}", 2.0 + place)
        for files in sides:
            files.processes(NAMES[1], f"n={place}", 1.0 + 1e-9 * files.date)

    (row,) = (line for line in open_lines(comment(sides)) if line.startswith("| ▼"))

    assert "| kernel0 numba n=4 and 4 cases more | 6.00× slower (" in row
    assert "; least: 2.00× slower |" in row


def test_at_most_thirty_lines_are_open_whatever_happened(
    sides: tuple[CommitFiles, CommitFiles],
) -> None:
    old, new = sides
    old.facts(numpy="2.1.0")
    new.facts(numpy="2.2.0")
    hints = tuple(
        HintRecord("coalescing", f"{count} sectors", "x", "exchange", 0.5, "sectors")
        for count in range(8)
    )
    for place, name in enumerate(NAMES):
        old.processes(name, "n=1", 1.0)
        new.processes(name, "n=1", 2.0 + place)
        old.time(name, "n=2", 1.0).record(name, "n=2")
        new.time(name, "n=2", 1.1).record(name, "n=2")
        new.rounds(name, "n=2", *[1.0] * 6, disturbance=Disturbance(0.9, waiting=(0.5,) * 6))
        old.processes(name, "n=3", 1.0)
        new.processes(name, "n=4", 1.0)
        new.record(name, "n=5", "skipped", reason=f"no memory for kernel {place}")
        old.record(name, "n=5", "skipped", reason="no memory")
        cuda = name.replace("numba", "numba_cuda")
        for files, sectors in ((old, 128), (new, 1024)):
            counts = {"global_load_sectors": sectors}
            line = LineRecord("kernels.py", place + 1, counts, hints=hints)
            run = replace(launch(**WORK, **counts), lines=(line,))
            files.not_applicable(cuda, "n=1").record(cuda, "n=1", "verified")
            files.counts(cuda, "n=1", run)

    text = comment(sides)

    shown = open_lines(text)
    assert len(shown) <= MAX_LINES
    assert shown[1].startswith("**More counted work: ")
    assert "Slower, not sure: " in shown[1]
    assert any(line.startswith("- More rows are folded below: 21 rows of counts") for line in shown)
    assert any(line.startswith("- Not compared: ") for line in shown)
    assert any(line.startswith("- The machine: ") for line in shown)
    assert sum(line.startswith("- Hint: ") for line in shown) == 1


def test_several_machines_are_one_comment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for machine, after in (("calm", 1.0), ("runner", 2.0)):
        for day, letter, seconds in ((1, "a", 1.0), (2, "b", after)):
            CommitFiles(tmp_path / ".asv/results", letter * 40, day * 86_400, machine).processes(
                NAMES[0], "n=1", seconds
            ).write()

    text = CliRunner().invoke(main, ["compare", "aaaa", "bbbb", "--markdown"]).stdout

    assert text.count(MARKER) == 1
    assert text.splitlines()[1].startswith("**Slower: 1 case of kernel0 numba, 2.00× slower")
    assert "<details><summary>bbbbbbbb against aaaaaaaa on " in text


def test_nothing_compared_is_the_verdict(sides: tuple[CommitFiles, CommitFiles]) -> None:
    old, new = sides
    old.processes(NAMES[0], "n=1", 1.0)
    new.processes(NAMES[1], "n=1", 1.0)

    first, *_ = open_lines(comment(sides, code=2))[1:]

    assert first == (
        "**Nothing was compared: no case has a result on both sides; 2 cases on one side only.**"
    )
