"""Attention of one head: every query's mean of the values, weighted by how well the keys fit it.

``out = softmax(Q @ K.T / sqrt(d)) @ V`` (Vaswani et al., "Attention is all you need", 2017).
Written so, ``n * n`` scores go to memory and come back three times. If the largest score and the
sum of the weights so far are kept, and what was summed is made smaller whenever a larger score
comes (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), a tile of scores
is enough: it never leaves a core's cache or a block's shared memory (Dao et al., "FlashAttention",
2022).

``Q``, ``K``, ``V`` and ``out`` have the shape ``[n, d]``, ``scores`` has ``[n, n]``; all float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.learning import (
    exp_and_sum,
    largest_of,
    softmax_cuda_block,
    softmax_numpy,
)
from gpubench.kernels.panels import WIDTH, add_product, packed, panel_count
from gpubench.kernels.vector_math import exp_single

Matrix = NDArray[np.float32]
Row = NDArray[np.float32]
Buffer = NDArray[np.float32]

_BAND = 32  # queries that a CPU thread takes at once
_LANES = 32  # room that ``largest_of`` asks for
_ZERO = np.float32(0)
_NOTHING = np.float32(-math.inf)


def attention_numpy(Q: Matrix, K: Matrix, V: Matrix, scores: Matrix, out: Matrix) -> None:
    """All scores at once: two matrix products of a BLAS and a softmax between them."""
    np.matmul(Q, K.T, out=scores)
    scores *= np.float32(1 / math.sqrt(Q.shape[1]))
    softmax_numpy(scores, scores)
    np.matmul(scores, V, out=out)


@njit(cache=True)
def _cut_values(V: Matrix) -> Any:
    """Return the values in tiles of 64 rows and pieces of 64 columns, filled up with zeros."""
    tiles, pieces = panel_count(V.shape[0]), panel_count(V.shape[1])
    values = np.zeros((tiles, pieces, WIDTH * WIDTH), np.float32)
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            values[i // WIDTH, k // WIDTH, i % WIDTH * WIDTH + k % WIDTH] = V[i, k]
    return values


@njit(cache=True)
def _scaled(queries: Matrix, depth: int) -> Any:
    """Return queries over the root of ``d``, filled up with zeros to an even number of them."""
    scaled = np.zeros((queries.shape[0] + queries.shape[0] % 2, depth), np.float32)
    scale = np.float32(1 / math.sqrt(queries.shape[1]))
    for i in range(queries.shape[0]):
        for k in range(queries.shape[1]):
            scaled[i, k] = queries[i, k] * scale
    return scaled


@njit(cache=True)
def _shrink(sums: Row, factor: Any) -> None:
    for j in range(sums.size):
        sums[j] *= factor


@njit(cache=True)
def _weigh(scores: Matrix, keys: int, largest: Row, total: Row, sums: Any, weights: Matrix) -> None:
    """Scores of a tile become weights; what was summed before shrinks where a score is larger."""
    lanes = np.empty(_LANES, np.float32)
    for row in range(total.size):
        top = max(largest[row], largest_of(scores[row, :keys], lanes))
        shrink = exp_single(largest[row] - top)
        for piece in range(sums.shape[0]):
            _shrink(sums[piece, row], shrink)
        added = exp_and_sum(scores[row, :keys], top, weights[row])
        largest[row], total[row] = top, total[row] * shrink + added


@njit(cache=True)
def _attend(queries: Matrix, turned: Any, values: Any, count: int, out: Matrix) -> None:
    """Take a band of queries against ``count`` keys, tile by tile."""
    scaled = _scaled(queries, turned.shape[1] // WIDTH)
    rows = scaled.shape[0]
    scores = np.empty((rows, WIDTH), np.float32)
    weights = np.zeros((rows, WIDTH), np.float32)  # where keys have ended, the values are zeros
    sums = np.zeros((values.shape[1], rows, WIDTH), np.float32)
    largest, total = np.full(rows, _NOTHING), np.zeros(rows, np.float32)
    for tile in range(turned.shape[0]):
        scores[:] = _ZERO
        add_product(scaled, turned[tile], scores)
        _weigh(scores, min(WIDTH, count - tile * WIDTH), largest, total, sums, weights)
        for piece in range(sums.shape[0]):
            add_product(weights, values[tile, piece], sums[piece])
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = sums[k // WIDTH, i, k % WIDTH] / total[i]


@njit(parallel=True, cache=True)
def attention_parallel(Q: Matrix, K: Matrix, V: Matrix, scores: Matrix, out: Matrix) -> None:
    """Take a band of queries at a time over the threads of the CPU, a tile of scores in cache."""
    turned, values = packed(K), _cut_values(V)
    for band in prange((out.shape[0] + _BAND - 1) // _BAND):
        first, end = band * _BAND, band * _BAND + _BAND
        _attend(Q[first:end], turned, values, K.shape[0], out[first:end])


@cuda.jit
def _score(Q: Matrix, K: Matrix, scale: Any, scores: Matrix) -> None:
    """Use a thread for each score: a launch of ``[n, n]`` threads or more."""
    key, query = cuda.grid(2)
    if query < scores.shape[0] and key < scores.shape[1]:
        total = _ZERO
        for k in range(Q.shape[1]):
            total += Q[query, k] * K[key, k]
        scores[query, key] = total * scale


@cuda.jit
def _average(scores: Matrix, V: Matrix, out: Matrix) -> None:
    """Use a thread for each result: a launch of ``[d, n]`` threads or more."""
    column, query = cuda.grid(2)
    if query < out.shape[0] and column < out.shape[1]:
        total = _ZERO
        for key in range(scores.shape[1]):
            total += scores[query, key] * V[key, column]
        out[query, column] = total


def attention_cuda_scores(launch: Any, Q: Any, K: Any, V: Any, scores: Any, out: Any) -> None:
    """Queue the scores, their softmax in place, and the averages: all scores go through memory.

    ``launch`` is one of a thread for each score, in two dimensions, and serves the averages too.
    """
    scale = np.float32(1 / math.sqrt(Q.shape[1]))
    threads = launch.block[0] * launch.block[1]
    _score[launch.grid, launch.block, launch.stream](Q, K, scale, scores)
    softmax_cuda_block[Q.shape[0], threads, launch.stream](scores, scores)
    across = (Q.shape[1] + launch.block[0] - 1) // launch.block[0]
    _average[(across, launch.grid[1]), launch.block, launch.stream](scores, V, out)


def make_attention_tiled(*, tile: int, d: int) -> Any:
    """Return a CUDA kernel whose scores stay in shared memory, ``tile`` x ``tile`` at a time.

    Rows have ``d`` numbers. The launch is blocks of ``[tile, tile]`` and ``cdiv(n, tile)`` of them:
    each has ``tile`` queries and goes through all keys. A thread has one score of a tile, and every
    ``tile``-th column of its query's result in registers.
    """
    columns, pitch = (d + tile - 1) // tile, d + 1  # no two rows of keys begin at one bank

    @cuda.jit
    def attention_tiled(Q: Matrix, K: Matrix, V: Matrix, scores: Matrix, out: Matrix) -> None:
        queries = cuda.shared.array((tile, d), dtype=np.float32)
        keys = cuda.shared.array((tile, pitch), dtype=np.float32)
        values = cuda.shared.array((tile, d), dtype=np.float32)
        weights = cuda.shared.array((tile, tile), dtype=np.float32)
        sums = cuda.local.array(columns, dtype=np.float32)
        x, y, n = cuda.threadIdx.x, cuda.threadIdx.y, Q.shape[0]
        query = cuda.blockIdx.x * tile + y
        scale = np.float32(1 / math.sqrt(d))
        for part in range(columns):
            sums[part] = _ZERO
        for k in range(x, d, tile):
            queries[y, k] = Q[query, k] * scale if query < n else _ZERO
        largest, total = _NOTHING, _ZERO
        for start in range(0, n, tile):
            for k in range(x, d, tile):
                keys[y, k] = K[start + y, k] if start + y < n else _ZERO
                values[y, k] = V[start + y, k] if start + y < n else _ZERO
            cuda.syncthreads()
            score = _NOTHING
            if start + x < n:
                score = _ZERO
                for k in range(d):
                    score += queries[y, k] * keys[x, k]
            weights[y, x] = score
            cuda.syncthreads()
            top = largest
            for key in range(tile):
                top = weights[y, key] if weights[y, key] > top else top
            cuda.syncthreads()
            weights[y, x] = math.exp(score - top)
            cuda.syncthreads()
            shrink = math.exp(largest - top)
            largest, total = top, total * shrink
            for key in range(tile):
                total += weights[y, key]
            for part in range(columns):
                if part * tile + x < d:
                    sums[part] *= shrink
                    for key in range(tile):
                        sums[part] += weights[y, key] * values[key, part * tile + x]
            cuda.syncthreads()
        for part in range(columns):
            if query < n and part * tile + x < d:
                out[query, part * tile + x] = sums[part] / total

    return attention_tiled
