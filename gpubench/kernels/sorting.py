"""Sorting: comparisons whose order does not depend on the data, or no comparisons at all.

Batcher's bitonic network ("Sorting networks and their applications", 1968) compares the same places
whatever the numbers are, which suits many threads in step; here in the form in which every
comparison puts the smaller number first, so that any length can be sorted: places beyond the end
stand for infinity and never move. The CPU form is a radix sort (Knuth, "The Art of Computer
Programming", volume 3, section 5.2.5), which looks at the bits of each number and compares nothing.

``x`` and ``out`` have the shape ``[n]`` and the dtype float32, without NaN; ``scratch`` too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Numbers = NDArray[np.float32]
Keys = NDArray[np.uint32]

_DIGIT = 8  # bits that a pass of the radix sort looks at
_BUCKETS = 1 << _DIGIT
_SIGN = np.uint32(1 << 31)
_SMALL = 4096  # numbers from which on a share is worth a thread
_MOST_SHARES = 16


def sort_numpy(x: Numbers, scratch: Numbers, out: Numbers) -> None:
    """``out`` is ``x`` sorted, by NumPy's sort with the machine's vector instructions."""
    np.copyto(out, x)
    out.sort()


@njit(cache=True)
def _to_keys(x: Keys, keys: Keys) -> None:
    """Whole numbers in the order of the floats with these bits: negative ones are turned round."""
    for i in range(x.size):
        bits = x[i]
        keys[i] = ~bits if bits & _SIGN else bits | _SIGN


@njit(cache=True)
def _from_keys(keys: Keys, out: Keys) -> None:
    for i in range(out.size):
        key = keys[i]
        out[i] = key & ~_SIGN if key & _SIGN else ~key


@njit(cache=True)
def _count(keys: Keys, shift: Any, counts: Any) -> None:
    counts[:] = 0
    for key in keys:
        counts[(key >> shift) & np.uint32(_BUCKETS - 1)] += 1


@njit(cache=True)
def _begin(counts: Any) -> None:
    """Turn counts by share and digit into the places where their first numbers go."""
    place = 0
    for digit in range(_BUCKETS):
        for share in range(counts.shape[0]):
            count = counts[share, digit]
            counts[share, digit] = place
            place += count


@njit(cache=True)
def _move(keys: Keys, shift: Any, places: Any, to: Keys) -> None:
    for key in keys:
        digit = (key >> shift) & np.uint32(_BUCKETS - 1)
        to[places[digit]] = key
        places[digit] += 1


@njit(parallel=True, cache=True)
def sort_parallel(x: Numbers, scratch: Numbers, out: Numbers) -> None:
    """Sort with a radix sort by eight bits at a time, each share of the numbers on a thread of the
    CPU."""
    shares = max(1, min(_MOST_SHARES, x.size // _SMALL))
    length = (x.size + shares - 1) // shares
    source, target = scratch.view(np.uint32), out.view(np.uint32)
    bits = x.view(np.uint32)
    places = np.empty((shares, _BUCKETS), np.int64)
    for share in prange(shares):
        _to_keys(bits[share * length : (share + 1) * length], source[share * length :])
    for digit in range(32 // _DIGIT):
        shift = np.uint32(digit * _DIGIT)
        for share in prange(shares):
            _count(source[share * length : (share + 1) * length], shift, places[share])
        _begin(places)
        for share in prange(shares):
            _move(source[share * length : (share + 1) * length], shift, places[share], target)
        source, target = target, source
    for share in prange(shares):
        _from_keys(source[share * length :], target[share * length : (share + 1) * length])


@cuda.jit
def _copy(x: Numbers, out: Numbers) -> None:
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = x[i]


@cuda.jit
def _exchange(out: Numbers, mask: int) -> None:
    """Compare each number with that whose place differs in the bits of ``mask``."""
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        other = i ^ mask
        if i < other < out.size and out[other] < out[i]:
            out[i], out[other] = out[other], out[i]


def sort_cuda_global(launch: Any, x: Any, scratch: Any, out: Any) -> None:
    """Queue the network: a launch for each of its (log2(n) + 1) * log2(n) / 2 steps."""
    _copy[launch.grid, launch.block, launch.stream](x, out)
    length = 2
    while length < 2 * out.size:
        for mask in _masks(length, 1):
            _exchange[launch.grid, launch.block, launch.stream](out, mask)
        length *= 2


def _masks(length: int, least: int) -> list[int]:
    """Return the steps that merge two sorted halves of ``length``: the first turns the second half
    round."""
    masks, apart = [length - 1], length // 4
    while apart >= least:
        masks.append(apart)
        apart //= 2
    return masks


@cuda.jit(device=True)
def _exchange_in_tile(tile: Numbers, count: int, mask: int) -> None:
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        other = i ^ mask
        if i < other < count and tile[other] < tile[i]:
            tile[i], tile[other] = tile[other], tile[i]
    cuda.syncthreads()


@cuda.jit(device=True)
def _load(x: Numbers, start: int, tile: Numbers, count: int) -> None:
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        tile[i] = x[start + i]
    cuda.syncthreads()


@cuda.jit(device=True)
def _save(tile: Numbers, count: int, out: Numbers, start: int) -> None:
    # Each thread saves what it will load the next time: no barrier is needed between.
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        out[start + i] = tile[i]


@cuda.jit
def _sort_tiles(x: Numbers, out: Numbers, size: int) -> None:
    """Sort tiles of ``size`` numbers, a power of two, each in a block's shared memory."""
    tile = cuda.shared.array(0, dtype=x.dtype)
    for start in range(cuda.blockIdx.x * size, out.size, cuda.gridDim.x * size):
        count = size if start + size < out.size else out.size - start
        _load(x, start, tile, count)
        length = 2
        while length < 2 * count:
            _exchange_in_tile(tile, count, length - 1)
            apart = length // 4
            while apart > 0:
                _exchange_in_tile(tile, count, apart)
                apart //= 2
            length *= 2
        _save(tile, count, out, start)


@cuda.jit
def _finish_tiles(out: Numbers, size: int) -> None:
    """Do the last steps of a merge, which stay inside tiles."""
    tile = cuda.shared.array(0, dtype=out.dtype)
    for start in range(cuda.blockIdx.x * size, out.size, cuda.gridDim.x * size):
        count = size if start + size < out.size else out.size - start
        _load(out, start, tile, count)
        apart = size // 2
        while apart > 0:
            _exchange_in_tile(tile, count, apart)
            apart //= 2
        _save(tile, count, out, start)


def sort_cuda_shared(launch: Any, x: Any, scratch: Any, out: Any) -> None:
    """Queue the network with the steps that stay inside a tile of one or two numbers for
    each thread in shared memory: one launch in place of many."""
    size = 1 << (2 * int(launch.block[0])).bit_length() - 1
    shared = size * out.dtype.itemsize
    _sort_tiles[launch.grid, launch.block, launch.stream, shared](x, out, size)
    length = 2 * size
    while length < 2 * out.size:
        for mask in _masks(length, size):
            _exchange[launch.grid, launch.block, launch.stream](out, mask)
        _finish_tiles[launch.grid, launch.block, launch.stream, shared](out, size)
        length *= 2
