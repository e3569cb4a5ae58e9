"""Every CPU form of every suite at small, odd sizes and each dtype, against its baseline.

Compiling a form takes seconds for each dtype: ``make test`` takes a kernel of each kind, in the
last dtype of its suite, which is the widest and has the tightest tolerances. ``.ci/run`` takes all.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from library_cases import by_kernel, checked_cases, fault, kernels_with, name, of_each, small_plan

from gpubench.plan.case import Case

BACKENDS = ("numpy", "numba")


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    return by_kernel(checked_cases(small_plan(wide=True), BACKENDS))


def has_last_dtype(case: Case) -> bool:
    dtype = case.kernel.parameters.get("dtype")
    return not isinstance(dtype, tuple) or case.values.get("dtype") == dtype[-1]


def faults(cases: Iterable[Case]) -> dict[str, str]:
    return {name(case): found for case in cases if (found := fault(case))}


@pytest.mark.parametrize("kernel", of_each(kernels_with(*BACKENDS), pytest.mark.ci))
def test_the_forms_compute_what_the_baseline_computes(
    kernel: str, cases: dict[str, list[Case]]
) -> None:
    chosen = [*filter(has_last_dtype, cases[kernel])]

    assert chosen
    assert faults(chosen) == {}


@pytest.mark.ci
@pytest.mark.parametrize("kernel", kernels_with(*BACKENDS))
def test_the_forms_compute_what_the_baseline_computes_in_further_dtypes(
    kernel: str, cases: dict[str, list[Case]]
) -> None:
    assert faults(case for case in cases[kernel] if not has_last_dtype(case)) == {}
