"""Histories of a setup: its commits, its cases, and their times as arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.results import store
from gpubench.results.model import (
    CaseName,
    Commit,
    Setup,
    Snapshot,
)
from gpubench.results.ratio import Times

ABSENT = -1
"""Instead of an index into ``STATUSES``, where a snapshot does not have a case."""


@dataclass(frozen=True, eq=False)
class Newest:
    """Each case of a history at the newest of its snapshots that has it."""

    places: NDArray[np.intp]
    """Index of that snapshot."""
    statuses: NDArray[np.int8]
    """Index into ``STATUSES``."""
    baselines: NDArray[np.int32]
    """Index of the case that it was measured against there; -1 without."""

    @classmethod
    def of(cls, statuses: NDArray[np.int8], baselines: NDArray[np.int32]) -> Newest:
        """From arrays of ``CaseHistories``."""
        present = statuses != ABSENT
        places = present.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
        cases = np.arange(len(places))
        return cls(places, statuses[cases, places], baselines[cases, places])


@dataclass(frozen=True, eq=False)
class History:
    """The cases of one setup over its commits, oldest first, without their times: these are read
    for a few cases or a few commits at a time."""

    setup: Setup
    snapshots: tuple[Snapshot, ...]
    names: tuple[CaseName, ...]
    """In natural order."""
    newest: Newest

    @cached_property
    def rows_of(self) -> Mapping[CaseName, int]:
        """Index into ``names``."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """Return one for each snapshot."""
        return tuple(snapshot.commit for snapshot in self.snapshots)

    @cached_property
    def places(self) -> Mapping[Commit, int]:
        """Return the index of each commit."""
        return {commit: place for place, commit in enumerate(self.commits)}

    @cached_property
    def processors(self) -> tuple[str, ...]:
        """Return the names of the processors that measured it."""
        names = {snapshot.processor for snapshot in self.snapshots} - {""}
        return tuple(sorted(names))

    @cached_property
    def by_speedup(self) -> bool:
        """Whether it is of several machines with different processors: then a time says nothing of
        a commit, and a speedup does."""
        machines = {snapshot.measured_on for snapshot in self.snapshots}
        return len(machines) > 1 and len(self.processors) > 1

    @property
    def latest(self) -> Commit:
        """The newest commit."""
        return self.commits[-1]

    @cached_property
    def digest(self) -> str:
        """Changes with anything that a snapshot of it is made from."""
        return store.digest(*(snapshot.digest for snapshot in self.snapshots))

    @cached_property
    def digest_now(self) -> str:
        """Changes with any row of a case at the newest snapshot that has it, with the cases that
        there are, and with the newest commit."""
        places = {*self.newest.places.tolist(), len(self.snapshots) - 1}
        return store.digest(*(self.snapshots[place].digest for place in sorted(places)))


@dataclass(frozen=True, eq=False)
class CaseHistories(History):
    """Cases of one setup over commits with their times: all of them, or a part."""

    statuses: NDArray[np.int8]
    """Index into ``STATUSES`` or ``ABSENT``, shape (cases, snapshots)."""
    times: Times
    """Shape (3, cases, snapshots): seconds, or of what is no time its values in their unit."""
    speedups: Times
    """Ratio and both ends of its interval, shape (3, cases, snapshots); NaN without one."""
    baselines: NDArray[np.int32]
    """Index into ``names`` of what a case was measured against, shape (cases, snapshots); -1
    without."""
    disturbed: NDArray[np.bool_]
    """Whether others disturbed most of its samples, shape (cases, snapshots)."""
    in_turn: NDArray[np.bool_]
    """Whether its speedup is of pairs, shape (cases, snapshots)."""

    @cached_property
    def undisturbed(self) -> Times:
        """``times`` without those, which say nothing of a commit, and without what is no time."""
        is_time = np.array([name.is_time for name in self.names], np.bool_)
        left_out = self.disturbed | ~is_time[:, np.newaxis]
        return np.where(left_out, np.nan, self.times) if left_out.any() else self.times

    @cached_property
    def judged(self) -> Times:
        """What changes are sought in: ``undisturbed`` times, or where processors differ what takes
        their place, the time over the baseline's. Of what is no time its values, where all are
        above 0: only these have a ratio."""
        if not self.by_speedup:
            others = [case for case, name in enumerate(self.names) if not name.is_time]
            values = self.times[:, others]
            is_positive = ~(values[0] <= 0).any(axis=1)
            judged: Times = self.undisturbed.copy() if others else self.undisturbed
            judged[:, others] = np.where(is_positive[:, np.newaxis], values, np.nan)
            return judged
        with np.errstate(divide="ignore"):
            value, low, high = 1 / self.speedups
        times: Times = np.stack([value, high, low])
        times[:, self.disturbed] = np.nan
        return times

    def part(self, cases: Sequence[int]) -> CaseHistories:
        """Return some of the cases, by their indices; what they are compared with is among them."""
        if len(cases) == len(self.names):
            return self
        chosen: Any = [*cases]
        row_of = np.full(len(self.names) + 1, -1, np.int32)  # the last one is that of no baseline
        row_of[chosen] = np.arange(len(cases))
        if chosen and chosen[-1] - chosen[0] == len(chosen) - 1:  # neighbours, which need no copy
            chosen = slice(chosen[0], chosen[-1] + 1)
        statuses, baselines = self.statuses[chosen], row_of[self.baselines[chosen]]
        return CaseHistories(
            setup=self.setup,
            snapshots=self.snapshots,
            names=tuple(self.names[case] for case in cases),
            newest=Newest.of(statuses, baselines),
            statuses=statuses,
            times=self.times[:, chosen],
            speedups=self.speedups[:, chosen],
            baselines=baselines,
            disturbed=self.disturbed[chosen],
            in_turn=self.in_turn[chosen],
        )


@lru_cache(maxsize=2**14)
def natural_order(name: CaseName) -> tuple[object, ...]:
    """Sorts cases by their names with the numbers in them as numbers: ``n=64`` before ``n=256``."""
    case = natural(name.case), name.case  # the numbers alone do not tell 0.1 from 0.01
    return name.suite, name.kernel, name.implementation, name.time, *case


def natural(text: str) -> tuple[Any, ...]:
    """Sorts texts with the numbers in them as numbers."""
    # By length, then by digits: without int(), which refuses numbers of thousands of digits.
    parts = ((part, part.lstrip("0")) for part in re.split(r"([0-9]+)", text))
    return tuple(
        (len(digits), digits) if place % 2 else (-1, text)
        for place, (text, digits) in enumerate(parts)
    )
