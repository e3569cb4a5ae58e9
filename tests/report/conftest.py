"""Lets the tests of the report use the builder of result files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

from report_sample import write_sample

from gpubench.results import Results, load_results


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Six kernels, four implementations, twelve commits."""
    directory = tmp_path_factory.mktemp("sample") / "results"
    write_sample(directory)
    return load_results(directory)
