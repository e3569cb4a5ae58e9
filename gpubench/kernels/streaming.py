"""Streams of numbers: what memory bandwidth is, and what a bad order of access makes of it.

The kernels of McCalpin's STREAM ("Memory bandwidth and machine balance in current high performance
computers", 1995), ``nstream`` of the Parallel Research Kernels (Van der Wijngaart and Mattson,
2014) and ``saxpy`` of the BLAS (Lawson et al., 1979). Arrays have one dimension and one dtype. The
CUDA forms stride over the grid, so that any launch computes the whole array; why their index is
unsigned is said in ``elementwise``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""


def copy_numpy(a: Vector, b: Vector) -> None:
    """``b = a`` into an array that exists already."""
    np.copyto(b, a)


@njit(parallel=True, cache=True)
def copy_parallel(a: Vector, b: Vector) -> None:
    """``b[i] = a[i]`` over the threads of the CPU."""
    for i in prange(b.size):
        b[i] = a[i]


@cuda.jit
def copy_cuda(a: Vector, b: Vector) -> None:
    """``b[i] = a[i]``; any one-dimensional launch is right."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(b.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        b[i] = a[i]
        i += stride


def copy_cuda_wide(launch: Any, a: Vector, b: Vector) -> None:
    """Queue a copy by words of 8 bytes, two numbers of float32 in each; what is left over of an odd
    number of them goes alone.

    A view as complex128 would not load 16 bytes at once: the compiler loads its two halves one
    after the other, each with every second 8 bytes of the sectors that it asks for.
    """
    size = b.dtype.itemsize
    whole = b.size - b.size * size % 8 // size
    if whole:
        words = (array[:whole].view(np.int64) for array in (a, b))
        copy_cuda[launch.grid, launch.block, launch.stream](*words)
    if whole < b.size:
        copy_cuda[1, 1, launch.stream](a[whole:], b[whole:])


def saxpy_numpy(x: Vector, y: Vector, scratch: Vector, alpha: Any) -> None:
    """``y += alpha * x`` in two passes, the product in an array that exists already."""
    np.multiply(x, alpha, out=scratch)
    np.add(y, scratch, out=y)


@njit(parallel=True, cache=True)
def saxpy_parallel(x: Vector, y: Vector, scratch: Vector, alpha: Any) -> None:
    """``y[i] += alpha * x[i]`` in one pass; ``scratch`` is NumPy's."""
    for i in prange(y.size):
        y[i] += alpha * x[i]


@cuda.jit
def saxpy_cuda(x: Vector, y: Vector, scratch: Vector, alpha: Any) -> None:
    """``y[i] += alpha * x[i]``; any one-dimensional launch is right; ``scratch`` is NumPy's."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(y.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        y[i] += alpha * x[i]
        i += stride


def triad_numpy(a: Vector, b: Vector, c: Vector, s: Any) -> None:
    """Compute ``a = b + s * c`` in two passes, the product in ``a`` itself."""
    np.multiply(c, s, out=a)
    np.add(a, b, out=a)


@njit(parallel=True, cache=True)
def triad_parallel(a: Vector, b: Vector, c: Vector, s: Any) -> None:
    """``a[i] = b[i] + s * c[i]`` over the threads of the CPU."""
    for i in prange(a.size):
        a[i] = b[i] + s * c[i]


@cuda.jit
def triad_cuda(a: Vector, b: Vector, c: Vector, s: Any) -> None:
    """``a[i] = b[i] + s * c[i]``; any one-dimensional launch is right."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(a.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        a[i] = b[i] + s * c[i]
        i += stride


def nstream_numpy(a: Vector, b: Vector, c: Vector, scratch: Vector, s: Any) -> None:
    """Compute ``a += b + s * c`` in three passes, the product in an array that exists already."""
    np.multiply(c, s, out=scratch)
    np.add(scratch, b, out=scratch)
    np.add(a, scratch, out=a)


@njit(parallel=True, cache=True)
def nstream_parallel(a: Vector, b: Vector, c: Vector, scratch: Vector, s: Any) -> None:
    """``a[i] += b[i] + s * c[i]`` in one pass; ``scratch`` is NumPy's."""
    for i in prange(a.size):
        a[i] += b[i] + s * c[i]


@cuda.jit
def nstream_cuda(a: Vector, b: Vector, c: Vector, scratch: Vector, s: Any) -> None:
    """``a[i] += b[i] + s * c[i]``; any one-dimensional launch is right; ``scratch`` is NumPy's."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(a.size)
    stride = np.uint64(cuda.gridsize(1))
    while i < size:
        a[i] += b[i] + s * c[i]
        i += stride


def strided_copy_numpy(a: Vector, b: Vector, stride: int) -> None:
    """``b = a[::stride]``: every ``stride``-th element of ``a`` (shape ``[n * stride]``)."""
    np.copyto(b, a[::stride])


@njit(parallel=True, cache=True)
def strided_copy_parallel(a: Vector, b: Vector, stride: int) -> None:
    """``b[i] = a[i * stride]`` over the threads of the CPU."""
    apart = a[::stride]  # a view: an index that is computed would be tested for being negative
    for i in prange(b.size):
        b[i] = apart[i]


@cuda.jit
def strided_copy_cuda(a: Vector, b: Vector, stride: int) -> None:
    """``b[i] = a[i * stride]``: neighbouring threads read elements that lie apart."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(b.size)
    step, apart = np.uint64(cuda.gridsize(1)), np.uint64(stride)
    while i < size:
        b[i] = a[i * apart]
        i += step


def misaligned_copy_numpy(a: Vector, b: Vector, offset: int) -> None:
    """``b = a[offset:]`` for ``a`` of shape ``[n + offset]``."""
    np.copyto(b, a[offset:])


@njit(parallel=True, cache=True)
def misaligned_copy_parallel(a: Vector, b: Vector, offset: int) -> None:
    """``b[i] = a[i + offset]`` over the threads of the CPU."""
    ahead = a[offset:]
    for i in prange(b.size):
        b[i] = ahead[i]


@cuda.jit
def misaligned_copy_cuda(a: Vector, b: Vector, offset: int) -> None:
    """``b[i] = a[i + offset]``: a warp reads neighbours that straddle two pieces of memory."""
    i, size = np.uint64(cuda.grid(1)), np.uint64(b.size)
    stride, ahead = np.uint64(cuda.gridsize(1)), np.uint64(offset)
    while i < size:
        b[i] = a[i + ahead]
        i += stride
