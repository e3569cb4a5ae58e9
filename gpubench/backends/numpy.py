"""NumPy on the CPU, and any plain Python function over NumPy arrays: the usual baseline."""

from __future__ import annotations

from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from gpubench.backends.host import (
    DEVICE,
    HostSession,
    beyond_the_machine,
    host_facts,
    require_host,
    unavailable_off_host,
)
from gpubench.backends.protocol import DeviceFacts
from gpubench.errors import BackendError
from gpubench.names import Value

_PLAIN = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc, type(np.dot))


class NumpySession(HostSession):
    """Plain calls; ``threads`` is how many NumPy's BLAS uses until the session is closed.

    Raises ``BackendError`` where BLAS does not take that many.
    """

    def __init__(self, threads: int | None) -> None:
        super().__init__("numpy")
        self._limiter = None
        if threads is not None:
            self._limit(threads)

    def _limit(self, threads: int) -> None:
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


class NumpyBackend:
    """Runs functions that take and return NumPy arrays."""

    name = "numpy"
    title = "NumPy"
    requires = ("numpy", "threadpoolctl")
    times = ("kernel", "cold")

    def serves(self, device: str) -> bool:
        return device == DEVICE

    def recognises(self, function: Any) -> bool:
        """Plain functions, built-in ones and universal functions."""
        return isinstance(function, _PLAIN)

    def unavailable(self, device: str) -> str | None:
        return unavailable_off_host(self.name, device)

    def device_facts(self, device: str) -> DeviceFacts:
        return host_facts()

    def too_many_threads(self, threads: int) -> str | None:
        return beyond_the_machine(threads)

    def open(self, device: str, threads: int | None = None) -> NumpySession:
        require_host(self.name, device)
        return NumpySession(threads)


def blas_libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded and whose threads can be counted."""
    return ThreadpoolController().select(user_api="blas")


def blas_facts(libraries: ThreadpoolController) -> dict[str, Value]:
    """``blas`` with its version, and ``blas_threads`` in use where that can be known."""
    found = libraries.info()
    if not found:
        return {"blas": _built_with()}
    return {
        "blas": f"{found[0]['internal_api']} {found[0]['version'] or ''}".strip(),
        "blas_threads": int(found[0]["num_threads"]),
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
