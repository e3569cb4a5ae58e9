"""Kernels for CUDA that are right, or wrong in the usual ways: ``out = 2 a``."""

import numpy as np
from numba import cuda, float32

BLOCK = 16


def double(a, out):
    np.multiply(a, 2, out=out)


@cuda.jit
def in_bounds(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


@cuda.jit
def out_of_bounds(a, out):
    i = cuda.grid(1)
    out[i * i] = 2 * a[i % a.size]


@cuda.jit
def in_wrong_place(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[cuda.threadIdx.x]


@cuda.jit
def one_thread_for_all(a, out):
    if cuda.grid(1) == 0:
        out[0] = 2 * a[0]


@cuda.jit
def without_a_barrier(a, out):
    """Right only while each thread finds what its neighbour has left already."""
    tile = cuda.shared.array(BLOCK, float32)
    i, lane = cuda.grid(1), cuda.threadIdx.x
    tile[lane] = a[i] if i < a.size else 0.0
    neighbour = tile[max(lane - 1, 0)]
    if i < a.size:
        out[i] = 2 * a[i] + 0 * neighbour


@cuda.jit
def last_to_come(a, out):
    """Every thread writes each element: who comes last decides."""
    i = cuda.grid(1)
    for j in range(a.size):
        out[j] = 2 * a[j] + (i + 1 if i < a.size else 0)


@cuda.jit
def never_ending(a, out):
    while a[0] == a[0]:
        out[0] = a[0]
