"""Polars: functions over data frames or over queries, on the CPU or with its engine for GPUs.

A function gets frames and returns one that is there (``engine: eager``), or it gets queries
(``LazyFrame``) and returns one, which is then run as a whole: by the engine that holds everything
in memory, by the streaming one, or on a device ``cuda:N``. Running it is part of ``kernel``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from gpubench.arrow import pyarrow
from gpubench.backends.devices import ordinal
from gpubench.backends.host import CPU_AND_CUDA, HostBackend, HostSession, threads_to_be
from gpubench.backends.protocol import Call, Native, not_installed
from gpubench.distribution import require_extra
from gpubench.errors import BackendError, KernelError
from gpubench.names import CPU, Value

EAGER = "eager"
ENGINES = (EAGER, "in-memory", "streaming")
"""Values of the option; the last two are Polars's own words (``LazyFrame.collect``)."""

THREADS = "POLARS_MAX_THREADS"
"""The variable that Polars reads its number of threads from, once, when it is imported."""


class PolarsSession(HostSession):
    """Frames on the CPU; ``engine`` is one of ``ENGINES``, or the ordinal of a GPU that runs
    queries, by cuDF: each run takes the frames there and its result back. A query that the GPU
    cannot run whole fails; it is not run on the CPU."""

    def __init__(self, engine: str | int) -> None:
        super().__init__("polars")
        self.polars = import_module("polars")
        pyarrow()  # which handing over a first table would import
        self._engine: Any = engine
        if isinstance(engine, int):
            self._engine = self.polars.GPUEngine(device=engine, raise_on_fail=True)

    def table_to_native(self, table: Any) -> Native:
        """Return a frame in one piece. Numbers stay where they are: Arrow's memory is Polars's
        too."""
        return self.polars.from_arrow(table, rechunk=True)

    def table_to_host(self, native: Native) -> Any:
        if not isinstance(native, self.polars.DataFrame):
            is_lazy = isinstance(native, self.polars.LazyFrame)
            lazy = "; a query is run where the suite says options: {engine: ...}" if is_lazy else ""
            raise KernelError(
                f"a table came as a {type(native).__name__}; allowed: a polars.DataFrame{lazy}"
            )
        # Without the types that Arrow has gained lately: they cannot be compared yet.
        return native.to_arrow(compat_level=self.polars.CompatLevel.oldest())

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        """Return the call; where the engine runs queries, frames become such, and what is returned
        is run."""
        if self._engine == EAGER:
            return super().call_of(function, arguments)
        polars, engine = self.polars, self._engine
        queries = [a.lazy() if isinstance(a, polars.DataFrame) else a for a in arguments]

        def run() -> Any:
            returned = function(*queries)
            if isinstance(returned, polars.LazyFrame):
                return returned.collect(engine=engine)
            if isinstance(returned, tuple | list):
                return [
                    one.collect(engine=engine) if isinstance(one, polars.LazyFrame) else one
                    for one in returned
                ]
            return returned

        return run

    def facts(self) -> Mapping[str, Value]:
        engine = self._engine if isinstance(self._engine, str) else "gpu"
        return {
            **super().facts(),
            "polars": str(self.polars.__version__),
            "pyarrow": str(pyarrow().__version__),
            "polars_threads": int(self.polars.thread_pool_size()),
            "polars_engine": engine,
        }


class PolarsBackend(HostBackend):
    name = "polars"
    title = "Polars"
    times = ("kernel", "end_to_end", "transfer", "cold", "start")
    capabilities = ("gpu", "out_of_core")
    device_names = CPU_AND_CUDA
    runs_on = "cpu, cuda:0, cuda:1 ..."
    requires = (require_extra("polars"),)
    modules = ("polars", "pyarrow")
    software = ("polars", "pyarrow")
    concerns = ("polars", THREADS)
    takes_tables = True
    options: ClassVar[Mapping[str, str]] = {
        "engine": "'eager', functions get frames; 'in-memory' or 'streaming', they get queries, "
        "which are run by that engine; absent: 'eager', and on cuda:N the GPU's"
    }

    def unavailable(self, device: str) -> str | None:
        reason = super().unavailable(device)
        if reason or device == CPU:
            return reason
        return not_installed(device, f"'{require_extra('cudf')}'", "cudf_polars")

    def start(self, device: str, threads: int | None, engine: object = None) -> PolarsSession:
        if engine is not None and (engine not in ENGINES or device != CPU):
            allowed = ", ".join(ENGINES) if device == CPU else "none; the GPU has its own"
            raise BackendError(f"the option engine is {engine!r}; allowed on {device}: {allowed}")
        # One pool of threads for as long as a process lives: none is chosen for a case alone.
        if threads not in (None, used := _pool_threads()):
            raise BackendError(
                f"threads of {threads}: Polars has {used}; set {THREADS}={threads} before Python "
                "starts, or leave out 'threads'"
            )
        return PolarsSession(str(engine or EAGER) if device == CPU else ordinal(device))


def _pool_threads() -> int:
    """Threads of Polars's pool; asking imports nothing."""
    polars = sys.modules.get("polars")
    return int(polars.thread_pool_size()) if polars else threads_to_be(THREADS)
