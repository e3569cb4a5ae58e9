"""Facts about the machine and the software of a run, gathered without starting a device."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from gpubench.names import Value

SOFTWARE = ("gpubench", "numpy", "numba", "llvmlite", "numba-cuda", "asv-runner")
"""Distributions whose versions explain a change of speed."""

_START = 19
"""Place of the start among what follows a process's name in ``/proc/PID/stat`` (man 5 proc)."""

CHANGING = frozenset(
    {"gpu_clock_mhz", "gpu_memory_clock_mhz", "gpu_temperature_c", "gpu_power_w", "gpu_throttling"}
)
"""Facts that differ from case to case: sessions report them with each case."""


def run_facts() -> dict[str, Value | None]:
    """Flat facts for the record: machine, GPU, software, threads. ``None``: not to be had here.

    ``run`` tells the processes of one asv run from those of another.
    """
    return {"run": run_id() or os.getppid(), **_machine(), **_gpu(), **_versions(), **_threads()}


def run_id() -> str | None:
    """The process that started this one: its number and when it began, in ticks since the machine
    did. ``None`` where the system does not tell, because numbers are used again.
    """
    parent = os.getppid()
    try:
        status = Path(f"/proc/{parent}/stat").read_text()
        return f"{parent}-{status.rpartition(')')[2].split()[_START]}"
    except (OSError, IndexError):
        return None


def _machine() -> dict[str, Value | None]:
    from gpubench.backends import devices

    cpu = devices.cpu()
    return {
        "host": platform.node(),
        "os": platform.platform(),
        "cpu": cpu.name,
        "cpu_threads": cpu.threads,
        "memory_bytes": cpu.memory_bytes,
        "python": platform.python_version(),
    }


def _gpu() -> dict[str, Value | None]:
    from gpubench.backends import devices

    gpus = devices.gpus()
    if not gpus:
        return {"gpu": None, "no_gpu": devices.no_gpu_reason()}
    facts = devices.gpu_facts(gpus[0])
    steady = {name: value for name, value in facts.items() if name not in CHANGING}
    return {**steady, "gpu": ", ".join(gpu.name for gpu in gpus)}


def _versions() -> dict[str, Value | None]:
    return {name.replace("-", "_"): _version(name) for name in SOFTWARE}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _threads() -> dict[str, Value | None]:
    """BLAS behind NumPy and the settings that choose thread counts."""
    import numpy  # noqa: F401  (loads the BLAS that threadpoolctl looks for)

    pools: list[dict[str, Any]] = threadpool_info()
    blas = next((pool for pool in pools if pool["user_api"] == "blas"), {})
    return {
        "blas": blas.get("internal_api"),
        "blas_version": blas.get("version"),
        "blas_threads": blas.get("num_threads"),
        "NUMBA_NUM_THREADS": os.environ.get("NUMBA_NUM_THREADS"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }
