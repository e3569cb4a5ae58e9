"""What all tests share: a test marked ``gpu`` is skipped, with the reason, where there is none."""

from __future__ import annotations

import pytest

from gpubench.backends.devices import no_gpu_reason


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := no_gpu_reason()):
        pytest.skip(reason)
