"""cuML on CUDA devices: its own estimators over CuPy's arrays, or scikit-learn's by cuml.accel.

cuML computes on streams of its own, so that a call waits for the device and the host's clock tells
its time; arrays lie on the device before.

With the option ``accel`` functions are those for scikit-learn: ``cuml.accel`` puts cuML's
estimators in place of scikit-learn's for the whole process, and where they cannot do what is asked
it goes on with scikit-learn's on the CPU, without a word. That would be a time of something else,
so the first run of each call is watched by its profiler: one call on the CPU is a ``DeviceError``.
It cannot be taken back, so that scikit-learn's own backend refuses a process in which it is
enabled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from gpubench.backends import devices
from gpubench.backends.host import CUDA, HostBackend, HostSession, function_of, nothing
from gpubench.backends.limits import ARCHITECTURE_LIMITS
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    Launch,
    Limits,
    LoopSampler,
    Sampler,
    Session,
    Target,
    watched_once,
)
from gpubench.distribution import require_extra
from gpubench.edge.systems.cupy import CupySession
from gpubench.errors import BackendError
from gpubench.names import Value


class CumlSession(CupySession):
    """CuPy's arrays on the device; a call returns when the device is done."""

    def __init__(self, device: str, limits: Limits) -> None:
        self._cuml = import_module("cuml")  # before, as it sets where CuPy takes memory from
        super().__init__(device, limits)

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        function = function_of(target, "cuml")

        def run() -> Any:
            result = function(*arguments)
            self.synchronize()
            return result

        return self._errors.around(run)

    def _is_cudas(self, error: Exception) -> bool:
        return isinstance(error, MemoryError) or super()._is_cudas(error)

    def empty(self) -> Call:
        return nothing

    def peak_bytes(self, run: Call) -> None:
        """Its memory is not of CuPy's pool."""

    def sampler(self, call: Call) -> Sampler:
        return LoopSampler(time.perf_counter, call)

    def sampler_again(self, call: Call) -> Sampler:
        return self.sampler(call)

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        with self._errors:
            self.cupy.cuda.Device().synchronize()

    def facts(self) -> Mapping[str, Value]:
        return {**super().facts(), "cuml": str(self._cuml.__version__), "cuml_accel": False}


class CumlAccelSession(HostSession):
    """NumPy arrays and functions for scikit-learn, whose estimators are cuML's in this process."""

    def __init__(self, device: str) -> None:
        super().__init__("cuml", device)
        self._facts = {"cuml": str(import_module("cuml").__version__), "cuml_accel": True}
        self._accel = import_module("cuml.accel")
        self._accel.install()

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        run = super().call_of(function, arguments)

        def watched() -> Any:
            with self._accel.profile(quiet=True) as profile:
                result = run()
            if reason := why_not_on_the_gpu(profile.method_calls):
                raise DeviceError(f"{self.device}: {reason}")
            return result

        return watched_once(watched, run)


class CumlBackend(HostBackend):
    name = "cuml"
    title = "cuML"
    times = ("kernel", "end_to_end", "transfer", "cold", "start")
    capabilities = ("gpu", "in_place")
    device_names = CUDA
    runs_on = "cuda:0, cuda:1 ..."
    requires = (require_extra("cuml"),)
    modules = ("cuml",)
    pins = "Numba and scikit-learn"
    software = ("cuml-cu13", "cuml-cu12", "cupy-cuda13x", "cupy-cuda12x", "scikit-learn")
    concerns = ("cuml_cu13", "cuml_cu12", "no_gpu", *devices.STEADY_FACTS)
    no_threads = "cuML computes on the GPU; leave out 'threads'"
    options: ClassVar[Mapping[str, str]] = {
        "accel": "true: functions for scikit-learn run by cuml.accel; absent: cuML's own over CuPy",
    }

    def changes_process(self, options: Mapping[str, Value]) -> bool:
        return bool(options.get("accel"))

    def start(self, device: str, threads: int | None, accel: Value | None = None) -> Session:
        if accel not in (None, True, False):
            raise BackendError(f"accel of {accel!r}; allowed: true or false")
        if not accel:
            return CumlSession(device, ARCHITECTURE_LIMITS)  # which no launch of ours meets
        if device != "cuda:0":
            raise BackendError(
                f"{device}: cuml.accel computes on the first GPU; use cuda:0, or set "
                "CUDA_VISIBLE_DEVICES"
            )
        return CumlAccelSession(device)


def why_not_on_the_gpu(method_calls: Mapping[str, Any]) -> str | None:
    """Return what cuml.accel computed on the CPU in place of the GPU; ``None`` where all was on the
    GPU.

    ``method_calls`` are its profiler's: by method how many ``gpu_calls`` and ``cpu_calls`` there
    were, and ``fallback_reasons``.
    """
    for method, stats in method_calls.items():
        if stats.cpu_calls:
            why = "; ".join(sorted(stats.fallback_reasons)) or "it gives no reason"
            return f"cuml.accel computed {method} on the CPU: {why}"
    if not any(stats.gpu_calls for stats in method_calls.values()):
        return "cuml.accel computed nothing: the function uses no estimator that it knows"
    return None
