"""Compilation time: the first call in a fresh process, less a steady call.

A process of its own for every sample, with empty folders for what backends keep on disk, so that
nothing compiled before is used. ``python -m gpubench.measure.cold_start`` is that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from gpubench.backends import registry
from gpubench.errors import KernelError
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case
from gpubench.plan.plan import case_at, locate

STEADY_CALLS = 5
"""Their median is robust against one that something disturbs; compiling takes far longer."""


class ColdStartSampler:
    """Samples are whole processes: each compiles once."""

    method = "fresh process"
    warnings: tuple[str, ...] = ()

    def __init__(self, case: Case) -> None:
        self._place = locate(case)
        self._caches = registry.get(case.backend).caches

    def seconds(self, runs: int) -> float:
        """Sum of the compilation times of ``runs`` fresh processes.

        Raises ``KernelError`` with the cause when one fails.
        """
        return sum(self._compile_once() for _ in range(runs))

    def _compile_once(self) -> float:
        with tempfile.TemporaryDirectory(prefix="gpubench-cache-") as cache:
            # This process's search path, so that the same modules are imported.
            path = os.pathsep.join(filter(None, sys.path))
            caches = dict.fromkeys(self._caches, cache)
            finished = subprocess.run(
                [sys.executable, "-P", "-m", __name__, json.dumps(self._place)],
                env={**os.environ, "PYTHONPATH": path, **caches},
                capture_output=True,
                text=True,
                check=False,
            )
        if finished.returncode != 0:
            last = finished.stderr.strip().splitlines()[-1:] or ["no message"]
            answer = {"error": f"exit code {finished.returncode}: {last[0]}"}
        else:
            answer = json.loads(finished.stdout.splitlines()[-1])
        if "seconds" not in answer:
            raise KernelError(f"the process that compiles the kernel failed: {answer['error']}")
        return float(answer["seconds"])


def compile_seconds(case: Case) -> float:
    """First call less the median of steady calls, in seconds, never below zero."""
    inputs = draw_inputs(case)
    with registry.get(case.backend).open(case.device, case.threads) as session:
        execution = Execution(session, case, load_target(case), inputs)
        calls = []
        for _ in range(1 + STEADY_CALLS):
            start = time.perf_counter()
            execution.call()
            session.synchronize()
            calls.append(time.perf_counter() - start)
    return max(0.0, calls[0] - float(np.median(calls[1:])))


def main(place: str) -> None:
    """Print, as JSON in the last line, the seconds of a case or why there are none: compilers end
    messages of many lines with the least of them."""
    answer: dict[str, Any]
    try:
        answer = {"seconds": compile_seconds(case_at(json.loads(place)))}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(f"\n{json.dumps(answer)}")


if __name__ == "__main__":
    main(sys.argv[1])
