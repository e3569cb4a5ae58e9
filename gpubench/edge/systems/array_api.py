"""One source for many libraries: functions that take the namespace ``xp`` first, then arrays.

``xp`` is the namespace of the Python array API standard (data-apis.org/array-api) that
array-api-compat gives for a library: the option ``library`` says for which. Each library's session
is its own backend's, where it has one. As not every library's arrays can be written to, a function
returns what it computes, and the suite says in ``returns`` what that stands for.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module, metadata
from typing import Any, ClassVar

import numpy as np

from gpubench.backends import devices
from gpubench.backends.host import (
    CPU_AND_CUDA,
    Cell,
    CellSession,
    HostBackend,
    HostSession,
    cpu,
    function_of,
    nothing,
    value_of,
)
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.numpy import NumpySession, blas_facts, blas_libraries
from gpubench.backends.protocol import Backend, Call, Launch, Native, Session, Target
from gpubench.distribution import require_extra
from gpubench.edge.systems.cupy import CupySession
from gpubench.edge.systems.jax import JIT, JaxSession
from gpubench.edge.systems.torch import TorchCudaSession, TorchSession
from gpubench.errors import BackendError
from gpubench.names import CPU, Value

COMPILE = "compile"
"""The value of ``wrap`` for a function that goes through ``torch.compile``."""

NAMESPACES = {
    "numpy": "array_api_compat.numpy",
    "torch": "array_api_compat.torch",
    "jax": "jax.numpy",  # which keeps to the standard by itself
    "dask": "array_api_compat.dask.array",
    "cupy": "array_api_compat.cupy",
}
"""Module of each library's namespace."""
WRAPS = {"jax": JIT, "torch": COMPILE}
"""What each library can wrap a function in."""
ON_CPU, ON_CUDA = frozenset({"numpy", "torch", "jax", "dask"}), frozenset({"torch", "jax", "cupy"})
"""Libraries by where they compute."""


class CupyNamespace(CupySession):
    """CuPy's arrays, for functions that get ``xp`` first."""

    def serve(self, backend: str, passed: tuple[Any, ...], facts: Mapping[str, Value]) -> None:
        """As that of ``HostSession``."""
        self._backend, self._passed, self._served = backend, passed, facts

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        function_of(target, self._backend)
        return super().bind(target, launch, (*self._passed, *arguments))

    def empty(self) -> Call:
        return nothing

    def facts(self) -> Mapping[str, Value]:
        return {**super().facts(), **self._served}


class DaskThreadsSession(CellSession):
    """Dask's arrays on threads of this process, in chunks as Dask makes them by itself (128 MiB at
    most). A call computes what a function returns, so that the work is in its time."""

    def __init__(self, threads: int | None) -> None:
        super().__init__("dask")
        self._dask, self._arrays = import_module("dask"), import_module("dask.array")
        threads = threads or cpu().threads
        # One of its own: Dask keeps those that it makes until the thread that calls has ended.
        self._pool = self._ending.enter_context(ThreadPoolExecutor(threads))
        self._facts = {"dask": str(self._dask.__version__), "dask_threads": threads}

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        return Cell(self._arrays.from_array(array.copy(order="K"), chunks="auto"))

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        return np.asarray(self._computed(value_of(native)))

    def _computed(self, value: Any) -> Any:
        (computed,) = self._dask.compute(value, scheduler="threads", pool=self._pool)
        return computed

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        def run(*values: Any) -> Any:
            return self._computed(function(*values))

        return super().call_of(run, arguments)

    def empty(self) -> Call:
        return nothing

    def facts(self) -> Mapping[str, Value]:
        """And each BLAS that is loaded, which every thread may call."""
        return {**super().facts(), **blas_facts(blas_libraries().info())}


class ArrayApiBackend(HostBackend):
    """On the CPU ``end_to_end`` holds a copy in each direction, also where a library could share
    memory with NumPy."""

    name = "array_api"
    title = "Array API"
    times = ("kernel", "end_to_end", "compile", "cold", "start")
    capabilities = ("gpu", "compiles")
    device_names = CPU_AND_CUDA
    runs_on = "cpu, cuda:0, cuda:1 ..."
    requires = (require_extra("array_api"),)
    modules = ("array_api_compat",)
    software = ("array-api-compat", *NAMESPACES)
    concerns = ("array_api_compat", "torch", "jax", "dask", "cupy", "no_gpu", *devices.STEADY_FACTS)
    passes = ("xp",)
    options: ClassVar[Mapping[str, str]] = {
        "library": f"whose arrays: {', '.join(NAMESPACES)}; absent: numpy",
        "wrap": "jit (jax) or compile (torch): the function is compiled; absent: as it is",
    }
    caches = (
        *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"),
        *("CUPY_CACHE_DIR", "CUDA_CACHE_PATH"),
    )
    caches_by_content = ("JAX_COMPILATION_CACHE_DIR",)

    def unavailable_with(self, device: str, options: Mapping[str, Value]) -> str | None:
        """Of these libraries CuPy alone runs on a device in software; ``start`` refuses one that it
        does not know."""
        needs_a_gpu = options.get("library", "numpy") in NAMESPACES.keys() - {"cupy"}
        if device == CPU or needs_a_gpu:
            return self.unavailable(device)
        return Backend.unavailable(self, device) or devices.no_such_gpu(device, in_software=True)

    def start(
        self, device: str, threads: int | None, library: str = "numpy", wrap: str | None = None
    ) -> Session:
        if library not in NAMESPACES:
            raise BackendError(f"library of {library!r}; allowed: {', '.join(NAMESPACES)}")
        if wrap not in (None, WRAPS.get(library)):
            pairs = ", ".join(f"{wrapper} with {name}" for name, wrapper in WRAPS.items())
            raise BackendError(
                f"wrap of {wrap!r} with {library}; allowed: {pairs}, or leave it out"
            )
        places = ON_CPU if device == CPU else ON_CUDA
        if library not in places:
            raise BackendError(
                f"{device}: {library} does not compute there; allowed: {', '.join(sorted(places))}"
            )
        if importlib.util.find_spec(library) is None:
            raise BackendError(
                f"{library} is not installed; pip install '{require_extra(library)}'"
            )
        is_compiled = wrap is not None
        session: HostSession | CupyNamespace
        match library:
            case "torch" if device == CPU:
                session = TorchSession(threads, compiled=is_compiled)
            case "torch":
                session = TorchCudaSession(device, threads, compiled=is_compiled)
            case "jax":
                session = JaxSession(device, threads, jit=is_compiled)
            case "dask":
                session = DaskThreadsSession(threads)
            case "cupy":
                session = CupyNamespace(device, ARCHITECTURE_LIMITS)
            case _:
                session = NumpySession(threads)
        facts = {
            "array_api_compat": metadata.version("array-api-compat"),
            "array_api_library": library,
            **({"array_api_wrap": wrap} if wrap else {}),
        }
        session.serve(self.name, (import_module(NAMESPACES[library]),), facts)
        return session
