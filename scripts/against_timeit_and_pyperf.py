"""Our time over timeit's and over pyperf's, for the same callables.

Each callable is bound once, in a fresh process in every run, and its samples are taken in turn by
gpubench, by timeit and by a worker of pyperf: where arrays lie in memory changes a time by more
than the way to take it. The ratio of a callable is the median over the runs. Target: within 2 %.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import statistics
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from conditions import cases_of, in_fresh_processes, scratch_project, turn
from figures import add_option, record, recording

from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.times import kernel
from gpubench.plan.case import Case

Ways = tuple[float, float, float]
"""Seconds of one call by gpubench, timeit and pyperf."""

CALLABLES = {
    "add": (2**15, 2**17, 2**20, 2**23),
    "exp": (2**12, 2**14, 2**16, 2**19, 2**24),
    "cumsum": (2**12, 2**16, 2**20, 2**25),
    "sort": (2**11, 2**18, 2**24),
}

PLACE = "callables.yaml"
"""Of the suite in the folder of a run."""

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
    parser.add_argument("--in-turn", help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.in_turn:
        print(json.dumps(in_turn(cases_of(Path(PLACE))[given.in_turn], given.samples)))
        return
    with recording(given, "pyperf"):
        kernels = (KERNEL.format(name=name, sizes=list(n)) for name, n in CALLABLES.items())
        suite = SUITE + "".join(kernels)
        with scratch_project({"timed_callables.py": FUNCTIONS, PLACE: suite}) as folder:
            cases = cases_of(folder / PLACE).items()
            names = [name for name, case in cases if given.least <= case.values["n"] <= given.most]
            report(in_fresh_processes(__file__, names, folder, given))


def in_turn(case: Case, samples: int) -> Ways:
    """Medians of samples of one bound call, taken in turn."""
    with opened(case, draw_inputs(case)) as execution:
        sampling = kernel(execution)
        sampling.size(case.kernel.sampling)
        timer, runs = timeit.Timer(execution.call), sampling.runs
        ways = (
            sampling.restored_sample,
            lambda: timer.timeit(runs) / runs,
            pyperf_worker(execution.call, runs),
        )
        turns = [turn(ways, number) for number in range(samples + 1)]
    own, by_timeit, by_pyperf = map(statistics.median, zip(*turns[1:], strict=True))
    return own, by_timeit, by_pyperf


def pyperf_worker(call: Callable[[], object], runs: int) -> Callable[[], float]:
    """Takes one value as a worker process of pyperf does."""
    import pyperf  # type: ignore[import-not-found]

    runner = pyperf.Runner()
    options = ["--worker", "--loops", str(runs), "--warmups", "0", "--values", "1", "--quiet"]
    runner.parse_args(options)
    names = map(str, itertools.count())

    def value() -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            (seconds,) = runner.bench_func(next(names), call).get_values()
        return float(seconds)

    return value


def report(found: Mapping[str, Sequence[Sequence[float]]]) -> None:
    print(f"{'callable':24} {'time':>10} {'/ timeit':>9} {'/ pyperf':>9}")
    ratios: list[tuple[float, float]] = []
    for name, runs in found.items():
        pair = ratio(runs, 1), ratio(runs, 2)
        ratios.append(pair)
        seconds = statistics.median(own for own, _, _ in runs)
        print(f"{name:24} {seconds * 1e6:7.1f} µs {pair[0]:9.3f} {pair[1]:9.3f}")
        of_both = {"over timeit": f"{pair[0]:.3f}", "over pyperf": f"{pair[1]:.3f}"}
        record(
            "timeit", name.replace(" ", ", ", 1), {"time, µs": f"{seconds * 1e6:.1f}", **of_both}
        )
    for place, other in enumerate(("timeit", "pyperf")):
        summary(other, [pair[place] for pair in ratios])


def ratio(runs: Iterable[Sequence[float]], other: int) -> float:
    """Median over the runs of ours over another's."""
    return statistics.median(run[0] / run[other] for run in runs)


def summary(other: str, ratios: list[float]) -> None:
    within = sum(abs(value - 1) <= 0.02 for value in ratios)
    middle = statistics.median(ratios)
    print(
        f"over {other}: median ratio {middle:.3f}, {within} of {len(ratios)} callables within 2 %"
        "   target: within 2 % at the median"
    )
    record("timeit", "median of all", {f"over {other}": f"{middle:.3f}"})
    record("timeit", "within 2 %", {f"over {other}": f"{within} of {len(ratios)}"})


if __name__ == "__main__":
    main()
