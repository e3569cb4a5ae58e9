"""Kernels for CUDA that are right, or wrong in the usual ways, each through a preparation.

Run as a program under Numba's simulator it prints, as JSON, what the record says of each.
"""

import json
import sys
from pathlib import Path

import numpy as np
from builders import Recording, plan_of
from numba import cuda

N, BLOCK = 37, 16


def double(a, out):
    np.multiply(a, 2, out=out)


@cuda.jit
def in_bounds(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


@cuda.jit
def out_of_bounds(a, out):
    i = cuda.grid(1)
    out[i] = 2 * a[i]


@cuda.jit
def in_wrong_place(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[cuda.threadIdx.x]


@cuda.jit
def one_thread_for_all(a, out):
    if cuda.grid(1) == 0:
        out[0] = 2 * a[0]


KERNELS = {
    "in_bounds": "cover",
    "out_of_bounds": "cover",
    "in_wrong_place": "cover",
    "one_thread_for_all": "cover",
    "too_few_blocks": f"[[n // {BLOCK}]]",
}

SUITE = """
sizes: {n: [SIZE]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
devices: [cpu, 'cuda:0']
implementations:
  numpy: {function: check_on_the_simulator:double}
  candidate: {function: check_on_the_simulator:FUNCTION, launch: {block: [WIDE], grid: GRID}}
"""


def outcome(folder, name, grid):
    function = "in_bounds" if name == "too_few_blocks" else name
    words = {"SIZE": N, "WIDE": BLOCK, "GRID": grid, "FUNCTION": function}
    text = SUITE
    for word, meaning in words.items():
        text = text.replace(word, str(meaning))
    cases = plan_of(folder, text, simulator=True).cases()
    (case,) = (case for case in cases if case.implementation_name == "candidate")
    recording = Recording(folder, case)
    try:
        recording.preparation.prepare()
    except Exception as error:
        raised = type(error).__name__
    record = recording.last
    return {"status": record.status, "reason": record.reason, "raised": raised}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(json.dumps({name: outcome(folder, name, grid) for name, grid in KERNELS.items()}))
