"""Kernels whose counts theory gives, and a program that counts them: JSON, by the kernel's name.

``python theory_kernels.py`` runs in any environment with a Numba that gpubench allows. The expected
numbers stand in ``theory_numbers.py``, which knows nothing of counters.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import math
import sys
import threading
from typing import Any

from gpubench.counts.cpu import CpuCounter
from gpubench.counts.hooks import versions

COUNTER = CpuCounter(remarks=True)

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import float64, guvectorize, int64, njit, prange, vectorize  # noqa: E402
from theory_helpers import polynomial  # noqa: E402

N = 1003
CASES: dict[str, tuple[Any, Any]] = {}
"""By name, the function and what makes its arguments."""


def case(name: str, *makers: Any) -> Any:
    """Register a function with arguments that are made before each call."""

    def register(function: Any) -> Any:
        CASES[name] = function, lambda: [make() if callable(make) else make for make in makers]
        return function

    return register


def ones(*shape: int, dtype: Any = np.float64) -> Any:
    return lambda: np.ones(shape, dtype)


def add_scaled(a, x, y):
    for i in range(x.size):
        y[i] = a * x[i] + y[i]


for word, dtype in (("float32", np.float32), ("float64", np.float64)):
    vectors = ones(N, dtype=dtype), ones(N, dtype=dtype)
    case(f"saxpy {word}", dtype(2), *vectors)(saxpy := njit(add_scaled))
case("saxpy of 1024", np.float32(2), *2 * [ones(1024, dtype=np.float32)])(saxpy)
case("saxpy of 3", np.float32(2), *2 * [ones(3, dtype=np.float32)])(saxpy)
case("saxpy with a in float64", np.float64(2), *2 * [ones(N, dtype=np.float32)])(saxpy)
case("saxpy of none", np.float64(2), ones(0), ones(0))(saxpy)
case("saxpy strided", 2.0, lambda: np.ones(2 * N)[::2], ones(N))(saxpy)


@case("saxpy on overlapping arrays")
@njit
def overlapping():
    b = np.ones(2 * N)
    add_scaled_inlined(2.0, b[:N], b[1 : N + 1])


add_scaled_inlined = njit(add_scaled)


def total(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s


case("sum", ones(N))(njit(total))
case("sum with reassoc", ones(1024))(njit(fastmath={"reassoc", "nsz"})(total))


@case("matmul ijk", *3 * [ones(33, 33)])
@njit
def matmul(a, b, c):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@case("matmul ikj", *3 * [ones(32, 32)])
@njit
def matmul_by_rows(a, b, c):
    n = a.shape[0]
    for i in range(n):
        for k in range(n):
            factor = a[i, k]
            for j in range(n):
                c[i, j] += factor * b[k, j]


@case("stencil", ones(34, 34), ones(34, 34))
@njit
def stencil(a, b):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def three_of_four_positive() -> Any:
    x = np.ones(N)
    x[::4] = -1
    return x


@case("masked store", three_of_four_positive, ones(N))
@njit
def double_positive(x, y):
    for i in range(x.size):
        if x[i] > 0:
            y[i] = x[i] * 2.0


@case("roots of some", three_of_four_positive)
@njit
def sum_of_roots(x):
    s = 0.0
    for i in range(x.size):
        if x[i] > 0:
            s += math.sqrt(x[i])
    return s


def copy_by_index(x, index, y):
    for i in range(index.size):
        y[i] = x[index[i]]


def reversed_index(dtype: Any = np.int64) -> Any:
    return lambda: np.arange(N)[::-1].astype(dtype)


case("gather", ones(N), reversed_index(), ones(N))(njit(copy_by_index))
case("gather with boundscheck", ones(N), reversed_index(), ones(N))(
    njit(boundscheck=True)(copy_by_index)
)


@case("copy", ones(N), ones(N))
@njit
def copy(x, y):
    for i in range(y.size):
        y[i] = x[i]


@case("array expression", ones(N), ones(N))
@njit
def expression(x, y):
    return (x + y) * x


@case("three temporaries", ones(N), ones(N))
@njit
def temporaries(x, y):
    t = x + y
    u = t * x
    return u + t


def invert(x, y):
    for i in range(x.size):
        y[i] = 1.0 / x[i]


case("divisions", ones(N), ones(N))(njit(invert))
case("divisions as NumPy's", ones(1024), ones(1024))(njit(error_model="numpy")(invert))


@case("integer divisions", lambda: np.arange(N), 7)
@njit
def remainders(x, m):
    s = 0
    for i in range(x.size):
        s += x[i] % m
    return s


@case("cubes", ones(N), ones(N))
@njit
def cubes(x, y):
    for i in range(x.size):
        y[i] = x[i] ** 3


@case("powers", ones(N), 3.5, ones(N))
@njit
def powers(x, p, y):
    for i in range(x.size):
        y[i] = x[i] ** p


@case("sines", ones(N), ones(N))
@njit
def sines(x, y):
    for i in range(x.size):
        y[i] = math.sin(x[i])


@case("callee in another module", ones(N), ones(N))
@njit
def polynomials(x, y):
    for i in range(x.size):
        y[i] = polynomial(x[i])


@case("recursion", 12)
@njit(int64(int64))
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@case("prange", 2.0, ones(N), ones(N))
@njit(parallel=True)
def parallel(a, x, y):
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


@case("vectorize", ones(N), ones(N))
@vectorize([float64(float64, float64)])
def multiply_and_add(a, b):
    return a * b + 1.0


@case("dynamic vectorize", ones(N, dtype=np.float32), ones(N, dtype=np.float32))
@vectorize
def subtract(a, b):
    return a - b


@case("guvectorize", ones(10, N))
@guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def row_sums(a, r):
    s = 0.0
    for i in range(a.size):
        s += a[i]
    r[0] = s


@case("cached", ones(N))
@njit(cache=True)
def cached(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i]
    return s


@njit
def doubles(x):
    for i in range(x.size):
        yield x[i] * 2.0


@case("generator", ones(N))
@njit
def sum_of_doubles(x):
    s = 0.0
    for v in doubles(x):
        s += v
    return s


@njit
def fail_at_last(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
        if i == x.size - 1:
            raise ValueError("the end")
    return s


@case("exception", ones(N))
def catching(x):
    try:
        fail_at_last(x)
    except ValueError:
        return


@njit(nogil=True)
def sum_without_gil(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s


@case("nogil threads", ones(N))
def in_threads(x):
    threads = [threading.Thread(target=sum_without_gil, args=(x,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@case("zeros", N)
@njit
def zeros(n):
    return np.zeros(n)


@case("slice", ones(N), ones(N))
@njit
def copy_slice(x, y):
    y[:] = x


@case("histogram", lambda: np.zeros(N, np.int64), lambda: np.zeros(4, np.int64))
@njit
def histogram(x, bins):
    for i in range(x.size):
        bins[x[i]] += 1


@numba.stencil
def sum_of_three(a):
    return a[-1] + a[0] + a[1]


@case("stencil by decorator", ones(N))
@njit
def sums_of_three(a):
    return sum_of_three(a)


@case("prange of calls", ones(10))
@njit(parallel=True)
def halves(r):
    for i in prange(r.size):
        r[i] = fibonacci(i) * 0.5


def count(function: Any, arguments: list[Any]) -> Any:
    return COUNTER.read(COUNTER.count(lambda: function(*arguments))[1])


def main(names: list[str]) -> None:
    """Count the kernels of these names, or all."""
    found = {}
    for name in names or CASES:
        function, make = CASES[name]
        function(*make())  # compiles
        runs = [count(function, make()) for _ in range(2)]
        reasons = [loop.reason for loop in runs[1].remarks if loop.reason]
        lines = {str(place.line): counts for place, counts in runs[1].lines.items()}
        found[name] = {
            "totals": runs[1].totals,
            "is_twice_alike": runs[0].totals == runs[1].totals,
            "reasons": reasons,
            "lines": lines,
            "called": runs[1].called,
        }
    json.dump({"made_by": versions(), "cases": found}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
