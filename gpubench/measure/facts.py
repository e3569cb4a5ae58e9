"""Facts about the machine and the software of a run, gathered without starting a device."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy  # noqa: F401  (loads the BLAS that threadpoolctl looks for)
from threadpoolctl import threadpool_info

from gpubench.backends import registry
from gpubench.backends.host import cpu
from gpubench.names import Value

SOFTWARE = ("gpubench", "numpy", "asv-runner")
"""Distributions whose versions explain a change of any time; backends name theirs."""


def run_facts() -> dict[str, Value | None]:
    """Flat facts for the record: machine, GPU, software, threads. ``None``: not to be had here."""
    processor = cpu()
    facts: dict[str, Value | None] = {
        "host": platform.node(),
        "os": platform.platform(),
        "cpu": processor.name,
        "cpu_threads": processor.threads,
        "memory_bytes": processor.memory_bytes,
        "python": platform.python_version(),
    }
    software = dict.fromkeys(SOFTWARE)
    for backend in registry.usable():
        facts.update(backend.machine_facts())
        software.update(dict.fromkeys(backend.software))
    for name in software:
        try:
            facts[name.replace("-", "_")] = version(name)
        except PackageNotFoundError:
            facts[name.replace("-", "_")] = None
    pools: list[dict[str, Any]] = threadpool_info()
    blas = next((pool for pool in pools if pool["user_api"] == "blas"), {})
    return {
        **facts,
        "blas": blas.get("internal_api"),
        "blas_version": blas.get("version"),
        "blas_threads": blas.get("num_threads"),
        "NUMBA_NUM_THREADS": os.environ.get("NUMBA_NUM_THREADS"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def backend_concerns() -> dict[str, tuple[str, ...]]:
    """By backend, the facts that say something about its times alone; see ``Backend.concerns``."""
    backends = registry.usable()
    return {backend.name: tuple(backend.concerns) for backend in backends if backend.concerns}
