"""Whether the work that a suite declares is the work that its kernels do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpubench.work.derived import accessed_bytes, counted_flops

MAX_DEVIATION = 0.1
"""Share by which declared work may be off: formulas leave out borders and lower powers, and small
cases of the preset `smoke` have more of these than those that are measured."""


@dataclass(frozen=True, slots=True)
class DeclaredWork:
    """What a suite declares of a case beside what one run of it counted."""

    bytes: int | None
    """Bytes moved by the suite's formula; absent without one."""
    flops: int | None
    """Operations by the suite's formula; absent without one."""
    accessed_bytes: int
    """Bytes of global sectors that accesses touch, each as often as it is asked for."""
    counted_flops: int
    special_functions: int
    """Exponentials, roots, divisions ...: a formula may count each as one operation or leave it
    out."""

    @property
    def flops_ratio(self) -> float | None:
        """Return declared over counted operations; ``None`` where there is none of either."""
        if self.flops is None or not self.counted_flops:
            return None
        return self.flops / self.counted_flops

    @property
    def are_flops_off(self) -> bool:
        """Return whether declared operations are neither those that are counted nor those with
        special functions."""
        if self.flops is None:
            return False
        least = self.counted_flops * (1 - MAX_DEVIATION)
        most = (self.counted_flops + self.special_functions) * (1 + MAX_DEVIATION)
        return not least <= self.flops <= most

    @property
    def are_bytes_off(self) -> bool:
        """Return whether more bytes are declared than accesses touch, which no cache explains.

        Fewer are no fault: what is read again may come from a cache.
        """
        return self.bytes is not None and self.bytes > self.accessed_bytes * (1 + MAX_DEVIATION)


def declared_work(
    nbytes: int | None, flops: int | None, counts: Mapping[str, int]
) -> DeclaredWork | None:
    """Return declared beside counted work; ``None`` where the suite declares none."""
    if nbytes is None and flops is None:
        return None
    special = counts.get("special_functions", 0)
    return DeclaredWork(nbytes, flops, accessed_bytes(counts), counted_flops(counts), special)
