"""How near a kernel comes to what its device can do: the roofline model.

Williams, Waterman and Patterson, CACM 52(4), 2009: a kernel of ``flops / bytes`` operations for
each byte attains at most the lower of the arithmetic ceiling and intensity times bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.choice import HOME, device_of
from gpubench.names import Value

BANDWIDTHS = ("triad_bytes_per_second", "copy_bytes_per_second")
"""Facts of a device whose memory was measured; the higher counts."""

PEAK = "peak_bytes_per_second"
ARITHMETIC = "flops_per_second"

STREAMS = ("triad", "copy")
"""Kernels that do nothing but move data: their rate is a ceiling where no fact gives one."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What one device was measured to do."""

    device: str
    bytes_per_second: float
    source: str
    """Where the bandwidth comes from, in words."""
    peak_bytes_per_second: float | None = None
    """By the datasheet; ``None`` where unknown."""
    flops_per_second: float | None = None
    """Measured; ``None`` where unknown."""

    def attainable(self, intensity: float) -> float:
        """Highest rate of operations a second at so many operations a byte."""
        by_memory = intensity * self.bytes_per_second
        return min(by_memory, self.flops_per_second) if self.flops_per_second else by_memory


@dataclass(frozen=True, slots=True)
class Attained:
    """One case against the ceilings of its device."""

    compared: Compared
    ceilings: Ceilings
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


def find_ceilings(
    device: str,
    cases: Iterable[Compared],
    facts: Mapping[str, Value | None],
    streams: Iterable[Compared],
) -> Ceilings | None:
    """Ceilings of a device: as the record tells, else by the kernels that only move data.

    ``facts`` are the run's, which describe its GPU; ``streams`` are cases of ``STREAMS``.
    """
    told: dict[str, Value | None] = {} if device in ("", HOME) else dict(facts)
    for compared in cases:
        if compared.outcome.record and device_of(compared) == device:
            told |= compared.outcome.record.conditions
    rates = {name: rate for name in BANDWIDTHS if (rate := _positive(told.get(name)))}
    if rates:
        name = max(rates, key=lambda name: rates[name])
        source = f"{name.partition('_')[0]} measured on the device"
        peak, arithmetic = _positive(told.get(PEAK)), _positive(told.get(ARITHMETIC))
        return Ceilings(device, rates[name], source, peak, arithmetic)
    return _by_streams(device, streams, _positive(told.get(ARITHMETIC)))


def attained(compared: Compared, ceilings: Ceilings) -> Attained | None:
    """Share of the attainable rate; ``None`` without a time of the kernel or without its bytes."""
    rate = _rate(compared)
    record, timing = compared.outcome.record, compared.outcome.timing
    if rate is None or record is None or timing is None:
        return None
    flops = record.flops / timing.median if record.flops else None
    by_memory = rate / ceilings.bytes_per_second
    share = flops / ceilings.attainable(flops / rate) if flops else by_memory
    return Attained(compared, ceilings, rate, flops, share)


def _by_streams(
    device: str, streams: Iterable[Compared], arithmetic: float | None
) -> Ceilings | None:
    """The best rate at the largest size, where caches help least."""
    own = [c for c in streams if device_of(c) == device and _rate(c)]
    largest = max(map(_bytes, own), default=0)
    best = max((c for c in own if _bytes(c) == largest), key=lambda c: _rate(c) or 0, default=None)
    if best is None:
        return None
    name = best.outcome.name
    source = f"{name.suite}.{name.kernel} {name.implementation} {name.case}".strip()
    return Ceilings(device, _rate(best) or 0, source, flops_per_second=arithmetic)


def _bytes(compared: Compared) -> int:
    return compared.outcome.record.bytes or 0 if compared.outcome.record else 0


def _rate(compared: Compared) -> float | None:
    """Bytes a second of a ``kernel`` time."""
    timing = compared.outcome.timing
    if timing is None or compared.outcome.name.time != "kernel" or not _bytes(compared):
        return None
    return _bytes(compared) / timing.median


def _positive(value: Value | None) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < math.inf else None
