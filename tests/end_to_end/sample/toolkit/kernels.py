"""Two operations, as NumPy, compiled for the CPU and, for one of them, as a CUDA kernel."""

import numpy as np
from numba import cuda, njit


def vector_add_numpy(a, b, n):
    np.add(b, a, out=b)


@njit
def vector_add_numba(a, b, n):
    for i in range(n):
        b[i] += a[i]


@cuda.jit
def vector_add_cuda(a, b, n):
    i = cuda.grid(1)
    if i < n:
        b[i] += a[i]


def increment_numpy(a):
    np.add(a, 1, out=a)


@njit
def increment_numba(a):
    for i in range(a.size):
        a[i] += 1
