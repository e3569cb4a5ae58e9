"""Pairs of a kernel that costs more than it must and one that does not, by the rule of the hint.

Half of them are retyped from public sources, which each pair names. Imported only in a process that
runs on softcuda.
"""

# mypy: ignore-errors

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, float32, float64, int32, uint32

N = 1024
SIDE = 64

SPREAD = "global_load_sectors"
WRITTEN = "global_store_sectors"
CONFLICTS = "shared_load_wavefronts"


@dataclass(frozen=True)
class Pair:
    """Two kernels that do one thing."""

    name: str
    rule: str
    source: str
    """Where the kernels are from; ``own`` otherwise."""
    falls: str
    """The count that the change makes smaller."""
    bad: Callable[[], None]
    good: Callable[[], None]


def floats(*shape: int, dtype: Any = np.float32) -> Callable[[], Any]:
    return lambda: cuda.to_device(np.ones(shape, dtype))


def places(count: int) -> Callable[[], Any]:
    return lambda: cuda.to_device(np.arange(count))  # int64


def ints(*shape: int) -> Callable[[], Any]:
    return lambda: cuda.to_device(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))


# ---- coalescing ---------------------------------------------------------------------------------


@cuda.jit
def copy_by_columns(out, a):
    x, y = cuda.grid(2)
    if x < a.shape[0] and y < a.shape[1]:
        out[x, y] = a[x, y]


@cuda.jit
def copy_by_rows(out, a):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[y, x] = a[y, x]


@cuda.jit
def copy_with_stride(out, a, stride):
    i = cuda.grid(1) * stride
    out[i] = a[i] + float32(1)


@cuda.jit
def move_records(out, a):
    i = cuda.grid(1)
    out[i] = a[i, 0] * a[i, 0] + a[i, 1] * a[i, 1] + a[i, 2] * a[i, 2]


@cuda.jit
def move_fields(out, a):
    i = cuda.grid(1)
    out[i] = a[0, i] * a[0, i] + a[1, i] * a[1, i] + a[2, i] * a[2, i]


@cuda.jit
def sum_row_of_each_thread(out, a):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[i, k]
    out[i] = total


@cuda.jit
def sum_column_of_each_thread(out, a):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(a.shape[0]):
        total += a[k, i]
    out[i] = total


@cuda.jit
def add_with_rows_of_four(out, a):
    x, y = cuda.grid(2)
    out[y, x] = a[y, x] + float32(1)


@cuda.jit
def gather(out, a, where):
    i = cuda.grid(1)
    out[i] = a[where[i]]


@cuda.jit
def transpose_naive(out, a):
    x, y = cuda.grid(2)
    out[x, y] = a[y, x]


def transpose_through(columns):
    """Return a transpose through a tile of shared memory, in rows of this length."""

    @cuda.jit
    def transpose(out, a):
        tile = cuda.shared.array((32, columns), float32)
        x, y = cuda.grid(2)
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
        cuda.syncthreads()
        x = cuda.blockIdx.y * 32 + cuda.threadIdx.x
        y = cuda.blockIdx.x * 32 + cuda.threadIdx.y
        out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]

    return transpose


@cuda.jit
def split_in_chunks(out, a, chunk):
    first = cuda.grid(1) * chunk
    for k in range(chunk):
        out[first + k] = a[first + k] * float32(2)


@cuda.jit
def split_by_grid_stride(out, a):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        out[i] = a[i] * float32(2)


@cuda.jit(device=True)
def mandel(real, imaginary, most):
    z_real, z_imaginary, count = float32(0), float32(0), 0
    while count < most and z_real * z_real + z_imaginary * z_imaginary < float32(4):
        z_real, z_imaginary = (
            z_real * z_real - z_imaginary * z_imaginary + real,
            float32(2) * z_real * z_imaginary + imaginary,
        )
        count += 1
    return count


@cuda.jit
def mandel_by_columns(image, most):
    x, y = cuda.grid(2)
    height, width = image.shape
    if y < width and x < height:
        image[x, y] = mandel(float32(y) / float32(width), float32(x) / float32(height), most)


@cuda.jit
def mandel_by_rows(image, most):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        image[y, x] = mandel(float32(x) / float32(width), float32(y) / float32(height), most)


# ---- bank conflicts -----------------------------------------------------------------------------


