"""cuDF: functions over data frames in the memory of a CUDA device, in the words of pandas.

Its other way in, ``cudf.pandas``, runs what the GPU cannot do with pandas, and without a GPU all of
it, and says so in a warning at most. So functions get frames of cuDF itself, what they return has
to be one, and a process in which ``cudf.pandas`` is switched on is refused: a time of this backend
is the GPU's.

A call is done when the device is. Written to the documentation of cuDF 26.10; run nowhere yet.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from gpubench.arrow import pyarrow
from gpubench.backends import devices
from gpubench.backends.host import CUDA, HostBackend, HostSession, function_of
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceMemoryError,
    Errors,
    Launch,
    Native,
    Target,
)
from gpubench.errors import BackendError, KernelError
from gpubench.names import Value


class CudfSession(HostSession):
    """Frames on a CUDA device; arrays of a suite stay with the host, a file's bytes for example."""

    def __init__(self, device: str) -> None:
        super().__init__("cudf")
        self._device, self._errors = device, Errors(self._translated)
        cupy: Any = import_module("cupy")  # a requirement of cuDF
        self._cuda = cupy.cuda.Device(devices.ordinal(device))
        self._before = cupy.cuda.Device()
        self._cuda.use()  # before cuDF is imported, which looks for a device
        self.cudf = import_module("cudf")
        if getattr(sys.modules.get("cudf.pandas"), "LOADED", False):
            self.close()
            raise BackendError(
                f"{device}: cudf.pandas is switched on in this process, which runs pandas where "
                "the GPU cannot; leave `python -m cudf.pandas` and cudf.pandas.install() out"
            )
        pyarrow()  # which handing over a first table would import
        self._written: Any = None

    def close(self) -> None:
        super().close()
        self._written = None
        with suppress(Exception):  # a lost device
            self._before.use()

    def table_to_native(self, table: Any) -> Native:
        with self._errors:
            frame = self.cudf.DataFrame.from_arrow(table)
            self._cuda.synchronize()
        return frame

    def table_to_host(self, native: Native) -> Any:
        if not isinstance(native, self.cudf.DataFrame):
            kind = type(native)
            raise KernelError(
                f"a table came as a {kind.__module__}.{kind.__name__}; allowed: a cudf.DataFrame. "
                "Anything else was not made by the GPU"
            )
        with self._errors:
            return native.to_arrow(preserve_index=False).replace_schema_metadata()

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        function, synchronize = function_of(target, self._backend), self._cuda.synchronize

        def run() -> Any:
            returned = function(*arguments)
            synchronize()
            return returned

        return self._errors.around(run)

    def synchronize(self) -> None:
        with self._errors:
            self._cuda.synchronize()

    def flush(self) -> None:
        """Write twice the device's L2."""
        if self._written is None:
            size = 2 * int(self._cuda.attributes["L2CacheSize"])
            self._written = import_module("cupy").zeros(size, "uint8")
        self._written.fill(1)

    def facts(self) -> Mapping[str, Value]:
        """Versions, and the device's."""
        return {
            **super().facts(),
            **devices.facts_now(self._device),
            "cudf": str(self.cudf.__version__),
            "pyarrow": str(pyarrow().__version__),
            "l2_bytes": int(self._cuda.attributes["L2CacheSize"]),
        }

    def _translated(self, error: Exception) -> DeviceError | None:
        """RMM, which allocates for cuDF, raises a ``MemoryError``."""
        if not isinstance(error, MemoryError):
            return None
        return DeviceMemoryError(f"{self._device} is out of memory: {error}; use smaller sizes")


class CudfBackend(HostBackend):
    """Runs functions that take and return frames of cuDF."""

    name = "cudf"
    title = "cuDF"
    times = ("kernel", "end_to_end", "transfer", "cold", "start")
    capabilities = ("gpu",)
    device_names = CUDA
    runs_on = "cuda:0, cuda:1 ..."
    requires = ("gpubench[cudf]",)
    modules = ("cudf", "cupy", "pyarrow")
    pins = "Numba, pandas and pyarrow"
    software = ("cudf-cu13", "cudf-cu12", "rmm-cu13", "rmm-cu12")
    concerns = ("cudf-cu13", "cudf-cu12", "no_gpu", *devices.STEADY_FACTS)
    takes_tables = True

    def start(self, device: str, threads: int | None) -> CudfSession:
        if threads is not None:
            raise BackendError(
                f"threads of {threads}: cuDF computes on the GPU; leave out 'threads'"
            )
        return CudfSession(device)
