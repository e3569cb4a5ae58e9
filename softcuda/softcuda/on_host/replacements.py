"""Puts what is done on the host in place of NVIDIA's, before and after CuPy is imported."""

from __future__ import annotations

from softcuda.on_host.blas import CUBLAS
from softcuda.on_host.fft import CUFFT
from softcuda.on_host.libraries import Library, load
from softcuda.on_host.random import CURAND, replace_generators
from softcuda.on_host.sorting import replace_cub, replace_thrust

CUSOLVER = Library("cusolver", "cupy_backends.cuda.libs.cusolver", "CUSOLVERError", 9, 6)
CUSPARSE = Library("cusparse", "cupy_backends.cuda.libs.cusparse", "CuSparseError", 10, 6)
"""Refused as a whole, with the name of the function that was called."""


def load_libraries() -> None:
    """Load the libraries, before CuPy looks for NVIDIA's.

    Raises ``UnavailableError`` where they cannot be built.
    """
    for library in (CUBLAS, CUFFT, CURAND, CUSPARSE, CUSOLVER):
        load(library)


def replace_functions() -> None:
    """Replace what is linked into CuPy's own modules, now that it is imported."""
    replace_thrust()
    replace_cub()
    replace_generators()