@cuda.jit
def reduce_interleaved(out, a):
    part = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    part[i] = a[cuda.grid(1)]
    cuda.syncthreads()
    s = 1
    while s < cuda.blockDim.x:
        at = 2 * s * i
        if at < cuda.blockDim.x:
            part[at] += part[at + s]
        cuda.syncthreads()
        s *= 2
    if i == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit(device=True)
def add_up(part, i):
    s = cuda.blockDim.x // 2
    while s > 0:
        if i < s:
            part[i] += part[i + s]
        cuda.syncthreads()
        s //= 2


def sums_of_blocks(threads):
    @cuda.jit
    def reduce_sequential(out, a):
        part = cuda.shared.array(threads, float32)
        i = cuda.threadIdx.x
        part[i] = a[cuda.grid(1)]
        cuda.syncthreads()
        add_up(part, i)
        if i == 0:
            out[cuda.blockIdx.x] = part[0]

    return reduce_sequential


def rows_of_shared(columns):
    """Return sums of rows in shared memory, each of this length."""

    @cuda.jit
    def sum_rows(out, a):
        part = cuda.shared.array((32, columns), float32)
        i = cuda.threadIdx.x
        for k in range(32):
            part[k, i] = a[k, i]
        cuda.syncwarp()
        total = float32(0)
        for k in range(32):
            total += part[i, k]
        out[i] = total

    return sum_rows


def doubles_of_shared(columns):
    """Return a transpose of float64 in shared memory, in rows of this length."""

    @cuda.jit
    def transpose(out, a):
        part = cuda.shared.array((16, columns), float64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        part[y, x] = a[y, x]
        cuda.syncthreads()
        out[y, x] = part[x, y]

    return transpose


@cuda.jit
def strided_shared(out, a):
    part = cuda.shared.array(1024, float32)
    i = cuda.threadIdx.x
    for k in range(8):
        part[i * 8 + k] = a[i + 128 * k]
    cuda.syncthreads()
    out[i] = part[i * 8] + part[i * 8 + 1]


@cuda.jit
def sequential_shared(out, a):
    part = cuda.shared.array(1024, float32)
    i = cuda.threadIdx.x
    for k in range(8):
        part[i + 128 * k] = a[i + 128 * k]
    cuda.syncthreads()
    out[i] = part[i] + part[i + 128]


@cuda.jit
def histogram_of_each_thread(out, a):
    bins = cuda.shared.array((32, 64), int32)
    i = cuda.threadIdx.x
    for k in range(64):
        bins[i, k] = 0
    for k in range(64):
        bins[i, k] += a[i + 32 * k]
    cuda.syncwarp()
    out[i] = bins[i, 5]


@cuda.jit
def histogram_by_bins(out, a):
    bins = cuda.shared.array((64, 32), int32)
    i = cuda.threadIdx.x
    for k in range(64):
        bins[k, i] = 0
    for k in range(64):
        bins[k, i] += a[i + 32 * k]
    cuda.syncwarp()
    out[i] = bins[5, i]


# ---- float64 by accident ------------------------------------------------------------------------


@cuda.jit
def scale_by_literal(out, a):
    i = cuda.grid(1)
    out[i] = 2.5 * a[i] + 1.0


@cuda.jit
def scale_by_float32(out, a):
    i = cuda.grid(1)
    out[i] = float32(2.5) * a[i] + float32(1.0)


@cuda.jit
def take_by_literal(out, a, where):
    i = cuda.grid(1)
    out[i] = 2.5 * a[where[i]] + 1.0


@cuda.jit
def take_by_float32(out, a, where):
    i = cuda.grid(1)
    out[i] = float32(2.5) * a[where[i]] + float32(1.0)


@cuda.jit
def saxpy(out, a, factor):
    i = cuda.grid(1)
    out[i] = factor * a[i] + out[i]


@cuda.jit
def mean_of_three_by_integer(out, a):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) * (i / 3)


@cuda.jit
def mean_of_three_by_float32(out, a):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) * (float32(i) / float32(3))


@cuda.jit
def sum_from_zero(out, a):
    i = cuda.grid(1)
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k, i]
    out[i] = total


@cuda.jit
def laplace_of_literals(out, a):
    x, y = cuda.grid(2)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        cross = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
        out[y, x] = 0.2 * (a[y, x] + cross)


@cuda.jit
def laplace_of_float32(out, a):
    x, y = cuda.grid(2)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        cross = a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1]
        out[y, x] = float32(0.2) * (a[y, x] + cross)


