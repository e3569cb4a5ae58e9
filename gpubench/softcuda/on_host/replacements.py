"""Puts what is done on the host in place of NVIDIA's, before and after CuPy is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from gpubench.softcuda.on_host.blas import CUBLAS
from gpubench.softcuda.on_host.fft import CUFFT
from gpubench.softcuda.on_host.libraries import Library, ModuleLoader, load
from gpubench.softcuda.on_host.random import CURAND, replace_generators
from gpubench.softcuda.on_host.sorting import replace_cub, replace_thrust

CUSOLVER = Library("cusolver", "cupy_backends.cuda.libs.cusolver", "CUSOLVERError", 9, 6)
CUSPARSE = Library("cusparse", "cupy_backends.cuda.libs.cusparse", "CuSparseError", 10, 6)
"""Refused as a whole, with the name of the function that was called."""

LIBRARIES = (CUBLAS, CUFFT, CURAND, CUSPARSE, CUSOLVER)


class _Finder(MetaPathFinder):
    """Finds CuPy's modules that are linked against these libraries."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        library = next((one for one in LIBRARIES if one.module == name), None)
        spec = PathFinder.find_spec(name, path) if library else None
        if library and spec is not None and spec.origin is not None:
            spec.loader = ModuleLoader(spec, library)
        return spec


def load_libraries() -> None:
    """Load the libraries, before CuPy looks for NVIDIA's.

    Raises ``UnavailableError`` where they cannot be built.
    """
    for library in LIBRARIES:
        load(library)
    sys.meta_path.insert(0, _Finder())


def replace_functions() -> None:
    """Replace what is linked into CuPy's own modules, now that it is imported."""
    replace_thrust()
    replace_cub()
    replace_generators()
