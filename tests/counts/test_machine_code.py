"""Counters in machine code: where they stand, and that callgrind counts the same instructions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.counts.machine import count_nops, instrument_assembly, mark_paddings

CHECKOUT = Path(__file__).parents[2]

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
\txorl %eax, %eax
\t.p2align 4
.LBB0_2:
\tretq
\t.section .rodata
.LCPI0_0:
\t.quad 1
"""


PADDINGS = (0, 2)
"""Before the function, and before the second label."""


def test_each_piece_of_straight_code_has_one_counter() -> None:
    counted = instrument_assembly(ASSEMBLY, 7, PADDINGS)

    assert [len(piece) for piece in counted.pieces] == [0, 3, 2, 2, 1, 2, 1]
    assert counted.text.count("lock incq") == 7
    assert f"movabsq ${counted.symbol}+24, %rax" in counted.text
    assert counted.text.rstrip().endswith(f"{counted.symbol}:\n\t.zero 56")


def test_what_follows_a_label_is_counted_before_it_runs() -> None:
    lines = instrument_assembly(ASSEMBLY, 7, PADDINGS).text.split("\n")
    assert lines[lines.index(".LBB0_1:") + 1] == "\tleaq -128(%rsp), %rsp"
    assert "leaq" not in lines[lines.index(".LCPI0_0:") + 1]


def test_padding_is_counted_where_code_falls_through_into_it() -> None:
    counted = instrument_assembly(ASSEMBLY, 7, PADDINGS)
    lines = counted.text.split("\n")

    assert counted.pieces[5] == ("nop", "nop")
    assert lines[lines.index(".LBB0_2:") - 1] == "\t.p2align 4"
    assert lines[lines.index(".LBB0_2:") - 2] == "\tleaq 128(%rsp), %rsp"


def test_the_bytes_of_padding_are_those_between_two_labels() -> None:
    lines = mark_paddings(ASSEMBLY).split("\n")

    assert lines[lines.index(".LBB0_2:") - 3 :][:3] == [
        ".Lgpubench_begin_1:",
        "\t.p2align 4",
        ".Lgpubench_end_1:",
    ]
    assert lines[-2:] == [
        "\t.long .Lgpubench_end_0-.Lgpubench_begin_0",
        "\t.long .Lgpubench_end_1-.Lgpubench_begin_1",
    ]


@pytest.mark.parametrize(
    ("padding_bytes", "processor", "nops"),
    [(0, "haswell", 0), (15, "haswell", 1), (16, "haswell", 2), (10, "nehalem", 1),
     (11, "nehalem", 2), (11, None, 2)],
)  # fmt: skip
def test_padding_is_as_few_instructions_as_the_processor_decodes_fast(
    padding_bytes: int, processor: str | None, nops: int
) -> None:
    assert count_nops(padding_bytes, processor) == nops


@pytest.mark.ci
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("suite", ["vector_add", "norm"])
def test_callgrind_counts_the_same_instructions(suite: str) -> None:
    """A plain loop, and threads that fall through into inner loops in every turn. The script
    compares each case of the library so."""
    script = CHECKOUT / "scripts/machine_against_callgrind.py"
    done = subprocess.run(
        [sys.executable, str(script), str(CHECKOUT / f"suites/{suite}.yaml")],
        env=dict(os.environ),
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    total = done.stdout.splitlines()[-1].rpartition(": ")[2]
    assert total not in ("", "0 of 0")
