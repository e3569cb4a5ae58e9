"""Counters in machine code: where they stand, and that callgrind counts the same instructions."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from gpubench.counts.machine import MACHINE_INSTRUCTIONS, instrument_assembly
from gpubench.measure import instructions
from gpubench.measure.cpu_counting import is_counted_on_cpu
from gpubench.measure.instructions import count_instructions_of
from gpubench.measure.verify_cases import Manner, verified
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITES = Path(__file__).parents[2] / "suites"

ASSEMBLY = """\
\t.text
\t.p2align 4
add:
\tmovq %rdi, %rax # a comment
\ttestq %rsi, %rsi
\tje .LBB0_2
\tvaddpd %ymm0, %ymm1, %ymm0
\tnop
.LBB0_1:
\taddq %rsi, %rax
\tjne .LBB0_1
.LBB0_2:
\tretq
\t.section .rodata
.LCPI0_0:
\t.quad 1
"""


def test_each_piece_of_straight_code_has_one_counter() -> None:
    counted = instrument_assembly(ASSEMBLY, 7)

    assert [len(piece) for piece in counted.pieces] == [3, 2, 2, 1]
    assert counted.text.count("lock incq") == 4
    assert f"movabsq ${counted.symbol}+24, %rax" in counted.text
    assert counted.text.rstrip().endswith(f"{counted.symbol}:\n\t.zero 32")


def test_what_follows_a_label_is_counted_before_it_runs() -> None:
    lines = instrument_assembly(ASSEMBLY, 7).text.split("\n")
    assert lines[lines.index(".LBB0_1:") + 1] == "\tleaq -128(%rsp), %rsp"
    assert "leaq" not in lines[lines.index(".LCPI0_0:") + 1]


def machine_instructions(cases: Sequence[Case]) -> dict[int, int]:
    outcomes = verified(cases, Manner(count_on_cpu=True, counter="machine"))
    return {
        place: outcome.counts.totals[MACHINE_INSTRUCTIONS]
        for place, outcome in outcomes
        if outcome.counts is not None and outcome.counts.missing is None
    }


def read_compiled_code(folder: Path) -> dict[str, int]:
    """Return what code in no file executed, which is what Numba compiled, by callgrind's labels.

    https://valgrind.org/docs/manual/cl-format.html: objects have a number, and their name where
    they come first; the line behind ``calls=`` is what the callee took.
    """
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for file in sorted(folder.glob("counts.*"), key=lambda path: int(path.suffix[1:])):
        label = here = ""
        is_callee = False
        executed: Counter[str] = Counter()
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if match := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line):
                if match[3]:
                    names[match[2]] = match[3]
                here = here if match[1] else match[2]
            elif match := re.match(r"desc: Trigger: Client Request: (\S+)$", line):
                label = match[1]
            elif line.startswith("calls="):
                is_callee = True
            elif re.match(r"[-+*\d]", line):
                executed[here] += 0 if is_callee else int(line.split()[1])
                is_callee = False
        counts[label] = sum(n for it, n in executed.items() if names.get(it) == "???")
    return counts


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize(
    ("suite", "implementation"),
    [
        ("vector_add", "numba_serial"),
        ("vector_add", "numba_parallel"),
    ],
)
def test_callgrind_counts_the_same_instructions(
    suite: str, implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two sizes both differ by the same number: jumps into libraries are alike. Callgrind
    counts the instructions that only fill up space before a loop too, as often as it is begun:
    these kernels begin each loop once, whatever the size. The empty call, which callgrind's number
    is without, is not alike."""
    monkeypatch.setattr(instructions, "_read_dumps", read_compiled_code)
    plan = build_plan(load_suites([SUITES / f"{suite}.yaml"], "smoke"), 1)
    cases = [
        case
        for case in plan.cases()
        if is_counted_on_cpu(case) and case.implementation_name == implementation
    ]
    assert len(cases) > 1
    ours = machine_instructions(cases)
    theirs = [
        (counted.count or 0) + (counted.empty_call or 0) for counted in count_instructions_of(cases)
    ]
    for small, large in pairwise(range(len(cases))):
        assert ours[large] - ours[small] == theirs[large] - theirs[small]
