"""What the tests of Dask and Ray run on workers: processes import it, and with it no test."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def doubled_on_record(part: Any, path: str) -> Any:
    """Twice a chunk, after a while, with a line in a file that tells that it was computed."""
    time.sleep(0.1)
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return part * 2


def dask_doubled_on_record(a: Any, path: str) -> Any:
    return a.map_blocks(doubled_on_record, path, dtype=a.dtype, meta=np.empty(0, a.dtype))


def dask_frame_doubled_on_record(x: Any, path: str) -> Any:
    return x.map_partitions(doubled_on_record, path, meta=x)


def dask_frame_sums_of_groups(x: Any) -> Any:
    """Over so many pieces that Dask has the answer in three."""
    return x.repartition(npartitions=32).groupby("key")[["value"]].sum().reset_index()


def dask_frame_of_nothing() -> Any:
    import dask.dataframe
    import pandas

    return dask.dataframe.from_pandas(pandas.DataFrame({"n": [1, 2]}), npartitions=1)


def dask_of_nothing(path: str) -> Any:
    """Made of no array of the call, so that its name is the same every time."""
    import dask.array

    return dask_doubled_on_record(dask.array.arange(4, chunks=2), path)


def dask_workers(n: int) -> Any:
    """Numbers of the processes that run tasks of ``dask.delayed``."""
    import dask

    return np.array(dask.compute(*(dask.delayed(worker)(i) for i in range(n))))


def worker(_: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def dask_sum(a: Any) -> Any:
    return a.sum()


def dask_failing(a: Any) -> Any:
    return a.map_blocks(divided_by_zero, dtype=a.dtype, meta=np.empty(0, a.dtype))


def divided_by_zero(part: Any) -> Any:
    raise ZeroDivisionError("no number is half of nothing")


def dask_dying(a: Any) -> Any:
    return a.map_blocks(died, dtype=a.dtype, meta=np.empty(0, a.dtype))


def died(part: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def dask_greedy(a: Any) -> Any:
    return a.map_blocks(much_memory, dtype=a.dtype, meta=np.empty(0, a.dtype))


def much_memory(part: Any) -> Any:
    """A gigabyte, held long enough for somebody to look."""
    held = np.ones(2**27)
    time.sleep(30)
    return part + held[0]


def dask_hanging(a: Any) -> Any:
    return a.map_blocks(hung, dtype=a.dtype, meta=np.empty(0, a.dtype))


def hung(part: Any) -> Any:
    time.sleep(600)
    return part


def dask_losing_its_scheduler(a: Any) -> Any:
    os.kill(int(os.environ["SCHEDULER"]), signal.SIGKILL)
    return a * 2


def ray_losing_its_head(a: Any) -> Any:
    for pid in os.environ["HEAD"].split():
        os.kill(int(pid), signal.SIGKILL)
    return ray_twice(a)


def plain(a: Any) -> Any:
    """The baseline of all that return what they are given."""
    return a.copy()


def ray_doubled_on_record(a: Any, path: str) -> Any:
    import ray

    return ray.remote(doubled_on_record).remote(a, path)


def ray_twice(a: Any) -> Any:
    import ray

    return ray.remote(twice).remote(a)


def twice(a: Any) -> Any:
    return a * 2


def ray_hoarding(a: Any) -> Any:
    """Objects of 30 MiB that are kept."""
    import ray

    kept.extend(ray.put(np.zeros(30 * 2**20, np.uint8)) for _ in range(8))
    return ray_twice(a)


kept: list[Any] = []


def ray_two_results(a: Any) -> Any:
    """An object of an actor, and an array."""
    import ray

    actor = ray.remote(Adder).remote(1)
    return actor.add.remote(a), ray.get(a) * 3


class Adder:
    def __init__(self, number: int) -> None:
        self.number = number

    def add(self, array: Any) -> Any:
        return array + self.number


def ray_failing(a: Any) -> Any:
    import ray

    return ray.remote(divided_by_zero).remote(a)


def ray_dying(a: Any) -> Any:
    import ray

    return ray.remote(max_retries=0)(died).remote(a)


def ray_hanging(a: Any) -> Any:
    import ray

    return ray.remote(hung).remote(a)


def ray_dictionary(a: Any) -> Any:
    import ray

    return ray.remote(in_a_dictionary).remote(a)


def in_a_dictionary(array: Any) -> Any:
    return {"a": array}


def modin_twice(a: Any) -> Any:
    import modin.pandas

    return (modin.pandas.DataFrame({"a": a}) * 2).to_numpy()[:, 0]


def modin_failing(a: Any) -> Any:
    return modin_mapped(a, divided_by_zero)


def modin_dying(a: Any) -> Any:
    return modin_mapped(a, died)


def modin_hanging(a: Any) -> Any:
    return modin_mapped(a, hung)


def modin_mapped(a: Any, function: Callable[[Any], Any]) -> Any:
    import modin.pandas

    return modin.pandas.DataFrame({"a": a}).map(function).to_numpy()[:, 0]
