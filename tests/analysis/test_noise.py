"""Scatter within a run and from commit to commit."""

from __future__ import annotations

import pytest

from gpubench.analysis.history import by_setup
from gpubench.analysis.noise import Noise, noise
from gpubench.results import CaseName, Commit, Outcome, Results, Snapshot, Timing


def measured(*commits: dict[str, float | None]) -> Noise:
    snapshots, known = [], []
    for day, times in enumerate(commits):
        outcomes = {}
        for case, seconds in times.items():
            name = CaseName("s", "k", "numpy", "kernel", case)
            timing = Timing(seconds, 0.99 * seconds, 1.01 * seconds) if seconds else None
            outcomes[name] = Outcome(name, "ok" if timing else "failed", timing=timing)
        known.append(Commit(f"{day:08}", day))
        snapshots.append(Snapshot("box", "env", f"{day:08}", day, outcomes))
    return noise(by_setup(Results(tuple(snapshots), tuple(known)))[0])


def test_half_widths_are_relative_to_the_median() -> None:
    found = measured({"n=1": 2.0, "n=2": 50.0})

    assert found.within == pytest.approx(0.01)
    assert (found.times, found.between) == (2, None)


def test_neighbours_are_compared_case_by_case_over_gaps() -> None:
    found = measured({"n=1": 1.0}, {"n=1": None}, {"n=1": 1.02}, {"n=1": 1.02})

    assert found.neighbours == 2
    assert found.between == pytest.approx(0.01)


def test_no_interval_is_no_noise() -> None:
    assert measured({"n=1": None}).within is None
