"""Counts on the CPU are the numbers that theory gives, in this Numba and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from theory_numbers import BY_LINES, IN_VECTORS, QUICK, REASONS, figure

from gpubench.counts.processor import counting_variables
from gpubench.counts.remarks import advice_for

HERE = Path(__file__).parent
OTHER_NUMBAS = ("0.61.2", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.1")
"""The last release of each minor version that gpubench allows."""
FIRST_WITH_THESE_VECTORS = 20
"""LLVM of which ``IN_VECTORS`` has the numbers."""

IS_HASWELL = counting_variables()["NUMBA_CPU_NAME"] == "haswell"


def numbers(
    tables: Sequence[Mapping[str, Mapping[str, float]]], names: Callable[[str], bool]
) -> Iterator[Any]:
    for table in tables:
        for name, figures in table.items():
            if names(name):
                for count, value in figures.items():
                    yield pytest.param(name, count, value, id=f"{name}: {count}")


@cache
def counted(python: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Count kernels in a process of its own with that Python."""
    answer = subprocess.run(
        [python, str(HERE / "theory_kernels.py"), *names],
        env={**os.environ, **counting_variables(), "PYTHONPATH": str(HERE.parents[1])},
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    return dict(json.loads(answer.stdout))


@pytest.mark.skipif(not IS_HASWELL, reason="vectors are those of AVX2")
@pytest.mark.parametrize(
    ("name", "count", "value"), [*numbers((BY_LINES, IN_VECTORS), QUICK.__contains__)]
)
def test_a_count_is_the_number_that_theory_gives(name: str, count: str, value: float) -> None:
    found = counted(sys.executable, QUICK)["cases"][name]
    assert figure(found["totals"], count) == value


@pytest.mark.parametrize("name", QUICK)
def test_a_call_counts_twice_alike(name: str) -> None:
    assert counted(sys.executable, QUICK)["cases"][name]["is_twice_alike"]


@pytest.mark.parametrize("name", [name for name in REASONS if name in QUICK])
def test_llvm_says_why_a_loop_is_not_vectorized(name: str) -> None:
    reasons = counted(sys.executable, QUICK)["cases"][name]["reasons"]
    assert any(reason.startswith(REASONS[name]) for reason in reasons)


def test_a_loop_of_threads_that_calls_is_not_said_to_be_atomic() -> None:
    """LLVM gives such a loop three reasons, of which the first names the calls."""
    (reason,) = set(counted(sys.executable, QUICK)["cases"]["prange of calls"]["reasons"])
    advice = advice_for(reason)
    assert advice.plain == "the loop calls a function that has no form for vectors"
    assert "`prange`" in advice.remedy


def test_counts_stand_at_their_lines() -> None:
    """The loop of ``saxpy`` calculates in its body's line, and counts in its head's."""
    lines = counted(sys.executable, QUICK)["cases"]["saxpy float64"]["lines"]
    source = (HERE / "theory_kernels.py").read_text(encoding="utf-8").splitlines()
    body = next(n for n, text in enumerate(source, 1) if "y[i] = a * x[i] + y[i]" in text)
    assert figure(lines[str(body)], "flops") == 2 * 1003
    assert figure(lines[str(body - 1)], "flops") == 0


def test_loops_that_threads_share_are_told_from_others() -> None:
    """Outside the loop of ``prange`` are its bounds, and nothing that its length multiplies."""
    shared, alone = (
        counted(sys.executable, QUICK)["cases"][n] for n in ("prange", "saxpy float64")
    )
    totals = shared["totals"]
    assert 0 < totals["ir_instructions"] - totals["parallel_instructions"] < 100
    assert "parallel_instructions" not in alone["totals"]


def test_the_processor_that_is_compiled_for_is_named() -> None:
    assert counted(sys.executable, QUICK)["made_by"].endswith(
        counting_variables()["NUMBA_CPU_NAME"]
    )


@pytest.mark.thorough
@pytest.mark.parametrize("version", OTHER_NUMBAS)
def test_every_numba_that_is_allowed_counts_the_same(
    version: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A Numba that the package index does not have is skipped."""
    folder = tmp_path_factory.mktemp(f"numba-{version}")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", f"numba=={version}"]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"numba {version} cannot be installed: {installed.stderr.strip()[-200:]}")
    found = counted(python, ())
    llvm = int(found["made_by"].partition("LLVM ")[2].partition(".")[0])
    tables = (BY_LINES, IN_VECTORS) if llvm >= FIRST_WITH_THESE_VECTORS else (BY_LINES,)
    different = {
        f"{name}: {count}": (figure(found["cases"][name]["totals"], count), value)
        for table in tables
        for name, figures in table.items()
        for count, value in figures.items()
        if figure(found["cases"][name]["totals"], count) != value
    }
    assert different == {}
    assert [name for name, case in found["cases"].items() if not case["is_twice_alike"]] == []
