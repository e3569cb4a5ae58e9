"""``gpubench count --cpu``: what Numba's code does beside each case that is right, and reasons."""

# ruff: noqa: RUF001 (the command writes multiplication signs)

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from summing_project import enter_project

from gpubench.cli import main
from gpubench.measure.instructions import Instructions
from gpubench.plan.case import Case


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch)
    monkeypatch.delenv("GPUBENCH_PRESET", raising=False)
    return tmp_path


def test_code_is_shown_with_counts_and_with_the_reason_of_llvm(project: Path) -> None:
    result = CliRunner().invoke(main, ["count", "--cpu", "--lines"])

    assert result.exit_code == 1, result.output  # for the wrong one
    rows = [line.split() for line in result.stdout.splitlines()]
    (row,) = (row for row in rows if row[:2] == ["sums.total", "numba"] and "right" in row)
    # Operations, none in vectors, one lane, bytes loaded, and stored with what None takes.
    assert row[5:10] == ["1,000", "0.0", "%", "1", "8,000"]
    assert "  line 10: the loop is not vectorized: a sum or product" in result.stdout
    assert "LLVM, at line 11: cannot prove it is safe to reorder" in result.stdout
    assert "to do: compile with fastmath={'reassoc'}" in result.stdout
    assert "skipped: sums.total threaded n=1000 threads=2: it runs with 2 threads" in result.stdout
    assert "wrong: sums.total wrong n=1000: differs from the baseline" in result.stdout
    assert "not counted: sums.total restless n=1000: two runs on the same inputs differ" in (
        result.stdout
    )
    (row,) = (row for row in rows if row[:2] == ["sums.total", "numpy"])
    # NumPy: operations, bytes loaded and stored, special functions, calls, arrays.
    assert row[-6:] == ["999", "8,000", "16", "0", "2", "0"]
    assert "`flops` declares 3,000 operations, 3.00× as many: 1,000 are counted" in result.stdout
    assert not list(project.rglob("*.nbc")), "counted code must not be kept"


def test_json_has_counts_and_instructions_where_these_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def count(cases: Sequence[Case]) -> list[Instructions]:
        return [Instructions(1234567, None, "callgrind", "haswell", 10) for _ in cases]

    monkeypatch.setattr("gpubench.measure.instructions.count_instructions_of", count)
    command = ["count", "--cpu", "--callgrind", "-a", "implementation=numba", "--json"]
    (case,) = json.loads(CliRunner().invoke(main, command).stdout)["cases"]

    assert case["instructions"] == {
        "count": 1234567,
        "missing": None,
        "counter": "callgrind",
        "processor": "haswell",
        "empty_call": 10,
    }
    counts = case["counts"]
    assert (counts["target"], counts["missing"]) == ("cpu", None)
    assert counts["totals"]["flops_float64"] == 1000
    assert counts["derived"] == {"flops": 1000, "vectorized_share": 0.0, "widest_lanes": 1}
    assert sum(line["counts"].get("load_bytes", 0) for line in counts["lines"]) == 8000


@pytest.mark.ci
def test_lines_and_misses_stand_with_the_model_that_they_are_of() -> None:
    """Of 1,000 numbers of 8 bytes, which begin at a page, and of the sum."""
    command = ["count", "--cpu", "--caches", "-a", "implementation=numba"]
    shown = CliRunner().invoke(main, command).stdout
    (case,) = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)["cases"]

    totals = case["counts"]["totals"]
    assert [totals[name] for name in ("lines_touched", "l1_misses", "l2_misses")] == [126] * 3
    assert case["counts"]["cache_model"].startswith("a model, not this machine: L1 of 32 KiB")
    (row,) = (line.split() for line in shown.splitlines() if line.split()[1:2] == ["numba"])
    assert row[-3:] == ["126"] * 3
    assert "  lines touched and misses: a model, not this machine: L1 of 32 KiB" in shown


def test_callgrind_alone_is_refused() -> None:
    result = CliRunner().invoke(main, ["count", "--callgrind"])
    assert result.exit_code == 2
    assert "--callgrind, --machine and --caches count on the CPU: give --cpu too" in result.output
