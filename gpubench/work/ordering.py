"""Order launches of one problem by their counts, so that few of many have to be measured on a GPU.

A launch weighs what its busiest resource does for one block, times the blocks that a multiprocessor
takes one after another, and more where few warps are resident. The result has no unit: it says
which of two launches to measure first, and not how much longer the other one takes.
``docs/softcuda.md`` says how well that goes with published times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.record import LaunchRecord
from gpubench.work.gpus import (
    SECTORS_PER_CLOCK,
    SUB_PARTITIONS,
    WARP_THREADS,
    WAVEFRONTS_PER_CLOCK,
    Gpu,
)
from gpubench.work.occupancy import Occupancy, compute_occupancy

ENOUGH_WARPS = 16
"""Of a multiprocessor: with fewer, instructions wait for each other. 8 and 24 order the published
times of ``tests/work/published_times.yaml`` about as well."""
MAX_UNEVEN = 1.5
"""Instructions of the busiest block over those of the mean one; beyond it blocks differ."""
SHARE_TO_MEASURE = 0.2
"""Of the launches: there is the best of those published times, or one that takes 7 % longer."""

WEIGHED_RESOURCES: Mapping[str, str] = {
    "issue": "issue slots",
    "wavefronts": "wavefronts of shared memory",
    "sectors": "sectors through the L1 caches",
    "float16": "float16 operations",
    "float32": "float32 operations",
    "float64": "float64 operations",
    "special": "special functions and conversions",
}
"""What a launch may be weighed by, and its words."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a case weighs on one GPU, and by what."""

    value: float
    """Without a unit. The smaller of two is to be measured first."""
    by: str
    """A key of ``WEIGHED_RESOURCES``: what weighs most in the launch that weighs most."""
    warps: int
    """Of that launch, resident on a multiprocessor."""
    waves: int
    """Of that launch: how often multiprocessors take new blocks."""


def why_not_ordered(launches: Sequence[LaunchRecord], gpu: Gpu) -> str | None:
    """Return why launches cannot be ordered by their counts; ``None`` where they can."""
    if not launches:
        return "it launches nothing"
    for one in launches:
        if one.resources is None:
            return f"the registers of {one.kernel} are not known"
        if not _occupancy(one, gpu).blocks:
            return f"a block of {one.kernel} does not fit into a multiprocessor"
        busiest = one.counts.get("busiest_block_instructions", 0)
        mean = one.counts.get("ptx_instructions", 0) / math.prod(one.grid)
        if one.summed == 1 and busiest > MAX_UNEVEN * mean:
            return (
                f"blocks of {one.kernel} differ: the busiest executes {busiest:,} instructions, "
                f"the mean {mean:,.0f}"
            )
    return None


def weigh(launches: Iterable[LaunchRecord], gpu: Gpu) -> Weight:
    """Return the weight of launches one after another; ``why_not_ordered`` has no reason."""
    weights = [(one.times, _weigh_launch(one, gpu)) for one in launches]
    total = math.fsum(times * weight.value for times, weight in weights)
    most = max(weights, key=lambda each: each[0] * each[1].value)[1]
    return Weight(total, most.by, most.warps, most.waves)


def _weigh_launch(launch: LaunchRecord, gpu: Gpu) -> Weight:
    blocks = math.prod(launch.grid)
    # A grid of few blocks leaves room on its multiprocessors.
    resident = min(_occupancy(launch, gpu).blocks, -(-blocks // gpu.multiprocessors))
    waves = -(-blocks // (gpu.multiprocessors * resident))
    warps = resident * -(-math.prod(launch.block) // WARP_THREADS)
    clocks = {name: amount / blocks for name, amount in _clocks(launch.counts, gpu).items()}
    by = max(clocks, key=lambda name: clocks[name])
    value = launch.summed * waves * resident * clocks[by] / min(1.0, warps / ENOUGH_WARPS)
    return Weight(value, by, warps, waves)


def _clocks(counts: Mapping[str, int], gpu: Gpu) -> dict[str, float]:
    """Return the clocks of one multiprocessor that each resource takes, at its highest rate."""
    has = gpu.limits

    def count(*names: str) -> int:
        return sum(counts.get(name, 0) for name in names)

    conversions = count("ptx_convert") * WARP_THREADS
    return {
        "issue": (count("ptx_instructions") - count("ptx_move")) / SUB_PARTITIONS,
        "wavefronts": count(*(f"shared_{kind}_wavefronts" for kind in ("load", "store", "atomic")))
        / WAVEFRONTS_PER_CLOCK,
        "sectors": count(*(f"global_{kind}_sectors" for kind in ("load", "store", "atomic")))
        / SECTORS_PER_CLOCK,
        "float16": count("flops_float16") / 2 / has.float16_per_clock,
        "float32": count("flops_float32") / 2 / has.float32_per_clock,
        "float64": count("flops_float64") / 2 / has.float64_per_clock,
        "special": (count("special_functions") + conversions) / has.special_per_clock,
    }


def _occupancy(launch: LaunchRecord, gpu: Gpu) -> Occupancy:
    registers = (launch.resources or {}).get("registers", 0)
    return compute_occupancy(gpu, math.prod(launch.block), registers, launch.shared_bytes)
