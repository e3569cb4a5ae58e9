"""XGBoost on the CPU and on CUDA devices: functions over NumPy arrays.

A function gets ``settings`` first, keyword arguments for XGBoost's estimators that say where they
compute and on how many threads: ``xgboost.XGBClassifier(**settings)``. On a CUDA device arrays stay
where NumPy has them: XGBoost brings them there, and predictions back, in each call, so that
``kernel`` has the copies in it and a call returns when it is done.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import Any

from gpubench.backends import devices
from gpubench.backends.host import CPU_AND_CUDA, HostBackend, HostSession, cpu
from gpubench.backends.protocol import Call, DeviceError, watched_once
from gpubench.distribution import require_extra
from gpubench.errors import BackendError
from gpubench.names import CPU


class XGBoostSession(HostSession):
    """Plain calls; ``threads`` is how many XGBoost uses, by default one for each processor."""

    def __init__(self, device: str, threads: int | None) -> None:
        super().__init__("xgboost", device)
        xgboost, threads = import_module("xgboost"), threads or cpu().threads
        self._passed = ({"device": device, "n_jobs": threads},)
        self._facts = {
            "xgboost": str(xgboost.__version__),
            "xgboost_threads": threads,
            "xgboost_cuda": bool(xgboost.build_info().get("USE_CUDA")),
        }


class XGBoostCudaSession(XGBoostSession):
    """The same on a CUDA device.

    XGBoost goes on on the CPU where it finds no GPU, and only warns. That would be a time of
    something else, so the first run of each call is watched: such a warning is a ``DeviceError``.
    """

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        run = super().call_of(function, arguments)

        def watched() -> Any:
            # Recorded, not raised: it is told from inside XGBoost's own code, which exceptions do
            # not pass.
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                result = run()
            for warning in told:
                text = str(warning.message).strip()
                if "to CPU" in text or "No visible GPU" in text:
                    raise DeviceError(
                        f"{self.device}: XGBoost computed on the CPU: {text.splitlines()[-1]}"
                    )
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
            return result

        return watched_once(watched, run)


class XGBoostBackend(HostBackend):
    name = "xgboost"
    title = "XGBoost"
    times = ("kernel", "cold", "start")
    capabilities = ("gpu", "in_place")
    device_names = CPU_AND_CUDA
    runs_on = "cpu, cuda:0, cuda:1 ..."
    requires = (require_extra("xgboost"),)
    modules = ("xgboost",)
    preloads = "xgboost"  # its threads start with the first model
    software = ("xgboost", "xgboost-cpu", "numpy")
    concerns = ("xgboost", "xgboost_cpu", "no_gpu", *devices.STEADY_FACTS)
    passes = ("settings",)

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if device != CPU and not _installed("xgboost") and _installed("xgboost-cpu"):
            return f"{device}: {_WITHOUT_CUDA}"
        return None

    def start(self, device: str, threads: int | None) -> XGBoostSession:
        if device == CPU:
            return XGBoostSession(device, threads)
        if not import_module("xgboost").build_info().get("USE_CUDA"):
            raise BackendError(f"{device}: {_WITHOUT_CUDA}")
        return XGBoostCudaSession(device, threads)


_WITHOUT_CUDA = (
    "the installed XGBoost is built without CUDA; pip uninstall xgboost-cpu, then pip install "
    "xgboost, which has it on Linux and Windows"
)


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
