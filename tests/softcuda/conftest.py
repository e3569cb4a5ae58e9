"""The device in software runs on Linux; elsewhere its tests are skipped, with that reason."""

from __future__ import annotations

import sys

import pytest


def pytest_runtest_setup() -> None:
    if sys.platform != "linux":
        pytest.skip("the CUDA device in software runs on Linux")
