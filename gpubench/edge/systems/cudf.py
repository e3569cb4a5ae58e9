"""cuDF: functions over data frames in the memory of a CUDA device, in the words of pandas.

With the option ``accel`` functions are those for pandas, run by ``cudf.pandas``. That runs what the
GPU cannot do with pandas, and without a GPU all of it, and says so in a warning at most. Here it is
told to raise an error instead, whenever it would, and what a function got and returned has to lie
on the GPU afterwards: a time of this backend is the GPU's. ``cudf.pandas`` cannot be switched off
again, so that without the option, and by pandas's own backend, such a process is refused.

A call is done when the device is. Written to cuDF 26.10; run nowhere yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, ClassVar

from gpubench.arrow import pyarrow
from gpubench.backends import devices
from gpubench.backends.host import CUDA, HostBackend, HostSession
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceMemoryError,
    Errors,
    Native,
    watched_once,
)
from gpubench.distribution import require_extra
from gpubench.edge.systems.pandas import is_accelerated
from gpubench.environment import environment
from gpubench.errors import BackendError, KernelError
from gpubench.names import Value


class CudfSession(HostSession):
    """Frames on a CUDA device; arrays of a suite stay with the host, a file's bytes for example."""

    accelerates: ClassVar[bool] = False
    """Whether ``cudf.pandas`` is meant to stand for pandas."""

    def __init__(self, device: str) -> None:
        super().__init__("cudf", device)
        self._errors = Errors(self._translated)
        cupy: Any = import_module("cupy")  # a requirement of cuDF
        self._cuda = cupy.cuda.Device(devices.ordinal(device))
        with self.opening() as ending:
            ending.callback(_use_again, cupy.cuda.Device())
            self._cuda.use()  # before cuDF is imported, which looks for a device
            self.cudf = import_module("cudf")
            if is_accelerated() and not self.accelerates:
                raise BackendError(
                    f"{device}: cudf.pandas is switched on in this process, which runs pandas "
                    "where the GPU cannot; leave `python -m cudf.pandas` and "
                    "cudf.pandas.install() out"
                )
        self._l2_bytes = int(self._cuda.attributes["L2CacheSize"])
        self._facts = {
            "cudf": str(self.cudf.__version__),
            "cudf_accel": self.accelerates,
            "pyarrow": str(pyarrow().__version__),
            "l2_bytes": self._l2_bytes,
        }

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

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        synchronize = self._cuda.synchronize

        def run() -> Any:
            returned = function(*arguments)
            synchronize()
            return returned

        return self._errors.around(run)

    def synchronize(self) -> None:
        with self._errors:
            self._cuda.synchronize()

    def flush(self) -> None:
        if self._scratch is None:
            self._scratch = import_module("cupy").zeros(2 * self._l2_bytes, "uint8")
        self._scratch.fill(1)

    def _translated(self, error: Exception) -> DeviceError | None:
        """RMM, which allocates for cuDF, raises a ``MemoryError``."""
        if not isinstance(error, MemoryError):
            return None
        return DeviceMemoryError(f"{self.device} is out of memory: {error}; use smaller sizes")


class CudfPandasSession(CudfSession):
    """Frames of pandas as ``cudf.pandas`` has them: each stands for a frame on the device, or for a
    frame on the host once something has copied it there."""

    accelerates = True

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self._pandas = import_module("cudf.pandas")
        self._pandas.install()
        self._fallback = import_module("cudf.pandas.fast_slow_proxy").FallbackError
        # Looked at wherever it would go on with pandas.
        self._ending.enter_context(environment({"CUDF_PANDAS_FAIL_ON_FALLBACK": "1"}))

    def table_to_native(self, table: Any) -> Native:
        return self._pandas.as_proxy_object(super().table_to_native(table))

    def table_to_host(self, native: Native) -> Any:
        stands_in = self._pandas.is_proxy_object(native)
        return super().table_to_host(native.as_gpu_object() if stands_in else native)

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        run = super().call_of(function, arguments)

        def watched() -> Any:
            returned = run()
            results = returned if isinstance(returned, tuple | list) else (returned,)
            for frame in filter(self._pandas.is_proxy_object, (*arguments, *results)):
                # One that lies on the host is copied to the device each time.
                if frame.as_gpu_object() is not frame.as_gpu_object():
                    raise DeviceError(
                        f"{self.device}: cudf.pandas brought a {type(frame).__name__} to the "
                        "host; use what cuDF has, or the backend pandas"
                    )
            return returned

        return watched_once(watched, run)

    def _translated(self, error: Exception) -> DeviceError | None:
        if not isinstance(error, self._fallback):
            return super()._translated(error)
        if isinstance(error.__cause__, MemoryError):
            return super()._translated(error.__cause__)
        return DeviceError(
            f"{self.device}: cudf.pandas would compute on the CPU: {' '.join(str(error).split())}"
        )


def _use_again(device: Any) -> None:
    with suppress(Exception):  # a lost device
        device.use()


class CudfBackend(HostBackend):
    name = "cudf"
    title = "cuDF"
    times = ("kernel", "end_to_end", "transfer", "cold", "start")
    capabilities = ("gpu",)
    device_names = CUDA
    runs_on = "cuda:0, cuda:1 ..."
    requires = (require_extra("cudf"),)
    modules = ("cudf", "cupy", "pyarrow")
    pins = "Numba, pandas and pyarrow"
    software = ("cudf-cu13", "cudf-cu12", "rmm-cu13", "rmm-cu12")
    concerns = ("cudf_cu13", "cudf_cu12", "no_gpu", *devices.STEADY_FACTS)
    takes_tables = True
    no_threads = "cuDF computes on the GPU; leave out 'threads'"
    options: ClassVar[Mapping[str, str]] = {
        "accel": "true: functions for pandas run by cudf.pandas; absent: frames of cuDF itself"
    }

    def changes_process(self, options: Mapping[str, Value]) -> bool:
        return bool(options.get("accel"))

    def start(self, device: str, threads: int | None, accel: object = False) -> CudfSession:
        if accel not in (True, False):
            raise BackendError(f"accel of {accel!r}; allowed: true or false")
        return CudfPandasSession(device) if accel else CudfSession(device)
