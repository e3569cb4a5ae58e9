"""Checks every CUDA kernel of the suites on Numba's simulator and prints what is wrong, as JSON.

A process of its own: whether Numba simulates is settled when it is imported.
"""

from __future__ import annotations

import json
import sys

from library_cases import checked_cases, fault, in_pairs, name, small_plan

if __name__ == "__main__":
    plan = small_plan(simulator=True)
    found = {name(case): fault(case) for case in in_pairs(checked_cases(plan, ("numba_cuda",)))}
    json.dump(found, sys.stdout)
