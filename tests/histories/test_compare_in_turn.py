"""`gpubench compare --measure` of real commits, each in an environment that asv makes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from history_project import History

pytestmark = pytest.mark.ci

KERNELS = """\
import numpy as np

REPEATS = {repeats}


def plain(x, y):
    np.sqrt(x, out=y)


def kernel(x, y):
    for _ in range(REPEATS):
        np.sqrt(x, out=y)


def fresh(x, y):
    {fresh}
"""

SUITE = """\
version: 1
suite: s
backend: numpy
kernels:
  k:
    sizes: {n: [20000]}
    arrays:
      x: {shape: [n], dtype: float64, fill: uniform}
      y: {shape: [n], dtype: float64, intent: out}
    call: [x, y]
    baseline: plain
    implementations:
      plain: {function: "mini.kernels:plain"}
      kernel: {function: "mini.kernels:kernel"}
      fresh: {function: "mini.kernels:fresh"}
    sampling: {rounds: 1, repeat: 3, warmup_time: 0.01, sample_time: 0.005}
"""


@pytest.fixture
def two(history: History) -> History:
    """``before`` and ``after``: the kernel does its work four times, and ``fresh`` goes wrong."""
    history.package()
    history.put("suites/s.yaml", SUITE)
    for tag, repeats, fresh in (
        ("before", 1, "np.sqrt(x, out=y)"),
        ("after", 4, "np.sqrt(x[:-1], out=y[:-1])"),
    ):
        history.put("mini/kernels.py", KERNELS.format(repeats=repeats, fresh=fresh))
        history.save(tag)
    return history


def compare(history: History, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The JSON of a comparison, with its cases by implementation."""
    command = "gpubench", "compare", "--measure", "--json", *arguments
    printed = history.run(*command, code=code).stdout
    (content,) = json.loads(printed[printed.index("[\n") :])
    content["cases"] = {
        case["benchmark"].rpartition("__")[2].partition(".")[0]: case for case in content["cases"]
    }
    assert isinstance(content, dict)
    return content


def test_two_commits_in_turn(two):
    ran = compare(
        two, "before", "after", "s::k", "-a", "implementation=kernel,fresh", "--time", "20m",
        "--fail-on", "slower", code=1,
    )  # fmt: skip

    assert ran["cases"]["kernel"]["verdict"] == "slower"
    assert ran["cases"]["kernel"]["compared"] == "in turn"
    assert ran["cases"]["kernel"]["pairs"] >= 5
    assert ran["cases"]["fresh"]["verdict"] == "failed"
    assert "differs" in ran["cases"]["fresh"]["note"]
    assert not two.results.exists()

    # Of what is installed already, and what nobody changed.
    unchanged = compare(two, "before", "after", "s", "-a", "implementation=plain", "--time", "6s")
    assert unchanged["cases"]["plain"]["verdict"] in ("same", "unclear")


def test_a_commit_that_cannot_be_installed_ends_it_with_what_failed(two):
    failing = "python -c \"import sys; sys.exit('the compiler is missing')\""
    two.configure(build=(failing,))
    two.save("broken")

    printed = two.run(
        "gpubench", "compare", "--measure", "HEAD", "HEAD", "s", code=2
    ).stdout.splitlines()

    assert any("cannot be installed, so that nothing is compared" in line for line in printed)
    assert printed[-1] == "the compiler is missing"
    assert not any(line.startswith("Traceback") for line in printed)


def test_a_commit_that_git_does_not_know(two):
    printed = two.run("gpubench", "compare", "--measure", "nowhere", "HEAD", "s", code=2).stdout
    assert "git knows no commit 'nowhere'" in printed


def test_the_commit_that_changed_a_case(history: History) -> None:
    history.package()
    for place in range(6):
        history.commit_seconds(f"c{place}", 2e-3 if place >= 3 else 1e-3)

    printed = history.run(
        "gpubench", "since", "s::k", "-a", "implementation=kernel", "--good", "c0", "--bad", "c5",
        "--time", "20m", "--json",
    ).stdout  # fmt: skip

    found = json.loads(printed[printed.index("{\n") :])
    assert [commit["hash"] for commit in found["commits"]] == [history.git("rev-parse", "c3")]
    assert found["ratio"]["value"] == pytest.approx(0.5, rel=1e-3)
    assert found["line"] == 5
    assert not history.results.exists()
