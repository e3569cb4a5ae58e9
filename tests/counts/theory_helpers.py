"""A function of another module that kernels of ``theory_kernels`` call."""

from numba import njit


@njit
def polynomial(v):  # type: ignore[no-untyped-def]
    return (v * 2.0 + 1.0) * v - 3.0
