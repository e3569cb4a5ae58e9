"""Counts that asv keeps over commits: a few for each case, each a cost, of which less is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpubench.record import CountsRecord
from gpubench.work.derived import (
    accessed_bytes,
    excess_wavefronts,
    inactive_lanes,
    sectors_per_request,
    serial_share,
    vectorized_share,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """One number of a case."""

    unit: str
    value: Callable[[CountsRecord], float | None]
    """``None`` where the case has none."""
    absent: str
    """Why it then has none."""


def _sectors(counts: CountsRecord) -> float | None:
    return sectors_per_request(counts.totals)


def _wavefronts(counts: CountsRecord) -> float:
    return excess_wavefronts(counts.totals)


def _inactive_percent(counts: CountsRecord) -> float | None:
    share = inactive_lanes(counts.totals)
    return None if share is None else 100 * share


def _registers(counts: CountsRecord) -> float | None:
    return _largest(counts, "registers")


def _spilled_bytes(counts: CountsRecord) -> float | None:
    return _largest(counts, "spill_store_bytes", "spill_load_bytes")


def _largest(counts: CountsRecord, *names: str) -> float | None:
    """Return the sum of these resources of the kernel that has most of them."""
    known = [launch.resources for launch in counts.launches if launch.resources is not None]
    return max((sum(one.get(name, 0) for name in names) for one in known), default=None)


def _count(name: str) -> Callable[[CountsRecord], float]:
    """Return what reads a count that is a cost as it is."""
    return lambda counts: counts.totals.get(name, 0)


def _memory_bytes(counts: CountsRecord) -> float:
    return accessed_bytes(counts.totals)


def _scalar_permille(counts: CountsRecord) -> float | None:
    share = vectorized_share(counts.totals)
    return None if share is None else 1000 * (1 - share)


def _serial_permille(counts: CountsRecord) -> float:
    return 1000 * serial_share(counts.totals)


_NO_LINKER = "registers are known where NVIDIA's linker is installed: gpubench-suite[cuda]"

TRACKED_COSTS: Mapping[str, Cost] = {
    "sectors_per_request": Cost("sectors", _sectors, "it does not access global memory"),
    "excess_wavefronts": Cost("wavefronts", _wavefronts, ""),
    "inactive_lanes": Cost("%", _inactive_percent, "it executes no instruction"),
    "registers": Cost("registers", _registers, _NO_LINKER),
    "spilled_bytes": Cost("bytes", _spilled_bytes, _NO_LINKER),
}
"""By what follows ``track_`` in the benchmark's name. Of a case that launches several kernels,
registers and spills are those of the kernel that has most; the others are of all together."""

TRACKED_CPU_COSTS: Mapping[str, Cost] = {
    "ir_instructions": Cost("instructions", _count("ir_instructions"), ""),
    "memory_bytes": Cost("bytes", _memory_bytes, ""),
    "scalar_permille": Cost("permille", _scalar_permille, "it has no floating-point operation"),
    "serial_permille": Cost("permille", _serial_permille, ""),
    "allocations": Cost("allocations", _count("allocations"), ""),
}
"""Those of Numba's code on the CPU, by the names that ``gpubench compare --allow`` takes."""
