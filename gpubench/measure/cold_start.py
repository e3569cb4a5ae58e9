"""Compilation time: the first call in a fresh process, less a steady call.

A process of its own for every sample, with an empty directory for Numba's disk cache, so that
nothing compiled before is found. ``python -m gpubench.measure.cold_start`` is that process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from gpubench.backends import registry
from gpubench.errors import KernelError
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case
from gpubench.plan.lookup import case_at, locate

STEADY_CALLS = 5


class ColdStartSampler:
    """Samples are whole processes: each compiles once."""

    method = "fresh process"
    warnings: tuple[str, ...] = ()

    def __init__(self, case: Case) -> None:
        self._place = locate(case)

    def seconds(self, runs: int) -> float:
        """Sum of the compilation times of ``runs`` fresh processes."""
        return sum(self._compile_once() for _ in range(runs))

    def _compile_once(self) -> float:
        """Raises ``KernelError`` with the process's last words when it fails."""
        with tempfile.TemporaryDirectory(prefix="gpubench-cache-") as cache:
            finished = subprocess.run(
                [sys.executable, "-m", __name__, json.dumps(self._place)],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=False,
            )
        if finished.returncode:
            last = finished.stderr.strip().splitlines()[-1:] or ["no message"]
            raise KernelError(f"the process that compiles the kernel failed: {last[0]}")
        return float(finished.stdout)


def compile_seconds(case: Case) -> float:
    """First call less the median of steady calls, in seconds, never below zero."""
    inputs = draw_inputs(case)
    with registry.get(case.backend).open(case.device, case.threads) as session:
        execution = Execution(session, case, load_target(case), inputs)
        first, *steady = (_timed_call(execution) for _ in range(1 + STEADY_CALLS))
    return max(0.0, first - statistics.median(steady))


def _timed_call(execution: Execution) -> float:
    start = time.perf_counter()
    execution.call()
    execution.session.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(compile_seconds(case_at(json.loads(sys.argv[1]))))
