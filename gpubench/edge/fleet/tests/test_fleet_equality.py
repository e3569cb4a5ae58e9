"""Whether machines are equal, and under which name their results are kept."""

from __future__ import annotations

import re
from math import nan
from pathlib import Path

import pytest

from gpubench.edge.fleet.equality import compare, groups_of, proof_commands
from gpubench.edge.fleet.shares import Machine
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites


def times(factor: float = 1.0, spread: float = 0.01) -> dict[str, tuple[float, float, float]]:
    medians = {"add n=8": 1e-3, "add n=16": 2e-3}
    return {
        name: (factor * t, factor * t * (1 - spread), factor * t * (1 + spread))
        for name, t in medians.items()
    }


def machine(name: str, cpu: str = "A") -> Machine:
    return Machine(name, f"tcp://{name}", {"cpu": cpu}, (), ("env",))


def test_times_within_what_processes_scatter_by_are_equal() -> None:
    largest, why_not = compare(times(), times(1.05))
    assert (largest, why_not) == (pytest.approx(1.05), None)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (times(1.2), r"add n=\d+ is 0\.833 times as fast \(0\.817 to 0\.85\)"),
        (times(1.2, spread=0.5), r"add n=\d+ is 0\.833 times as fast"),
        ({"add n=8": (1e-3, nan, nan)}, "add n=8 has no interval on one of them"),
        ({"other": (1e-3, 1e-3, 1e-3)}, "no case succeeded on both"),
        ({}, "no case succeeded on both"),
    ],
    ids=["slower", "slower, perhaps", "no interval", "other cases", "nothing"],
)
def test_machines_that_are_not_proven_equal_say_why(
    other: dict[str, tuple[float, float, float]], why: str
) -> None:
    assert re.match(why, str(compare(times(), other)[1]))


def test_equal_machines_share_a_name_and_others_keep_theirs() -> None:
    machines = [machine("a"), machine("b"), machine("c")]
    keepers, notes = groups_of(machines, {"a": times(), "b": times(1.02), "c": times(1.5)}, "lab")
    assert keepers == {"a": "lab", "b": "lab", "c": "c"}
    assert notes["a"] == notes["b"]
    assert notes["a"].startswith(
        "a, b divide the work: equal within 2.0% in 2 cases measured on each (20"
    )
    assert notes["c"].startswith("kept apart, not proven equal to a: add n=")


def test_where_nobody_is_equal_all_keep_their_names() -> None:
    keepers, notes = groups_of([machine("a"), machine("b")], {"a": {}, "b": times()}, "lab")
    assert keepers == {"a": "a", "b": "b"}
    assert notes == {"b": "kept apart, not proven equal to a: no case succeeded on both"}


def test_the_compared_kernels_are_from_all_suites(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"suite_{number:02}.yaml").write_text(
            f"version: 1\nsuite: suite_{number:02}\nkernels:\n  negated:\n"
            "    sizes: {n: [8, 16, 32]}\n"
            "    arrays: {a: {shape: [n], dtype: float64, intent: inout}}\n    call: [a]\n"
            "    baseline: plain\n    implementations:\n"
            '      plain: {function: "numpy:negative", backend: numpy}\n'
        )
    commands = proof_commands(build_plan(load_suites([tmp_path]), 0))
    assert [command[0][-22:] for command in commands] == [
        f"suite_{number:02}.yaml::negated" for number in range(0, 20, 3)
    ]
    assert {command[1:] for command in commands} == {("-a", "n=16")}
