"""A comparison raises no alarm for a change that the project knows of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from histories import NUMBA, history_of, snapshot, timed

from gpubench.analysis.acknowledged import without_known_alarms
from gpubench.analysis.differences import Difference, SnapshotComparison
from gpubench.results import CaseHistories, CaseName, Table
from gpubench.results.acknowledgement import Acknowledgement


@dataclass
class OneHistory:
    """A table with one history."""

    of: CaseHistories
    acknowledged: tuple[Acknowledgement, ...]

    def is_rate(self, _name: CaseName) -> bool:
        return False

    def threshold(self, _name: CaseName) -> None:
        return None

    def history(self, _setup: object, _names: Sequence[CaseName]) -> CaseHistories:
        return self.of


def alarms(seconds: Sequence[float], *known: int, pattern: str = "*") -> tuple[bool, str]:
    """Whether the newest commit is an alarm against the first, and the note, where slower commits
    at these places are known."""
    noise = np.exp(np.random.default_rng(1).normal(0, 0.005, len(seconds)))
    snapshots = [snapshot(index) for index in range(len(seconds))]
    rows = [timed(NUMBA, float(time * n)) for time, n in zip(seconds, noise, strict=True)]
    of = history_of([(one, {NUMBA: row}) for one, row in zip(snapshots, rows, strict=True)])
    entries = tuple(
        Acknowledgement(snapshots[place].commit.hash, (pattern,), "known", "Ada") for place in known
    )
    slower = Difference(NUMBA, "slower", True, rows[0], rows[-1], None, None, "", "times")
    fields: dict[str, Any] = dict.fromkeys(SnapshotComparison.__dataclass_fields__)
    fields |= {"old": snapshots[0], "new": snapshots[-1], "differences": (slower,)}
    table = cast("Table", OneHistory(of, entries))
    (item,) = without_known_alarms(SnapshotComparison(**fields), table).differences
    return item.is_sure, item.note


STEP = [1.0] * 15 + [1.5] * 15
TWO_STEPS = [*STEP, *[2.0] * 15]


def test_a_known_step_is_no_alarm_and_says_who_knows() -> None:
    assert alarms(STEP, 15) == (False, "acknowledged by Ada: known")


@pytest.mark.parametrize("known", [(), (0,)])
def test_what_nobody_knows_or_the_older_side_has_is_one(known: tuple[int, ...]) -> None:
    assert alarms(STEP, *known) == (True, "")


def test_other_benchmarks_are_not_known() -> None:
    assert alarms(STEP, 15, pattern="sort*")[0]


def test_the_next_step_is_an_alarm_again_until_it_is_known_too() -> None:
    assert alarms(TWO_STEPS, 15)[0]
    assert not alarms(TWO_STEPS, 15, 30)[0]


def test_of_two_commits_the_newer_one_may_be_known() -> None:
    assert not alarms([1.0, 1.5], 1)[0]


def failing(*known: int) -> str:
    """The verdict on a case that fails from the tenth commit on, and for a while before."""
    snapshots = [snapshot(index) for index in range(15)]
    rows = [timed(NUMBA, None if index in (4, 5) or index >= 10 else 1.0) for index in range(15)]
    of = history_of([(one, {NUMBA: row}) for one, row in zip(snapshots, rows, strict=True)])
    entries = tuple(
        Acknowledgement(snapshots[place].commit.hash, ("*",), "known", "Ada") for place in known
    )
    failed = Difference(NUMBA, "failed", False, rows[7], rows[-1], None, None, "broken", None)
    fields: dict[str, Any] = dict.fromkeys(SnapshotComparison.__dataclass_fields__)
    fields |= {"old": snapshots[7], "new": snapshots[-1], "differences": (failed,)}
    table = cast("Table", OneHistory(of, entries))
    (item,) = without_known_alarms(SnapshotComparison(**fields), table).differences
    return f"{item.verdict}: {item.note}"


def test_a_failure_that_is_known_is_no_alarm_and_another_one_is() -> None:
    assert failing(10) == "not compared: broken; acknowledged by Ada: known"
    assert failing() == "failed: broken"
    assert failing(4) == "failed: broken"
