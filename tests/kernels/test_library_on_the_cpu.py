"""Every CPU form of every suite at small, odd sizes and each dtype, against its baseline."""

from __future__ import annotations

import pytest
from library_cases import checked_cases, fault, name, small_plan

from gpubench.plan.case import Case

CASES = list(checked_cases(small_plan(wide=True), ("numpy", "numba")))


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_form_computes_what_the_baseline_computes(case: Case) -> None:
    assert fault(case) is None
