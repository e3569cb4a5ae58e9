"""Running sums: every result depends on all numbers before it, and yet they are found in parallel.

The forms for many threads go over the data twice, "reduce, then scan": once for the sum of each
part, and once for the running sums of the part, which start from the sum of all parts before. The
CUDA form scans a tile as Blelloch does ("Prefix sums and their applications", 1990), up a tree of
partial sums and down again, which takes as many additions as the loop does, up to a constant.

``x`` and ``out`` have the shape ``[n]`` and one dtype; ``totals`` has the shape ``[MAX_PARTS]``.
Whole numbers wrap around, in every form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.reductions import MAX_PARTS

Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""

ITEMS = 5
"""Neighbouring numbers that a thread adds up by itself; odd, so that the threads of a warp meet in
no bank of shared memory."""
_PIECE = 4112  # numbers that a CPU thread has one running sum for; no whole number of pages
_LANES = 4  # running sums that it keeps at once, because one waits for its last addition
_CHUNK = 32 * _LANES * _PIECE  # numbers that are in a cache when they are gone through again


def inclusive_scan_numpy(x: Vector, totals: Vector, out: Vector) -> None:
    """``out[i] = x[0] + ... + x[i]``; ``totals`` is for the other forms."""
    np.cumsum(x, dtype=x.dtype, out=out)


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _sum_of(x: Vector) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
    return total


@njit(cache=True)
def _scan_piece(x: Vector, out: Vector, before: Any) -> None:
    number = x.dtype.type
    for i in range(x.size):
        before = number(before + x[i])
        out[i] = before


@njit(cache=True)
def _scan_pieces(x: Vector, out: Vector, before: Vector) -> None:
    """Write running sums of four whole pieces at once, each from the sum before it."""
    number = x.dtype.type
    a, b, c, d = before[0], before[1], before[2], before[3]
    for i in range(_PIECE):
        a, b = number(a + x[i]), number(b + x[i + _PIECE])
        c, d = number(c + x[i + 2 * _PIECE]), number(d + x[i + 3 * _PIECE])
        out[i], out[i + _PIECE] = a, b
        out[i + 2 * _PIECE], out[i + 3 * _PIECE] = c, d


@njit(parallel=True, cache=True)
def _scan_chunk(x: Vector, out: Vector, before: Vector) -> None:
    """Write running sums from ``before[0]`` on, which becomes the last of them; ``before`` has room
    for the sum before each piece."""
    pieces = (x.size + _PIECE - 1) // _PIECE
    for piece in prange(pieces):
        before[piece + 1] = _sum_of(x[piece * _PIECE : piece * _PIECE + _PIECE])
    for piece in range(pieces):
        before[piece + 1] += before[piece]
    whole = x.size // (_LANES * _PIECE)
    for four in prange(whole):
        start = four * _LANES * _PIECE
        _scan_pieces(x[start:], out[start:], before[four * _LANES :])
    for piece in range(whole * _LANES, pieces):
        left = piece * _PIECE
        _scan_piece(x[left : left + _PIECE], out[left:], before[piece])
    before[0] = before[pieces]


@njit(cache=True)
def inclusive_scan_parallel(x: Vector, totals: Vector, out: Vector) -> None:
    """``out[i] = x[0] + ... + x[i]`` over the threads of the CPU; ``totals`` is the GPU's."""
    before = np.zeros(_CHUNK // _PIECE + 1, x.dtype)
    for left in range(0, x.size, _CHUNK):
        _scan_chunk(x[left : left + _CHUNK], out[left:], before)


@cuda.jit(device=True)
def _sums_before(value: Any, room: Vector, width: int) -> Any:
    """Sum of the values of the threads before this one, and the sum of all; ``room`` has a number
    for each of ``width``, the power of two that the threads fit in."""
    thread = cuda.threadIdx.x
    room[thread] = value
    if thread + cuda.blockDim.x < width:
        room[thread + cuda.blockDim.x] = 0
    apart, pairs = 1, width // 2
    while pairs > 0:
        cuda.syncthreads()
        if thread < pairs:
            left = apart * (2 * thread + 1) - 1
            room[left + apart] += room[left]
        apart, pairs = 2 * apart, pairs // 2
    cuda.syncthreads()
    # In a register: one number more in shared memory would be one too many for 1024 threads of
    # `_scan_shares` in float64, which take all of the 48 KiB that a block may have.
    total = room[width - 1]
    cuda.syncthreads()
    if thread == 0:
        room[width - 1] = 0
    apart, pairs = apart // 2, 1
    while apart > 0:
        cuda.syncthreads()
        if thread < pairs:
            left = apart * (2 * thread + 1) - 1
            below = room[left]
            room[left] = room[left + apart]
            room[left + apart] += below
        apart, pairs = apart // 2, 2 * pairs
    cuda.syncthreads()
    return room[thread], total


@cuda.jit
def _sum_shares(x: Vector, share: int, totals: Vector) -> None:
    """Write the sum of each block's ``share`` of numbers into ``totals``."""
    room = cuda.shared.array(0, dtype=x.dtype)
    thread = cuda.threadIdx.x
    start = cuda.blockIdx.x * share
    stop = start + share if start + share < x.size else x.size
    total = x.dtype.type(0)
    for i in range(start + thread, stop, cuda.blockDim.x):
        total += x[i]
    room[thread] = total
    cuda.syncthreads()
    active = cuda.blockDim.x
    while active > 1:
        half = (active + 1) // 2
        if thread + half < active:
            room[thread] += room[thread + half]
        cuda.syncthreads()
        active = half
    if thread == 0:
        totals[cuda.blockIdx.x] = room[0]


@cuda.jit
def _scan_totals(totals: Vector, count: int, width: int) -> None:
    """One block: each of the first ``count`` totals becomes the sum of those before it."""
    room = cuda.shared.array(0, dtype=totals.dtype)
    before = totals.dtype.type(0)
    for start in range(0, count, cuda.blockDim.x):
        i = start + cuda.threadIdx.x
        value = totals[i] if i < count else totals.dtype.type(0)
        sums, total = _sums_before(value, room, width)
        if i < count:
            totals[i] = before + sums
        before += total


@cuda.jit
def _scan_shares(x: Vector, share: int, width: int, totals: Vector, out: Vector) -> None:
    """Write the running sums of each block's share, tile by tile, from the sum of the shares
    before."""
    shared = cuda.shared.array(0, dtype=x.dtype)
    room, tile = shared[:width], shared[width:]
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    first = cuda.blockIdx.x * share
    stop = first + share if first + share < x.size else x.size
    before = totals[cuda.blockIdx.x]
    for start in range(first, stop, threads * ITEMS):
        # In and out by neighbours; in between, each thread adds up numbers of its own.
        for i in range(thread, threads * ITEMS, threads):
            tile[i] = x[start + i] if start + i < stop else x.dtype.type(0)
        cuda.syncthreads()
        total = x.dtype.type(0)
        for item in range(ITEMS):
            total += tile[thread * ITEMS + item]
        sums, total = _sums_before(total, room, width)
        running = before + sums
        for item in range(ITEMS):
            running += tile[thread * ITEMS + item]
            tile[thread * ITEMS + item] = running
        before += total
        cuda.syncthreads()
        # Each thread takes out what it will put in again: no barrier is needed between.
        for i in range(thread, threads * ITEMS, threads):
            if start + i < stop:
                out[start + i] = tile[i]


def inclusive_scan_cuda(launch: Any, x: Any, totals: Any, out: Any) -> None:
    """Queue ``out[i] = x[0] + ... + x[i]``: sums of shares, their scan, the scan of each share.

    ``launch`` gives the blocks, of which at most ``MAX_PARTS`` have work, and their threads.
    """
    threads = int(launch.block[0])
    blocks = min(int(launch.grid[0]), MAX_PARTS, -(-x.size // (threads * ITEMS)))
    share = -(-x.size // blocks)
    width = 1 << (threads - 1).bit_length()
    tree = width * x.dtype.itemsize
    tiles = tree + threads * ITEMS * x.dtype.itemsize
    _sum_shares[blocks, threads, launch.stream, tree](x, share, totals)
    _scan_totals[1, threads, launch.stream, tree](totals, blocks, width)
    _scan_shares[blocks, threads, launch.stream, tiles](x, share, width, totals, out)
