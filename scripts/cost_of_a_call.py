"""What our code adds to each call inside a sample, beyond what asv itself adds.

An empty function is called by the loop that takes a sample of ours, and by the loop that takes one
of an asv benchmark written by hand (timeit's, around asv's own binding of parameters). The
difference of the two is the cost; below zero, ours is the shorter way. Target: under 100 ns.
"""

from __future__ import annotations

import argparse
import statistics
import timeit
from collections.abc import Sequence

from asv_runner.benchmarks.time import TimeBenchmark
from figures import add_option, record, recording

from gpubench.backends import registry
from gpubench.backends.protocol import Target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=31, help="rounds that take turns")
    parser.add_argument("--calls", type=int, default=200_000, help="calls in a sample")
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "asv_runner"):
        turns = (samples(given.calls, turn) for turn in range(given.rounds))
        ours, theirs = zip(*turns, strict=True)
        differences = [own - other for own, other in zip(ours, theirs, strict=True)]
        show("a call inside a sample of gpubench", ours)
        show("a call inside a sample of asv by hand", theirs)
        show("added by gpubench", differences, "   target < 100 ns")


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


def show(what: str, seconds: Sequence[float], target: str = "") -> None:
    low, middle, high = (1e9 * one for one in statistics.quantiles(seconds, n=4))
    print(f"{what:38} {middle:6.1f} ns (quartiles {low:.1f} to {high:.1f}){target}")
    record("call", what, {"ns": f"{middle:.0f}"})


if __name__ == "__main__":
    main()
