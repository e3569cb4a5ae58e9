"""Counts of verdicts and statuses, and why cases have no time."""

from __future__ import annotations

from dataclasses import replace

from histories import NUMBA, NUMPY, timed

from gpubench.analysis.tally import by_reason, count, worst_status
from gpubench.results import Ratio, Row
from gpubench.statuses import Status

BASELINE = timed(NUMPY, 1.0)
CASE = timed(NUMBA, 1.0)


def without_time(status: Status, reason: str) -> Row:
    return Row(NUMBA, status, reason)


def test_every_case_counts_once_and_what_does_not_occur_is_left_out() -> None:
    rows = [
        BASELINE,
        replace(CASE, speedup=Ratio(2.0, 1.9, 2.1)),
        replace(CASE, speedup=Ratio(2.0, 0.5, 2.1)),
        replace(CASE, missing="the baseline numpy n=4 has no time: failed"),
        CASE,
        without_time("wrong", "off"),
        without_time("skipped", "no device"),
    ]

    assert count(rows) == {
        "faster": 1,
        "unclear": 1,
        "not compared": 1,
        "wrong": 1,
        "skipped": 1,
        "baseline": 1,
        "time only": 1,
    }


def test_the_most_urgent_status_stands_for_all() -> None:
    rows = [CASE, without_time("skipped", ""), without_time("timed_out", "")]

    assert worst_status(rows) == "timed_out"
    assert worst_status([CASE]) == "ok"
    assert worst_status([]) == "ok"


def test_reasons_are_listed_by_urgency_then_by_how_many_cases_they_hold() -> None:
    rows = [
        without_time("skipped", "no device"),
        without_time("failed", "out of memory"),
        without_time("failed", "overflow"),
        without_time("failed", "overflow"),
        CASE,
    ]

    groups = [(status, reason, len(cases)) for status, reason, cases in by_reason(rows)]

    assert groups == [
        ("failed", "overflow", 2),
        ("failed", "out of memory", 1),
        ("skipped", "no device", 1),
    ]
