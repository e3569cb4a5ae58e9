"""Numba on the CPU: functions compiled by ``njit``, ``vectorize`` and ``guvectorize``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Any

from gpubench.backends.host import (
    DEVICE,
    HostSession,
    host_facts,
    require_host,
    unavailable_off_host,
)
from gpubench.backends.protocol import DeviceFacts
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

    def facts(self) -> Mapping[str, Value]:
        """Versions, ``threading_layer``, ``numba_threads`` in use, ``svml``."""
        numba = _numba()
        return {
            **super().facts(),
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

    def open(self, device: str, threads: int | None = None) -> NumbaSession:
        """Raises ``BackendError`` for more threads than Numba's pool has."""
        require_host(self.name, device)
        return NumbaSession(threads)


def _use_threads(threads: int) -> None:
    numba = _numba()
    most = numba.config.NUMBA_NUM_THREADS
    if not 1 <= threads <= most:
        raise BackendError(
            f"threads of {threads}: Numba's pool has {most}, allowed are 1 to {most}; "
            "use fewer, or set NUMBA_NUM_THREADS before Python starts"
        )
    numba.set_num_threads(threads)


def _numba() -> Any:
    """Numba, imported when it is first needed; its own annotations are incomplete."""
    return import_module("numba")
