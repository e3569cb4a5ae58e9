"""Asking the backends of other systems imports none of these and starts nothing; opening does."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import os, sys
from gpubench.backends.registry import get
from gpubench.measure.recorder import run_facts

run_facts()
for name in {names}:
    backend = get(name)
    for device in ("cpu", "cuda:0", "processes:2", "threads:2", "dask:2:1", "ray:2"):
        backend.unavailable(device), backend.too_many_threads(1)
        if backend.serves(device):
            backend.device_facts(device)

def loaded():
    systems = ("torch", "jax", "array_api_compat", "joblib", "dask", "distributed", "ray")
    systems += ("pyarrow", "pandas", "polars", "modin", "cudf")
    systems += ("cupy", "pycuda")
    systems += ("sklearn", "scipy", "xgboost", "cuml")
    return [name for name in systems if name in sys.modules]

print(loaded(), len(os.listdir("/proc/self/task")) - 1)
"""
NAMES = ("torch", "jax", "array_api", "multiprocessing", "threads", "joblib", "dask", "ray")
NAMES += ("pandas", "polars", "modin", "cudf")
NAMES += ("cupy", "pycuda")
NAMES += ("scikit_learn", "xgboost", "cuml")


def said(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads of a process in /proc")
def test_asking_imports_no_system_and_starts_no_thread() -> None:
    assert said(PROBE.format(names=NAMES)) == "[] 0"


def test_the_probe_notices_a_session() -> None:
    pytest.importorskip("torch")
    opened = "session = get('torch').open('cpu'); print(loaded())"
    assert said(PROBE.format(names=NAMES) + opened).splitlines()[-1] == "['torch']"
