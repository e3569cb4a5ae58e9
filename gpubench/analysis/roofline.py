"""How near a kernel comes to what its device can do: the roofline model.

Williams, Waterman and Patterson, CACM 52(4), 2009: a kernel of ``flops / bytes`` operations for
each byte attains at most that intensity times the bandwidth of the memory. The model's second
ceiling, the device's rate of arithmetic, is not measured, so that the roof has no ridge.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.names import BANDWIDTHS, CPU, PEAK_BANDWIDTH, Value
from gpubench.results import Row

STREAMS = ("triad", "copy")
"""Kernels that do nothing but move data: their rate is a ceiling where no fact gives one."""


@dataclass(frozen=True, slots=True)
class MemoryCeiling:
    """What the memory of one device was measured to do."""

    device: str
    bytes_per_second: float
    source: str
    """Where the bandwidth comes from, in words."""
    peak_bytes_per_second: float | None = None
    """By the datasheet; ``None`` where unknown."""

    def attainable(self, intensity: float) -> float:
        """Highest rate of operations a second at so many operations a byte."""
        return intensity * self.bytes_per_second


@dataclass(frozen=True, slots=True)
class Attained:
    """One case against the ceiling of its device."""

    row: Row
    bytes_per_second: float
    flops_per_second: float | None
    """``None`` where the suite counts no operations."""
    share: float
    """Of what is attainable; above 1 the data came from a cache, or bytes are undercounted."""

    @property
    def intensity(self) -> float | None:
        """Operations for each byte."""
        flops = self.flops_per_second
        return flops / self.bytes_per_second if flops else None


def memory_ceiling(
    device: str,
    rows: Iterable[Row],
    facts: Mapping[str, Value | None],
    streams: Iterable[Row],
) -> MemoryCeiling | None:
    """Ceiling of a device: as the record says, else by the kernels that only move data.

    ``facts`` are the run's, which describe its GPU; ``streams`` are cases of ``STREAMS``.
    """
    conditions: dict[str, Value | None] = {} if device in ("", CPU) else dict(facts)
    for row in rows:
        if row.device == device:
            conditions |= row.conditions
    rates = {name: rate for name in BANDWIDTHS if (rate := _positive(conditions.get(name)))}
    if rates:
        name = max(rates, key=lambda name: rates[name])
        source = f"{name.partition('_')[0]} measured on the device"
        return MemoryCeiling(device, rates[name], source, _positive(conditions.get(PEAK_BANDWIDTH)))
    moving = [row for row in streams if row.device == device and _rate(row)]
    # At the largest size, where caches help least.
    best = max(moving, key=lambda row: (row.bytes or 0, _rate(row)), default=None)
    if best is None:
        return None
    case = best.name
    source = f"{case.suite}.{case.kernel} {case.implementation} {case.case}".strip()
    return MemoryCeiling(device, _rate(best), source)


def attained(row: Row, ceiling: MemoryCeiling) -> Attained | None:
    """Share of the attainable rate; ``None`` without a time of the kernel or without its bytes."""
    rate = _rate(row)
    share = rate / ceiling.bytes_per_second
    return Attained(row, rate, row.flops_per_second or None, share) if rate else None


def _rate(row: Row) -> float:
    """Bytes a second of a ``kernel`` time; 0 where not known."""
    return row.bytes_per_second or 0.0 if row.name.time == "kernel" else 0.0


def _positive(value: Value | None) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < math.inf else None
