"""Every CUDA kernel of every suite with few threads on Numba's simulator, against its baseline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from library_cases import checked_cases, in_pairs, name, small_plan

PROGRAM = Path(__file__).with_name("simulate_library.py")
PLAN = small_plan(simulator=True)
CASES = [name(case) for case in in_pairs(checked_cases(PLAN, ("numba_cuda",)))]


@pytest.fixture(scope="module")
def faults() -> dict[str, str | None]:
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("case", CASES)
def test_the_cuda_form_computes_what_the_baseline_computes(
    case: str, faults: dict[str, str | None]
) -> None:
    assert faults[case] is None
