"""Kernels that tell on how many threads they run."""

import numba
import numpy as np
from threadpoolctl import threadpool_info

seen = []


def blas_threads():
    return next(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def double(a, out):
    seen.append(("blas", blas_threads()))
    np.multiply(a, 2, out=out)


def double_by_numba(a, out):
    seen.append(("numba", numba.get_num_threads()))
    np.multiply(a, 2, out=out)


@numba.njit(cache=True)
def double_compiled(a, out):
    for i in range(a.size):
        out[i] = 2 * a[i]


@numba.njit
def not_to_be_compiled(a, out):
    out.no_such_method(a)
