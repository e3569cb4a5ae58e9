"""Instructions of CPU kernels: by callgrind where it is installed, and why there are none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.counts.processor import processor_to_compile_for
from gpubench.measure import instructions
from gpubench.measure.counted_calls import ANSWERS, CASES, COUNTED_CALLS, Hardware, label
from gpubench.measure.instructions import (
    Instructions,
    count_instructions,
    count_instructions_of,
    find_counter,
)
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

KERNELS = """\
import numpy as np
from numba import njit, prange

def add_numpy(a, b):
    np.add(a, b, out=b)

@njit(cache=True)
def add_numba(a, b):
    for i in range(a.size):
        b[i] += a[i]

@njit(parallel=True, cache=True)
def add_parallel(a, b):
    for i in prange(a.size):
        b[i] += a[i]

def fail(a, b):
    raise ValueError("no such luck")
"""

SUITE = """\
version: 1
suite: adding
kernels:
  add:
    sizes: {n: [1000, 3000]}
    arrays:
      a: {shape: [n], dtype: float64, fill: normal}
      b: {shape: [n], dtype: float64, fill: normal, intent: inout}
    call: [a, b]
    baseline: numpy
    implementations:
      numpy: {function: "adding_kernels:add_numpy"}
      numba: {function: "adding_kernels:add_numba"}
      parallel: {backend: numba, function: "adding_kernels:add_parallel"}
      two: {backend: numba, function: "adding_kernels:add_parallel", threads: [2]}
      failing: {backend: numpy, function: "adding_kernels:fail"}
      scripted: {backend: scripted, function: "adding_kernels:add_numpy"}
    devices: [cpu]
"""


@pytest.fixture(name="cases")
def cases_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Case]:
    """Cases of a small suite, ``numpy 1000`` for example."""
    (tmp_path / "adding_kernels.py").write_text(KERNELS, encoding="utf-8")
    (tmp_path / "adding.yaml").write_text(SUITE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plan = build_plan(load_suites([tmp_path / "adding.yaml"]), 0)
    return {f"{case.implementation_name} {case.values['n']}": case for case in plan.cases()}


@pytest.fixture(name="pretend_to_count")
def pretend_that_callgrind_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "find_counter", lambda: ("callgrind", None))


# ---- for real ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(find_counter()[0] is None, reason=find_counter()[1] or "")
@pytest.mark.ci
def test_two_runs_agree_on_a_number_for_numpy_and_numba(cases: dict[str, Case]) -> None:
    names = ("numpy 1000", "numpy 3000", "numba 1000", "numba 3000")
    counted = dict(zip(names, count_instructions_of([cases[n] for n in names]), strict=True))
    assert all(one.missing is None for one in counted.values()), counted
    for one in counted.values():
        assert one.count is not None and one.count > 0
        assert one.empty_call is not None and one.empty_call > 0
        assert one.counter == find_counter()[0]
        assert one.processor == processor_to_compile_for()
    for name in ("numpy", "numba"):
        small, large = counted[f"{name} 1000"].count, counted[f"{name} 3000"].count
        assert small is not None and large is not None
        # At least one instruction loads, adds or stores every 8 elements more, at most 20 each.
        assert 2000 / 8 < large - small < 2000 * 20


@pytest.mark.slow
def test_a_case_that_fails_or_uses_other_threads_has_no_number(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba's own threads work even where there is one of them."""
    monkeypatch.setenv("NUMBA_THREADING_LAYER", "workqueue")
    failing, parallel = count_instructions_of([cases["failing 1000"], cases["parallel 1000"]])
    assert failing.missing == "ValueError: no such luck in fail (adding_kernels.py:18)"
    assert parallel.missing == "another thread does part of its work"


# ---- by a process that is scripted ---------------------------------------------------------------

Script = Callable[[int], list[dict[str, Any]] | str]
"""From the number of the process, 0 for the one that compiles, to its answers or its program."""


