"""Fixtures of all tests of measuring."""

import pytest

from gpubench.measure.disturbance import Counters


@pytest.fixture(autouse=True)
def no_runs_that_are_compared_for_a_time(monkeypatch):
    """How many these are depends on the machine, and scripts go on with each run: kernels here are
    wrong, or crash, in a run with a number. ``tests/wrong`` and one test of its own have them."""
    monkeypatch.setattr("gpubench.measure.case_run.LOOKING", 0.0)


@pytest.fixture(autouse=True)
def no_samples_that_wait_for_a_core(monkeypatch):
    """One that waits, because other tests run beside, is taken again while samples are sized: more
    runs than scripts count. No machine is crowded either."""
    for module in ("sampling", "disturbance"):
        monkeypatch.setattr(f"gpubench.measure.{module}.counters", lambda: Counters(0.0, {}))
