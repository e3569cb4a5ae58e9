"""NumPy on the CPU, and any plain Python function over NumPy arrays: the usual baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from gpubench.backends.host import HostBackend, HostSession
from gpubench.errors import BackendError
from gpubench.names import Value


class NumpySession(HostSession):
    """Plain calls; ``threads`` is how many NumPy's BLAS uses until the session is closed.

    Raises ``BackendError`` where BLAS does not take that many.
    """

    def __init__(self, threads: int | None) -> None:
        super().__init__("numpy")
        if threads is None:
            return
        libraries = blas_libraries()
        with self.opening() as ending:
            ending.callback(libraries.limit(limits=threads).restore_original_limits)
            used = blas_facts(libraries.info()).get("numpy_blas_threads")
            if used != threads:
                raise BackendError(
                    f"threads of {threads}: NumPy's BLAS uses {used} all the same; use {used} or "
                    "fewer"
                    if used is not None
                    else f"threads of {threads}: the number of threads of NumPy's BLAS "
                    f"({_built_with()}) cannot be set; leave out 'threads', or use a NumPy that is "
                    "built with OpenBLAS or MKL"
                )

    def facts(self) -> Mapping[str, Value]:
        return {**super().facts(), **blas_facts(blas_libraries().info())}


class NumpyBackend(HostBackend):
    name = "numpy"
    title = "NumPy"
    times = ("kernel", "cold", "start")
    runs_in_caller = True
    capabilities = ("in_place",)
    requires = ("numpy", "threadpoolctl")
    takes_launch = False
    takes_tables = True
    software = ("numpy",)

    def start(self, device: str, threads: int | None) -> NumpySession:
        return NumpySession(threads)


def blas_libraries() -> ThreadpoolController:
    """Return the BLAS libraries that are loaded and whose threads can be counted."""
    return ThreadpoolController().select(user_api="blas")


def blas_facts(loaded: Sequence[Mapping[str, Any]]) -> dict[str, Value]:
    """Return each BLAS that is loaded, by the package that brought it, from what threadpoolctl
    tells.

    ``numpy_blas`` is ``openblas 0.3.31 (SkylakeX)``: its name, version and the processor that it
    chose its code for; ``numpy_blas_threads`` is how many it uses, where that can be known. SciPy
    brings another one, ``scipy_blas``, which functions that Numba compiled call too. One that no
    package brought is NumPy's where NumPy brought none (conda, Linux distributions), else
    ``system_blas``.
    """
    owners = {package_of(library["filepath"]): library for library in loaded}
    if "numpy" not in owners and None in owners:
        owners["numpy"] = owners.pop(None)
    facts: dict[str, Value] = {} if "numpy" in owners else {"numpy_blas": _built_with()}
    for owner, library in owners.items():
        name = f"{owner or 'system'}_blas"
        version, processor = library.get("version"), library.get("architecture")
        words = library["internal_api"], version, processor and f"({processor})"
        facts[name] = " ".join(filter(None, words))
        facts[f"{name}_threads"] = int(library["num_threads"])
    return facts


def package_of(library: str) -> str | None:
    """Return the installed package that a library's path lies in; ``None`` outside of all.

    Wheels put their libraries into ``numpy.libs`` (Linux, Windows) or ``numpy/.dylibs`` (macOS).
    The file's name does not tell: NumPy's and SciPy's are both called ``libscipy_openblas``.
    """
    found = re.search(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)", library)
    return found[1].removesuffix(".libs") if found else None


def _built_with() -> str:
    """Name of a BLAS that threadpoolctl does not know, Accelerate for example."""
    config: Any = np.show_config(mode="dicts")
    return str(config["Build Dependencies"]["blas"]["name"])
