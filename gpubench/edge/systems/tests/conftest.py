"""Tests of other systems: all are marked ``systems``, so that ``make test`` leaves them out and
``make test-systems`` runs them in an environment that has the packages."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("systems")
