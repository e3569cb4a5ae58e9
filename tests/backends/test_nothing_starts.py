"""Importing, counting and asking start no device, no thread pool and no thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import os, sys
from gpubench.backends import devices, registry

def open_devices():
    links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    return [os.readlink(link) for link in links if os.path.islink(link)]

def started():
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    found = ["pool"] if parallel is not None and parallel._is_initialized else []
    found += ["thread"] if len(os.listdir("/proc/self/task")) > 1 else []
    return found + [path for path in open_devices() if "nvidia" in path]

def ask():
    devices.gpu_count(), devices.gpus(), registry.describe_devices(), devices.no_gpu_reason()
    for name in registry.names():
        backend = registry.get(name)
        for device in ("cpu", "cuda:0", "scripted:0"):
            backend.unavailable(device)
            backend.machine_facts(), backend.too_many_threads(1), backend.keeps(print)
            if backend.serves(device):
                backend.device_facts(device)

"""


def probe(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE + program],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="reads the threads of a process from /proc"
)


def test_asking_every_backend_starts_nothing() -> None:
    assert probe("ask(); print(started())") == "[]"


def test_importing_the_backends_imports_no_numba() -> None:
    loading = "[registry.get(name) for name in registry.names()]; devices.gpu_count()"
    assert probe(f"{loading}; print('numba' in sys.modules)") == "False"


def test_the_command_line_begins_without_what_few_commands_need() -> None:
    few = "asv asyncio dask distributed duckdb jinja2 numba numpy pydantic yaml"
    program = f"import sys, gpubench.cli; print(*sys.modules.keys() & set('{few}'.split()))"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "\n"


def test_the_probe_notices_a_session_of_numba() -> None:
    assert "pool" in probe("ask(); session = registry.get('numba').open('cpu'); print(started())")
