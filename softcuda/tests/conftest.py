"""The device in software runs on Linux; elsewhere its tests are skipped, with that reason."""

from __future__ import annotations

import signal
import sys

import pytest


def pytest_configure() -> None:
    # In the background a shell has them ignore Ctrl-C, and with them every process that they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup() -> None:
    if sys.platform != "linux":
        pytest.skip("the CUDA device in software runs on Linux")
