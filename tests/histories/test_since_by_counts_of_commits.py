"""`gpubench since --counts` of real commits, each installed in an environment that asv makes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from history_project import History

pytestmark = pytest.mark.ci

SUITE = """\
version: 1
suite: s
kernels:
  k:
    sizes: {n: [5000]}
    arrays:
      x: {shape: [n], dtype: float64, fill: uniform}
      y: {shape: [n], dtype: float64, intent: out}
    call: [x, y]
    baseline: plain
    implementations:
      plain: {function: "mini.kernels:plain", backend: numpy}
      kernel: {function: "mini.kernels:kernel", backend: numba}
"""

PLAIN = """\
import numpy as np
from numba import njit


def plain(x, y):
    np.multiply(x, 2.0, out=y)


@njit(cache=True)
def kernel(x, y):
"""
ONCE = """\
    for i in range(x.size):
        y[i] = x[i] * 2.0
"""
TWICE = """\
    for _ in range(1 + min(x.size, 1)):
        for i in range(x.size):
            y[i] = x[i] * 2.0
"""
HISTORY = (
    ("start", PLAIN + ONCE),
    ("a comment", PLAIN + "    # double each\n" + ONCE),
    ("another name", PLAIN + ONCE.replace("i", "j").replace("jn", "in").replace("sjze", "size")),
    ("back", PLAIN + ONCE),
    ("wrong", PLAIN + ONCE.replace("2.0", "3.0")),
    ("mended", PLAIN + ONCE),
    ("a constant", "LIMIT = 3\n" + PLAIN + ONCE),
    ("doubled", PLAIN + TWICE),
    ("documented", PLAIN + '    """Double each element."""\n' + TWICE),
    ("broken", "raise ImportError('a library is missing')\n" + PLAIN + TWICE),
    ("repaired", PLAIN + TWICE),
    ("end", PLAIN + "    # the end\n" + TWICE),
)


@pytest.fixture
def twelve(history: History) -> History:
    """Make twelve commits: one doubles the work, one is wrong, one cannot be imported."""
    history.package()
    history.put("suites/s.yaml", SUITE)
    for place, (subject, kernels) in enumerate(HISTORY):
        history.put("mini/kernels.py", kernels)
        history.save(f"c{place}-{subject.replace(' ', '-')}")
    return history


def since(history: History, *arguments: str, code: int = 0) -> dict[str, Any]:
    command = "gpubench", "since", "s::k", "--counts", "--json", *arguments
    printed = history.run(*command, code=code).stdout
    found = json.loads(printed[printed.index("{\n") :])
    assert isinstance(found, dict)
    return found


def test_the_commit_that_doubled_the_work_is_named_exactly(twelve: History) -> None:
    found = since(twelve, "--good", "c0-start", "--bad", "c11-end")

    assert [commit["subject"] for commit in found["commits"]] == ["c7-doubled"]
    assert found["found"] is True
    (cost,) = found["counted"]["costs"]
    assert cost["count"] == "ir_instructions"
    assert cost["new"] == pytest.approx(2 * cost["old"], rel=0.02)
    assert (found["counted"]["file"], found["counted"]["line"]) == ("mini/kernels.py", 13)
    assert found["measured"] <= 5

    # Ends that do the same work, though one is documented.
    same = since(twelve, "--good", "c7-doubled", "--bad", "c11-end", code=1)
    assert (same["found"], same["commits"]) == (False, [])
