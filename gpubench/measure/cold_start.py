"""Compilation time: the first call in a fresh process, less a steady call.

A process of its own for every sample, with an empty directory for Numba's disk cache, so that
nothing compiled before is found. ``python -m gpubench.measure.cold_start`` is that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpubench.backends import registry
from gpubench.errors import KernelError
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case

STEADY_CALLS = 5
CACHES = ("NUMBA_CACHE_DIR", "CUDA_CACHE_PATH", "POCL_CACHE_DIR", "XDG_CACHE_HOME")
"""Variables that say where Numba, CUDA's driver and OpenCL platforms keep what they compiled."""


class ColdStartSampler:
    """Samples are whole processes: each compiles once."""

    method = "fresh process"
    warnings: tuple[str, ...] = ()

    def __init__(self, case: Case) -> None:
        from gpubench.plan.lookup import locate  # what plans is imported for this time only

        self._place = locate(case)

    def seconds(self, runs: int) -> float:
        """Sum of the compilation times of ``runs`` fresh processes."""
        return sum(self._compile_once() for _ in range(runs))

    def _compile_once(self) -> float:
        """Raises ``KernelError`` with the cause when the process fails."""
        with tempfile.TemporaryDirectory(prefix="gpubench-cache-") as cache:
            finished = subprocess.run(
                [sys.executable, "-P", "-m", __name__, json.dumps(self._place)],
                env=_environment(cache),
                capture_output=True,
                text=True,
                check=False,
            )
        told = _told(finished)
        if "seconds" not in told:
            raise KernelError(f"the process that compiles the kernel failed: {told['error']}")
        return float(told["seconds"])


def _told(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the process said of itself in its last line, or what is known of one that died."""
    if finished.returncode == 0:
        told: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
        return told
    last = finished.stderr.strip().splitlines()[-1:] or ["no message"]
    return {"error": f"exit code {finished.returncode}: {last[0]}"}


def _environment(cache: str) -> dict[str, str]:
    """This process's, with its own search path, so that the same modules are found."""
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PYTHONPATH": path, **dict.fromkeys(CACHES, cache)}


def compile_seconds(case: Case) -> float:
    """First call less the median of steady calls, in seconds, never below zero."""
    inputs = draw_inputs(case)
    with registry.get(case.backend).open(case.device, case.threads) as session:
        execution = Execution(session, case, load_target(case), inputs)
        first, *steady = (_timed_call(execution) for _ in range(1 + STEADY_CALLS))
    return max(0.0, first - float(np.median(steady)))


def _timed_call(execution: Execution) -> float:
    start = time.perf_counter()
    execution.call()
    execution.session.synchronize()
    return time.perf_counter() - start


def _say_seconds(place: Mapping[str, Any]) -> None:
    """Print, as JSON, the seconds or why there are none: compilers end messages of many lines with
    the least of them."""
    from gpubench.plan.lookup import case_at

    try:
        told: dict[str, Any] = {"seconds": compile_seconds(case_at(place))}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    print(f"\n{json.dumps(told)}")


if __name__ == "__main__":
    _say_seconds(json.loads(sys.argv[1]))
