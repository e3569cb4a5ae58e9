"""Every CUDA kernel of every suite with few threads on Numba's simulator, against its baseline."""

from __future__ import annotations

import pytest
from library_cases import name
from simulate_library import simulate_library, simulated_cases

CASES = [name(case) for case in simulated_cases()]


@pytest.fixture(scope="module")
def faults() -> dict[str, str | None]:
    return simulate_library()


@pytest.mark.parametrize("case", CASES)
def test_the_cuda_form_computes_what_the_baseline_computes(
    case: str, faults: dict[str, str | None]
) -> None:
    assert faults[case] is None
