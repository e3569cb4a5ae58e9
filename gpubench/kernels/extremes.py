"""The largest of many numbers and where it stands: reductions without an addition.

Results are NumPy's: where there is a NaN it is the largest, and of equal numbers the first counts.
Vectors have one dimension, one dtype and at least one element; results have the shape ``[1]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.reductions import MAX_THREADS_PER_BLOCK, blocks_with_parts

Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""
Indices = NDArray[np.int64]

_STRETCH = 262144  # numbers that one turn of a CPU thread searches
_LOOK = 512  # numbers that are looked over at once


def maximum_numpy(x: Vector, parts: Vector, places: Indices, out: Vector) -> None:
    """``out[0] = max(x)``; ``parts`` and ``places`` are for the other forms."""
    out[0] = x.max()


def argmax_numpy(x: Vector, parts: Vector, places: Indices, out: Indices) -> None:
    """``out[0]`` is the index of the first of the largest numbers of ``x``."""
    out[0] = x.argmax()


@njit(cache=True)
def _any_above(x: Vector, bound: Any) -> bool:
    """Return whether a number is larger than ``bound``, or not a number: a loop that only asks
    becomes vector instructions, where a running maximum that keeps NaN does not."""
    found = False
    for i in range(x.size):
        found |= not (x[i] <= bound)
    return found


@njit(cache=True)
def _first_largest(x: Vector) -> int:
    """Index of the first of the largest numbers. Once a few have been seen, larger ones are rare:
    most of the vector is only looked over."""
    place, best = 0, x[0]
    for left in range(0, x.size, _LOOK):
        piece = x[left : left + _LOOK]
        if best != best:
            return place
        if _any_above(piece, best):
            for i in range(piece.size):
                if not (piece[i] <= best) and best == best:
                    place, best = left + i, piece[i]
    return place


@njit(parallel=True, cache=True)
def _place_of_largest(x: Vector) -> Any:
    """Index of the first of the largest numbers; each stretch is searched by itself."""
    stretches = (x.size + _STRETCH - 1) // _STRETCH
    places = np.empty(stretches, np.int64)
    for stretch in prange(stretches):
        start = stretch * _STRETCH
        places[stretch] = start + _first_largest(x[start : start + _STRETCH])
    best = places[0]
    for place in places:
        if not (x[place] <= x[best]) and x[best] == x[best]:
            best = place
    return best


@njit(cache=True)
def maximum_parallel(x: Vector, parts: Vector, places: Indices, out: Vector) -> None:
    """``out[0] = max(x)`` over the threads of the CPU."""
    out[0] = x[_place_of_largest(x)]


@njit(cache=True)
def argmax_parallel(x: Vector, parts: Vector, places: Indices, out: Indices) -> None:
    """``out[0] = argmax(x)`` over the threads of the CPU."""
    out[0] = _place_of_largest(x)


@cuda.jit(device=True)
def _larger(one: Any, other: Any) -> Any:
    """Return the larger of two numbers; NaN is larger than all."""
    return one if one >= other or one != one else other


@cuda.jit(device=True)
def _largest_of_block(value: Any, room: Vector) -> Any:
    """Largest value of a block's threads, right on the first thread; ``room`` has one for each."""
    thread = cuda.threadIdx.x
    room[thread] = value
    cuda.syncthreads()
    active = cuda.blockDim.x
    while active > 1:
        half = (active + 1) // 2
        if thread + half < active:
            room[thread] = _larger(room[thread], room[thread + half])
        cuda.syncthreads()
        active = half
    return room[0]


@cuda.jit
def _largest_parts(x: Vector, parts: Vector) -> None:
    """Write the largest number of each block's share of ``x`` into ``parts``."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    best = x[0]
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        best = _larger(best, x[i])
        i += stride
    best = _largest_of_block(best, room)
    if cuda.threadIdx.x == 0:
        parts[cuda.blockIdx.x] = best


@cuda.jit
def _finish_maximum(parts: Vector, count: int, out: Vector) -> None:
    """Put the largest of the first ``count`` parts into ``out[0]``, by one block."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=parts.dtype)
    best = parts[0]
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        best = _larger(best, parts[i])
    best = _largest_of_block(best, room)
    if cuda.threadIdx.x == 0:
        out[0] = best


@cuda.jit(device=True)
def _comes_first(one: Any, place: int, other: Any, other_place: int) -> bool:
    """Return whether a number goes before another: larger, or as large and earlier; NaN is
    largest."""
    if one > other or (one != one and other == other):
        return True
    alike = one == other or (one != one and other != other)
    return alike and place < other_place


@cuda.jit(device=True)
def _first_of_block(value: Any, place: int, room: Vector, places: Indices) -> None:
    """Put the largest value of a block's threads and its place into the first of ``room``."""
    thread = cuda.threadIdx.x
    room[thread], places[thread] = value, place
    cuda.syncthreads()
    active = cuda.blockDim.x
    while active > 1:
        half = (active + 1) // 2
        other = thread + half
        if other < active and _comes_first(
            room[other], places[other], room[thread], places[thread]
        ):
            room[thread], places[thread] = room[other], places[other]
        cuda.syncthreads()
        active = half


@cuda.jit
def _first_parts(x: Vector, parts: Vector, places: Indices) -> None:
    """Write the largest number of each block's share of ``x``, and where it first stands."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    room_places = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=places.dtype)
    best, place = x[0], np.int64(0)
    i, size = np.uint64(cuda.grid(1)), np.uint64(x.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        if _comes_first(x[i], np.int64(i), best, place):
            best, place = x[i], np.int64(i)
        i += stride
    _first_of_block(best, place, room, room_places)
    if cuda.threadIdx.x == 0:
        parts[cuda.blockIdx.x], places[cuda.blockIdx.x] = room[0], room_places[0]


@cuda.jit
def _finish_argmax(parts: Vector, places: Indices, count: int, out: Indices) -> None:
    """Put the place of the largest of the first ``count`` parts into ``out[0]``, by one block."""
    room = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=parts.dtype)
    room_places = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=places.dtype)
    best, place = parts[0], places[0]
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        if _comes_first(parts[i], places[i], best, place):
            best, place = parts[i], places[i]
    _first_of_block(best, place, room, room_places)
    if cuda.threadIdx.x == 0:
        out[0] = room_places[0]


def maximum_cuda(launch: Any, x: Any, parts: Any, places: Any, out: Any) -> None:
    """Queue ``out[0] = max(x)``: a part for each block, then one block."""
    blocks = blocks_with_parts(launch)
    _largest_parts[blocks, launch.block, launch.stream](x, parts)
    _finish_maximum[1, launch.block, launch.stream](parts, blocks, out)


def argmax_cuda(launch: Any, x: Any, parts: Any, places: Any, out: Any) -> None:
    """Queue ``out[0] = argmax(x)``: a part and its place for each block, then one block."""
    blocks = blocks_with_parts(launch)
    _first_parts[blocks, launch.block, launch.stream](x, parts, places)
    _finish_argmax[1, launch.block, launch.stream](parts, places, blocks, out)
