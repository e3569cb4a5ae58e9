"""What all tests share: where tests run that need a device, and why they are skipped elsewhere.

Tests marked ``gpu`` run on a GPU, or on the CUDA device in software where GPUBENCH_SOFTCUDA=1 asks
for it. Those that judge times are marked ``gpu_time`` beside it and need a GPU.
"""

from __future__ import annotations

import pytest

from gpubench.backends import software
from gpubench.backends.devices import known_gpus, no_gpu_reason
from gpubench.backends.registry import get


def pytest_configure() -> None:
    """The device in software has to be there before a test's module imports Numba's CUDA target."""
    if software.requested():
        no_gpu_reason()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := no_gpu_reason()):
        pytest.skip(reason)
    if item.get_closest_marker("gpu_time") and known_gpus()[0].name == software.NAME:
        pytest.skip(f"judges times, and {software.NAME} has none")
    if item.get_closest_marker("opencl") and (reason := get("pyopencl").unavailable("cl:0:0")):
        pytest.skip(reason)
