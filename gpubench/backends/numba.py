"""Numba on the CPU: functions compiled by ``njit``, ``vectorize`` and ``guvectorize``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Any

import numpy as np

from gpubench.backends.host import HostBackend, HostSession, nothing, threads_to_be
from gpubench.backends.numba_globals import changed_global, remember_globals
from gpubench.backends.numba_settings import (
    describe_damaged_cache,
    find_plain,
    runs_as_python,
    why_off,
)
from gpubench.backends.numpy import blas_facts, blas_libraries
from gpubench.backends.protocol import Call, Launch, Target
from gpubench.errors import BackendError, KernelError
from gpubench.names import Value

_COMPILING = "numba:compile"
"""Numba's name for the event, which it does not raise where it finds the code on disk."""


class NumbaSession(HostSession):
    """Compiled calls; the thread pool runs, with ``threads`` of it in use until the close.

    Raises ``BackendError`` for more threads than Numba's pool has.
    """

    def __init__(self, threads: int | None) -> None:
        super().__init__("numba")
        # Imported when it is first needed; its own annotations are incomplete.
        numba = self.numba = import_module("numba")
        events = import_module("numba.core.event")
        with self.opening() as ending:
            before = numba.get_num_threads()  # starts the pool
            if threads is not None:
                if not 1 <= threads <= _pool_threads():
                    raise BackendError(_not_allowed(threads))
                numba.set_num_threads(threads)
            ending.callback(numba.set_num_threads, before)
            self._compilations = ending.enter_context(events.install_recorder(_COMPILING))

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Return the call; raises ``KernelError`` where Python would run what Numba was to
        compile, as after what a module did that was imported since the backend was asked."""
        if reason := why_off("DISABLE_JIT"):
            raise KernelError(reason)
        if plain := find_plain(target.function):
            raise KernelError(
                f"{plain} is decorated and was not compiled: Python would run it; have its "
                "decorator be Numba's, and Numba's compiler on while the module is imported"
            )
        if target.function is not None and runs_as_python(target.function):
            name = getattr(target.function, "__qualname__", type(target.function).__name__)
            raise KernelError(
                f"{name} is plain Python and calls nothing that Numba compiled: decorate it with "
                "njit, or write `backend: numpy`"
            )
        remember_globals(target.function)
        return super().bind(target, launch, arguments)

    def why_wrong(self, target: Target) -> str | None:
        return changed_global(target.function)

    def empty(self) -> Call:
        return self.bind(Target(function=self.numba.njit(cache=True)(nothing)), None, ())

    def facts(self) -> Mapping[str, Value]:
        """Versions, ``threading_layer``, ``numba_threads`` in use, ``svml``, and each BLAS that
        is loaded: compiled code calls SciPy's. Where functions without ``cache=True`` were compiled
        since the session was opened, ``compile_seconds``: every process does it again."""
        numba, seconds = self.numba, _seconds_not_kept(self._compilations.buffer)
        return {
            **super().facts(),
            **blas_facts(blas_libraries().info()),
            "numba": numba.__version__,
            "llvmlite": metadata.version("llvmlite"),
            "threading_layer": numba.threading_layer(),
            "numba_threads": numba.get_num_threads(),
            "svml": bool(getattr(numba.config, "USING_SVML", False)),
            **({"compile_seconds": seconds} if seconds else {}),
        }


class NumbaBackend(HostBackend):
    name = "numba"
    title = "Numba on the CPU"
    times = ("kernel", "compile", "cold", "start")
    runs_in_caller = True
    capabilities = ("in_place", "compiles")
    requires = ("numba",)
    decorators = ("njit", "jit")
    takes_launch = False
    takes_tables = True
    software = ("numba", "llvmlite")
    concerns = ("numba", "llvmlite", "NUMBA_NUM_THREADS")
    caches = ("NUMBA_CACHE_DIR",)
    code_settings = r"NUMBA_.*(?<!_DIR)(?<!_NUM_THREADS)"
    compiles_ahead = True

    def unavailable(self, device: str) -> str | None:
        return why_off("DISABLE_JIT") or super().unavailable(device)

    def hint(self, error: BaseException) -> str | None:
        if isinstance(error, ZeroDivisionError):
            return (
                "compiled code divides as Python does, NumPy gives infinity or NaN and goes on: "
                "njit(error_model='numpy') does so too"
            )
        return describe_damaged_cache(error)

    def too_many_threads(self, threads: int) -> str | None:
        too_many_here = super().too_many_threads(threads)
        return too_many_here or (_not_allowed(threads) if threads > _pool_threads() else None)

    def machine_facts(self) -> Mapping[str, Value | None]:
        return {"NUMBA_NUM_THREADS": os.environ.get("NUMBA_NUM_THREADS")}

    def preload(self) -> None:
        """Import Numba, with all that Numba prepares before the first function and the first array.
        Start no pool."""
        numba = import_module("numba")
        numba.njit(nothing)()
        numba.typeof(np.zeros(1))

    def keeps(self, function: Any) -> bool:
        return _keeps(function)

    def move_caches(self) -> None:
        if "numba" in sys.modules:
            _move_functions()

    def start(self, device: str, threads: int | None) -> NumbaSession:
        return NumbaSession(threads)


def _move_functions() -> None:
    """Have the functions of all modules keep their code where the environment says it now: each
    took its folder when it was made. Those for CUDA too, where numba-cuda shares Numba's settings.
    """
    import_module("numba").config.reload_config()
    for module in [*sys.modules.values()]:
        for value in [*vars(module).values()] if isinstance(module, ModuleType) else ():
            # Asked of the type first: Numba has objects that open a device when they are asked.
            if hasattr(type(value), "enable_caching") and _keeps(value):
                value.enable_caching()


def _keeps(function: Any) -> bool:
    """Return whether it was compiled with ``cache=True``."""
    return getattr(getattr(function, "stats", None), "cache_path", None) is not None


def _seconds_not_kept(compilations: Sequence[tuple[float, Any]]) -> float:
    """Return the seconds of compiling functions whose code is not kept, callees included, from the
    starts and ends that Numba reports."""
    seconds, begun = 0.0, list[float]()
    for moment, event in compilations:
        if event.is_start:
            begun.append(moment)
        else:
            start = begun.pop()
            if not begun and not _keeps(event.data["dispatcher"]):
                seconds += moment - start
    return seconds


def _not_allowed(threads: int) -> str:
    most = _pool_threads()
    return (
        f"threads of {threads}: Numba's pool has {most}, allowed are 1 to {most}; "
        "use fewer, or set NUMBA_NUM_THREADS before Python starts"
    )


def _pool_threads() -> int:
    """Threads of Numba's pool; asking imports nothing."""
    config = sys.modules.get("numba.core.config")
    return int(config.NUMBA_NUM_THREADS) if config else threads_to_be("NUMBA_NUM_THREADS")
