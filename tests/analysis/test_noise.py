"""Scatter within a run and from commit to commit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from histories import history_of, snapshot, timed

from gpubench.analysis.noise import RECENT, Noise, noise
from gpubench.results import CaseName


def measured(*commits: dict[str, float | None]) -> Noise:
    rows = [
        {name: timed(name, s) for case, s in times.items() if (name := numpy(case))}
        for times in commits
    ]
    return noise([history_of([(snapshot(day), row) for day, row in enumerate(rows)])])


def numpy(case: str) -> CaseName:
    return CaseName("s", "k", "numpy", "kernel", case)


def test_half_widths_are_relative_to_the_median() -> None:
    found = measured({"n=1": 2.0, "n=2": 50.0})

    assert found.within == pytest.approx(0.01)
    assert (found.times, found.between) == (2, None)


def test_neighbours_are_compared_case_by_case_over_gaps() -> None:
    found = measured({"n=1": 1.0}, {"n=1": None}, {"n=1": 1.02}, {"n=1": 1.02})

    assert found.neighbours == 2
    assert found.between == pytest.approx(0.01)


def test_only_the_newest_times_count() -> None:
    loud = [{"n=1": float(2 ** (day % 2))} for day in range(20)]
    quiet = [{"n=1": 1.0} for _ in range(RECENT)]

    found = measured(*loud, *quiet)

    assert (found.neighbours, found.between) == (RECENT - 1, 0.0)


def test_no_interval_is_no_noise() -> None:
    assert measured({"n=1": None}).within is None


def test_a_time_whose_ends_are_not_known_has_no_width() -> None:
    row = replace(timed(numpy("n=1"), 1.0), low=None, high=None)

    found = noise([history_of([(snapshot(), {row.name: row})])])

    assert (found.times, found.within) == (0, None)
