"""Lines and misses of the modelled caches are the numbers that theory gives, in every process."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpubench.counts.cache_model import (
    FIGURES,
    L1_BYTES,
    L1_WAYS,
    L2_BYTES,
    L2_WAYS,
    LINE_BYTES,
    PAGE_BYTES,
    CacheModel,
)
from gpubench.counts.processor import counting_variables

HERE = Path(__file__).parent
N = 4096
LINES = N // 8
"""Of an array of float64."""
MATRIX = 128

BY_THEORY = {
    "copy": (2 * LINES, 2 * LINES, 2 * LINES),
    "copy of float32": (LINES, LINES, LINES),
    "copy of 3": (2, 2, 2),
    # It begins in the line of the first.
    "a view from the second element": (2 * LINES, 2 * LINES, 2 * LINES),
    # Of elements that lie 128 bytes apart each has a line of its own.
    "every 16th": (N + LINES, N + LINES, N + LINES),
    "16 KiB twice": (256, 256, 256),  # fits in L1: the second pass finds all
    # Least recently used: of 64 KiB in turn each line has left L1 when it is needed again.
    "64 KiB twice": (1024, 2 * 1024, 1024),
    "2 MiB twice": (32768, 2 * 32768, 2 * 32768),  # and of 2 MiB also L2
    "a column": (300, 300, 300),
    "a column in Fortran order": (38, 38, 38),
    "masked": (LINES + LINES // 2,) * 3,  # of y only the half that is written
    "prange": (2 * LINES, 2 * LINES, 2 * LINES),
    "vectorize": (3 * LINES, 3 * LINES, 3 * LINES),  # NumPy allocates the result
    "stack": (LINES, LINES, LINES),  # the stack does not count
    "slice": (2 * LINES, 2 * LINES, 2 * LINES),  # a copy of memory
    "gather": (3 * 16 * LINES,) * 3,
}
"""Lines touched, misses of L1, misses of L2."""


@cache
def counted(number: int) -> dict[str, dict[str, int]]:
    """Count the kernels in a process of its own; ``number`` tells it from others."""
    answer = subprocess.run(
        [sys.executable, str(HERE / "cache_kernels.py")],
        # Other variables lie elsewhere: the stack and the heap begin at other places.
        env={**os.environ, **counting_variables(), "PADDING": "x" * 1000 * number},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return dict(json.loads(answer.stdout))


@pytest.mark.ci
@pytest.mark.parametrize("name", BY_THEORY)
def test_a_figure_is_the_number_that_theory_gives(name: str) -> None:
    assert tuple(counted(1)[name][figure] for figure in FIGURES) == BY_THEORY[name]


@pytest.mark.ci
def test_arrays_that_compiled_code_allocates_are_new_lines() -> None:
    """Of ``(x + 1) * 2``: x and two arrays. That of the sum, 32 KiB, is gone where it is read."""
    found = counted(1)["allocates"]
    assert found["lines_touched"] == found["l2_misses"] == 3 * LINES
    assert found["l1_misses"] > 3 * LINES


@pytest.mark.ci
def test_a_shuffled_gather_misses_more_than_an_ordered_one() -> None:
    ordered, shuffled = counted(1)["gather"], counted(1)["gather, shuffled"]
    assert shuffled["lines_touched"] == ordered["lines_touched"]
    assert shuffled["l1_misses"] > 3 * ordered["l1_misses"]


@pytest.mark.ci
def test_two_processes_agree() -> None:
    assert counted(1) == counted(2)


class LruCache:
    """One cache, written as its definition reads; independent of what is tested."""

    def __init__(self, size: int, ways: int) -> None:
        self.sets: list[OrderedDict[int, None]] = [
            OrderedDict() for _ in range(size // LINE_BYTES // ways)
        ]
        self.ways = ways

    def holds(self, line: int) -> bool:
        lines = self.sets[line % len(self.sets)]
        hit = line in lines
        lines[line] = None
        lines.move_to_end(line)
        if len(lines) > self.ways:
            lines.popitem(last=False)
        return hit


@pytest.mark.ci
def test_a_product_of_matrices_misses_as_its_accesses_say() -> None:
    """Pages have numbers by first touch; a row of A and of C are 16 lines, as is one of B."""
    l1, l2 = LruCache(L1_BYTES, L1_WAYS), LruCache(L2_BYTES, L2_WAYS)
    pages: dict[tuple[str, int], int] = {}
    found: Any = {"lines": set(), "l1": 0, "l2": 0}

    def touch(array: str, index: int) -> None:
        page, within = divmod(8 * index, 4096)
        number = pages.setdefault((array, page), len(pages))
        line = number * 64 + within // LINE_BYTES
        found["lines"].add(line)
        if not l1.holds(line):
            found["l1"] += 1
            found["l2"] += not l2.holds(line)

    for i in range(MATRIX):
        for j in range(MATRIX):
            for k in range(MATRIX):
                touch("a", i * MATRIX + k)
                touch("b", k * MATRIX + j)
            touch("c", i * MATRIX + j)
    theirs = len(found["lines"]), found["l1"], found["l2"]
    assert tuple(counted(1)["matmul"][figure] for figure in FIGURES) == theirs
    assert found["lines"] and found["l1"] > MATRIX**3  # a column of B fits in four sets: all miss


@pytest.mark.skipif(sys.platform == "win32", reason="it frees by what C calls posix_memalign")
def test_of_two_arrays_beside_each_other_one_is_left_when_the_other_is_freed() -> None:
    model, at = CacheModel(), ctypes.c_size_t()
    assert ctypes.CDLL(None).posix_memalign(ctypes.byref(at), PAGE_BYTES, 2 * PAGE_BYTES) == 0
    first, second = at.value, at.value + PAGE_BYTES
    for array in (first, second):
        model.register(array, PAGE_BYTES)

    model.release(first, PAGE_BYTES)
    model.touch(first, 8)
    model.touch(second, 8)
    model.touch(second, 0)

    assert model.figures().tolist() == [1, 1, 1, 0]
