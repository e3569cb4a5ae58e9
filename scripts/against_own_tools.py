"""Our time over that of each system's own tool, for the same work.

| system | its own tool |
| --- | --- |
| PyTorch, on the CPU | ``torch.utils.benchmark.Timer`` |
| CuPy, where a GPU is | ``cupyx.profiler.benchmark``, by its events on the device |
| Dask, a map on a cluster | its client, from ``map`` to ``wait``, by ``distributed.metrics.time`` |
| Ray, a map | ``ray.wait`` in the loop of ``ray microbenchmark`` (``ray._private.ray_perf``) |
| pandas, Polars | a worker of pyperf |

Dask has no command that times a call, and what it records of tasks (``get_task_stream``) leaves out
handing them over. Ray's own function sleeps, warms up and measures for nine seconds each time it is
called, too long to take turns with: its loop is written out here.

Each case is opened once, in a fresh process in every run, and its samples are taken in turn by
gpubench and by the tool, on the same arrays and workers. The ratio of a case is the median over the
runs. Target: within 5 % at the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from against_timeit_and_pyperf import pyperf_worker
from conditions import cases_of, in_fresh_processes, scratch_project, turn
from figures import add_option, record, recording

from gpubench.backends import registry
from gpubench.backends.protocol import Session
from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.measure.times import kernel
from gpubench.plan.case import Case

Call = Callable[[], object]
Ways = tuple[float, float]
"""Seconds of one call by gpubench and by the system's own tool."""

PLACE = "own_tools.yaml"
"""Of the suite in the folder of a run."""

FUNCTIONS = """\
from functools import cache

import numpy as np

TASKS = 32

def task(steps):
    return sum(range(steps))

def torch_add(a, out):
    import torch
    torch.add(a, a, out=out)

def torch_exp(a, out):
    import torch
    torch.exp(a, out=out)

def torch_sort(a, out):
    out.copy_(a.sort().values)

def cupy_add(a, out):
    import cupy
    cupy.add(a, a, out=out)

def cupy_exp(a, out):
    import cupy
    cupy.exp(a, out=out)

def dask_map(steps):
    from distributed import get_client, wait
    wait(get_client().map(task, [steps] * TASKS, pure=False))
    return np.full(TASKS, float(steps))

@cache
def remote_task():
    import ray
    return ray.remote(task)

def ray_map(steps):
    import ray
    references = [remote_task().remote(steps) for _ in range(TASKS)]
    ray.wait(references, num_returns=TASKS)
    return np.full(TASKS, float(steps))

def pandas_sum(x):
    return x.groupby("key", as_index=False).agg({"v": "sum"})

def pandas_sort(x):
    return x.sort_values(["key", "v"])

def polars_sum(x):
    import polars
    return x.group_by("key").agg(polars.col("v").sum())

def polars_sort(x):
    return x.sort(["key", "v"])
"""

ARRAYS = """
    arrays:
      a: {shape: [n], dtype: float32, fill: uniform}
      out: {shape: [n], dtype: float32, intent: out}
    call: [a, out]
"""
MAP = """
    arrays:
      out: {shape: [32], dtype: float64, intent: out}
    call: [n]
    returns: [out]
"""
TABLES = """
    tables:
      x:
        rows: n
        columns:
          key: {dtype: int32, fill: {function: "gpubench.edge.systems.kernels.frame_data:to_5"}}
          v: {dtype: float64, fill: {function: "gpubench.edge.systems.kernels.frame_data:to_100"}}
      answer: {intent: out, key: [key, v]}
    call: [x]
    returns: [answer]
"""