def play(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have processes that count answer by a script."""
    started = []

    def start(folder: Path, counter: str, variables: object) -> subprocess.Popen[bytes]:
        played = script(len(started))
        started.append(counter)
        program = played if isinstance(played, str) else ""
        if not isinstance(played, str):
            (folder / ANSWERS).write_text(json.dumps(played), encoding="utf-8")
        assert (folder / CASES).is_file()
        with (folder / "errors").open("wb") as errors:
            return subprocess.Popen([sys.executable, "-c", program], stderr=errors)

    monkeypatch.setattr(instructions, "_start", start)


def counts(empty: int, work: list[int]) -> dict[str, Any]:
    """An answer for the first case."""
    turns = range(COUNTED_CALLS)
    return {
        "counts": {label(0, "empty", turn): empty for turn in turns}
        | {label(0, "case", turn): work[turn % len(work)] for turn in turns}
    }


def test_the_least_of_several_calls_counts_less_an_empty_call(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(lambda number: [counts(100, [1207, 1200, 1300])], monkeypatch)
    assert count_instructions(cases["numpy 1000"]) == Instructions(
        1100, None, "callgrind", processor_to_compile_for(), 100
    )


def test_two_runs_that_differ_give_no_number(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(lambda number: [counts(100, [1200 + number])], monkeypatch)
    one = count_instructions(cases["numpy 1000"])
    assert one.count is None
    assert one.missing == "two runs took 1,101 and 1,102 instructions: it has no number"


@pytest.mark.parametrize("number_of_process", [0, 1, 2])
def test_a_process_that_ends_says_why(
    cases: dict[str, Case],
    pretend_to_count: None,
    monkeypatch: pytest.MonkeyPatch,
    number_of_process: int,
) -> None:
    ends = "import sys; sys.exit('valgrind: out of memory')"
    play(lambda n: ends if n == number_of_process else [counts(1, [2])], monkeypatch)
    one = count_instructions(cases["numpy 1000"])
    assert one.missing == "its process ended with status 1: valgrind: out of memory"


def test_a_case_that_ends_its_process_does_not_end_the_others(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = "import os; os._exit(9)"
    # Both together, then the first alone, which compiles and runs twice, then the second.
    play(lambda n: ends if n in (0, 4) else [counts(100, [1200])], monkeypatch)
    numpy, numba = count_instructions_of([cases["numpy 1000"], cases["numba 1000"]])
    assert (numpy.count, numba.count) == (1100, None)
    assert numba.missing == "its process ended with status 9: it said nothing"


def test_a_process_that_takes_too_long_is_ended(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(lambda number: "import time; time.sleep(600)", monkeypatch)
    one = count_instructions(cases["numpy 1000"], seconds=0.1)
    assert one.missing == "its process was ended after 0.1 seconds; take a smaller size"


def test_a_counter_that_wrote_nothing_is_named(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(lambda number: [{"counts": {}}], monkeypatch)
    assert count_instructions(cases["numpy 1000"]).missing == "callgrind wrote no counts"


def test_callgrinds_files_are_read_by_their_label(tmp_path: Path) -> None:
    text = "desc: Trigger: Client Request: 0.case.1\n\nevents: Ir\n...\ntotals: 4711\n"
    (tmp_path / "counts.2").write_text(text, encoding="utf-8")
    (tmp_path / "counts").write_text(
        "desc: Trigger: Program termination\ntotals: 0\n", encoding="utf-8"
    )
    assert instructions._read_dumps(tmp_path) == {"0.case.1": 4711}


# ---- why there is no number ----------------------------------------------------------------------


def test_other_backends_and_several_threads_have_no_number(
    cases: dict[str, Case], pretend_to_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(lambda number: pytest.fail("started a process"), monkeypatch)
    scripted, two = count_instructions_of([cases["scripted 1000"], cases["two 1000"]])
    assert scripted.missing == "instructions are counted of numba and numpy, and this is scripted"
    assert two.missing == "it runs with 2 threads, and instructions are counted with one"


def test_a_machine_that_cannot_count_says_what_to_install(
    cases: dict[str, Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(2, "the system offers no hardware counter: No such file or directory")

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(instructions, "Hardware", refuse)
    monkeypatch.setattr(sys, "platform", "linux")
    one = count_instructions(cases["numpy 1000"])
    assert one.count is None
    assert "valgrind is not installed (Debian: apt install valgrind), and the system" in str(
        one.missing
    )


def test_a_hardware_counter_counts_where_valgrind_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(instructions, "Hardware", lambda: None)
    monkeypatch.setattr(sys, "platform", "linux")
    assert find_counter() == ("hardware", None)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "instructions are counted on Linux" in str(find_counter()[1])


def test_the_hardware_counter_counts_a_loop() -> None:
    try:
        counter = Hardware()
    except OSError as error:
        pytest.skip(str(error))
    found = []
    for turns in (1_000, 11_000):
        counter.start()
        for _ in range(turns):
            pass
        found.append(counter.stop("") or 0)
    assert found[1] - found[0] > 10_000
