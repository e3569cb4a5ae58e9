"""What a device's memory reaches: a copy and a triad by kernels like the measured ones.

After STREAM (McCalpin 1995): three arrays, each several times the last-level cache; bytes read and
written count once each; the best of several samples is the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpubench.backends.protocol import Native

BLOCK = 256
"""Threads in a block; one element for each thread. 128 to 256 are what to begin with (CUDA C++ Best
Practices Guide, "Thread and Block Heuristics")."""

MIN_BYTES = 2**26
"""Of one array, where the cache is small or unknown."""


BatchTimer = Callable[[int], float]
"""Seconds that so many runs of one kernel take together."""


def array_bytes(cache_bytes: int, times_cache: int, most: int, item: int) -> int:
    """Size of one array in whole items of ``item`` bytes, at least one: several caches, as far as
    there is room for ``most`` bytes."""
    wanted = max(MIN_BYTES, times_cache * cache_bytes)
    return max(item, min(wanted, most) // item * item)


def memory_ceilings(
    arrays: Sequence[Native],
    nbytes: int,
    timer: Callable[[str, Sequence[Native]], BatchTimer],
    samples: int,
    runs: int,
) -> dict[str, float]:
    """Bytes per second of copy and triad over three arrays of ``nbytes`` each.

    ``timer(name, arrays)`` times the kernel ``copy(target, source)`` or ``triad(target, one,
    other)``. The best of ``samples`` counts, each of ``runs`` runs; one before is thrown away.
    """
    rates = {}
    for name, used in (("copy", arrays[:2]), ("triad", arrays[:3])):
        seconds = timer(name, used)
        seconds(runs)
        best = min(seconds(runs) for _ in range(samples)) / runs
        rates[f"{name}_bytes_per_second"] = len(used) * nbytes / best
    return rates
