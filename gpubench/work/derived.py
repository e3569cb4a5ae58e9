"""Numbers that follow from counts of a launch, or of all launches of a case together.

Each takes counts by the names of ``softcuda.counts``; one that is left out is 0. The
definitions are those of Nsight Compute's *Source* page where it has the number
(https://docs.nvidia.com/nsight-compute/ProfilingGuide/, "Source Metrics").
"""

from __future__ import annotations

from collections.abc import Mapping

LANES = 32
"""Threads of a warp, on every architecture until now (CUDA C++ Programming Guide, 5.4)."""

SECTOR_BYTES = 32
"""Of a sector, the least that the memory of a GPU transfers."""

FLOPS = ("flops_float16", "flops_float32", "flops_float64")
_GLOBAL = ("global_load", "global_store", "global_atomic")
GLOBAL_SECTORS = tuple(f"{access}_sectors" for access in _GLOBAL)
CPU_BYTES = ("load_bytes", "store_bytes")
FLOPS_BY_LANES = "flops_lanes_"
"""Beginning of the names of operations by the lanes of their vectors, on the CPU."""
_SHARED_ACCESSES = ("shared_load", "shared_store", "shared_atomic")

Counts = Mapping[str, int]


def sectors_per_load(counts: Counts) -> float | None:
    """Return sectors for each request of a global load; ``None`` where there is none.

    A full warp that reads elements of 4 bytes side by side touches 4 sectors.
    """
    return _ratio(counts, ("global_load",))


def sectors_per_store(counts: Counts) -> float | None:
    """Return sectors for each request of a global store; ``None`` where there is none."""
    return _ratio(counts, ("global_store",))


def sectors_per_request(counts: Counts) -> float | None:
    """Return sectors for each request of global loads, stores and atomics together; ``None`` where
    there is none."""
    return _ratio(counts, _GLOBAL)


def excess_sectors(counts: Counts) -> int:
    """Return global sectors beyond those that as many lanes take side by side."""
    return sum(
        counts.get(f"{access}_sectors", 0) - counts.get(f"{access}_ideal_sectors", 0)
        for access in _GLOBAL
    )


def excess_wavefronts(counts: Counts) -> int:
    """Return wavefronts of shared memory beyond those that as many lanes take side by side."""
    return sum(
        counts.get(f"{access}_wavefronts", 0) - counts.get(f"{access}_ideal_wavefronts", 0)
        for access in _SHARED_ACCESSES
    )


def executed_instructions(counts: Counts) -> int:
    """Return instructions of PTX that warps execute, or of LLVM's code on the CPU."""
    return counts.get("ptx_instructions", 0) + counts.get("ir_instructions", 0)


def inactive_lanes(counts: Counts) -> float | None:
    """Return the share of a warp's lanes that are off, 0 to 1, over all instructions; ``None``
    where nothing ran."""
    instructions = counts.get("ptx_instructions", 0)
    if not instructions:
        return None
    return 1 - counts.get("ptx_thread_instructions", 0) / (LANES * instructions)


def counted_flops(counts: Counts) -> int:
    """Return floating-point operations of all types; a fused multiply-add is 2, and special
    functions are counted apart."""
    return sum(counts.get(name, 0) for name in FLOPS)


def accessed_bytes(counts: Counts) -> int:
    """Return the bytes of global sectors that accesses touch, each as often as it is asked for; on
    the CPU the bytes that are loaded and stored.

    What caches serve is in it: a kernel that reads an array twice counts it twice.
    """
    sectors = sum(counts.get(f"{access}_sectors", 0) for access in _GLOBAL)
    return SECTOR_BYTES * sectors + sum(counts.get(name, 0) for name in CPU_BYTES)


def vectorized_share(counts: Counts) -> float | None:
    """Return the share of floating-point operations that are in vectors, 0 to 1, of a call on the
    CPU; ``None`` where there is none."""
    flops = counted_flops(counts)
    return 1 - counts.get("flops_lanes_1", 0) / flops if flops else None


def serial_share(counts: Counts) -> float:
    """Return the share of a call's instructions on the CPU that stand in no loop which threads
    share, 0 to 1."""
    instructions = counts.get("ir_instructions", 0)
    return 1 - counts.get("parallel_instructions", 0) / instructions if instructions else 1.0


def flop_instructions(counts: Counts) -> int:
    """Return how many instructions the floating-point operations take, whose vectors hold as many
    lanes as they do; a fused multiply-add is two."""
    return sum(
        count // int(name.removeprefix(FLOPS_BY_LANES))
        for name, count in counts.items()
        if name.startswith(FLOPS_BY_LANES)
    )


def widest_lanes(counts: Counts) -> int:
    """Return the lanes of the widest vector with a floating-point operation; 0 without any."""
    named = (name.removeprefix(FLOPS_BY_LANES) for name in counts if counts[name])
    return max((int(name) for name in named if name.isdecimal()), default=0)


def _ratio(counts: Counts, accesses: tuple[str, ...]) -> float | None:
    requests = sum(counts.get(f"{access}_requests", 0) for access in accesses)
    if not requests:
        return None
    return sum(counts.get(f"{access}_sectors", 0) for access in accesses) / requests
