"""The script that judges whole runs of one commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from result_files import CommitFiles

SCRIPT = Path(__file__).parents[2] / "scripts" / "same_commit.py"
NUMBA = "suites.add__numba.time_kernel"


def write_run(folder: Path, factor: float, commit: str = "a") -> Path:
    files = CommitFiles(folder, commit * 40, 86_400, "runner")
    for n in range(12):
        files.time(NUMBA, f"n={n}", 1.0 + 0.001 * n * factor, spread=0.01)
    files.write()
    return folder


def judge(*folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_coverage_scatter_and_false_verdicts_are_printed_for_each_kind(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / str(run), 1.0 + run / 10) for run in range(3)]

    result = judge(*folders)

    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    # n=0 has the same time in every run, and tells nothing.
    assert ["all", "100.0%", "100.0%", "of", "33"] in lines  # intervals of rounds, and next runs
    kind = ["one", "thread,", "bytes", "not", "known"]
    assert any(line[:7] == [*kind, "11", "cases"] for line in lines)
    assert f"{folders[0]} {folders[1]}: 0 of 12, 0 sure" in result.stdout
    assert ["all", "0.00%", "of", "36;", "the", "worst", "pair", "0.00%"] in lines
    (planted,) = (line for line in lines if line[0] == "all" and line[-1] == "24")
    assert float(planted[1].rstrip("%")) < 100  # a machine of which nobody knows anything


def test_runs_of_two_commits_are_refused(tmp_path: Path) -> None:
    result = judge(write_run(tmp_path / "1", 1.0), write_run(tmp_path / "2", 1.0, commit="b"))

    assert result.returncode == 1
    assert result.stderr == (
        "same_commit: it takes two runs of one commit; 2 folders of aaaaaaaa, bbbbbbbb\n"
    )
