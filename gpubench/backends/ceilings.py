"""What a device's memory reaches: a copy and a triad by kernels like the measured ones.

After STREAM (McCalpin 1995): three arrays, each several times the last-level cache; bytes read and
written count once each; the best of several samples is the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpubench.backends.protocol import Native

BLOCK = 256
"""Threads in a block; one element for each thread."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Bytes per second that kernels reach on this device."""

    copy_bytes_per_second: float
    triad_bytes_per_second: float
    array_bytes: int
    """Size of each of the arrays that were moved."""


Best = Callable[[str, Sequence[Native]], float]
"""Seconds of the quickest run of the kernel ``copy`` or ``triad`` over these arrays."""


def ceilings_of(arrays: Sequence[Native], nbytes: int, best: Best) -> Ceilings:
    """Rates over three arrays of ``nbytes`` each."""
    copied, added = arrays[:2], arrays[:3]
    return Ceilings(
        len(copied) * nbytes / best("copy", copied),
        len(added) * nbytes / best("triad", added),
        nbytes,
    )


def array_bytes(wanted: int, most: int, item: int) -> int:
    """Size of one array in whole items, at least one; as wanted, as far as there is room."""
    return max(item, min(wanted, most) // item * item)
