"""Kernels whose lines and misses theory gives, and a program that counts them: JSON, by the name.

``python cache_kernels.py`` needs a process in which Numba has compiled nothing.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import math

from gpubench.counts.caches import CacheCounter

COUNTER = CacheCounter()

import numpy as np  # noqa: E402
from numba import float64, njit, prange, vectorize  # noqa: E402

N = 4096
MATRIX = 128
"""Rows and columns: 128 KiB of float64, four times L1."""


@njit
def copy(x, y):
    for i in range(x.size):
        y[i] = x[i]


@njit
def sum_twice(x):
    s = 0.0
    for _ in range(2):
        for i in range(x.size):
            s += x[i]
    return s


@njit
def sum_column(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i, 0]
    return s


@njit
def gather(x, places, y):
    for i in range(places.size):
        y[i] = x[places[i]]


@njit
def copy_positive(x, y):
    for i in range(x.size):
        if x[i] > 0:
            y[i] = x[i]


@njit
def add_and_double(x):
    t = x + 1.0
    return t * 2.0


@njit(parallel=True)
def double(x, y):
    for i in prange(x.size):
        y[i] = 2.0 * x[i]


@vectorize([float64(float64, float64)])
def multiply(a, b):
    return a * b


@njit
def roots_on_the_stack(x):
    total = 0.0
    for i in range(x.size):
        pair = (x[i], math.sqrt(x[i]))
        total += pair[i % 2]
    return total


@njit
def assign(x, y):
    y[:] = x


@njit
def multiply_matrices(a, b, c):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            c[i, j] = s


def signs():
    x = np.ones(N)
    x[: N // 2] = -1
    return x


def ordered():
    return np.arange(N * 16)


def shuffled():
    return np.random.default_rng(1).permutation(N * 16)


CASES = {
    "copy": (copy, np.ones(N), np.ones(N)),
    "copy of float32": (copy, np.ones(N, np.float32), np.ones(N, np.float32)),
    "copy of 3": (copy, np.ones(3), np.ones(3)),
    "a view from the second element": (copy, np.ones(N)[:-1], np.ones(N)[1:]),
    "every 16th": (copy, np.ones(16 * N)[::16], np.ones(N)),
    "16 KiB twice": (sum_twice, np.ones(2048)),
    "64 KiB twice": (sum_twice, np.ones(8192)),
    "2 MiB twice": (sum_twice, np.ones(1 << 18)),
    "a column": (sum_column, np.ones((300, 512))),
    "a column in Fortran order": (sum_column, np.ones((304, 512), order="F")),
    "masked": (copy_positive, signs(), np.ones(N)),
    "allocates": (add_and_double, np.ones(N)),
    "prange": (double, np.ones(N), np.ones(N)),
    "vectorize": (multiply, np.ones(N), np.ones(N)),
    "stack": (roots_on_the_stack, np.ones(N)),
    "slice": (assign, np.ones(N), np.ones(N)),
    "gather": (gather, np.ones(16 * N), ordered(), np.ones(16 * N)),
    "gather, shuffled": (gather, np.ones(16 * N), shuffled(), np.ones(16 * N)),
    "matmul": (multiply_matrices, *(np.ones((MATRIX, MATRIX)) for _ in range(3))),
}


def main() -> None:
    found = {}
    for name, (function, *arguments) in CASES.items():
        function(*arguments)  # compiles
        values = COUNTER.count(lambda f=function, a=arguments: f(*a))[1]
        found[name] = COUNTER.read(values).totals
    print(json.dumps(found))


if __name__ == "__main__":
    main()
