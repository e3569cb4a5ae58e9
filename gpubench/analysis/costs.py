"""Costs of a kernel's work: counts of which fewer are better, by names and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpubench.results import CaseCounts
from gpubench.work.derived import (
    LANES,
    excess_sectors,
    excess_wavefronts,
    flop_instructions,
    serial_share,
    vectorized_share,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """A count of which more means more work."""

    name: str
    group: str
    """What ``--allow`` takes for all costs of a kind; a cost's own name is taken too."""
    words: str
    """What it counts, in the plural."""
    tolerance: float = 0.0
    """Share by which it may differ without being a change."""
    slack: int = 0
    """By so many it may differ as well."""


CPU_TOLERANCE = 0.02
CPU_SLACK = 16
"""Edits that change nothing of what a kernel computes move counts on the CPU by less: another name,
a helper that is inlined, a check that leaves the loop (39 of 39 harmless edits of a prototype)."""


def _of(group: str, *names: str) -> tuple[Cost, ...]:
    return tuple(Cost(name, group, name.replace("_", " ")) for name in names)


_COUNTED_COSTS = (
    *_of("sectors", "global_load_sectors", "global_store_sectors", "global_atomic_sectors"),
    *_of(
        "wavefronts",
        "shared_load_wavefronts",
        "shared_store_wavefronts",
        "shared_atomic_wavefronts",
    ),
    *_of("local_memory", "local_load_sectors", "local_store_sectors"),
    *_of("same_address_atomics", "global_atomic_same_address", "shared_atomic_same_address"),
    Cost("ptx_instructions", "ptx_instructions", "PTX instructions"),
    *_of("divergent_branches", "divergent_branches"),
    *_of("barriers", "barriers"),
    *(
        Cost(f"flops_{kind}", "flops", f"{kind} operations")
        for kind in ("float16", "float32", "float64")
    ),
    *_of("special_functions", "special_functions"),
)
"""Costs that are counts as they are."""

_CPU_COSTS = tuple(
    Cost(name, group, words, CPU_TOLERANCE, CPU_SLACK)
    for name, group, words in (
        ("ir_instructions", "ir_instructions", "LLVM instructions"),
        ("load_bytes", "memory_bytes", "bytes loaded"),
        ("store_bytes", "memory_bytes", "bytes stored"),
        ("divisions", "divisions", "divisions"),
        ("integer_divisions", "divisions", "integer divisions"),
        ("libm_functions", "calls", "functions of libm"),
        ("calls", "calls", "calls"),
        ("conditional_branches", "conditional_branches", "conditional branches"),
        ("allocations", "allocations", "allocations"),
    )
)
"""Costs of Numba's code on the CPU that are counts as they are."""
_FLOP_INSTRUCTIONS = Cost(
    "flop_instructions", "vectorization", "instructions with operations", CPU_TOLERANCE, CPU_SLACK
)
"""Grows where lanes or the share vectorized fall: as many operations take more instructions."""
_SCALAR_PERMILLE = Cost("scalar_permille", "vectorization", "‰ of operations outside vectors")
_SERIAL_PERMILLE = Cost(
    "serial_permille", "parallelism", "‰ of instructions outside parallel loops", slack=20
)
"""Grows where ``parallel=True`` is lost; the slack is ``CPU_TOLERANCE`` of all instructions."""

_EXCESS_SECTORS = Cost("excess_sectors", "excess_sectors", "excess sectors")
_EXCESS_WAVEFRONTS = Cost("excess_wavefronts", "excess_wavefronts", "excess wavefronts")
_INACTIVE_LANES = Cost("inactive_lanes", "inactive_lanes", "inactive lanes")
RESOURCES = (
    Cost("registers", "registers", "registers a thread"),
    Cost("spill_store_bytes", "spills", "bytes of spill stores"),
    Cost("spill_load_bytes", "spills", "bytes of spill loads"),
    Cost("local_bytes", "local_memory", "bytes of local memory a thread"),
)
"""Costs that the compiler states for each kernel."""

COSTS: tuple[Cost, ...] = (
    *_COUNTED_COSTS[:3],
    _EXCESS_SECTORS,
    *_COUNTED_COSTS[3:6],
    _EXCESS_WAVEFRONTS,
    _INACTIVE_LANES,
    *_COUNTED_COSTS[6:],
    *RESOURCES,
    *_CPU_COSTS,
    _FLOP_INSTRUCTIONS,
    _SCALAR_PERMILLE,
    _SERIAL_PERMILLE,
)
"""In the order in which they are shown."""

