"""Every CPU form of every suite at small, odd sizes and each dtype, against its baseline."""

from __future__ import annotations

import pytest
from library_cases import by_kernel, checked_cases, fault, kernels_with, name, small_plan

from gpubench.plan.case import Case

BACKENDS = ("numpy", "numba")


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    return by_kernel(checked_cases(small_plan(wide=True), BACKENDS))


@pytest.mark.parametrize("kernel", kernels_with(*BACKENDS))
def test_the_forms_compute_what_the_baseline_computes(
    kernel: str, cases: dict[str, list[Case]]
) -> None:
    assert {name(case): found for case in cases[kernel] if (found := fault(case))} == {}
