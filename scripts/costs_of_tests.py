"""Record what test files cost in ``tests/costs.txt``: the processor seconds of their quick tests.

    python -m pytest -p scripts.costs_of_tests -m "not gpu and not systems" tests/suite

A pytest plugin, which replaces the lines of the files that it sees. Processor seconds are those of
pytest's process and of all processes below it, setup included: a busy machine changes them little.
By them ``conftest.py`` chooses what ``make quick`` runs, and what begins first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

COSTS = Path(__file__).parents[1] / "tests/costs.txt"


class Recorder:
    """Sums the processor seconds of each file of a session."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = processor_seconds()
        result = yield
        # A test that is marked slow is no quick test, whatever its file.
        spent = 0.0 if item.get_closest_marker("slow") else processor_seconds() - before
        self.seconds[item.nodeid.partition("::")[0]] += spent
        return result

    def pytest_sessionfinish(self) -> None:
        write_costs({**read_costs(), **self.seconds})


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder())


def processor_seconds() -> float:
    from gpubench.measure.disturbance import core_use  # conftest.py reads the costs alone

    return core_use().own


def read_costs() -> dict[str, float]:
    """Return the recorded seconds by file."""
    lines = (line.split() for line in COSTS.read_text(encoding="utf-8").splitlines())
    return {file: float(seconds) for seconds, file in lines}


def write_costs(seconds: dict[str, float]) -> None:
    """Write the seconds of files, by their names."""
    lines = (f"{seconds[file]:.1f} {file}\n" for file in sorted(seconds))
    COSTS.write_text("".join(lines), encoding="utf-8")
