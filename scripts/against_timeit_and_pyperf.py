"""Our time over timeit's and over pyperf's, for the same callables.

Each run takes all callables three ways, one way after the other for each callable, so that what
drifts meets all. The ratio of a callable is the median over the runs. Target: within 2 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import timeit
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from conditions import print_conditions, progress, scratch_project

from gpubench.measure.direct import Job, take_round
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

CALLABLES = {
    "add": (2**14, 2**17, 2**20, 2**23),
    "exp": (2**10, 2**13, 2**16, 2**19, 2**24),
    "cumsum": (2**12, 2**16, 2**20, 2**25),
    "sort": (2**10, 2**18),
}

FUNCTIONS = """\
import numpy as np

def add(a, out):
    np.add(a, a, out=out)

def exp(a, out):
    np.exp(a, out=out)

def cumsum(a, out):
    np.cumsum(a, out=out)

def sort(a, out):
    np.copyto(out, a)
    out.sort()

def bound(name, n):
    from functools import partial
    a = np.random.default_rng(1).random(n, np.float32)
    return partial(globals()[name], a, np.empty_like(a))
"""

SUITE = """\
version: 1
suite: callables
kernels:
"""

KERNEL = """\
  {name}:
    sizes: {{n: {sizes}}}
    arrays:
      a: {{shape: [n], dtype: float32, fill: uniform}}
      out: {{shape: [n], dtype: float32, intent: out}}
    call: [a, out]
    implementations:
      numpy: {{function: "timed_callables:{name}"}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7, help="runs over all callables")
    parser.add_argument("--samples", type=int, default=10, help="samples each way in a run")
    parser.add_argument("--least", type=int, default=0, help="smallest n to take")
    parser.add_argument("--most", type=int, default=2**25, help="largest n to take")
    given = parser.parse_args()
    print_conditions("pyperf")
    with scratch_project(files()) as folder:
        cases = [case for case in planned(folder) if given.least <= case.values["n"] <= given.most]
        show = progress(given.runs * len(cases), "measuring")
        found: dict[str, list[tuple[float, float, float]]] = {}
        for done in range(given.runs * len(cases)):
            case = cases[done % len(cases)]
            found.setdefault(title(case), []).append(three_ways(case, folder, given.samples))
            show(done + 1)
    report(found)


def files() -> dict[str, str]:
    kernels = (KERNEL.format(name=name, sizes=list(n)) for name, n in CALLABLES.items())
    return {"timed_callables.py": FUNCTIONS, "callables.yaml": SUITE + "".join(kernels)}


def planned(folder: Path) -> list[Case]:
    return list(build_plan(load_suites([folder / "callables.yaml"]), gpu_count=0).cases())


def title(case: Case) -> str:
    return f"{case.kernel_name} {case.identity}"


def three_ways(case: Case, folder: Path, samples: int) -> tuple[float, float, float]:
    """Seconds of one call by gpubench, timeit and pyperf: medians."""
    name, n = case.kernel_name, int(case.values["n"])
    own = take_round(Job(case, samples=samples)).samples
    return (
        statistics.median(own),
        by_timeit(name, n, samples),
        by_pyperf(name, n, samples, folder),
    )


def by_timeit(name: str, n: int, samples: int) -> float:
    from timed_callables import bound  # type: ignore[import-not-found]

    timer = timeit.Timer(bound(name, n))
    number, _ = timer.autorange(None)
    number = max(1, number // 20)  # autorange fills 0.2 s, ours and pyperf's samples are shorter
    timer.timeit(number)
    return statistics.median(timer.repeat(samples, number)) / number


def by_pyperf(name: str, n: int, samples: int, folder: Path) -> float:
    setup = f"from timed_callables import bound; call = bound({name!r}, {n})"
    options = ["--processes", "1", "--values", str(samples), "--warmups", "1", "--quiet"]
    command = [sys.executable, "-m", "pyperf", "timeit", *options, "--min-time", "0.01"]
    output = folder / "pyperf.json"
    output.unlink(missing_ok=True)
    subprocess.run(
        [*command, "--output", str(output), "--setup", setup, "call()"],
        check=True,
        capture_output=True,
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(folder)},
    )
    runs = json.loads(output.read_text())["benchmarks"][0]["runs"]
    return statistics.median(value for run in runs for value in run.get("values", ()))


def environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def report(found: dict[str, list[tuple[float, float, float]]]) -> None:
    print(f"{'callable':24} {'time':>10} {'/ timeit':>9} {'/ pyperf':>9}")
    ratios: list[tuple[float, float]] = []
    for name, runs in found.items():
        pair = ratio(runs, 1), ratio(runs, 2)
        ratios.append(pair)
        seconds = statistics.median(own for own, _, _ in runs)
        print(f"{name:24} {seconds * 1e6:7.1f} µs {pair[0]:9.3f} {pair[1]:9.3f}")
    for place, other in enumerate(("timeit", "pyperf")):
        print(summary(other, [pair[place] for pair in ratios]))


def ratio(runs: Iterable[tuple[float, float, float]], other: int) -> float:
    """Median over the runs of ours over another's."""
    return statistics.median(run[0] / run[other] for run in runs)


def summary(other: str, ratios: list[float]) -> str:
    within = sum(abs(value - 1) <= 0.02 for value in ratios)
    middle = statistics.median(ratios)
    return (
        f"over {other}: median ratio {middle:.3f}, {within} of {len(ratios)} callables within 2 %"
        "   target: within 2 % at the median"
    )


if __name__ == "__main__":
    main()
