"""How many warps of a kernel a multiprocessor holds at once, and what limits them.

The rules are those of NVIDIA's ``cuda_occupancy.h``, without its caches of before Volta. The tests
compile that header and compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.record import LaunchRecord
from gpubench.work.gpus import SUB_PARTITIONS, WARP_THREADS, Architecture, Gpu

MAX_THREADS_PER_BLOCK = 1024
MAX_REGISTERS_PER_THREAD = 256
"""What the header allows from Volta on; the compiler stops at 255."""
REGISTER_UNIT = 256
"""Registers are given to a warp in multiples of it."""
RESERVED_SHARED_BYTES = 1024
"""What the system takes of each block's shared memory from compute capability 8.0 on."""
BARRIERS_LIMIT_FROM: Architecture = (9, 0)
"""The header counts barriers from Hopper on."""


@dataclass(frozen=True)
class Occupancy:
    """Theoretical occupancy: of a grid that has blocks enough for every multiprocessor."""

    blocks: int
    """Resident on a multiprocessor at once; 0 where a block is too large to run."""
    warps: int
    max_warps: int
    limits: Mapping[str, int]
    """Blocks that each resource has room for: warps, blocks, registers, shared_memory, barriers.
    A resource that the kernel does not use is left out."""

    @property
    def share(self) -> float:
        """Resident warps over the most that there may be, from 0 to 1."""
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """Resources that have room for no more blocks."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)


def compute_occupancy(
    gpu: Gpu, threads: int, registers: int, shared_bytes: int, barriers: int = 0
) -> Occupancy:
    """Return the occupancy of blocks of ``threads`` that take ``registers`` a thread,
    ``shared_bytes`` of static and dynamic shared memory, and ``barriers`` a block.

    Raises ``ValueError`` for a block without threads or a negative number.
    """
    if threads < 1 or min(registers, shared_bytes, barriers) < 0:
        raise ValueError(
            f"a block of {threads} threads with {registers} registers, {shared_bytes} bytes of "
            f"shared memory and {barriers} barriers: it needs a thread, and no number below 0"
        )
    has = gpu.limits
    max_warps = has.threads // WARP_THREADS
    warps = _divide_up(threads, WARP_THREADS)
    limits = {
        "warps": max_warps // warps if threads <= MAX_THREADS_PER_BLOCK else 0,
        "blocks": has.blocks,
    }
    if registers:
        limits["registers"] = _blocks_by_registers(gpu, warps, registers)
    # The share that the system takes counts too, and limits a kernel without shared memory.
    if allocated := allocated_shared_bytes(gpu.architecture, shared_bytes):
        fits = shared_bytes <= has.shared_bytes_per_block
        limits["shared_memory"] = has.shared_bytes // allocated if fits else 0
    if barriers and gpu.architecture >= BARRIERS_LIMIT_FROM:
        limits["barriers"] = _barriers(gpu) // barriers
    blocks = min(limits.values())
    return Occupancy(blocks, blocks * warps, max_warps, limits)


def widest_occupancy(launches: Iterable[LaunchRecord], gpu: Gpu) -> Occupancy | None:
    """Return the occupancy of the launch with the most warps, with the registers that it takes on
    the architecture that was counted; ``None`` where these are not known."""
    launch = max(launches, key=lambda one: one.counts.get("warps", 0), default=None)
    if launch is None or launch.resources is None or "registers" not in launch.resources:
        return None
    try:
        return compute_occupancy(
            gpu, math.prod(launch.block), launch.resources["registers"], launch.shared_bytes
        )
    except ValueError:  # a launch without threads, which only a damaged record has
        return None


def allocated_shared_bytes(architecture: Architecture, shared_bytes: int) -> int:
    """Return what a block takes of a multiprocessor's shared memory."""
    if architecture < (8, 0):
        return _round_up(shared_bytes, 256)
    return _round_up(shared_bytes + RESERVED_SHARED_BYTES, 128)


def _blocks_by_registers(gpu: Gpu, warps: int, registers: int) -> int:
    of_warp = _round_up(registers * WARP_THREADS, REGISTER_UNIT)
    # The hardware checks a block as if it took registers in all sub-partitions at once.
    checked = of_warp * _round_up(warps, SUB_PARTITIONS)
    if registers > MAX_REGISTERS_PER_THREAD or checked > gpu.limits.registers_per_block:
        return 0
    warps_of_sub_partition = gpu.limits.registers // SUB_PARTITIONS // of_warp
    return warps_of_sub_partition * SUB_PARTITIONS // warps


def _barriers(gpu: Gpu) -> int:
    """Return the barriers of a multiprocessor: two for each block in data centres, else one."""
    of_data_centres = gpu.architecture[0] == 9 or gpu.architecture == (10, 0)
    return gpu.limits.blocks * (2 if of_data_centres else 1)


def _divide_up(count: int, by: int) -> int:
    return -(-count // by)


def _round_up(count: int, unit: int) -> int:
    return _divide_up(count, unit) * unit