CALLABLES = {
    "torch": ("cpu", ARRAYS, ("add", "exp", "sort"), (2**12, 2**16, 2**20)),
    "cupy": ("cuda:0", ARRAYS, ("add", "exp"), (2**16, 2**20, 2**24)),
    # Steps of each of 32 tasks: 1 µs, 100 µs, 10 ms.
    "dask": ("dask:2:1", MAP, ("map",), (50, 5_000, 500_000)),
    "ray": ("ray:2", MAP, ("map",), (50, 5_000, 500_000)),
    "pandas": ("cpu", TABLES, ("sum", "sort"), (10**3, 10**5, 10**6)),
    "polars": ("cpu", TABLES, ("sum", "sort"), (10**3, 10**5, 10**6)),
}
"""Of each system its device, what its functions get, their names and their sizes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs over all cases")
    parser.add_argument("--samples", type=int, default=10, help="samples each way in a run")
    parser.add_argument("--systems", nargs="+", default=list(CALLABLES), choices=list(CALLABLES))
    parser.add_argument("--in-turn", help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.in_turn:
        print(json.dumps(in_turn(cases_of(Path(PLACE))[given.in_turn], given.samples)))
        return
    with recording(given, *given.systems, "pyperf"):
        systems = [system for system in given.systems if can_run(system)]
        with scratch_project({"own_tools.py": FUNCTIONS, PLACE: suite(systems)}) as folder:
            report(in_fresh_processes(__file__, [*cases_of(folder / PLACE)], folder, given))


def can_run(system: str) -> bool:
    """Return whether it can be measured here; says why not."""
    reason = registry.get(system).unavailable(CALLABLES[system][0])
    if reason:
        print(f"{system:8} left out: {reason}")
    return reason is None


def suite(systems: list[str]) -> str:
    lines = ["version: 1\nsuite: own_tools\nkernels:\n"]
    for system in systems:
        device, given, functions, sizes = CALLABLES[system]
        for function in functions:
            name = f"{system}_{function}"
            lines.append(
                f"  {name}:\n    sizes: {{n: {list(sizes)}}}{given}    devices: ['{device}']\n"
                f"    baseline: {system}\n"
                f"    implementations:\n      {system}: {{function: 'own_tools:{name}', "
                f"backend: {system}}}\n"
            )
    return "".join(lines)


def in_turn(case: Case, samples: int) -> Ways:
    """Medians of samples of one case, taken in turn."""
    with opened(case, draw_inputs(case)) as execution:
        sampling = kernel(execution)
        sampling.size(case.kernel.sampling)
        call: Call = execution.call
        if case.backend in ("dask", "ray"):  # without what a session does around it
            call = partial(load_target(case).function, case.values["n"])
        tool = TOOLS[case.backend](execution.session, call, sampling.runs)

        def restored_value() -> float:
            """Begun as a sample is: workers that have just been asked are quicker."""
            sampling.restore()
            return tool()

        ways = sampling.restored_sample, restored_value
        turns = [turn(ways, number) for number in range(samples + 1)]
    own, other = map(statistics.median, zip(*turns[1:], strict=True))
    return own, other


# --- the tools: each takes a value of so many runs, in seconds of one


def by_torch(session: Session, call: Call, runs: int) -> Callable[[], float]:
    # Its default is one thread.
    threads = import_module("torch").get_num_threads()
    benchmark = import_module("torch.utils.benchmark")
    timer = benchmark.Timer("call()", globals={"call": call}, num_threads=threads)
    return lambda: float(timer.timeit(runs).mean)


def by_cupy(session: Session, call: Call, runs: int) -> Callable[[], float]:
    benchmark = import_module("cupyx.profiler").benchmark
    return lambda: float(benchmark(call, name="call", n_repeat=runs, n_warmup=1).gpu_times.mean())


def by_dask(session: Any, call: Call, runs: int) -> Callable[[], float]:
    clock = import_module("distributed.metrics").time

    def value() -> float:
        with session.configured():  # which client tasks are submitted to
            start = clock()
            for _ in range(runs):
                call()
            return float(clock() - start) / runs

    return value


def by_ray(session: Session, call: Call, runs: int) -> Callable[[], float]:
    def value() -> float:
        start = time.perf_counter()
        for _ in range(runs):
            call()
        return (time.perf_counter() - start) / runs

    return value


def by_pyperf(session: Session, call: Call, runs: int) -> Callable[[], float]:
    return pyperf_worker(call, runs)


TOOLS = {
    "torch": by_torch,
    "cupy": by_cupy,
    "dask": by_dask,
    "ray": by_ray,
    "pandas": by_pyperf,
    "polars": by_pyperf,
}


def report(found: Mapping[str, Sequence[Sequence[float]]]) -> None:
    print(f"{'case':32} {'time':>13} {'/ its own tool':>15}")
    ratios: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    for name, runs in found.items():
        ratio = statistics.median(own / other for own, other in runs)
        ratios.setdefault(name.partition("_")[0], []).append(ratio)
        seconds = statistics.median(own for own, _ in runs)
        times.setdefault(name.partition("_")[0], []).append(seconds * 1e6)
        print(f"{name:32} {seconds * 1e6:10.1f} µs {ratio:15.3f}")
    for system, values in ratios.items():
        middle = statistics.median(values)
        print(f"{system}: median ratio {middle:.3f}")
        within = f"{sum(abs(ratio - 1) <= 0.05 for ratio in values)} of {len(values)}"
        of_system = {"times, µs": f"{min(times[system]):.0f} to {max(times[system]):.0f}"}
        of_system |= {"over its tool": f"{middle:.3f}", "within 5 %": within}
        record("own_tools", system, of_system)
    every = [ratio for values in ratios.values() for ratio in values]
    within = sum(abs(ratio - 1) <= 0.05 for ratio in every)
    print(
        f"all: median ratio {statistics.median(every):.3f}, {within} of {len(every)} cases within "
        "5 %   target: within 5 % at the median"
    )


if __name__ == "__main__":
    main()
