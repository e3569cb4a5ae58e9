"""NumPy on the CPU, and any plain Python function over NumPy arrays: the usual baseline."""

from __future__ import annotations

from collections.abc import Mapping
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
        self._limiter = None
        if threads is not None:
            libraries = blas_libraries()
            self._limiter = libraries.limit(limits=threads)
            used = blas_facts(libraries).get("blas_threads")
            if used != threads:
                self.close()
                raise BackendError(_not_taken(threads, used))

    def close(self) -> None:
        super().close()
        if self._limiter is not None:
            self._limiter.restore_original_limits()
            self._limiter = None

    def facts(self) -> Mapping[str, Value]:
        """``numpy``, ``blas`` with its version, ``blas_threads`` in use."""
        return {**super().facts(), **blas_facts(blas_libraries())}


class NumpyBackend(HostBackend):
    """Runs functions that take and return NumPy arrays."""

    name = "numpy"
    title = "NumPy"
    times = ("kernel", "cold")
    requires = ("numpy", "threadpoolctl")
    software = ("numpy",)

    def start(self, device: str, threads: int | None) -> NumpySession:
        return NumpySession(threads)


def blas_libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded and whose threads can be counted."""
    return ThreadpoolController().select(user_api="blas")


def blas_facts(libraries: ThreadpoolController) -> dict[str, Value]:
    """``blas`` with its version, and ``blas_threads`` in use where that can be known."""
    loaded = libraries.info()
    if not loaded:
        return {"blas": _built_with()}
    return {
        "blas": f"{loaded[0]['internal_api']} {loaded[0]['version'] or ''}".strip(),
        "blas_threads": int(loaded[0]["num_threads"]),
    }


def _not_taken(threads: int, used: Value | None) -> str:
    if used is None:
        return (
            f"threads of {threads}: the number of threads of NumPy's BLAS ({_built_with()}) cannot "
            "be set; leave out 'threads', or use a NumPy that is built with OpenBLAS or MKL"
        )
    return f"threads of {threads}: NumPy's BLAS uses {used} all the same; use {used} or fewer"


def _built_with() -> str:
    """Name of a BLAS that threadpoolctl does not know, Accelerate for example."""
    config: Any = np.show_config(mode="dicts")
    return str(config["Build Dependencies"]["blas"]["name"])
