"""What a CUDA device's memory reaches: a copy and a triad by kernels like the measured ones.

After STREAM (McCalpin 1995): three arrays, each several times the last-level cache; bytes read and
written count once each; the best of several samples is the rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpubench.backends.cuda_facade import Cuda, KernelName
from gpubench.backends.cuda_sampling import BestWay
from gpubench.backends.protocol import Call, Launch, Native

TIMES_CACHE = 8
LEAST_BYTES = 2**26
"""Of one array, where the cache is small or unknown."""
PART_OF_FREE = 8
"""Each array takes at most this part of the memory that is free."""
BLOCK = 256
SAMPLES, RUNS = 7, 4
ITEM = 8
"""Bytes of a float64."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Bytes per second that kernels reach on this device."""

    copy_bytes_per_second: float
    triad_bytes_per_second: float
    array_bytes: int
    """Size of each of the arrays that were moved."""


def measured_ceilings(cuda: Cuda, host_time: Callable[[], float]) -> Ceilings:
    """Measure both; takes tens of milliseconds and gives all memory back.

    Raises ``DeviceMemoryError`` where not even small arrays find room.
    """
    count = array_bytes(cuda.l2_bytes, cuda.free_bytes()) // ITEM
    arrays = [cuda.allocate(count * ITEM) for _ in range(3)]
    launch = Launch(block=(BLOCK, 1, 1), grid=(-(-count // BLOCK), 1, 1))

    def rate(name: KernelName, *used: Native) -> float:
        seconds = _best(cuda, cuda.kernel(name, launch, used), host_time)
        return len(used) * count * ITEM / seconds

    first, second, third = arrays
    return Ceilings(rate("copy", first, second), rate("triad", first, second, third), count * ITEM)


def array_bytes(l2_bytes: int, free_bytes: int) -> int:
    """Size of one array: several caches, and never more than a part of the free memory."""
    wanted = max(LEAST_BYTES, TIMES_CACHE * l2_bytes)
    return max(ITEM, min(wanted, free_bytes // PART_OF_FREE) // ITEM * ITEM)


def _best(cuda: Cuda, call: Call, host_time: Callable[[], float]) -> float:
    """Seconds of one run: the least of several samples, after one that is thrown away."""
    call()
    way = BestWay(cuda, call, host_time)
    way.seconds(RUNS)
    return min(way.seconds(RUNS) for _ in range(SAMPLES)) / RUNS
