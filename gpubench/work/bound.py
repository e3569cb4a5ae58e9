"""The least time that counted work takes on a GPU: a bound, never a time.

Nothing here was measured. Each part divides a count by the highest rate that NVIDIA publishes, so
that no run of the launch takes less. Runs take longer: latency, caches, imbalance and instructions
that are not counted come on top. The idea is the roofline's (Williams, Waterman and Patterson,
CACM 52(4), 2009), with one ceiling for each resource.

Sectors are divided by what the L1 caches give, not by the bandwidth of memory. Counted sectors are
requests: a cache may answer all but the first request for a sector, and only what it does not
answer crosses to memory. ``docs/occupancy-and-bounds.md`` says so for readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench import numbers
from gpubench.work.gpus import (
    SECTORS_PER_CLOCK,
    SUB_PARTITIONS,
    WARP_THREADS,
    WAVEFRONTS_PER_CLOCK,
    Gpu,
)

MAX_JOINED_SHARED_LOADS = 4
"""Loads of 4 bytes that ptxas joins to one of 16. A joined load takes as many wavefronts as the
worst of its parts at least, so that a quarter of the counted ones is certain."""

BOUND_PARTS: Mapping[str, str] = {
    "sectors": "sectors through the L1 caches",
    "wavefronts": "wavefronts of shared memory",
    "float16": "float16 operations",
    "float32": "float32 operations",
    "float64": "float64 operations",
    "special": "special functions",
    "issue": "issue slots",
    "memory": "bytes of memory",
}
"""Every part of a bound, and its words."""


@dataclass(frozen=True)
class Bound:
    """The least time of a launch, or of launches one after another, on one GPU."""

    gpu: str
    seconds: float
    """Of the part that takes longest. Show it by ``describe_bound`` or ``bound_to_json`` alone."""
    by: str
    """That part, a key of ``BOUND_PARTS``; empty where nothing was counted."""
    parts: Mapping[str, float]
    """Seconds by part; a part without counts is left out."""

    def __str__(self) -> str:
        return describe_bound(self)


def compute_bound(
    gpu: Gpu,
    counts: Mapping[str, int],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    *,
    joined_shared_loads: float = MAX_JOINED_SHARED_LOADS,
    array_bytes: int = 0,
) -> Bound:
    """Return the least time of one launch by its counts (``softcuda.counts.COUNTS``).

    ``joined_shared_loads``: counted shared loads for each one of the machine code, where the
    disassembler tells (``softcuda.sass``). ``array_bytes``: bytes that the launch has to read or
    write at least once, each counted once; 0 where that is not known. What fits into the L2 cache
    is taken off, since a launch before may have left it there.
    Raises ``ValueError`` for a grid or block without threads.
    """
    blocks, threads = math.prod(grid), math.prod(block)
    if min(*grid, *block) < 1:
        raise ValueError(f"a grid of {grid} blocks of {block} threads has none")
    warps = blocks * -(-threads // WARP_THREADS)
    # A block stays on a multiprocessor, and a warp in a sub-partition: a small launch uses few.
    multiprocessors = min(gpu.multiprocessors, blocks)
    sub_partitions = min(multiprocessors * SUB_PARTITIONS, warps)
    clock, limits = gpu.clock_hz, gpu.limits

    def count(*names: str) -> int:
        return sum(counts.get(name, 0) for name in names)

    def at_rate(amount: float, per_clock_of_multiprocessor: float) -> float:
        share = per_clock_of_multiprocessor / SUB_PARTITIONS
        return amount / (sub_partitions * share * clock)

    # ptxas adds up atomics of a warp on one address, so that of those only a request is certain.
    wavefronts = (
        count("shared_load_wavefronts") / joined_shared_loads
        + count("shared_store_wavefronts")
        + count("shared_atomic_requests")
    )
    sectors = count("global_load_sectors", "global_store_sectors", "global_atomic_requests")
    flops = {
        name: count(f"flops_{name}") / 2 for name in ("float16", "float32", "float64")
    }  # multiply-adds; half of them are packed in pairs for float16
    special = count("special_functions")
    instructions = (
        count("global_load_requests", "global_store_requests", "global_atomic_requests")
        + count("shared_load_requests") / joined_shared_loads
        + count("shared_store_requests", "shared_atomic_requests")
        + (flops["float16"] / 2 + flops["float32"] + flops["float64"] + special) / WARP_THREADS
    )
    parts = {
        "sectors": sectors / (multiprocessors * SECTORS_PER_CLOCK * clock),
        "wavefronts": wavefronts / (multiprocessors * WAVEFRONTS_PER_CLOCK * clock),
        "float16": at_rate(flops["float16"], limits.float16_per_clock),
        "float32": at_rate(flops["float32"], limits.float32_per_clock),
        "float64": at_rate(flops["float64"], limits.float64_per_clock),
        "special": at_rate(special, limits.special_per_clock),
        "issue": at_rate(instructions, SUB_PARTITIONS),
        "memory": max(0, array_bytes - gpu.l2_bytes) / gpu.memory_bytes_per_second,
    }
    return _largest(gpu.name, parts)


def add_bounds(bounds: Iterable[Bound]) -> Bound:
    """Return the bound of launches that run one after another on one GPU.

    Raises ``ValueError`` for none, or for bounds of several GPUs.
    """
    added = tuple(bounds)
    names = {bound.gpu for bound in added}
    if len(names) != 1:
        raise ValueError(f"bounds of {len(names)} GPUs cannot be added; give those of one")
    parts = {name: sum(bound.parts.get(name, 0.0) for bound in added) for name in BOUND_PARTS}
    total = _largest(names.pop(), parts)
    # Each launch has a bound of its own, and they end one after another.
    return Bound(total.gpu, math.fsum(bound.seconds for bound in added), total.by, total.parts)


def repeat_bound(bound: Bound, times: int) -> Bound:
    """Return the bound of equal launches that run one after another."""
    parts = {name: times * seconds for name, seconds in bound.parts.items()}
    return Bound(bound.gpu, times * bound.seconds, bound.by, parts)


def describe_bound(bound: Bound) -> str:
    """Return a bound in words that begin with "bound": nobody takes it for a time."""
    if not bound.by:
        return f"no bound on {bound.gpu}: nothing was counted that takes time"
    return f"bound {numbers.seconds(bound.seconds)} on {bound.gpu}, by {BOUND_PARTS[bound.by]}"


def bound_to_json(bound: Bound) -> dict[str, object]:
    """Return a bound for JSON; each of its keys says that it is one."""
    return {
        "bound_gpu": bound.gpu,
        "bound_seconds": bound.seconds,
        "bound_by": bound.by or None,
        "bound_parts_seconds": dict(bound.parts),
    }


def _largest(gpu: str, parts: Mapping[str, float]) -> Bound:
    used = {name: seconds for name, seconds in parts.items() if seconds > 0}
    by = max(used, key=lambda name: used[name], default="")
    return Bound(gpu, used.get(by, 0.0), by, used)
