"""Random bits from a counter: whoever asks for the number of a place gets the same, in any order.

The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014): the counter times the golden ratio, mixed by two products and three
shifts. 64 bits for each counter; the high ones are as good as the low ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit

Bits = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


def bits_numpy(counters: Bits, seed: Any) -> Bits:
    """64 random bits for each counter; ``seed`` is a ``uint64``."""
    bits = counters * _GOLDEN
    bits += seed
    bits ^= bits >> _30
    bits *= _FIRST
    bits ^= bits >> _27
    bits *= _SECOND
    bits ^= bits >> _31
    return bits


def _bits(counter: Any, seed: Any) -> Any:
    bits = np.uint64(counter) * _GOLDEN + np.uint64(seed)
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return bits ^ (bits >> _31)


bits_on_cpu = njit(cache=True)(_bits)
bits_on_device = cuda.jit(device=True)(_bits)
