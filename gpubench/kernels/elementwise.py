"""Element by element: kernels that do almost no arithmetic and are bound by memory bandwidth.

Every form works on one-dimensional arrays of one dtype. The CUDA forms stride over the grid, so
that any launch computes the whole array; threads beyond its end do nothing. Their index is
unsigned: a signed one costs a test for negative indices at every access, and lets the compiler
unroll the loop, for which it divides 64-bit numbers before the first element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""


def vector_add_numpy(a: Vector, b: Vector, n: int) -> None:
    """``b += a`` in place, without a temporary; ``n`` is the length of both arrays."""
    np.add(b, a, out=b)


@njit(cache=True)
def vector_add_serial(a: Vector, b: Vector, n: int) -> None:
    """``b[i] += a[i]`` for every ``i < n``, on one thread."""
    for i in range(n):
        b[i] += a[i]


@njit(parallel=True, cache=True)
def vector_add_parallel(a: Vector, b: Vector, n: int) -> None:
    """``b[i] += a[i]`` for every ``i < n``, over the threads of the CPU."""
    for i in prange(n):
        b[i] += a[i]


@cuda.jit
def vector_add_cuda(a: Vector, b: Vector, n: int) -> None:
    """``b[i] += a[i]`` for every ``i < n``; any one-dimensional launch is right."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(n)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        b[i] += a[i]
        i += stride


def increment_by_one_numpy(a: Vector) -> None:
    """Compute ``a += 1`` in place, without a temporary."""
    np.add(a, 1, out=a)


@njit(parallel=True, cache=True)
def increment_by_one_parallel(a: Vector) -> None:
    """``a[i] += 1`` over the threads of the CPU."""
    one = a.dtype.type(1)
    for i in prange(a.size):
        a[i] += one


@cuda.jit
def increment_by_one_cuda(a: Vector) -> None:
    """``a[i] += 1``; any one-dimensional launch is right."""
    # A plain 1 is an int64 to Numba, and float32 + int64 is a float64 addition.
    one = a.dtype.type(1)
    i, size = np.uint64(cuda.grid(1)), np.uint64(a.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        a[i] += one
        i += stride


def multiply_numpy(a: Vector, b: Vector, c: Vector) -> None:
    """``c = a * b`` into an array that exists already."""
    np.multiply(a, b, out=c)


@njit(parallel=True, cache=True)
def multiply_parallel(a: Vector, b: Vector, c: Vector) -> None:
    """``c[i] = a[i] * b[i]`` over the threads of the CPU."""
    for i in prange(c.size):
        c[i] = a[i] * b[i]


@cuda.jit
def multiply_cuda(a: Vector, b: Vector, c: Vector) -> None:
    """``c[i] = a[i] * b[i]``; any one-dimensional launch is right."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(c.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        c[i] = a[i] * b[i]
        i += stride
