"""Comparisons whose processes took turns: what the table says of each case."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.record import INTERLEAVED

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
A, B = "a" * 40, "b" * 40
RUN = "4711-1772000000"


def write(
    folder: Path, processes: int = 10, *, run: str = RUN, said: int | None = None, slower: float = 2
) -> None:
    """Two commits: NumPy drifts from process to process alike on both sides, Numba is slower at the
    second one."""
    random = np.random.default_rng(3)
    drift = np.exp(np.linspace(0, 1, processes))
    for commit, factor, its_run in ((A, 1.0, RUN), (B, slower, run)):
        files = CommitFiles(folder, commit, 86_400 * (1 + (commit > A)))
        files.facts(run=its_run, **{INTERLEAVED: processes if said is None else said})
        for benchmark, its in ((NUMPY, 1.0), (NUMBA, factor)):
            files.record(benchmark, "n=4", device="cpu")
            for place in range(processes):
                seconds = float(its * drift[place] * math.exp(random.normal(0, 0.005)))
                files.rounds(benchmark, "n=4", seconds, seconds, seconds)
            files.time(benchmark, "n=4", float(its * np.median(drift)), count=5 * processes)
        files.write()


def compare(folder: Path, *more: str) -> dict[str, Any]:
    """The comparison as JSON, with its cases by benchmark."""
    done = CliRunner().invoke(
        main, ["compare", "aaaa", "bbbb", "--results", str(folder), "--json", *more]
    )
    (content,) = json.loads(done.stdout)
    content["cases"] = {case["benchmark"]: case for case in content["cases"]}
    assert isinstance(content, dict)
    return content


def bases(content: dict[str, Any]) -> Sequence[object]:
    return [content["cases"][name]["compared"] for name in (NUMPY, NUMBA)]


@pytest.mark.slow
def test_processes_that_asv_interleaved_are_pairs(tmp_path: Path) -> None:
    write(tmp_path)
    content = compare(tmp_path)
    verdicts = {name: case["verdict"] for name, case in content["cases"].items()}
    assert verdicts == {NUMPY: "same", NUMBA: "slower"}
    assert bases(content) == ["in turn", "in turn"]
    assert content["cases"][NUMBA]["pairs"] == 10
    assert content["cases"][NUMPY]["ratio"]["high"] < 1.02  # the drift is in neither
    assert "In turn: 2 of these cases" in content["method"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [{"run": "4712-1772000000"}, {"said": 0}, {"processes": 2}, {"said": 12}],
    ids=["another run", "not interleaved", "too few processes", "another number of them"],
)
def test_what_was_not_in_turn_is_judged_as_stored_runs(tmp_path: Path, how: dict[str, Any]) -> None:
    write(tmp_path, **how)
    content = compare(tmp_path)
    assert "in turn" not in bases(content)
    assert content["method"] is None


def test_a_comparison_says_in_markdown_what_it_rests_on(tmp_path: Path) -> None:
    write(tmp_path)
    arguments = ["compare", "aaaa", "bbbb", "--results", str(tmp_path), "--markdown"]
    assert "In turn: 2 of these cases" in CliRunner().invoke(main, arguments).stdout
