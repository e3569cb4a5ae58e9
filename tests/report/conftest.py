"""Lets the tests of the report use the builders of result files, of rows and of histories."""

from __future__ import annotations

import pytest
from report_sample import write_sample

from gpubench.results import Table, open_table


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Six kernels, four implementations, twelve commits."""
    directory = tmp_path_factory.mktemp("sample") / "results"
    write_sample(directory)
    return open_table(directory)