@cuda.jit
def sobel_of_float32(out, a):
    x, y = cuda.grid(2)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        left = a[y - 1, x - 1] + float32(2) * a[y, x - 1] + a[y + 1, x - 1]
        right = a[y - 1, x + 1] + float32(2) * a[y, x + 1] + a[y + 1, x + 1]
        out[y, x] = right - left


@cuda.jit
def sobel_of_integers(out, a):
    x, y = cuda.grid(2)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        left = a[y - 1, x - 1] + 2 * a[y, x - 1] + a[y + 1, x - 1]
        right = a[y - 1, x + 1] + 2 * a[y, x + 1] + a[y + 1, x + 1]
        out[y, x] = right - left


# ---- reuse --------------------------------------------------------------------------------------


@cuda.jit
def matmul(c, a, b):
    x, y = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[y, k] * b[k, x]
    c[y, x] = total


@cuda.jit
def matmul_tiled(c, a, b):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for i in range(a.shape[1] // 16):
        left[ty, tx] = a[y, tx + i * 16]
        right[ty, tx] = b[ty + i * 16, x]
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    c[y, x] = total


@cuda.jit
def convolve(out, a, weights):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(weights.size):
        total += a[i + k] * weights[k]
    out[i] = total


@cuda.jit
def convolve_in_shared(out, a, weights):
    part = cuda.shared.array(256 + 64, float32)
    of_weights = cuda.shared.array(64, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t] = a[i]
    if t < 64:
        part[t + 256] = a[i + 256]
        of_weights[t] = weights[t]
    cuda.syncthreads()
    total = float32(0)
    for k in range(64):
        total += part[t + k] * of_weights[k]
    out[i] = total


@cuda.jit
def bodies(out, a):
    i = cuda.grid(1)
    mine, total = a[i], float32(0)
    for k in range(a.size):
        total += a[k] - mine
    out[i] = total


@cuda.jit
def bodies_tiled(out, a):
    part = cuda.shared.array(128, float32)
    i = cuda.grid(1)
    mine, total = a[i], float32(0)
    for first in range(0, a.size, 128):
        part[cuda.threadIdx.x] = a[first + cuda.threadIdx.x]
        cuda.syncthreads()
        for k in range(128):
            total += part[k] - mine
        cuda.syncthreads()
    out[i] = total


# ---- written again, atomics, local memory -------------------------------------------------------


@cuda.jit
def add_in_memory(out, a):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        out[i] += a[k, i]


@cuda.jit
def moving_average_in_memory(out, a):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        out[i] = out[i] * float32(0.5) + a[k, i]


@cuda.jit
def moving_average(out, a):
    i = cuda.grid(1)
    average = out[i]
    for k in range(a.shape[0]):
        average = average * float32(0.5) + a[k, i]
    out[i] = average


@cuda.jit
def add_all_to_one(out, a):
    cuda.atomic.add(out, 0, a[cuda.grid(1)])


@cuda.jit
def add_blocks_to_one(out, a):
    part = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    part[i] = a[cuda.grid(1)]
    cuda.syncthreads()
    add_up(part, i)
    if i == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def count_in_few_bins(out, a):
    i = cuda.grid(1)
    cuda.atomic.add(out, a[i] % 4, 1)


@cuda.jit
def count_in_few_bins_by_ballot(out, a):
    i = cuda.grid(1)
    mine = a[i] % 4
    for which in range(4):
        lanes = cuda.ballot_sync(0xFFFFFFFF, mine == which)
        if cuda.laneid == which:
            cuda.atomic.add(out, which, cuda.popc(lanes))


@cuda.jit
def inside_by_atomic(out, a):
    i = cuda.grid(1)
    if a[i] * a[i] < float32(2):
        cuda.atomic.add(out, 0, float32(1))


@cuda.jit
def inside_by_vote(out, a):
    i = cuda.grid(1)
    lanes = cuda.ballot_sync(0xFFFFFFFF, a[i] * a[i] < float32(2))
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, float32(cuda.popc(lanes)))


@cuda.jit
def bins_of_a_thread(out, a):
    bins = cuda.local.array(16, int32)
    i = cuda.grid(1)
    for k in range(16):
        bins[k] = 0
    for k in range(a.shape[0]):
        bins[a[k, i] % 16] += 1
    out[i] = bins[a[0, i] % 16]


