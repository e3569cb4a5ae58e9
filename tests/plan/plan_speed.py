"""How long a plan takes that is nearly as large as one may be: ``python tests/plan/plan_speed.py``.

A script and no test: a time depends on the machine. Identities, an ``exclude`` rule over axes and
one over launch shapes are part of it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

SUITE = """\
version: 1
suite: large
kernels:
  large:
    sizes: {n: {linear: [1, 450]}}
    parameters: {dtype: [float32, float64], unroll: {values: [1, 2, 4, 8, 16], default: 1}}
    arrays: {a: {shape: [n], dtype: dtype, intent: inout}}
    call: [a, unroll]
    implementations:
      numpy: {function: gpubench.kernels.elementwise:vector_add_numpy}
      cuda:
        function: gpubench.kernels.elementwise:vector_add_cuda
        launch: {block: [32, 64, 128, 256, 512], grid: [cover, 64]}
    devices: [cpu, "cuda:0"]
    exclude:
      - when: dtype == 'float64' and unroll == 16
      - when: threads_per_block > 256 and unroll > 8
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.yaml"
        path.write_text(SUITE, encoding="utf-8")
        loaded = load_suite(path)
    start, cpu = time.perf_counter(), time.process_time()
    plan = build_plan([loaded], 1)
    count = sum(1 for case in plan.cases() if case.identity)
    elapsed, spent = time.perf_counter() - start, time.process_time() - cpu
    print(f"{count:,} cases in {elapsed:.2f} s ({spent:.2f} s of CPU time)")


if __name__ == "__main__":
    main()
