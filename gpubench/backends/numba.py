"""Numba on the CPU: functions compiled by ``njit``, ``vectorize`` and ``guvectorize``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Any

import numpy as np

from gpubench.backends.host import (
    DEVICE,
    HostSession,
    beyond_the_machine,
    host_facts,
    nothing,
    require_host,
    unavailable_off_host,
)
from gpubench.backends.numpy import blas_facts, blas_libraries
from gpubench.backends.processor import cpu
from gpubench.backends.protocol import Call, DeviceFacts, Target
from gpubench.errors import BackendError
from gpubench.names import Value


class NumbaSession(HostSession):
    """Compiled calls; the thread pool runs, with ``threads`` of it in use until the close."""

    def __init__(self, threads: int | None) -> None:
        numba = _numba()
        super().__init__("numba")
        self._threads_before = numba.get_num_threads()  # starts the pool
        if threads is not None:
            _use_threads(threads)

    def close(self) -> None:
        super().close()
        _numba().set_num_threads(self._threads_before)

    def empty(self) -> Call:
        return self.bind(Target(function=_numba().njit(cache=True)(nothing)), None, ())

    def facts(self) -> Mapping[str, Value]:
        """Versions, ``threading_layer``, ``numba_threads`` in use, ``svml``, and the BLAS of NumPy,
        which compiled code may call."""
        numba = _numba()
        return {
            **super().facts(),
            **blas_facts(blas_libraries()),
            "numba": numba.__version__,
            "llvmlite": metadata.version("llvmlite"),
            "threading_layer": numba.threading_layer(),
            "numba_threads": numba.get_num_threads(),
            "svml": bool(getattr(numba.config, "USING_SVML", False)),
        }


class NumbaBackend:
    """Runs what Numba compiled for the CPU."""

    name = "numba"
    title = "Numba on the CPU"
    requires = ("numba",)
    times = ("kernel", "compile", "cold")

    def serves(self, device: str) -> bool:
        return device == DEVICE

    def recognises(self, function: Any) -> bool:
        """Dispatchers and universal functions of Numba's CPU target."""
        if "numba" not in sys.modules:
            return False
        from numba.core.registry import CPUDispatcher
        from numba.np.ufunc.dufunc import DUFunc
        from numba.np.ufunc.gufunc import GUFunc

        return isinstance(function, (CPUDispatcher, DUFunc, GUFunc))

    def unavailable(self, device: str) -> str | None:
        return unavailable_off_host(self.name, device)

    def device_facts(self, device: str) -> DeviceFacts:
        return host_facts()

    def too_many_threads(self, threads: int) -> str | None:
        return beyond_the_machine(threads) or _beyond_the_pool(threads)

    def preload(self) -> None:
        """Numba, and what it makes before the first function that it compiles, and imports before
        the first array that it sees. Starts no pool."""
        numba = _numba()
        numba.njit(nothing)()
        numba.typeof(np.zeros(1))

    def keeps(self, function: Any) -> bool:
        """Whether ``function`` was compiled with ``cache=True``."""
        return getattr(getattr(function, "stats", None), "cache_path", None) is not None

    def open(self, device: str, threads: int | None = None) -> NumbaSession:
        """Raises ``BackendError`` for more threads than Numba's pool has."""
        require_host(self.name, device)
        return NumbaSession(threads)


def _use_threads(threads: int) -> None:
    if not 1 <= threads <= _pool_threads():
        raise BackendError(_not_allowed(threads))
    _numba().set_num_threads(threads)


def _beyond_the_pool(threads: int) -> str | None:
    return _not_allowed(threads) if threads > _pool_threads() else None


def _not_allowed(threads: int) -> str:
    most = _pool_threads()
    return (
        f"threads of {threads}: Numba's pool has {most}, allowed are 1 to {most}; "
        "use fewer, or set NUMBA_NUM_THREADS before Python starts"
    )


def _pool_threads() -> int:
    """Threads of Numba's pool, which it reads once, when it is imported; asking imports nothing."""
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return int(config.NUMBA_NUM_THREADS)
    text = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    return int(text) if text.isdecimal() else cpu().threads


def _numba() -> Any:
    """Numba, imported when it is first needed; its own annotations are incomplete."""
    return import_module("numba")
