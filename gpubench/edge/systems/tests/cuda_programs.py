"""Programs in CUDA C++ and cases that the tests of CuPy and PyCUDA share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.backends.protocol import Launch, Target
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

SUITES = Path(__file__).parents[1] / "suites"
LAUNCH = Launch(block=(64, 1, 1), grid=(2, 1, 1))
N = 100

SCALED = """
extern "C" __global__ void scale(real *a, real by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= by;
}
"""


def program(text: str = SCALED, entry: str = "scale", **constants: Any) -> Target:
    return Target(source=text, entry=entry, constants={"real": "float64", **constants})


CRASH = """
import numpy as np
from gpubench.backends.protocol import DeviceLostError, Launch, Target
from gpubench.backends.registry import get

text = 'extern "C" __global__ void crash(double *a) {{ a[1ll << 40] = 1; }}'
try:
    with get({backend!r}).open("cuda:0") as session:
        array = session.to_native(np.ones(4))
        target, one = Target(source=text, entry="crash"), Launch((1, 1, 1), (1, 1, 1))
        call = session.bind(target, one, [array])
        call()
        session.synchronize()
except DeviceLostError as error:
    print("lost:", error)
"""


def crash(backend: str) -> str:
    """What a process says whose kernel writes far outside of its array."""
    done = subprocess.run(
        [sys.executable, "-c", CRASH.format(backend=backend)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cases_on_the_gpu(suite: str, backend: str, *names: str) -> list[Any]:
    """Cases of a backend at the sizes of the preset ``smoke``; of these implementations, or all."""
    plan = build_plan([load_suite(SUITES / f"{suite}.yaml", "smoke")], gpu_count=1)
    return [
        pytest.param(case, id=f"{case.kernel_name}-{case.implementation_name}-{case.identity}")
        for case in plan.cases()
        if case.device == "cuda:0" and case.backend == backend
        if not names or case.implementation_name in names
    ]
