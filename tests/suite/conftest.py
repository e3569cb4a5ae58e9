"""Builders for suites: one that is right, and the faults of a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_suite import SUITE

from gpubench.errors import SuiteError
from gpubench.suite.loading import LoadedSuite, load_suite


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., LoadedSuite]:
    """Load a text as ``small.yaml``."""

    def load_text(text: str = SUITE, preset: str | None = None) -> LoadedSuite:
        path = tmp_path / "small.yaml"
        path.write_text(text, encoding="utf-8")
        return load_suite(path, preset)

    return load_text


@pytest.fixture
def faults(load: Callable[..., LoadedSuite]) -> Callable[..., list[str]]:
    """Faults of a text as ``line:column: message``, empty when it loads."""

    def faults_of(text: str, preset: str | None = None) -> list[str]:
        try:
            load(text, preset)
        except SuiteError as error:
            return [str(fault).partition("small.yaml:")[2] for fault in error.faults]
        return []

    return faults_of
