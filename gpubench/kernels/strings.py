"""Work on bytes: checksums of many messages and distances of many pairs of words.

Both go through their bytes in an order that each step depends on, so that what there is to do at
once lies elsewhere: in other messages, or along the diagonals of a table. Everything is a whole
number, and every form gives the same ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Bytes = NDArray[np.uint8]
Tables = NDArray[np.uint32]
Distances = NDArray[np.int32]

POLYNOMIAL = 0xEDB88320
"""Of CRC-32 (IEEE 802.3, as in zlib), its bits from the lowest to the highest."""
_SLICES = 8  # bytes of a message that one step takes
_TOGETHER = 64  # pairs that share the room for their words


def crc_tables(values: dict[str, Any], generator: np.random.Generator) -> Tables:
    """Shape ``[8, 256]``: what a byte does to the checksum after it and 0 to 7 zero bytes.

    The first is Sarwate's table (Communications of the ACM, 1988), all of them those of "slicing by
    8" (Kounavis and Berry, "A systematic approach to building high performance software-based CRC
    generators", 2005).
    """
    tables = np.empty((_SLICES, 256), np.uint32)
    byte = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        byte = np.where(byte & 1, (byte >> 1) ^ np.uint32(POLYNOMIAL), byte >> 1)
    tables[0] = byte
    for later in range(1, _SLICES):
        before = tables[later - 1]
        tables[later] = (before >> 8) ^ tables[0][before & 0xFF]
    return tables


def crc32_numpy(messages: Bytes, tables: Tables, out: Tables) -> None:
    """CRC-32 of each row of ``messages`` (``[m, length]``) into ``out`` (``[m]``).

    A byte of all messages at a time: the bytes of one have to wait for each other.
    """
    table = tables[0]
    crc = np.full(messages.shape[0], 0xFFFFFFFF, np.uint32)
    place = np.empty_like(crc)
    for column in messages.T:
        np.bitwise_xor(crc, column, out=place)
        np.bitwise_and(place, 0xFF, out=place)
        np.right_shift(crc, 8, out=crc)
        np.bitwise_xor(crc, table[place], out=crc)
    np.invert(crc, out=out)


@njit(cache=True)
def _word(message: Bytes, i: int) -> Any:
    """Four bytes from ``i`` on, the first the lowest."""
    low = np.uint32(message[i]) | np.uint32(message[i + 1]) << np.uint32(8)
    high = np.uint32(message[i + 2]) | np.uint32(message[i + 3]) << np.uint32(8)
    return low | high << np.uint32(16)


@njit(cache=True)
def _after_eight(crc: Any, message: Bytes, i: int, tables: Tables) -> Any:
    """Return the checksum after eight bytes from ``i`` on, each looked up in a table of its own."""
    first, second = crc ^ _word(message, i), _word(message, i + 4)
    return (
        tables[7, first & 0xFF]
        ^ tables[6, (first >> 8) & 0xFF]
        ^ tables[5, (first >> 16) & 0xFF]
        ^ tables[4, first >> 24]
        ^ tables[3, second & 0xFF]
        ^ tables[2, (second >> 8) & 0xFF]
        ^ tables[1, (second >> 16) & 0xFF]
        ^ tables[0, second >> 24]
    )


@njit(cache=True)
def _crc_of_two(message: Bytes, other: Bytes, tables: Tables) -> Any:
    """Two messages of one length: while one waits for its tables, the other goes on."""
    one = two = np.uint32(0xFFFFFFFF)
    whole = message.size // _SLICES * _SLICES
    for i in range(0, whole, _SLICES):
        one = _after_eight(one, message, i, tables)
        two = _after_eight(two, other, i, tables)
    for i in range(whole, message.size):
        one = tables[0, (one ^ message[i]) & 0xFF] ^ (one >> 8)
        two = tables[0, (two ^ other[i]) & 0xFF] ^ (two >> 8)
    return one ^ np.uint32(0xFFFFFFFF), two ^ np.uint32(0xFFFFFFFF)


@njit(parallel=True, cache=True)
def crc32_parallel(messages: Bytes, tables: Tables, out: Tables) -> None:
    """Two messages at a time, eight bytes in a step, over the threads of the CPU."""
    for pair in prange((out.size + 1) // 2):
        one, two = 2 * pair, min(2 * pair + 1, out.size - 1)
        out[one], out[two] = _crc_of_two(messages[one], messages[two], tables)


@cuda.jit
def crc32_cuda(messages: Bytes, tables: Tables, out: Tables) -> None:
    """Use a thread for each message, the table read from memory or cache."""
    m = cuda.grid(1)
    if m < out.size:
        crc = np.uint32(0xFFFFFFFF)
        for i in range(messages.shape[1]):
            crc = tables[0, (crc ^ messages[m, i]) & 0xFF] ^ (crc >> 8)
        out[m] = crc ^ np.uint32(0xFFFFFFFF)


@cuda.jit
def crc32_shared_cuda(messages: Bytes, tables: Tables, out: Tables) -> None:
    """Do the same with the table in shared memory; any one-dimensional block copies it."""
    table = cuda.shared.array(256, dtype=tables.dtype)
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        table[i] = tables[0, i]
    cuda.syncthreads()
    m = cuda.grid(1)
    if m < out.size:
        crc = np.uint32(0xFFFFFFFF)
        for i in range(messages.shape[1]):
            crc = table[(crc ^ messages[m, i]) & 0xFF] ^ (crc >> 8)
        out[m] = crc ^ np.uint32(0xFFFFFFFF)


_CHUNK = 32  # bytes of a message that a warp brings at once: one sector of memory
_PITCH = 36  # bytes between messages in shared memory: 9 words, so that 32 lanes use 32 banks


@cuda.jit
def crc32_staged_cuda(messages: Bytes, tables: Tables, out: Tables) -> None:
    """Use a thread for each message, whose bytes the block brings to shared memory side by side.

    Any one-dimensional launch is right that gives 36 bytes of shared memory for each thread.
    """
    table = cuda.shared.array(256, dtype=np.uint32)
    room = cuda.shared.array(0, dtype=np.uint8)
    thread, threads, length = cuda.threadIdx.x, cuda.blockDim.x, messages.shape[1]
    for i in range(thread, 256, threads):
        table[i] = tables[0, i]
    for first in range(cuda.blockIdx.x * threads, out.size, cuda.gridDim.x * threads):
        crc = np.uint32(0xFFFFFFFF)
        for start in range(0, length, _CHUNK):
            cuda.syncthreads()  # the table is there, and the bytes before were used by all
            for place in range(thread, threads * _CHUNK, threads):
                message, i = place // _CHUNK, place % _CHUNK
                if first + message < out.size and start + i < length:
                    room[message * _PITCH + i] = messages[first + message, start + i]
            cuda.syncthreads()
            if first + thread < out.size:
                for i in range(min(_CHUNK, length - start)):
                    crc = table[(crc ^ room[thread * _PITCH + i]) & 0xFF] ^ (crc >> 8)
        if first + thread < out.size:
            out[first + thread] = crc ^ np.uint32(0xFFFFFFFF)


# The table of Wagner and Fischer ("The string-to-string correction problem", 1974) has in row i and
# column j the distance of the first i letters of one word to the first j of the other. The cells of
# a diagonal from lower left to upper right depend on the two diagonals before only, and so can be
# found at once. A diagonal is kept by row, in an array of n + 1.


def words(values: dict[str, Any], generator: np.random.Generator) -> Bytes:
    """Words of ``n`` letters out of four, as of genes, for ``pairs`` pairs."""
    letters: Bytes = generator.integers(0, 4, (values["pairs"], values["n"]), np.uint8)
    return letters


def edit_distance_numpy(a: Bytes, b: Bytes, out: Distances) -> None:
    """Levenshtein distance of each row of ``a`` to that of ``b`` (both ``[pairs, n]``) into ``out``
    (``[pairs]``): a diagonal of all tables at a time."""
    pairs, n = a.shape
    rows, backwards = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T[::-1])
    before, last, now = np.zeros((3, n + 1, pairs), np.int32)
    for diagonal in range(2 * n + 1):
        first, end = max(1, diagonal - n), min(n, diagonal - 1) + 1
        if first < end:  # the cells inside
            start = n - diagonal + first
            differs = rows[first - 1 : end - 1] != backwards[start : start + end - first]
            cell = now[first:end]
            np.minimum(last[first - 1 : end - 1], last[first:end], out=cell)
            np.add(cell, 1, out=cell)
            np.minimum(cell, before[first - 1 : end - 1] + differs, out=cell)
        if diagonal <= n:  # no letters of one word, all of the other
            now[0] = now[diagonal] = diagonal
        before, last, now = last, now, before
    out[:] = last[n]


# Neighbouring cells of the table differ by -1, 0 or 1. A column of 64 cells is kept as two words of
# bits, where it rises and where it falls downwards, and the next column follows from it in a dozen
# operations on words (Myers, "A fast bit-vector algorithm for approximate string matching", Journal
# of the ACM, 1999; in the form of Hyyro, "A bit-vector algorithm for computing Levenshtein and
# Damerau edit distances", Nordic Journal of Computing, 2003).
@njit(cache=True)
def _mark(a: Bytes, places: Any) -> None:
    """Set the bits of ``places[letter]`` where ``a`` has that letter."""
    for i in range(a.size):
        places[a[i], i // 64] |= np.uint64(1) << np.uint64(i % 64)


@njit(cache=True)
def _clear(a: Bytes, places: Any) -> None:
    for letter in a:
        places[letter] = 0


@njit(cache=True)
def _next_column(equal: Any, rises: Any, falls: Any, rise: Any, fall: Any, last: Any) -> Any:
    """One word of the next column: ``rise`` and ``fall``, 0 or 1, come in from the word above it,
    and those at the bit ``last`` go to the word below."""
    one = np.uint64(1)
    vertical = equal | falls
    equal |= fall
    horizontal = (((equal & rises) + rises) ^ rises) | equal
    up, down = falls | ~(horizontal | rises), rises & horizontal
    rise_out, fall_out = (up >> last) & one, (down >> last) & one
    up, down = up << one | rise, down << one | fall
    return down | ~(vertical | up), up & vertical, rise_out, fall_out


@njit(cache=True)
def _distance(a: Bytes, b: Bytes, places: Any, rises: Any, falls: Any) -> Any:
    """Distance of two words; ``places`` holds the letters of ``a``, the rest is room."""
    words, distance = rises.size, np.uint64(a.size)
    rises[:], falls[:] = ~np.uint64(0), 0
    highest, lowest = np.uint64(63), np.uint64((a.size - 1) % 64)
    for letter in b:
        rise, fall = np.uint64(1), np.uint64(0)  # the first row counts the letters of b
        for word in range(words):
            last = lowest if word == words - 1 else highest
            rises[word], falls[word], rise, fall = _next_column(
                places[letter, word], rises[word], falls[word], rise, fall, last
            )
        distance += rise - fall
    return distance


@njit(parallel=True, cache=True)
def edit_distance_parallel(a: Bytes, b: Bytes, out: Distances) -> None:
    """Take a pair at a time over the threads of the CPU, 64 cells of its table in a step."""
    words = (a.shape[1] + 63) // 64
    for some in prange((out.size + _TOGETHER - 1) // _TOGETHER):
        places = np.zeros((256, words), np.uint64)
        rises, falls = np.empty((2, words), np.uint64)
        for pair in range(some * _TOGETHER, min(out.size, some * _TOGETHER + _TOGETHER)):
            _mark(a[pair], places)
            out[pair] = _distance(a[pair], b[pair], places, rises, falls)
            _clear(a[pair], places)


@cuda.jit
def edit_distance_cuda(a: Bytes, b: Bytes, out: Distances) -> None:
    """Use a block for each pair, its threads along a diagonal ("wavefront"); any grid is right.

    The launch gives ``3 * (n + 1)`` whole numbers of shared memory, for three diagonals.
    """
    room = cuda.shared.array(0, dtype=out.dtype)
    thread, threads, n = cuda.threadIdx.x, cuda.blockDim.x, a.shape[1]
    width = n + 1
    for pair in range(cuda.blockIdx.x, out.size, cuda.gridDim.x):
        before, last, now = 0, width, 2 * width
        for diagonal in range(2 * n + 1):
            first = diagonal - n if diagonal > n else 0
            end = diagonal + 1 if diagonal < n else width
            for i in range(first + thread, end, threads):
                j = diagonal - i
                if i == 0 or j == 0:
                    room[now + i] = diagonal
                else:
                    above, left = room[last + i - 1], room[last + i]
                    near = (above if above < left else left) + 1
                    changed = room[before + i - 1] + (1 if a[pair, i - 1] != b[pair, j - 1] else 0)
                    room[now + i] = near if near < changed else changed
            cuda.syncthreads()
            before, last, now = last, now, before
        # No barrier: the first diagonal of the next pair is this thread's alone, and has one.
        if thread == 0:
            out[pair] = room[last + n]
