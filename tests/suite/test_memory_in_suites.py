"""``memory_limit`` and ``sampling: {memory: true}`` in a suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_suite import SUITE

from gpubench.plan.plan import Plan, build_plan
from gpubench.plan.version import benchmark_version
from gpubench.suite.loading import load_suite

Faults = Callable[..., list[str]]


def plan(folder: Path, *lines: str, suite: str = SUITE) -> Plan:
    path = folder / "small.yaml"
    path.write_text(suite + "".join(f"    {line}\n" for line in lines))
    return build_plan([load_suite(path)], gpu_count=0)


def numpy_cases(planned: Plan) -> list[tuple[str, int | None]]:
    cases = (case for case in planned.cases() if case.implementation_name == "numpy")
    return [(case.identity, case.memory_limit) for case in cases]


def test_a_limit_is_a_number_or_a_formula(tmp_path: Path) -> None:
    assert {limit for _, limit in numpy_cases(plan(tmp_path))} == {None}
    assert {limit for _, limit in numpy_cases(plan(tmp_path, "memory_limit: 4096"))} == {4096}
    by_formula = plan(tmp_path, "let: {room: n * 2**20}", "memory_limit: room + 1")
    assert {limit for _, limit in numpy_cases(by_formula)} == {4 * 2**20 + 1, 8 * 2**20 + 1}


def test_a_limit_may_be_an_axis(tmp_path: Path) -> None:
    """All are measured with each of its values, what stays within it and what does not."""
    suite = SUITE.replace("tile: [2, 4]}", "tile: [2, 4], room: [64, 128]}")
    cases = numpy_cases(plan(tmp_path, "memory_limit: room * 2**20", suite=suite))
    assert [limit for identity, limit in cases if identity.startswith("n=4 dtype=float32")] == [
        64 * 2**20,
        128 * 2**20,
    ]


def test_what_is_limited_is_another_benchmark_and_what_is_watched_is_not(tmp_path: Path) -> None:
    def version(*lines: str) -> str:
        kernel = plan(tmp_path, *lines).loaded[0].suite.kernels["add"]
        return benchmark_version(kernel, "numpy", "kernel")

    plain = version()
    assert version("sampling: {memory: true}") == plain
    assert version("memory_limit: 4096") != plain


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("memory_limit: rooom", "17:19: unknown name 'rooom'; allowed: n, dtype, tile"),
        ("memory_limit: 0", "17:19: memory_limit: found 0; allowed: a whole number from 1"),
        ("sampling: {memory: much}", "17:24: memory: found 'much'; allowed: true or false"),
    ],
)
def test_what_is_no_limit_is_a_fault(faults: Faults, line: str, fault: str) -> None:
    (found,) = faults(f"{SUITE}    {line}\n")
    assert fault in found
