"""Three small kernels as CuPy and PyCUDA write them without a program of one's own.

What has to be compiled is made by factories when a case is measured, so that importing this module
needs neither library. Programs in CUDA C++ lie beside the suite, in ``cuda_libraries.cu``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating]
"""One dimension, real."""
Array = Any
"""A ``cupy.ndarray`` or a ``pycuda.gpuarray.GPUArray``."""


def vector_add(a: Array, b: Array, n: int) -> None:
    """``b += a`` in place; ``n`` is the length of both arrays."""
    b += a


def make_vector_add_elementwise() -> Callable[..., None]:
    """``vector_add(a, b, n)`` as a ``cupy.ElementwiseKernel``: one expression for each element."""
    add = import_module("cupy").ElementwiseKernel("T a", "T b", "b += a", "vector_add")

    def vector_add(a: Array, b: Array, n: int) -> None:
        add(a, b)

    return vector_add


def multiply_them_numpy(c: Vector, a: Vector, b: Vector) -> None:
    """``c = a * b`` into an array that exists already."""
    np.multiply(a, b, out=c)


def multiply_them_cupy(c: Array, a: Array, b: Array) -> None:
    """``c = a * b`` into an array that exists already."""
    import_module("cupy").multiply(a, b, out=c)


def make_multiply_them_elementwise() -> Callable[..., None]:
    """``multiply_them(c, a, b)`` as a ``cupy.ElementwiseKernel``."""
    product = import_module("cupy").ElementwiseKernel("T a, T b", "T c", "c = a * b", "product")

    def multiply_them(c: Array, a: Array, b: Array) -> None:
        product(a, b, c)

    return multiply_them


def multiply_them_pycuda(a: Array, b: Array) -> Array:
    """Return ``a * b``, a new array: PyCUDA's arrays have no product into one that exists."""
    return a * b


def norm_cupy(x: Array) -> Array:
    """Return the Euclidean norm of ``x`` (shape ``[n]``), in the shape ``[1]``."""
    return (x * x).sum(keepdims=True) ** 0.5


def make_norm_reduction() -> Callable[..., None]:
    """``norm(x, out)`` as a ``cupy.ReductionKernel``: squares, their sum and its root in one."""
    reduction = import_module("cupy").ReductionKernel(
        "T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "euclidean"
    )

    def norm(x: Array, out: Array) -> None:
        reduction(x, out, keepdims=True)

    return norm
