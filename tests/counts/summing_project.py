"""A project whose kernel adds numbers up on the CPU in several ways, right and wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

SUITE = """\
version: 1
suite: sums
kernels:
  total:
    sizes: {n: [1000]}
    arrays:
      a: {shape: [n], dtype: float64, fill: normal}
      out: {shape: [1], dtype: float64, intent: out}
    call: [a, out]
    work: {flops: 3 * n}
    implementations:
      numpy: {function: "summing:by_numpy", backend: numpy}
      numba: {function: "summing:by_numba", backend: numba}
      threaded: {function: "summing:by_numba", backend: numba, threads: [2]}
      wrong: {function: "summing:wrong", backend: numba}
      restless: {function: "summing:restless", backend: numba}
"""

KERNELS = """\
import numpy as np
from numba import njit

def by_numpy(a, out):
    out[0] = a.sum()

@njit(cache=True)
def by_numba(a, out):
    total = 0.0
    for i in range(a.size):
        total += a[i]
    out[0] = total

@njit
def wrong(a, out):
    out[0] = a[0]

@njit
def restless(a, out):
    total = 0.0
    for i in range(a.size):
        total += a[i]
    for _ in range(np.random.randint(10_000)):
        total += 1e-30
    out[0] = total
"""


def enter_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "suites").mkdir()
    (folder / "suites/sums.yaml").write_text(SUITE)
    (folder / "summing.py").write_text(KERNELS)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
