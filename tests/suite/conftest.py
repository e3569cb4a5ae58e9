"""Builders for suites: one that is right, and the faults of a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpubench.errors import SuiteError
from gpubench.suite.loading import LoadedSuite, load_suite

SUITE = """\
version: 1
suite: small
kernels:
  add:
    sizes: {n: [4, 8]}
    parameters: {dtype: [float32, float64], tile: [2, 4]}
    arrays:
      a: {shape: [n], dtype: dtype}
      b: {shape: [n], dtype: dtype, intent: inout}
    call: [a, b]
    implementations:
      numpy: {function: some.module:add}
      cuda:
        factory: some.module:make
        with: {tile: tile}
        launch: {block: [64]}
"""
"""A suite without a fault; tests replace or add a line."""


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
