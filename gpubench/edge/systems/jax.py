"""JAX: functions that return arrays, on the CPU and, where JAX has its plugin, on CUDA devices.

JAX's arrays cannot be written to. So a native array is a ``Cell``, whose value is replaced, and an
implementation says in ``returns`` which arrays its result stands for.

A call may return long before its work is done: one was back after 0.012 ms whose work took 22.8.
Each is waited for, by ``block_until_ready`` on what it returned. JAX gives no events of a device,
so that a time on CUDA contains what the host does for each call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from gpubench.backends import devices
from gpubench.backends.host import CPU_AND_CUDA, Cell, CellSession, HostBackend, nothing
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceMemoryError,
    Errors,
    LoopSampler,
    Native,
    Sampler,
)
from gpubench.distribution import require_extra
from gpubench.errors import BackendError
from gpubench.names import CPU

_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
"""Modules that bring CUDA, one for each major version of it."""

FLUSHED_BYTES = 256 * 2**20
"""Of the array that ``flush`` makes on a GPU: JAX does not tell the size of its L2, and none is
larger than half of this."""

JIT = "jit"
"""The value of ``wrap`` for a function that XLA compiles."""


class JaxSession(CellSession):
    """Arrays of JAX on one device, in 64 bits too, until the session is closed.

    ``jit``: functions go through ``jax.jit``. Python's own numbers among their arguments, which
    axes of a suite are, are then known when they are compiled, as sizes have to be; what has a
    dtype is not, so that no work on it can be done beforehand.

    Raises ``BackendError`` for ``threads``, and for a device that JAX cannot use.
    """

    def __init__(self, device: str, threads: int | None, *, jit: bool = False) -> None:
        super().__init__("jax", device)
        if threads is not None:
            raise BackendError(
                f"threads of {threads}: XLA takes all processors of the process, and no call sets "
                "how many; leave 'threads' out, or start the whole run under `taskset`"
            )
        if device != CPU:
            # Else JAX takes three quarters of the device's memory when it starts.
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.jax = import_module("jax")
        self._errors = Errors(self._translated)
        self._last: Any = None
        """What the last call returned, which may have to be waited for."""
        self._jit = cache(self.jax.jit) if jit else None  # a case binds a function several times
        platform, _, ordinal = device.partition(":")
        try:
            self._device = self.jax.devices(platform)[int(ordinal or 0)]
        except (RuntimeError, IndexError) as error:
            raise BackendError(f"{device}: JAX cannot use it: {error}") from error
        config = self.jax.config
        for name, value in (("jax_enable_x64", True), ("jax_default_device", self._device)):
            self._ending.callback(config.update, name, getattr(config, name))
            config.update(name, value)
        self._facts = {
            "jax": str(self.jax.__version__),
            "jaxlib": str(import_module("jaxlib").__version__),
            "jax_device": f"{self._device.platform}, {self._device.device_kind}",
            "jax_x64": True,
        }
        if flags := os.environ.get("XLA_FLAGS"):
            self._facts["xla_flags"] = flags

    def close(self) -> None:
        super().close()
        self._last = None

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Return a copy: ``jax.device_put`` may share the memory of an array, and does so even
        where it is told not to (0.10.2, ``may_alias=False``, memory aligned to 64 bytes)."""
        with self._errors:
            copy = self.jax.numpy.array(array, copy=True, device=self._device)
            return Cell(self.jax.block_until_ready(copy))

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        with self._errors:
            return super().view(native)

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        if self._jit:
            static = tuple(place for place, each in enumerate(arguments) if _known(each))
            function = self._jit(function, static_argnums=static)

        def run(*values: Any) -> Any:
            self._last = None  # its memory is free for what this call makes
            self._last = function(*values)
            return self._last

        return self._errors.around(super().call_of(run, arguments))

    def empty(self) -> Call:
        return nothing

    def sampler(self, call: Call) -> Sampler:
        wait = self.jax.block_until_ready
        finished = self._errors.around(lambda: wait(call()))
        return LoopSampler(time.perf_counter, finished)

    def synchronize(self) -> None:
        with self._errors:
            self.jax.block_until_ready(self._last)

    def flush(self) -> None:
        super().flush()
        if self.device != CPU:
            with self._errors:
                made = self.jax.numpy.ones(FLUSHED_BYTES, np.uint8, device=self._device)
                self.jax.block_until_ready(made)

    def _translated(self, error: Exception) -> DeviceError | None:
        """Return what JAX raised, in gpubench's words; ``None`` for an error of the function."""
        if not isinstance(error, self.jax.errors.JaxRuntimeError):
            return None
        first = str(error).strip().partition("\n")[0]
        if "RESOURCE_EXHAUSTED" in first:
            return DeviceMemoryError(f"{self.device} is out of memory: {first}; use smaller sizes")
        return DeviceError(f"{self.device} failed: {first}")


def _known(argument: Any) -> bool:
    """Return whether ``jax.jit`` takes it for what a function is compiled for: a number of Python's
    own, a module. Floating-point numbers are data."""
    return not isinstance(argument, (Cell, np.generic, float, complex))


class JaxBackend(HostBackend):
    """There is no ``launch``: how soon a call returns depends on whether XLA runs it in the thread
    that calls. On the CPU ``end_to_end`` and ``transfer`` hold a copy in each direction, as
    ``jax.numpy.array`` makes it."""

    name = "jax"
    title = "JAX"
    times = ("kernel", "end_to_end", "transfer", "compile", "cold", "start")
    capabilities = ("gpu", "compiles")
    device_names = CPU_AND_CUDA
    runs_on = "cpu, cuda:0, cuda:1 ..."
    requires = (require_extra("jax"),)
    modules = ("jax",)
    preloads = "jax"  # its threads start with the first array
    software = ("jax", "jaxlib")
    concerns = ("jax", "jaxlib", "no_gpu", *devices.STEADY_FACTS)
    options: ClassVar[Mapping[str, str]] = {
        "wrap": "jit: XLA compiles the function as a whole; absent: as it is"
    }
    caches = ("CUDA_CACHE_PATH",)
    caches_by_content = ("JAX_COMPILATION_CACHE_DIR",)  # by the computation; off unless it is set

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if device == CPU or any(map(find_spec, _PLUGINS)):
            return None
        return f"{device}: the installed JAX has no CUDA; pip install 'jax[cuda13]'"

    def start(self, device: str, threads: int | None, wrap: str | None = None) -> JaxSession:
        if wrap not in (None, JIT):
            raise BackendError(f"wrap of {wrap!r}; allowed: {JIT}, or leave it out")
        return JaxSession(device, threads, jit=wrap == JIT)
