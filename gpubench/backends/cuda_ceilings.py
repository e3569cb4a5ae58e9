"""What a CUDA device's memory reaches, by the kernels that every facade brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from gpubench.backends.ceilings import BLOCK, Ceilings, array_bytes, ceilings_of
from gpubench.backends.cuda_facade import Cuda, KernelName
from gpubench.backends.cuda_sampling import BestWay
from gpubench.backends.protocol import Launch, Native

TIMES_CACHE = 8
LEAST_BYTES = 2**26
"""Of one array, where the cache is small or unknown."""
PART_OF_FREE = 8
"""Each array takes at most this part of the memory that is free."""
SAMPLES, RUNS = 7, 4
ITEM = 8
"""Bytes of a float64."""


def measured_ceilings(cuda: Cuda, host_time: Callable[[], float]) -> Ceilings:
    """Measure both; takes tens of milliseconds and gives all memory back.

    Raises ``DeviceMemoryError`` where not even small arrays find room.
    """
    nbytes = cuda_array_bytes(cuda.l2_bytes, cuda.free_bytes())
    arrays = [cuda.allocate(nbytes) for _ in range(3)]
    launch = Launch(block=(BLOCK, 1, 1), grid=(-(-nbytes // ITEM // BLOCK), 1, 1))

    def best(name: str, used: Sequence[Native]) -> float:
        """The least of several samples, after one that is thrown away."""
        call = cuda.kernel(cast(KernelName, name), launch, used)
        call()
        way = BestWay(cuda, call, host_time)
        way.seconds(RUNS)
        return min(way.seconds(RUNS) for _ in range(SAMPLES)) / RUNS

    return ceilings_of(arrays, nbytes, best)


def cuda_array_bytes(l2_bytes: int, free_bytes: int) -> int:
    """Size of one array: several caches, and never more than a part of the free memory."""
    wanted = max(LEAST_BYTES, TIMES_CACHE * l2_bytes)
    return array_bytes(wanted, free_bytes // PART_OF_FREE, ITEM)
