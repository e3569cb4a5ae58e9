"""`gpubench compare` where times leave a case open and counts decide it."""

# ruff: noqa: RUF001 (the command writes multiplication signs)

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles, launch

from gpubench.cli import main
from gpubench.cli.console import OUT

NUMBA = "suites.add__numba.time_kernel"
CASE = "n=4"
HASWELL = "numba 0.68.1, LLVM 22.1.0, haswell"
Lines = Mapping[int, Mapping[str, int]]
LINES: Lines = {13: {"ir_instructions": 4000}, 14: {"ir_instructions": 6000}}


def write(
    folder: Path, commit: str, seconds: float, instructions: int | None, lines: Lines = LINES,
    made_by: str = HASWELL, **counts: int,
) -> None:  # fmt: skip
    """Write one commit with one process, by which no time decides, and with counts where given."""
    files = CommitFiles(folder, commit * 40, 86_400 * (1 + ord(commit) - ord("a")))
    files.processes(NUMBA, CASE, seconds, count=1)
    if instructions is not None:
        counted = launch(grid=1, block=1, lines=lines, ir_instructions=instructions, **counts)
        files.counts(NUMBA, CASE, counted, target="cpu", made_by=made_by)
    files.write()


def compare(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["compare", "aaaa", "bbbb", *arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(OUT.rich, "_width", 200)
    return tmp_path / ".asv/results"


def test_a_row_that_times_leave_unclear_says_what_was_counted_and_where(results: Path) -> None:
    write(results, "a", 1.0, 10_000)
    write(
        results, "b", 1.02, 20_000, {13: {"ir_instructions": 4000}, 15: {"ir_instructions": 16_000}}
    )

    words = "times unclear; counted: 2.00× the LLVM instructions (line 15)"
    assert words in compare().stdout
    assert words in compare("--markdown").stdout
    (found,) = json.loads(compare("--json").stdout)
    assert found["cases"][0]["counted"] == {
        "costs": [{"count": "ir_instructions", "old": 10_000, "new": 20_000}],
        "file": "kernels.py",
        "line": 15,
    }


def test_a_suspect_is_decided_by_counts_too(results: Path) -> None:
    write(results, "a", 1.0, 10_000)
    write(results, "b", 2.0, 20_000)

    assert "by times a suspect; counted: 2.00× the LLVM instructions" in compare().stdout


def test_counts_that_are_alike_or_of_one_side_say_nothing(results: Path) -> None:
    for before, after in ((10_000, 10_000), (10_000, 10_100), (None, 20_000), (10_000, None)):
        write(results, "a", 1.0, before)
        write(results, "b", 1.02, after)

        assert "counted:" not in compare("--all").stdout


def test_counts_of_another_compiler_say_nothing(results: Path) -> None:
    write(results, "a", 1.0, 10_000)
    write(results, "b", 1.02, 20_000, made_by="numba 0.61.2, LLVM 15.0.7, haswell")

    assert "counted:" not in compare("--all").stdout


def test_what_changed_more_than_the_instructions_stands_beside_them(results: Path) -> None:
    write(results, "a", 1.0, 10_000, load_bytes=8000)
    write(results, "b", 1.02, 12_000, {}, load_bytes=32_000, allocations=100)

    words = "counted: 1.20× the LLVM instructions and 100 allocations, before 0"
    assert words in compare().stdout


def test_less_work_is_told_without_a_line(results: Path) -> None:
    write(results, "a", 1.0, 10_000)
    write(results, "b", 1.02, 5_000)

    shown = compare().stdout
    assert "counted: 0.500× the LLVM instructions" in shown
    assert "(line" not in shown


def test_lines_of_several_files_are_named_with_their_file(results: Path) -> None:
    write(results, "a", 1.0, 10_000)
    files = CommitFiles(results, "b" * 40, 2 * 86_400).processes(NUMBA, CASE, 1.02, count=1)
    counted = launch(
        grid=1, block=1, lines={3: {"ir_instructions": 20_000}}, ir_instructions=20_000
    )
    other = launch(grid=1, block=1, lines=LINES, file="helper.py")
    both = type(counted)(
        counted.kernel, counted.grid, counted.block, counts=counted.counts,
        lines=counted.lines + other.lines,
    )  # fmt: skip
    files.counts(NUMBA, CASE, both, target="cpu", made_by=HASWELL).write()

    assert "the LLVM instructions (line 3 of kernels.py)" in compare().stdout
