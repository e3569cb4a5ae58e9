"""What launches on the device in software did, as whole numbers that are the same in every run.

``COUNTS`` defines every number; ``docs/counts.md`` explains them. The rules have a version,
``MODEL``: numbers of two versions do not compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MODEL = 1
"""Version of the rules; raise it with every change that gives any kernel another number."""

Level = Literal["warp", "thread", "launch"]
Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Count:
    """One number that is counted."""

    name: str
    unit: str
    level: Level
    """What is counted once: what a warp does together, what each thread does, or the launch."""
    nvidia: str | None
    """The metric of Nsight Compute that means the same; ``None`` where there is none."""
    meaning: str


@dataclass(frozen=True)
class LineCounts:
    """What one line of the source did, in all warps of a launch."""

    file: str
    line: int
    counts: Mapping[str, int]
    """Without the numbers that are zero."""


@dataclass(frozen=True)
class LaunchCounts:
    """What one launch did."""

    kernel: str
    """``module.function``, read from the mangled name."""
    grid: Extent
    block: Extent
    shared_bytes: int
    """Shared memory of a block, static and dynamic."""
    architecture: tuple[int, int]
    """The compute capability by whose rules was counted."""
    missing: str | None
    """Why there are no counts; ``None`` where there are."""
    counts: Mapping[str, int]
    """Every name of ``COUNTS`` with its number, zeros included; empty where counts are missing."""
    lines: tuple[LineCounts, ...] = ()
    """By file and line; empty where the kernel was compiled without lines."""
    resources: Any = field(default=None)


def _accesses(space: str, metric: str, kind: str, done: str) -> list[Count]:
    """Return requests and sectors of one kind of access to global memory."""
    load_or_store = f"{space}_{kind}"
    return [
        Count(
            f"{load_or_store}_requests",
            "requests",
            "warp",
            f"l1tex__t_requests_pipe_lsu_mem_{metric}.sum",
            f"instructions of a warp that {done} {space} memory, with at least one lane on",
        ),
        Count(
            f"{load_or_store}_sectors",
            "sectors",
            "warp",
            f"l1tex__t_sectors_pipe_lsu_mem_{metric}.sum",
            "different sectors of 32 bytes that the lanes of each request touch",
        ),
    ]


def _global(kind: str, operation: str, done: str) -> list[Count]:
    """Return the counts of one kind of access to global memory."""
    return [
        *_accesses("global", f"global_op_{operation}", kind, done),
        Count(
            f"global_{kind}_ideal_sectors",
            "sectors",
            "warp",
            "memory_l2_theoretical_sectors_global_ideal" if kind != "atomic" else None,
            "sectors that the same bytes would take if they lay side by side",
        ),
    ]


def _shared(kind: str, done: str) -> list[Count]:
    """Return the counts of one kind of access to shared memory."""
    return [
        Count(
            f"shared_{kind}_requests",
            "requests",
            "warp",
            None,
            f"instructions of a warp that {done} shared memory, with at least one lane on",
        ),
        Count(
            f"shared_{kind}_wavefronts",
            "wavefronts",
            "warp",
            "memory_l1_wavefronts_shared",
            "passes that the 32 banks need, since each gives one word of 4 bytes a pass",
        ),
        Count(
            f"shared_{kind}_ideal_wavefronts",
            "wavefronts",
            "warp",
            "memory_l1_wavefronts_shared_ideal",
            "passes that the same bytes would need without a conflict of banks",
        ),
    ]


def _instructions(kind: str, which: str) -> Count:
    return Count(f"ptx_{kind}", "instructions", "warp", None, f"of ptx_instructions, {which}")


COUNTS: tuple[Count, ...] = (
    Count("warps", "warps", "launch", "smsp__warps_launched.sum", "warps of the launch"),
    Count("threads", "threads", "launch", "launch__thread_count", "threads of the launch"),
    Count(
        "ptx_instructions",
        "instructions",
        "warp",
        None,
        "instructions of PTX that warps execute, also where the guard is off for every lane",
    ),
    Count(
        "ptx_thread_instructions",
        "instructions",
        "thread",
        None,
        "the same, each once for every lane that is active and whose guard is on",
    ),
    *_global("load", "ld", "read"),
    *_global("store", "st", "write"),
    *_global("atomic", "atom", "change by an atomic operation"),
    Count(
        "global_atomic_same_address",
        "lanes",
        "thread",
        None,
        "lanes of an atomic request to global memory whose address a lane before them has",
    ),
    *_shared("load", "read"),
    *_shared("store", "write"),
    *_shared("atomic", "change by an atomic operation"),
    Count(
        "shared_atomic_same_address",
        "lanes",
        "thread",
        None,
        "lanes of an atomic request to shared memory whose address a lane before them has",
    ),
    *_accesses("local", "local_op_ld", "load", "read"),
    *_accesses("local", "local_op_st", "store", "write"),
    Count(
        "branches",
        "branches",
        "warp",
        None,
        "branches of PTX that may go two ways or more, by warps that execute them",
    ),
    Count(
        "divergent_branches",
        "branches",
        "warp",
        "smsp__sass_branch_targets_threads_divergent.sum",
        "branches at which lanes of the warp go different ways",
    ),
    Count("barriers", "barriers", "warp", None, "barriers of a block at which a warp arrives"),
    Count(
        "flops_float16",
        "operations",
        "thread",
        None,
        "additions, subtractions and multiplications in half precision (float16 and bfloat16); "
        "fma is two, packed instructions have two lanes",
    ),
    Count(
        "flops_float32",
        "operations",
        "thread",
        None,
        "additions, subtractions and multiplications in single precision; fma is two",
    ),
    Count(
        "flops_float64",
        "operations",
        "thread",
        None,
        "additions, subtractions and multiplications in double precision; fma is two",
    ),
    Count(
        "special_functions",
        "operations",
        "thread",
        None,
        "sin, cos, ex2, lg2, tanh, rcp, sqrt, rsqrt and div of floating-point numbers",
    ),
    _instructions("integer", "calculations and comparisons of integers and bits"),
    _instructions("float", "calculations and comparisons of floating-point numbers"),
    _instructions("move", "copies, choices and conversions of addresses"),
    _instructions("convert", "conversions between types"),
    _instructions("control", "branches, calls, returns, barriers and fences"),
    _instructions("memory", "loads, stores, atomic operations and copies"),
    _instructions("special", "special functions"),
    _instructions("other", "operations between the lanes of a warp, and hints"),
)
"""Every number, once, in the order of tables."""
