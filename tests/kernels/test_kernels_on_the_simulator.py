"""Every CUDA kernel, run with few threads on Numba's simulator, against the NumPy form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_inventory import INVENTORY, arguments, results
from simulate_kernels import Case, cases, key

PROGRAM = Path(__file__).with_name("simulate_kernels.py")
Simulated = dict[str, list[list[float]]]


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("case", [*cases()], ids=key)
def test_the_cuda_form_computes_what_numpy_computes(case: Case, simulated: Simulated) -> None:
    name, _, _, dtype, size = case
    entry, expected = INVENTORY[name], arguments(name, size, dtype)
    for _ in range(2):
        entry.numpy(*expected)
    for found, reference in zip(simulated[key(case)], results(name, expected), strict=True):
        tolerance = entry.rtol[dtype]
        np.testing.assert_allclose(found, reference.ravel(), rtol=tolerance, atol=tolerance)
