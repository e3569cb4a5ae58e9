"""What our code adds to each call inside a sample, beyond what asv itself adds.

An empty function is called by the loop that takes a sample of ours, and by the loop that takes one
of an asv benchmark written by hand (timeit's, around asv's own binding of parameters). The
difference of the two is the cost; below zero, ours is the shorter way. Target: under 100 ns.
"""

from __future__ import annotations

import argparse
import statistics
import timeit

from asv_runner.benchmarks.time import TimeBenchmark
from conditions import print_conditions

from gpubench.backends import registry
from gpubench.backends.protocol import Target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=31, help="rounds that take turns")
    parser.add_argument("--calls", type=int, default=200_000, help="calls in a sample")
    given = parser.parse_args()
    print_conditions("asv_runner")
    turns = (samples(given.calls, turn) for turn in range(given.rounds))
    ours, theirs = zip(*turns, strict=True)
    differences = [own - other for own, other in zip(ours, theirs, strict=True)]
    print(f"a call inside a sample of gpubench     {nanoseconds(ours)}")
    print(f"a call inside a sample of asv by hand  {nanoseconds(theirs)}")
    print(f"added by gpubench                      {nanoseconds(differences)}   target < 100 ns")


def samples(calls: int, turn: int) -> tuple[float, float]:
    """Seconds of one call, ours and asv's; every second turn begins with asv's."""
    with registry.get("numpy").open("cpu") as session:
        call = session.bind(Target(function=empty), None, (1,))
        sampler = session.sampler(call)
        benchmark = TimeBenchmark("time_empty", empty, [])
        timer = timeit.Timer(benchmark._param_bound_func(1))
        if turn % 2:
            other = timer.timeit(calls)
            return sampler.seconds(calls) / calls, other / calls
        return sampler.seconds(calls) / calls, timer.timeit(calls) / calls


def empty(n: int) -> None:
    """Does nothing."""


def nanoseconds(values: list[float] | tuple[float, ...]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle * 1e9:6.1f} ns (quartiles {low * 1e9:.1f} to {high * 1e9:.1f})"


if __name__ == "__main__":
    main()