@cuda.jit
def bins_in_shared(out, a):
    bins = cuda.shared.array((16, 64), int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    for k in range(16):
        bins[k, t] = 0
    for k in range(a.shape[0]):
        bins[a[k, i] % 16, t] += 1
    out[i] = bins[a[0, i] % 16, t]


@cuda.jit
def window_by_remainder(out, a):
    window = cuda.local.array(4, float32)
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        window[k % 4] = a[k, i]
        out[i] = window[(k + 1) % 4]


@cuda.jit
def window_in_variables(out, a):
    i = cuda.grid(1)
    p, q, r = float32(0), float32(0), float32(0)
    last = float32(0)
    for k in range(a.shape[0]):
        last = p
        p, q, r = q, r, a[k, i]
    out[i] = last


# ---- signed indices, divergence -----------------------------------------------------------------


@cuda.jit
def signed_stencil(out, a, by):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(8):
        total += a[i + k * by]
    out[i] = total


@cuda.jit
def unsigned_stencil(out, a, by):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(8):
        total += a[uint32(i + k * by)]
    out[uint32(i)] = total


@cuda.jit
def array_sum(data, out):
    i = cuda.threadIdx.x
    size = len(data)
    if i < size:
        shared = cuda.shared.array(N, int32)
        shared[i] = data[i]
        cuda.syncthreads()
        s = 1
        while s < cuda.blockDim.x:
            if i % (2 * s) == 0:
                shared[i] += shared[i + s]
            s *= 2
            cuda.syncthreads()
        if i == 0:
            out[0] = shared[i]


@cuda.jit
def array_sum_by_shuffles(data, out):
    i = cuda.threadIdx.x
    total = data[i]
    for s in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, s)
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, total)


def collatz_by(threads):
    """Return a kernel in which this number of neighbours takes the same way."""

    @cuda.jit
    def collatz(out, a):
        i = cuda.grid(1)
        total = a[i]
        if i // threads % 2:
            for k in range(a[0] + 40):
                total = total * 3 + k
        else:
            for k in range(a[0] + 40):
                total = total * 5 - k
        out[i] = total

    return collatz


