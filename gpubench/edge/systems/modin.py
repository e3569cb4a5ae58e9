"""Modin: functions over frames in the words of pandas, which workers of Dask or Ray hold in parts.
A call is done when all parts of the frame that it returned are there.

The workers are started as the backends ``dask`` and ``ray`` start theirs. Modin pins its version of
pandas, so that it needs an environment of its own.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, ClassVar

from gpubench.arrow import pyarrow
from gpubench.backends import registry
from gpubench.backends.host import HostBackend, HostSession
from gpubench.backends.protocol import Call, LoopSampler, MemoryPlace, Native, Sampler
from gpubench.distribution import require_extra
from gpubench.edge.systems.clusters import WORKERS_PATTERN, memory_option, no_threads_beside_workers
from gpubench.edge.systems.pandas import to_arrow
from gpubench.environment import environment
from gpubench.errors import KernelError
from gpubench.names import Value

IMPORTING = "__MODIN_AUTOIMPORT_PANDAS__"
"""The variable by which Modin has Ray's workers import pandas before their first task
(``modin.core.execution.ray.common.utils.initialize_ray``)."""

FUNCTION_ATTRIBUTES = ("_iloc_func", "_DEPLOY_AXIS_FUNC", "_DEPLOY_SPLIT_FUNC", "_DRAIN_FUNC")
"""Attributes of Modin's partitions in which it keeps references to functions."""


class ModinSession(HostSession):
    """Frames on the workers of ``dask:WORKERS:THREADS`` or ``ray:N``, in as many parts along each
    axis as there are workers."""

    _latest: ClassVar[ModinSession | None] = None
    """Whose workers have Modin's functions."""

    def __init__(self, device: str, memory: int | None) -> None:
        super().__init__("modin")
        system = device.partition(":")[0]
        with self.opening() as ending:
            with environment({IMPORTING: "1"}):
                options = {} if memory is None else {"memory": memory}
                self._workers: Any = registry.get(system).open(device, None, options)
            ending.callback(self._workers.close)
            config: Any = import_module("modin.config")
            config.Engine.put(system.capitalize())
            self.modin = import_module("modin.pandas")
            self._execute = import_module("modin.utils").execute
            count = int(self._workers.facts()["workers"])
            config.CpuCount.put(count)
            config.NPartitions.put(count)
            pyarrow()  # which handing over a first table would import
        self._facts = {
            "modin": str(import_module("modin").__version__),
            "pandas": str(import_module("pandas").__version__),
            "modin_engine": system,
        }

    def close(self) -> None:
        if ModinSession._latest is self:
            ModinSession._latest = None
        super().close()

    @contextmanager
    def _with_workers(self) -> Iterator[None]:
        """Modin computes with this session's workers inside, of Dask the current client's."""
        if ModinSession._latest is not self:
            ModinSession._latest = self
            forget_functions()
        with getattr(self._workers, "configured", nullcontext)():
            yield

    def table_to_native(self, table: Any) -> Native:
        """Return a frame whose parts are at the workers, of pandas's own types."""
        with self._with_workers():
            frame = self.modin.DataFrame(table.to_pandas())
            self._execute(frame)
        return frame

    def table_to_host(self, native: Native) -> Any:
        if not isinstance(native, self.modin.DataFrame):
            raise KernelError(
                f"a table came as a {type(native).__module__}.{type(native).__name__}; allowed: a "
                "DataFrame of Modin"
            )
        with self._with_workers():
            return to_arrow(native.modin.to_pandas())

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        def call() -> Any:
            with self._with_workers():
                returned = function(*arguments)
                self._execute(*(returned if isinstance(returned, tuple | list) else (returned,)))
            return returned

        return call

    def sampler(self, call: Call) -> Sampler:
        """Run the call once, to see whether Modin hands the work to pandas in this process."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        sampler = LoopSampler(time.perf_counter, call)
        texts = (str(warning.message) for warning in caught)
        if any("defaulting to pandas" in text.lower() for text in texts):
            sampler.warnings = ("defaults to pandas: Modin does not share this work out",)
        return sampler

    def facts(self) -> Mapping[str, Value]:
        return {**self._workers.facts(), **super().facts()}


class ModinBackend(HostBackend):
    name = "modin"
    title = "Modin"
    times = ("kernel", "end_to_end", "transfer", "start")
    device_names = rf"dask:{WORKERS_PATTERN}:{WORKERS_PATTERN}|ray:{WORKERS_PATTERN}"
    runs_on = "dask:WORKERS:THREADS and ray:N, which are started here"
    requires = (require_extra("modin"),)
    modules = ("modin", "pyarrow")
    pins = "pandas"
    software = ("modin", "pandas", "dask", "distributed", "ray")
    concerns = ("modin",)
    takes_tables = True
    no_threads = no_threads_beside_workers("dask:WORKERS:THREADS or ray:N")
    options: ClassVar[Mapping[str, str]] = {
        "memory": "bytes for each worker of dask:WORKERS:THREADS, or of the object store of ray:N"
    }

    def unavailable(self, device: str) -> str | None:
        reason = super().unavailable(device)
        return reason or registry.get(device.partition(":")[0]).unavailable(device)

    def memory_place(self, device: str) -> MemoryPlace:
        return "host"

    def start(self, device: str, threads: int | None, memory: object = None) -> ModinSession:
        return ModinSession(device, memory_option(memory))


def forget_functions() -> None:
    """Modin hands some functions to the workers once in a process, and keeps references to them in
    its classes (0.37). Those of other workers are lost: "lost dependencies" said Dask, of the
    second session in a process."""
    partitioning = "modin.core.dataframe.pandas.partitioning"
    roots = (
        import_module(f"{partitioning}.partition").PandasDataframePartition,
        import_module(f"{partitioning}.axis_partition").PandasDataframeAxisPartition,
    )
    kinds: list[Any] = list(roots)
    for kind in kinds:  # which grows
        kinds += kind.__subclasses__()
        for name in FUNCTION_ATTRIBUTES:
            if vars(kind).get(name) is not None:
                setattr(kind, name, None)
    if ray := sys.modules.get("modin.core.execution.ray.common.engine_wrapper"):
        ray.RayWrapper._func_cache.clear()
