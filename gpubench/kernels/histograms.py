"""Counting: writes whose place depends on the data, so that threads get into each other's way.

Counts are int32, shape ``[bins]``. The forms for many threads count into arrays of their own and
add these up ("privatization", Kirk and Hwu, "Programming Massively Parallel Processors", chapter on
histograms), or add to the one array atomically. Counts are whole numbers: their order is no matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""
Keys = NDArray[np.int64]
Counts = NDArray[np.int32]

_WAYS = 4  # arrays of counts of a CPU thread: the same bin twice in a row would wait for itself
_MOST_SHARES = 256  # that the data is cut into; each has arrays of its own
_HOT = 0.9  # of the keys that are one and the same, where the keys are hot


def keys(values: dict[str, Any], generator: np.random.Generator) -> Keys:
    """``n`` keys below ``bins``: ``spread`` evenly, or ``hot``, nine of ten the same."""
    found: Keys = generator.integers(0, values["bins"], values["n"])
    if values["keys"] == "hot":
        found[generator.random(values["n"]) < _HOT] = values["bins"] // 2
    return found


def histogram_numpy(x: Vector, counts: Counts) -> None:
    """Count how many numbers of ``x``, all in [0, 1), lie in each of ``counts.size`` equal bins.

    ``numpy.histogram`` looks for edges that may be anywhere and takes ten times as long.
    """
    places = (x * x.dtype.type(counts.size)).astype(np.intp)
    counts[:] = np.bincount(places, minlength=counts.size)


@njit(cache=True)
def _count_places(x: Vector, own: Counts) -> None:
    bins = x.dtype.type(own.shape[1])
    a, b, c, d = own[0], own[1], own[2], own[3]
    whole = x.size // _WAYS * _WAYS
    for i in range(0, whole, _WAYS):
        a[np.uint32(x[i] * bins)] += 1
        b[np.uint32(x[i + 1] * bins)] += 1
        c[np.uint32(x[i + 2] * bins)] += 1
        d[np.uint32(x[i + 3] * bins)] += 1
    for number in x[whole:]:
        a[np.uint32(number * bins)] += 1


@njit(cache=True)
def _count_keys(x: Keys, own: Counts) -> None:
    a, b, c, d = own[0], own[1], own[2], own[3]
    whole = x.size // _WAYS * _WAYS
    for i in range(0, whole, _WAYS):
        a[np.uint64(x[i])] += 1
        b[np.uint64(x[i + 1])] += 1
        c[np.uint64(x[i + 2])] += 1
        d[np.uint64(x[i + 3])] += 1
    for number in x[whole:]:
        a[np.uint64(number)] += 1


@njit(cache=True)
def _shares(size: int, bins: int) -> int:
    """Return so many that their arrays of counts have at most a sixteenth of the data's length."""
    return max(1, min(_MOST_SHARES, size // (16 * _WAYS * bins)))


@njit(cache=True)
def _add_up(all_counts: NDArray[np.int32], counts: Counts) -> None:
    counts[:] = 0
    for share in range(all_counts.shape[0]):
        for way in range(_WAYS):
            for place in range(counts.size):
                counts[place] += all_counts[share, way, place]


@njit(parallel=True, cache=True)
def histogram_parallel(x: Vector, counts: Counts) -> None:
    """Do the same over the threads of the CPU, each share of the data with counts of its own."""
    shares = _shares(x.size, counts.size)
    own = np.zeros((shares, _WAYS, counts.size), np.int32)
    length = (x.size + shares - 1) // shares
    for share in prange(shares):
        _count_places(x[share * length : share * length + length], own[share])
    _add_up(own, counts)


@cuda.jit
def _clear(counts: Counts) -> None:
    place = cuda.grid(1)
    if place < counts.size:
        counts[place] = 0


@cuda.jit
def _count_globally(x: Vector, counts: Counts) -> None:
    """Add to a bin in memory for each number, atomically."""
    bins = x.dtype.type(counts.size)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        cuda.atomic.add(counts, np.int64(x[i] * bins), 1)
        i += stride


@cuda.jit
def _count_in_blocks(x: Vector, counts: Counts) -> None:
    """Atomic additions in shared memory, and one in memory for each bin of each block."""
    own = cuda.shared.array(0, dtype=counts.dtype)
    for place in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
        own[place] = 0
    cuda.syncthreads()
    bins = x.dtype.type(counts.size)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        cuda.atomic.add(own, np.int64(x[i] * bins), 1)
        i += stride
    cuda.syncthreads()
    for place in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
        if own[place] > 0:
            cuda.atomic.add(counts, place, own[place])


def histogram_cuda_global(launch: Any, x: Any, counts: Any) -> None:
    """Queue a histogram of ``x``: clear, then additions in memory."""
    _queue_clear(launch, counts)
    _count_globally[launch.grid, launch.block, launch.stream](x, counts)


def histogram_cuda_shared(launch: Any, x: Any, counts: Any) -> None:
    """Queue a histogram of ``x``: clear, then additions in shared memory, ``launch.shared_bytes``
    of which hold the counts of a block."""
    _queue_clear(launch, counts)
    _count_in_blocks[launch.grid, launch.block, launch.stream, launch.shared_bytes](x, counts)


def bincount_numpy(x: Keys, counts: Counts) -> None:
    """Count how often each of the numbers below ``counts.size`` is in ``x``."""
    counts[:] = np.bincount(x, minlength=counts.size)


@njit(parallel=True, cache=True)
def bincount_parallel(x: Keys, counts: Counts) -> None:
    """Do the same over the threads of the CPU, each share of the data with counts of its own."""
    shares = _shares(x.size, counts.size)
    own = np.zeros((shares, _WAYS, counts.size), np.int32)
    length = (x.size + shares - 1) // shares
    for share in prange(shares):
        _count_keys(x[share * length : share * length + length], own[share])
    _add_up(own, counts)


@cuda.jit
def _count_keys_globally(x: Keys, counts: Counts) -> None:
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        cuda.atomic.add(counts, x[i], 1)
        i += stride


@cuda.jit
def _count_keys_in_blocks(x: Keys, counts: Counts) -> None:
    own = cuda.shared.array(0, dtype=counts.dtype)
    for place in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
        own[place] = 0
    cuda.syncthreads()
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        cuda.atomic.add(own, x[i], 1)
        i += stride
    cuda.syncthreads()
    for place in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
        if own[place] > 0:
            cuda.atomic.add(counts, place, own[place])


def bincount_cuda_global(launch: Any, x: Any, counts: Any) -> None:
    """Queue the counts of ``x``: clear, then additions in memory."""
    _queue_clear(launch, counts)
    _count_keys_globally[launch.grid, launch.block, launch.stream](x, counts)


def bincount_cuda_shared(launch: Any, x: Any, counts: Any) -> None:
    """Queue the counts of ``x``: clear, then additions in shared memory, ``launch.shared_bytes``
    of which hold the counts of a block."""
    _queue_clear(launch, counts)
    _count_keys_in_blocks[launch.grid, launch.block, launch.stream, launch.shared_bytes](x, counts)


def _queue_clear(launch: Any, counts: Any) -> None:
    threads = int(launch.block[0])
    _clear[-(-counts.size // threads), threads, launch.stream](counts)
