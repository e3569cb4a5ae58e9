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
    host_facts,
    require_host,
    unavailable_off_host,
)
from gpubench.backends.protocol import DeviceFacts
from gpubench.names import Value

_PLAIN = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc, type(np.dot))


class NumpySession(HostSession):
    """Plain calls; ``threads`` limits NumPy's BLAS until the session is closed."""

    def __init__(self, threads: int | None) -> None:
        super().__init__("numpy")
        self._blas = ThreadpoolController().select(user_api="blas")
        self._limiter = self._blas.limit(limits=threads) if threads is not None else None

    def close(self) -> None:
        super().close()
        if self._limiter is not None:
            self._limiter.restore_original_limits()
            self._limiter = None

    def facts(self) -> Mapping[str, Value]:
        """``numpy``, ``blas`` with its version, ``blas_threads`` in use."""
        libraries = self._blas.info()
        if not libraries:
            return {"numpy": np.__version__, "blas": _built_with()}
        blas = libraries[0]
        return {
            "numpy": np.__version__,
            "blas": f"{blas['internal_api']} {blas['version'] or ''}".strip(),
            "blas_threads": int(blas["num_threads"]),
        }


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

    def open(self, device: str, threads: int | None = None) -> NumpySession:
        require_host(self.name, device)
        return NumpySession(threads)


def _built_with() -> str:
    """Name of a BLAS that threadpoolctl does not know, Accelerate for example."""
    config: Any = np.show_config(mode="dicts")
    return str(config["Build Dependencies"]["blas"]["name"])
