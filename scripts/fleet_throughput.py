"""How the throughput of a fleet grows with its machines: `python scripts/fleet_throughput.py`.

Workers are processes of this machine, and in place of `asv run` a share sleeps for a scripted
duration, so that only the coordinator, Dask and the order of the shares are measured. Printed are
ratios: the throughput of k workers over k times that of a worker that never waits, 1 where it is
linear. Exit code 1 where one is below 0.9.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from figures import add_option, record, recording

from gpubench.edge.fleet.dispatch import Dispatch
from gpubench.edge.fleet.shares import Machine, Share

LEAST = 0.9
SEED = 18
COMMITS, SUITES = 4, 16


def shares(mean: float) -> list[Share]:
    """Return shares as `divide` of `gpubench.edge.fleet.shares` orders them: the longest first.
    Suites differ in length as lognormal variables do: one takes ten times as long as another."""
    draw = random.Random(SEED)
    lengths = sorted((draw.lognormvariate(0.0, 0.8) for _ in range(SUITES)), reverse=True)
    scale = mean * SUITES / sum(lengths)
    return [
        Share(f"{commit:08}", f"suite_{place}", (), "lab", length * scale)
        for place, length in enumerate(lengths)
        for commit in range(COMMITS)
    ]


def sleep(share: Share, variables: Any, begun: Any) -> float:
    """Sleep in place of `asv run`."""
    time.sleep(share.seconds)
    return share.seconds


def keep(parcel: Any, share: Share, machine: Machine, begun: Any) -> int:
    """Stand in place of putting results together."""
    return 1


def seconds(workers: int, work: list[Share]) -> float:
    """Return how long so many workers take for all, from the first share to the last parcel."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            resources={"cpu": 1},
        ) as cluster,
        Client(cluster) as client,
    ):
        machines = [Machine(f"m{n}", a, {}, (), ()) for n, a in enumerate(client.nthreads())]
        keepers = {machine.name: "lab" for machine in machines}
        dispatch = partial(Dispatch, client, machines, keepers)
        rest = Path(), keep, lambda line: None, sleep  # no machine has a record
        dispatch(work[-workers:], *rest).run()  # connections are made
        start = time.perf_counter()
        outcome = dispatch(work, *rest).run()
        taken = time.perf_counter() - start
    assert outcome.kept == len(work)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a share on average")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    add_option(parser)
    arguments = parser.parse_args()
    work = shares(arguments.seconds)
    ideal = sum(share.seconds for share in work)
    ratios = []
    with recording(arguments, "distributed"):
        print(f"{len(work)} shares, {arguments.seconds:g} s on average; over linear throughput:")
        for workers in arguments.workers:
            ratios.append(ideal / workers / seconds(workers, work))
            print(f"{workers} workers: {ratios[-1]:.2f}", flush=True)
            record("fleet", f"workers: {workers}", {"of linear throughput": f"{ratios[-1]:.2f}"})
    sys.exit(min(ratios) < LEAST)


if __name__ == "__main__":
    main()
