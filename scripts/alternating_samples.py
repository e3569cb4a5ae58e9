"""How much less pairs scatter whose samples alternate than pairs of processes one after the other.

Measures ten cases against themselves both ways, in turn in the same minutes: ten samples of 5 ms in
one process and then ten in another, or ten of each of two living processes that take turns. Prints
the standard deviation of the logarithms of ratios for each way. Run it on a machine that does other
work: on a quiet one neither way has much to win.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from statistics import geometric_mean, median, stdev

import numba
import numpy as np
from conditions import progress
from figures import add_option, record, recording

SAMPLES = 10
SAMPLE_SECONDS = 0.005
GROUP = "alternating"


@numba.njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def chain(x: float, steps: int) -> float:
    """Do arithmetic of which each step waits for the last."""
    for _ in range(steps):
        x = 0.5 * x + 0.5
    return x


@numba.njit(parallel=True, cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def scaled_roots(x: np.ndarray, y: np.ndarray) -> None:  # type: ignore[type-arg]
    """Write roots with all threads."""
    for i in numba.prange(x.size):
        y[i] = math.sqrt(x[i]) * 1.5 + 2


def build(name: str) -> Callable[[], object]:
    """Return one run of a case: its kernel and its size, such as ``add 1048576``."""
    kernel, size = name.split()
    n = int(size)
    x = np.random.default_rng(0).random(n * n if kernel == "matmul" else n)
    y = np.empty_like(x)
    whole = (x * 255).astype(np.int64)
    square, out = x[: n * n].reshape(-1, n), y[: n * n].reshape(-1, n)
    runs: dict[str, Callable[[], object]] = {
        "sqrt": lambda: np.sqrt(x, out=y),
        "add": lambda: np.add(x, x, out=y),
        "sum": lambda: x.sum(),
        "bincount": lambda: np.bincount(whole, minlength=256),
        "sort": lambda: np.sort(x),
        "matmul": lambda: np.matmul(square, square, out=out),
        "chain": lambda: chain(0.5, n),
        "parallel": lambda: scaled_roots(x, y),
    }
    return runs[kernel]


CASES = (
    *("sqrt 20000", "add 8192", "add 1048576", "sum 262144", "sum 4194304", "bincount 200000"),
    *("sort 50000", "matmul 128", "chain 20000", "parallel 1048576"),
)


def serve(pipe: Connection, name: str) -> None:
    """Take as many samples as each message asks for; 0 ends it."""
    run = build(name)
    run()
    began, runs = time.perf_counter(), 0
    while time.perf_counter() - began < 10 * SAMPLE_SECONDS:
        run()
        runs += 1
    number = max(1, runs // 10)
    pipe.send([])
    while count := pipe.recv():
        seconds = []
        for _ in range(count):
            began = time.perf_counter()
            for _ in range(number):
                run()
            seconds.append((time.perf_counter() - began) / number)
        pipe.send(seconds)


def start(name: str) -> tuple[BaseProcess, Connection]:
    """Start a process of a case and wait until it is ready."""
    context = get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=serve, args=(its, name))
    process.start()
    ours.recv()
    return process, ours


def end(process: BaseProcess, pipe: Connection) -> None:
    pipe.send(0)
    process.join()


def ask(pipe: Connection, count: int) -> list[float]:
    """Return the seconds of one run, from so many samples."""
    pipe.send(count)
    seconds: list[float] = pipe.recv()
    return seconds


def one_after_the_other(name: str) -> float:
    """Return the logarithm of the ratio of two processes."""
    medians = []
    for _ in range(2):
        process, pipe = start(name)
        medians.append(median(ask(pipe, SAMPLES)))
        end(process, pipe)
    return math.log(medians[0] / medians[1])


def alternating(name: str) -> float:
    """Return the same from two living processes whose samples alternate."""
    both = [start(name) for _ in range(2)]
    logs = []
    for place in range(SAMPLES):
        order = (0, 1) if place % 2 else (1, 0)
        seconds = {side: ask(both[side][1], 1)[0] for side in order}
        logs.append(math.log(seconds[0] / seconds[1]))
    for process, pipe in both:
        end(process, pipe)
    return median(logs)


def main() -> None:
    """Measure all cases both ways, so many times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=20, help="pairs of each case and way")
    add_option(parser)
    given = parser.parse_args()
    with recording(given):
        ways = (one_after_the_other, alternating)
        logs: dict[str, list[list[float]]] = {name: [[], []] for name in CASES}
        show = progress(given.repeat, "measuring")
        for turn in range(given.repeat):
            for name in CASES:
                for way in (0, 1) if turn % 2 else (1, 0):
                    logs[name][way].append(ways[way](name))
            show(turn + 1)
        shares = []
        for name, (after, together) in logs.items():
            scatters = stdev(after), stdev(together)
            shares.append(scatters[1] / scatters[0])
            print(f"{name:20} {scatters[0]:.3f} {scatters[1]:.3f} {shares[-1]:.2f}")
            words = {
                "one after the other": f"{scatters[0]:.3f}",
                "alternating": f"{scatters[1]:.3f}",
            }
            record(GROUP, name, {**words, "figure": f"{shares[-1]:.2f}"})
        mean = geometric_mean(shares)
        print(f"geometric mean of {len(shares)} cases: {mean:.2f}")
        record(GROUP, f"geometric mean of {len(shares)} cases", {"figure": f"{mean:.2f}"})


if __name__ == "__main__":
    sys.exit(main())
