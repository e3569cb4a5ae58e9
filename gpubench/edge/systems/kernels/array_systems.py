"""Five small kernels as PyTorch and JAX write them, and once for all libraries of arrays.

A form ``_xp`` takes the namespace of a library first (data-apis.org/array-api) and returns what it
computes, because arrays of some libraries cannot be written to; so do the forms for JAX. Those for
PyTorch write into the arrays that they are given; they are made by factories, so that nothing is
imported or looked up in a call.

Points for pi come from a counter by a hash of 32 bits, so that all forms draw the same. The
products fit into 63 bits: what integers do beyond that, the standard leaves open, and
``torch.compile`` made another number of it (2.13, on the CPU).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import njit, prange

Array = Any
"""An array of the library that the form is for."""
Seed = NDArray[np.int64]
"""Shape ``[1]``, from 0 and below 2**31."""
Count = NDArray[np.int64]
"""Shape ``[1]``."""
InPlace = Callable[..., None]


def vector_add_torch(a: Array, b: Array, n: int) -> None:
    """``b += a`` in place; ``n`` is the length of both arrays."""
    b.add_(a)


def vector_add_jax(a: Array, b: Array, n: int) -> Array:
    """``b + a``, a new array."""
    return b + a


def vector_add_xp(xp: Any, a: Array, b: Array, n: int) -> Array:
    """``b + a``, a new array."""
    return b + a


def make_norm_torch() -> InPlace:
    """``norm(x, out)``: the Euclidean norm of ``x`` (shape ``[n]``) into ``out`` (``[1]``)."""
    torch = import_module("torch")
    vector_norm = torch.linalg.vector_norm

    def norm(x: Array, out: Array) -> None:
        vector_norm(x, dim=0, keepdim=True, out=out)

    return norm


def norm_jax(x: Array) -> Array:
    """Return the Euclidean norm of ``x`` (shape ``[n]``), in the shape ``[1]``."""
    jnp = import_module("jax.numpy")
    return jnp.sqrt(jnp.sum(x * x, keepdims=True))


def norm_xp(xp: Any, x: Array) -> Array:
    """Return the Euclidean norm of ``x`` (shape ``[n]``), in the shape ``[1]``."""
    return xp.linalg.vector_norm(x, keepdims=True)


def make_multiply_torch() -> InPlace:
    """``multiply(a, b, c)``: ``c = a * b`` into an array that exists already."""
    product = import_module("torch").mul

    def multiply(a: Array, b: Array, c: Array) -> None:
        product(a, b, out=c)

    return multiply


def multiply_jax(a: Array, b: Array) -> Array:
    """Return ``a * b``, a new array."""
    return a * b


def multiply_xp(xp: Any, a: Array, b: Array) -> Array:
    """Return ``a * b``, a new array."""
    return a * b


def make_matmul_torch() -> InPlace:
    """``matmul(A, B, C)``: ``C = A @ B`` for shapes ``[n, n]``, into a matrix that exists."""
    product = import_module("torch").matmul

    def matmul(A: Array, B: Array, C: Array) -> None:
        product(A, B, out=C)

    return matmul


def matmul_jax(A: Array, B: Array) -> Array:
    """Return ``A @ B`` in the precision of its dtype: on a GPU, JAX would take less by itself."""
    return import_module("jax.numpy").matmul(A, B, precision="highest")


def matmul_xp(xp: Any, A: Array, B: Array) -> Array:
    """Return ``A @ B``, a new matrix."""
    return xp.matmul(A, B)


# The hash: shifts and factors of 30 bits that Wellons searched for ("Prospecting for hash
# functions", 2018, where it is called prospector32).
_FIRST, _SECOND = 0x2C1B3C6D, 0x297A2D39
_32_BITS = (1 << 32) - 1
# Coordinates of 15 bits, so that the sum of their squares fits into 32.
_15_BITS, _RADIUS = (1 << 15) - 1, 1 << 30

_PIECE = 16384  # points that are drawn at once, so that they stay in a core's cache


def pi_numpy(n: int, seed: Seed, inside: Count) -> None:
    """How many of ``n`` random points of a square lie in the quarter of a circle, into ``inside``:
    pi/4 of them (Metropolis and Ulam, "The Monte Carlo method", 1949)."""
    found = 0
    for start in range(0, n, _PIECE):
        bits = np.arange(start, min(n, start + _PIECE), dtype=np.uint32)
        bits += np.uint32(seed[0])
        bits ^= bits >> np.uint32(15)
        bits *= np.uint32(_FIRST)
        bits ^= bits >> np.uint32(12)
        bits *= np.uint32(_SECOND)
        bits ^= bits >> np.uint32(15)
        x, y = bits >> np.uint32(17), bits & np.uint32(_15_BITS)
        x *= x
        y *= y
        x += y
        found += int(np.count_nonzero(x < np.uint32(_RADIUS)))
    inside[0] = found


@njit(parallel=True, cache=True)
def pi_parallel(n: int, seed: Seed, inside: Count) -> None:
    """Do the same in one pass, over the threads of the CPU."""
    found = 0
    for i in prange(n):
        bits = (i + seed[0]) & _32_BITS
        bits = ((bits ^ (bits >> 15)) * _FIRST) & _32_BITS
        bits = ((bits ^ (bits >> 12)) * _SECOND) & _32_BITS
        bits ^= bits >> 15
        x, y = bits >> 17, bits & _15_BITS
        found += x * x + y * y < _RADIUS
    inside[0] = found


def make_pi_torch() -> InPlace:
    """``pi(n, seed, inside)``: the same with all points at once, as far as it goes in place."""
    torch = import_module("torch")
    arange, count, int64 = torch.arange, torch.count_nonzero, torch.int64

    def pi(n: int, seed: Array, inside: Array) -> None:
        bits = arange(n, dtype=int64, device=seed.device).add_(seed).bitwise_and_(_32_BITS)
        bits.bitwise_xor_(bits >> 15).mul_(_FIRST).bitwise_and_(_32_BITS)
        bits.bitwise_xor_(bits >> 12).mul_(_SECOND).bitwise_and_(_32_BITS)
        bits.bitwise_xor_(bits >> 15)
        x, y = bits >> 17, bits.bitwise_and_(_15_BITS)
        inside.copy_(count(x.square_().add_(y.square_()) < _RADIUS))

    return pi


def pi_jax(n: int, seed: Array) -> Array:
    """Return the same in the shape ``[1]``; ``n`` is known when it is compiled."""
    return pi_xp(import_module("jax.numpy"), n, seed)


def pi_xp(xp: Any, n: int, seed: Array) -> Array:
    """Return the same in the shape ``[1]``, all points at once, each operation an array of its
    own."""
    # Where the seed is; Dask's arrays, and JAX's while they are compiled, are nowhere.
    device = getattr(seed, "device", None)
    bits = (xp.arange(n, dtype=xp.int64, device=device) + seed) & _32_BITS
    bits = ((bits ^ (bits >> 15)) * _FIRST) & _32_BITS
    bits = ((bits ^ (bits >> 12)) * _SECOND) & _32_BITS
    bits = bits ^ (bits >> 15)
    x, y = bits >> 17, bits & _15_BITS
    return xp.sum(xp.astype(x * x + y * y < _RADIUS, xp.int64), keepdims=True)
