"""Fixtures of all tests of measuring."""

import pytest


@pytest.fixture(autouse=True)
def no_runs_that_are_compared_for_a_time(monkeypatch):
    """How many these are depends on the machine, and scripts go on with each run: kernels here are
    wrong, or crash, in a run with a number. ``tests/wrong`` and one test of its own have them."""
    monkeypatch.setattr("gpubench.measure.preparation.LOOKING", 0.0)
