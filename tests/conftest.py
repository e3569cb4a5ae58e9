"""What all tests share: a test marked ``gpu`` or ``opencl`` is skipped, with the reason, where
there is no such device."""

from __future__ import annotations

import pytest

from gpubench.backends.devices import no_gpu_reason
from gpubench.backends.registry import get


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := no_gpu_reason()):
        pytest.skip(reason)
    if item.get_closest_marker("opencl") and (reason := get("pyopencl").unavailable("cl:0:0")):
        pytest.skip(reason)
