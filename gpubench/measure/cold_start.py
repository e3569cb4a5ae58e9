"""What a fresh process takes: to compile a kernel, and to start a system.

A process of its own for every sample. ``compile`` is the first call less a steady one, with empty
folders for what backends keep on disk, so that nothing compiled before is used. ``start`` is all
that comes before a first result: importing what the implementation needs, opening the device,
which may start a pool or a cluster, handing over the arrays, and the first call.
``python -m gpubench.measure.cold_start`` is that process: one of ``multiprocessing`` would import
the program that measures, and what that has imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from gpubench.backends import registry
from gpubench.errors import KernelError
from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs
from gpubench.names import format_value
from gpubench.plan.asked import with_values
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite
from gpubench.temporary import temporary_folder

STEADY_CALLS = 5
"""Their median is robust against one that something disturbs; compiling takes far longer."""


class ColdStartSampler:
    """Samples are whole processes: each compiles or starts once."""

    method = "fresh process"
    warnings: tuple[str, ...] = ()

    def __init__(self, case: Case, time: str) -> None:
        self._case, self._time = case, time

    def seconds(self, runs: int) -> float:
        """Return those of ``runs`` fresh processes together; raises ``KernelError`` where one
        fails."""
        group = self._case.group
        suite = str(group.loaded.path), group.loaded.preset, group.gpu_count
        values = [f"{name}={format_value(each)}" for name, each in self._case.values.items()]
        values.append(f"device={self._case.device}")
        place = json.dumps([self._time, *suite, group.class_name, self._case.identity, values])
        total = 0.0
        for _ in range(runs):
            with temporary_folder("cache") as cache:
                # This process's search path, so that the same modules are imported.
                path = os.pathsep.join(filter(None, sys.path))
                backend = registry.get(self._case.backend)
                emptied = (*backend.caches, *backend.caches_by_content)
                caches = dict.fromkeys(emptied, str(cache)) if self._time == "compile" else {}
                finished = subprocess.run(
                    [sys.executable, "-P", "-m", __name__],
                    input=place.encode(),
                    env={**os.environ, "PYTHONPATH": path, **caches},
                    capture_output=True,
                    check=False,
                )
            if finished.returncode != 0:
                last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
                answer = {"error": f"exit code {finished.returncode}: {(*last, 'no message')[0]}"}
            else:
                answer = json.loads(finished.stdout.splitlines()[-1])
            if "seconds" not in answer:
                raise KernelError(f"the fresh process for {self._time} failed: {answer['error']}")
            total += float(answer["seconds"])
        return total


def compile_seconds(case: Case) -> float:
    """First call less the median of steady calls, in seconds, never below zero."""
    with opened(case, draw_inputs(case)) as bound:
        calls = []
        for _ in range(1 + STEADY_CALLS):
            start = time.perf_counter()
            bound.call()
            bound.session.synchronize()
            calls.append(time.perf_counter() - start)
    return max(0.0, calls[0] - float(np.median(calls[1:])))


def start_seconds(case: Case) -> float:
    """Return all that comes before a first result, but for drawing the inputs, in seconds."""
    inputs = draw_inputs(case)
    start = time.perf_counter()
    with opened(case, inputs) as bound:
        bound.call()
        bound.session.synchronize()
        return time.perf_counter() - start


MEASURED_SECONDS = {"compile": compile_seconds, "start": start_seconds}


def main() -> None:
    """Print, as JSON in the last line, the seconds of the case whose place standard input has, or
    why there are none: compilers end messages of many lines with the least of them."""
    answer: dict[str, Any]
    try:
        label, path, preset, gpu_count, benchmark, identity, values = json.load(sys.stdin)
        plan = build_plan([load_suite(path, preset)], gpu_count)
        of_kernel = tuple(plan.group(benchmark).of_kernel.values())
        # A value may be in no suite, if a person asked for it.
        asked = with_values(replace(plan, kernels=(of_kernel,)), values)
        case = asked.expansion(asked.group(benchmark)).find(identity)
        answer = {"seconds": MEASURED_SECONDS[label](case)}
    except (Exception, SystemExit) as error:  # a kernel may call sys.exit()
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(f"\n{json.dumps(answer)}")


if __name__ == "__main__":
    main()
