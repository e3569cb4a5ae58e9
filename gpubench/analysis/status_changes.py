"""Where a case became wrong, failed or was skipped, and where it has a time again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpubench.results import ABSENT, CaseHistories, CaseName
from gpubench.statuses import RIGHT_STATUSES, STATUSES, Status

MIN_COMMITS = 2
"""Commits in a row with one status from which it is told; the newest commit alone counts too. A
single failure among times is a machine's more often than a commit's."""


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One case that has another status than before."""

    name: CaseName
    before: int
    """Index of the last snapshot with the status before."""
    after: int
    """Index of the first snapshot with the new one."""
    old: Status
    new: Status
    seconds: float | None
    """Time at ``before``, or where that has none at ``after``: the last or the first good one."""

    @property
    def is_worse(self) -> bool:
        """Whether it was good and is not."""
        return self.new not in RIGHT_STATUSES


def find_status_changes(history: CaseHistories) -> list[StatusChange]:
    """Return every change between good, wrong, failed and skipped that lasts, oldest first."""
    good = np.array([status in RIGHT_STATUSES for status in STATUSES])
    is_bad = (history.statuses != ABSENT) & ~good[history.statuses]
    changes = []
    for case in np.flatnonzero(is_bad.any(axis=1)).tolist():
        changes += _of_case(history, case, good)
    return sorted(changes, key=lambda change: (change.after, change.name))


def _of_case(history: CaseHistories, case: int, good: np.ndarray) -> list[StatusChange]:
    places = np.flatnonzero(history.statuses[case] != ABSENT)
    numbers = history.statuses[case, places]
    kinds = np.where(good[numbers], -1, numbers)  # all good statuses are one
    starts = np.concatenate([[0], np.flatnonzero(np.diff(kinds)) + 1])
    stops = np.concatenate([starts[1:], [len(kinds)]])
    lasting = (stops - starts >= MIN_COMMITS) | (stops == len(kinds))
    changes: list[StatusChange] = []
    previous = None
    for start, stop in zip(starts[lasting].tolist(), stops[lasting].tolist(), strict=True):
        if previous is not None and kinds[previous] != kinds[start]:
            before, after = int(places[previous]), int(places[start])
            times = history.times[0, case, [before, after]]
            known = times[~np.isnan(times)]
            old, new = STATUSES[numbers[previous]], STATUSES[numbers[start]]
            seconds = float(known[0]) if known.size else None
            name = history.names[case]
            changes.append(StatusChange(name, before, after, old, new, seconds))
        previous = stop - 1
    return changes
