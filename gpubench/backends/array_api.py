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
from gpubench.backends.cupy import CupySession
from gpubench.backends.host import (
    CPU_AND_CUDA,
    Cell,
    HostBackend,
    cpu,
    function_of,
    nothing,
)
from gpubench.backends.jax import JIT, CellSession, JaxSession
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.numpy import NumpySession, blas_facts, blas_libraries
from gpubench.backends.protocol import Backend, Call, Launch, Native, Session, Target
from gpubench.backends.torch import TorchCudaSession, TorchSession
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


class Namespaced(Session):
    """A session whose functions are called with ``xp`` first; beside a library's session, which
    comes after it among the base classes."""

    library: str
    wrap: str | None = None

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        function_of(target, "array_api")
        xp = import_module(NAMESPACES[self.library])
        # The library's own session is the next among the bases.
        return super().bind(target, launch, (xp, *arguments))  # type: ignore[safe-super]

    def empty(self) -> Call:
        return nothing

    def facts(self) -> Mapping[str, Value]:
        return {
            **super().facts(),
            "array_api_compat": metadata.version("array-api-compat"),
            "array_api_library": self.library,
            **({"array_api_wrap": self.wrap} if self.wrap else {}),
        }


class DaskThreadsSession(CellSession):
    """Dask's arrays on threads of this process, in chunks as Dask makes them by itself (128 MiB at
    most). A call computes what a function returns, so that the work is in its time."""

    def __init__(self, threads: int | None) -> None:
        super().__init__("dask")
        self._dask, self._arrays = import_module("dask"), import_module("dask.array")
        self._threads = threads or cpu().threads
        # One of its own: Dask keeps those that it makes until the thread that calls has ended.
        self._pool = ThreadPoolExecutor(self._threads)

    def close(self) -> None:
        super().close()
        self._pool.shutdown()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        return Cell(self._arrays.from_array(array.copy(order="K"), chunks="auto"))

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        value = native.value if isinstance(native, Cell) else native
        if isinstance(value, self._arrays.Array):
            (value,) = self._computed(value)
        return np.asarray(value)

    def _computed(self, *values: Any) -> tuple[Any, ...]:
        computed: tuple[Any, ...] = self._dask.compute(
            *values, scheduler="threads", pool=self._pool
        )
        return computed

    def prepared(
        self, function: Callable[..., Any], arguments: Sequence[Any]
    ) -> Callable[..., Any]:
        def run(*values: Any) -> Any:
            (result,) = self._computed(function(*values))
            return result

        return run

    def facts(self) -> Mapping[str, Value]:
        """Versions, threads in use, and each BLAS that is loaded, which every thread may call."""
        return {
            **super().facts(),
            **blas_facts(blas_libraries().info()),
            "dask": str(self._dask.__version__),
            "dask_threads": self._threads,
        }


class NumpyNamespace(Namespaced, NumpySession):
    library = "numpy"


class TorchNamespace(Namespaced, TorchSession):
    library = "torch"


class TorchCudaNamespace(Namespaced, TorchCudaSession):
    library = "torch"


class JaxNamespace(Namespaced, JaxSession):
    library = "jax"


class DaskNamespace(Namespaced, DaskThreadsSession):
    library = "dask"


class CupyNamespace(Namespaced, CupySession):
    library = "cupy"


class ArrayApiBackend(HostBackend):
    """Runs functions of ``xp`` and arrays, on any library of the standard.

    On the CPU ``end_to_end`` holds a copy in each direction, also where a library could share
    memory with NumPy.
    """

    name = "array_api"
    title = "Array API"
    times = ("kernel", "end_to_end", "compile", "cold", "start")
    capabilities = ("gpu", "compiles")
    device_names = CPU_AND_CUDA
    runs_on = "cpu, cuda:0, cuda:1 ..."
    requires = ("gpubench[array_api]",)
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
        *("JAX_COMPILATION_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH"),
    )

    def unavailable_with(self, device: str, options: Mapping[str, Value]) -> str | None:
        """Of these libraries CuPy alone runs on a device in software; ``start`` refuses one that it
        does not know."""
        needs_a_gpu = options.get("library", "numpy") in NAMESPACES.keys() - {"cupy"}
        if device == CPU or needs_a_gpu:
            return self.unavailable(device)
        return Backend.unavailable(self, device) or devices.no_such_gpu(device, in_software=True)

    def start(
        self, device: str, threads: int | None, library: str = "numpy", wrap: str | None = None
    ) -> Namespaced:
        """A session of the library. Raises ``BackendError`` where it, the wrapper or the device is
        not one that goes with the others."""
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
            raise BackendError(f"{library} is not installed; pip install 'gpubench[{library}]'")
        compiled = wrap is not None
        session: Namespaced
        match library:
            case "torch" if device == CPU:
                session = TorchNamespace(threads, compiled=compiled)
            case "torch":
                session = TorchCudaNamespace(device, threads, compiled=compiled)
            case "jax":
                session = JaxNamespace(device, threads, jit=compiled)
            case "dask":
                session = DaskNamespace(threads)
            case "cupy":
                session = CupyNamespace(device, ARCHITECTURE_LIMITS)
            case _:
                session = NumpyNamespace(threads)
        session.wrap = wrap
        return session