COST_NAMES: tuple[str, ...] = tuple(
    dict.fromkeys([*(cost.group for cost in COSTS), *(cost.name for cost in COSTS)])
)
"""Names of groups and of costs."""


@dataclass(frozen=True, slots=True)
class CostPair:
    """One cost of a case on two sides."""

    cost: Cost
    kernel: int | None
    """Of a case that launches several kernels, whose resources these are: its place, from 1 on;
    ``None`` where it is of the whole case."""
    old: int
    new: int

    @property
    def is_change(self) -> bool:
        """Whether the sides differ by more than the cost's tolerance and slack."""
        difference = abs(self.new - self.old)
        return difference > max(self.cost.tolerance * self.old, self.cost.slack)

    @property
    def factor(self) -> float:
        """By how much the cost changed, at least 1; a cost of 0 counts as 1."""
        low, high = sorted((self.old, self.new))
        return max(high, 1) / max(low, 1)

    @property
    def words(self) -> str:
        """What the cost counts, and of which kernel where a case has several."""
        kernel = "" if self.kernel is None else f" of kernel {self.kernel}"
        return f"{self.cost.words}{kernel}"


def cost_pairs(old: CaseCounts, new: CaseCounts) -> Iterator[CostPair]:
    """Return every cost that one of two sides has."""
    before, after = total_costs(old), total_costs(new)
    for cost in COSTS:
        if before.get(cost.name) or after.get(cost.name):
            yield CostPair(cost, None, before.get(cost.name, 0), after.get(cost.name, 0))
    if None in (*old.kernels, *new.kernels):  # without a linker on one side nothing is known
        return
    # A kernel may get another name, so that its place tells which it is, where none is new.
    are_alike = len(old.kernels) == len(new.kernels)
    was, now = (
        [kernel or {} for kernel in side.kernels] if are_alike else [worst_resources(side)]
        for side in (old, new)
    )
    for kernel, (before, after) in enumerate(zip(was, now, strict=True), 1):
        for cost in RESOURCES:
            values = before.get(cost.name, 0), after.get(cost.name, 0)
            if any(values):
                yield CostPair(cost, kernel if len(was) > 1 else None, *values)


def worst_resources(counts: CaseCounts) -> Mapping[str, int]:
    """Return the most that one kernel of a case takes of each resource."""
    kernels = [kernel for kernel in counts.kernels if kernel]
    names = {name for kernel in kernels for name in kernel}
    return {name: max(kernel.get(name, 0) for kernel in kernels) for name in names}


def total_costs(counts: CaseCounts) -> Mapping[str, int]:
    """Return costs of all launches of one run by their names; those that are 0 may be absent."""
    if counts.target == "cpu":
        return _counted_costs(counts.totals) | _share_costs(counts.totals)
    return costs_of_line(counts.totals)


def costs_of_line(totals: Mapping[str, int]) -> Mapping[str, int]:
    """Return costs of one line of code by their names, but for shares."""
    lanes = LANES * totals.get("ptx_instructions", 0) - totals.get("ptx_thread_instructions", 0)
    return _counted_costs(totals) | {
        _EXCESS_SECTORS.name: excess_sectors(totals),
        _EXCESS_WAVEFRONTS.name: excess_wavefronts(totals),
        _INACTIVE_LANES.name: lanes,
        **({_FLOP_INSTRUCTIONS.name: flops} if (flops := flop_instructions(totals)) else {}),
    }


def _counted_costs(totals: Mapping[str, int]) -> dict[str, int]:
    counted = (*_COUNTED_COSTS, *_CPU_COSTS)
    return {cost.name: totals[cost.name] for cost in counted if cost.name in totals}


def _share_costs(totals: Mapping[str, int]) -> dict[str, int]:
    share = vectorized_share(totals)
    return {
        _FLOP_INSTRUCTIONS.name: flop_instructions(totals),
        _SCALAR_PERMILLE.name: 0 if share is None else round(1000 * (1 - share)),
        _SERIAL_PERMILLE.name: round(1000 * serial_share(totals)),
    }
