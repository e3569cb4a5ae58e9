"""The device in software runs on Linux; elsewhere its tests are skipped, with that reason."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import softcuda


def pytest_configure(config: pytest.Config) -> None:
    for mark in ("slow", "ci", "thorough"):  # of gpubench's repository, which chooses by them
        config.addinivalue_line("markers", f"{mark}: takes long")
    # In the background a shell has them ignore Ctrl-C, and with them every process that they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup() -> None:
    if sys.platform != "linux":
        pytest.skip("the CUDA device in software runs on Linux")


@pytest.fixture(autouse=True, scope="module")
def package_path() -> Iterator[None]:
    """Let processes that a test starts find the package where it is not installed."""
    beside = str(Path(softcuda.__file__).parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", beside, prepend=os.pathsep)
        yield