def lengths_by(threads):
    """Return a kernel in which this number of neighbours has the same to do."""

    @cuda.jit
    def work(out, a):
        i = cuda.grid(1)
        total = int32(0)
        for k in range(i // threads % 32 * 4):
            total += k * a[i]
        out[i] = total

    return work


# ---- kernels that do not do what a hint of a rule says ------------------------------------------


@cuda.jit
def copy_by_few_threads(out, a):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a[i]


@cuda.jit
def double_what_is_there(out, a, size):
    i = cuda.grid(1)
    if i < size:
        out[i] = a[i] * a[i] + a[i]


@cuda.jit
def rows_of_two_in_a_warp(out, a):
    """Have each row of threads read one place, and then its neighbours: ptxas joins these loads."""
    tile = cuda.shared.array((16, 64), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    for k in range(x, 64, 16):
        tile[y, k] = a[y, k]
    cuda.syncthreads()
    total = float32(0)
    for k in range(64):
        total += tile[y, k]
    out[y, x] = total


# ---- the pairs ----------------------------------------------------------------------------------

BEST_PRACTICES = "NVIDIA, CUDA C++ Best Practices Guide"
TRANSPOSE = "NVIDIA blog, An Efficient Matrix Transpose in CUDA C/C++"
REDUCTION = "Mark Harris, Optimizing Parallel Reduction in CUDA"
EXAMPLES = "Numba for CUDA, Examples"
PUZZLES = "Sasha Rush, GPU Puzzles"


def launch(kernel: Any, shape: tuple[Any, Any], *arguments: Any) -> Callable[[], None]:
    """Return a function that launches a kernel on arguments of its own."""

    def run() -> None:
        kernel[shape](*(one() if callable(one) else one for one in arguments))

    return run


square = floats(SIDE, SIDE)
doubles = floats(16, 16, dtype=np.float64)
line = floats(8 * N + 256)
column_lanes = floats(SIDE, N)


def shuffled() -> Any:
    return cuda.to_device(np.random.default_rng(0).permutation(N).astype(np.int32))


GRID, BLOCKS = ((2, 2), (32, 32)), (4, 256)
PAIRS: tuple[Pair, ...] = (
    Pair("copy", "coalescing", "own", SPREAD,
         launch(copy_by_columns, GRID, square, square),
         launch(copy_by_rows, GRID, square, square)),
    Pair("copy of 16", "coalescing", PUZZLES, SPREAD,
         launch(copy_by_columns, ((4, 4), (16, 16)), square, square),
         launch(copy_by_rows, ((4, 4), (16, 16)), square, square)),
    Pair("stride", "coalescing", BEST_PRACTICES, SPREAD,
         launch(copy_with_stride, BLOCKS, line, line, 8),
         launch(copy_with_stride, BLOCKS, line, line, 1)),
    Pair("stride of 2", "coalescing", BEST_PRACTICES, SPREAD,
         launch(copy_with_stride, BLOCKS, line, line, 2),
         launch(copy_with_stride, BLOCKS, line, line, 1)),
    Pair("records", "coalescing", "own", SPREAD,
         launch(move_records, BLOCKS, line, floats(N, 3)),
         launch(move_fields, BLOCKS, line, floats(3, N))),
    Pair("row a thread", "coalescing", PUZZLES, SPREAD,
         launch(sum_row_of_each_thread, BLOCKS, line, floats(N, SIDE)),
         launch(sum_column_of_each_thread, BLOCKS, line, column_lanes)),
    Pair("rows of four", "coalescing", "own", SPREAD,
         launch(add_with_rows_of_four, ((16, 1), (4, 64)), square, square),
         launch(add_with_rows_of_four, ((2, 8), (32, 8)), square, square)),
    Pair("gather", "coalescing", "own", SPREAD,
         launch(gather, BLOCKS, line, line, shuffled), launch(gather, BLOCKS, line, line, ints(N))),
    Pair("transpose", "coalescing", TRANSPOSE, WRITTEN,
         launch(transpose_naive, GRID, square, square),
         launch(transpose_through(33), GRID, square, square)),
    Pair("chunks", "coalescing", "own", SPREAD,
         launch(split_in_chunks, (1, 256), line, line, 16),
         launch(split_by_grid_stride, (1, 256), line, line)),
    Pair("mandel", "coalescing", EXAMPLES, WRITTEN,
         launch(mandel_by_columns, GRID, ints(SIDE, SIDE), 4),
         launch(mandel_by_rows, GRID, ints(SIDE, SIDE), 4)),
    Pair("transpose in shared", "bank conflicts", TRANSPOSE, CONFLICTS,
         launch(transpose_through(32), GRID, square, square),
         launch(transpose_through(33), GRID, square, square)),
    Pair("reduction", "bank conflicts", REDUCTION, CONFLICTS,
         launch(reduce_interleaved, BLOCKS, line, line),
         launch(sums_of_blocks(256), BLOCKS, line, line)),
    Pair("rows of shared", "bank conflicts", "own", CONFLICTS,
         launch(rows_of_shared(32), (1, 32), line, square),
         launch(rows_of_shared(33), (1, 32), line, square)),
    Pair("doubles", "bank conflicts", "own", CONFLICTS,
         launch(doubles_of_shared(16), (1, (16, 16)), doubles, doubles),
         launch(doubles_of_shared(17), (1, (16, 16)), doubles, doubles)),
    Pair("strided shared", "bank conflicts", BEST_PRACTICES, CONFLICTS,
         launch(strided_shared, (1, 128), line, line),
         launch(sequential_shared, (1, 128), line, line)),
    Pair("histogram of a thread", "bank conflicts", "own", CONFLICTS,
         launch(histogram_of_each_thread, (1, 32), ints(N), ints(4 * N)),
         launch(histogram_by_bins, (1, 32), ints(N), ints(4 * N))),
    Pair("literal", "float64", "own", "flops_float64",
         launch(scale_by_literal, BLOCKS, line, line),
         launch(scale_by_float32, BLOCKS, line, line)),
    Pair("literal beside int64", "float64", "own", "flops_float64",
         launch(take_by_literal, BLOCKS, line, line, places(N)),
         launch(take_by_float32, BLOCKS, line, line, places(N))),
    Pair("saxpy", "float64", "NVIDIA blog, An Easy Introduction to CUDA C and C++",
         "flops_float64",
         launch(saxpy, BLOCKS, line, line, 2.0),
         launch(saxpy, BLOCKS, line, line, np.float32(2))),
    Pair("integer", "float64", "own", "float64_from_integer",
         launch(mean_of_three_by_integer, BLOCKS, line, line),
         launch(mean_of_three_by_float32, BLOCKS, line, line)),
    Pair("sum", "float64", PUZZLES, "flops_float64",
         launch(sum_from_zero, BLOCKS, line, column_lanes),
         launch(sum_column_of_each_thread, BLOCKS, line, column_lanes)),
    Pair("laplace", "float64", EXAMPLES, "flops_float64",
         launch(laplace_of_literals, GRID, square, square),
         launch(laplace_of_float32, GRID, square, square)),
    Pair("sobel", "float64", "public code: Sobel filters in Numba", "flops_float64",
         launch(sobel_of_integers, GRID, square, square),
         launch(sobel_of_float32, GRID, square, square)),
    Pair("matmul", "reuse", EXAMPLES, SPREAD,
         launch(matmul, ((4, 4), (16, 16)), square, square, square),
         launch(matmul_tiled, ((4, 4), (16, 16)), square, square, square)),
    Pair("convolution", "reuse", PUZZLES, SPREAD,
         launch(convolve, BLOCKS, line, line, floats(64)),
         launch(convolve_in_shared, BLOCKS, line, line, floats(64))),
    Pair("bodies", "reuse", "NVIDIA, GPU Gems 3, Fast N-Body Simulation with CUDA", SPREAD,
         launch(bodies, (8, 128), line, floats(N)),
         launch(bodies_tiled, (8, 128), line, floats(N))),
    Pair("sum in memory", "written again", "own", WRITTEN,
         launch(add_in_memory, BLOCKS, line, column_lanes),
         launch(sum_column_of_each_thread, BLOCKS, line, column_lanes)),
    Pair("average in memory", "written again", "own", WRITTEN,
         launch(moving_average_in_memory, BLOCKS, line, column_lanes),
         launch(moving_average, BLOCKS, line, column_lanes)),
    Pair("sum by atomics", "atomics", REDUCTION, "global_atomic_same_address",
         launch(add_all_to_one, BLOCKS, floats(1), line),
         launch(add_blocks_to_one, BLOCKS, floats(1), line)),
    Pair("few bins", "atomics", "NVIDIA blog, Fast Histograms Using Shared Atomics on Maxwell",
         "global_atomic_same_address",
         launch(count_in_few_bins, BLOCKS, ints(4), ints(N)),
         launch(count_in_few_bins_by_ballot, BLOCKS, ints(4), ints(N))),
    Pair("votes", "atomics",
         "NVIDIA blog, Optimized Filtering with Warp-Aggregated Atomics",
         "global_atomic_same_address",
         launch(inside_by_atomic, BLOCKS, floats(1), line),
         launch(inside_by_vote, BLOCKS, floats(1), line)),
    Pair("bins of a thread", "local memory", "own", "local_load_requests",
         launch(bins_of_a_thread, (16, 64), ints(N), ints(16, N)),
         launch(bins_in_shared, (16, 64), ints(N), ints(16, N))),
    Pair("window", "local memory", "own", "local_load_requests",
         launch(window_by_remainder, BLOCKS, line, column_lanes),
         launch(window_in_variables, BLOCKS, line, column_lanes)),
    Pair("stencil", "signed indices", "own", "index_wraps",
         launch(signed_stencil, BLOCKS, line, line, 3),
         launch(unsigned_stencil, BLOCKS, line, line, 3)),
    Pair("array_sum", "divergence", EXAMPLES, "divergent_branches",
         launch(array_sum, (1, N), ints(N), ints(1)),
         launch(array_sum_by_shuffles, (1, N), ints(N), ints(1))),
    Pair("parity", "divergence", BEST_PRACTICES, "divergent_branches",
         launch(collatz_by(1), BLOCKS, ints(N), ints(N)),
         launch(collatz_by(32), BLOCKS, ints(N), ints(N))),
    Pair("lengths", "divergence", "own", "divergent_branches",
         launch(lengths_by(1), BLOCKS, ints(N), ints(N)),
         launch(lengths_by(32), BLOCKS, ints(N), ints(N))),
)  # fmt: skip

SILENT = (
    ("block sums", "written again", launch(sums_of_blocks(32), (64, 32), line, line)),
    ("two threads a block", "written again", launch(copy_by_few_threads, (3, 2), line, line)),
    ("two threads a block", "reuse", launch(copy_by_few_threads, (3, 2), line, line)),
    ("joined loads", "bank conflicts",
     launch(rows_of_two_in_a_warp, (1, (16, 16)), square, square)),
    ("fewer elements", "divergence", launch(double_what_is_there, (1, 64), line, line, 10)),
)  # fmt: skip
"""Kernels that a rule leaves alone: name, rule, kernel."""
