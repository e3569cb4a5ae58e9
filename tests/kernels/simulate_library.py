"""Checks every so many CUDA cases of the suites on Numba's simulator and prints what is wrong, as
JSON.

Processes of their own: whether Numba simulates is settled when it is imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

from library_cases import checked_cases, fault, in_pairs, name, small_plan

from gpubench.plan.case import Case

PROCESSES = 2


def simulated_cases() -> Iterator[Case]:
    """What is run: so many cases that any two values meet."""
    return in_pairs(checked_cases(small_plan(simulator=True), ("numba_cuda",)))


def simulate_library() -> dict[str, str | None]:
    """What is wrong with each case, by name, from processes side by side."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, __file__, str(part)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in range(PROCESSES)
    ]
    printed = [process.communicate()[0] for process in running]
    assert not any(process.returncode for process in running), "simulating failed, see above"
    return {case: found for text in printed for case, found in json.loads(text).items()}


if __name__ == "__main__":
    cases = islice(simulated_cases(), int(sys.argv[1]), None, PROCESSES)
    json.dump({name(case): fault(case) for case in cases}, sys.stdout)
