"""Outcomes of one snapshot in columns: all that a history over commits is made from.

A thousand commits of a thousand cases are a million outcomes; as objects they fill memory and take
most of a report's time, as columns they are a few arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gpubench.record import CaseRecord
from gpubench.results.model import CaseName, Outcome, Status, Timing

STATUSES: tuple[Status, ...] = get_args(Status)

_CODES = {status: code for code, status in enumerate(STATUSES)}
_NO_TIME = (math.nan, math.nan, math.nan)

Ratios = tuple[tuple[float, ...], tuple[int, ...]]
"""``pair_ratios`` and ``pair_rounds`` of a record."""


ColumnsRow = tuple[CaseName, Status, tuple[float, float, float] | None, CaseRecord | None, bool]
"""One case: name, status, time, line of the record, and whether it is of a pair."""


@dataclass(frozen=True, slots=True)
class Link:
    """What is stored of a case's baseline."""

    benchmark: str | None = None
    """asv's name of the baseline's benchmark, by the record."""
    case: str | None = None
    """Identity of the baseline's case, by the record."""
    paired: bool = False
    """Whether the case is of a pair, whose candidate always knows its baseline."""


@dataclass(frozen=True, eq=False)
class Cases:
    """The rows of a table: most snapshots of a setup share one object."""

    names: tuple[CaseName, ...]
    links: tuple[Link, ...]

    @cached_property
    def rows(self) -> dict[CaseName, int]:
        """Row of each case."""
        return {name: row for row, name in enumerate(self.names)}


@dataclass(frozen=True, eq=False)
class Columns:
    """Status and time of each case of one snapshot."""

    cases: Cases
    statuses: NDArray[np.int8]
    """Index into ``STATUSES``, one for each case."""
    times: NDArray[np.float64]
    """Median and both ends of its interval in seconds, shape (3, cases); NaN without a time."""
    ratios: Mapping[int, Ratios]
    """Pairs of samples, of the cases that have any, by row."""

    def without(self, left_out: Callable[[CaseName], bool]) -> Columns:
        """The rows whose names are not left out."""
        kept = [row for row, name in enumerate(self.cases.names) if not left_out(name)]
        if len(kept) == len(self.cases.names):
            return self
        names, links = self.cases.names, self.cases.links
        return Columns(
            Cases(tuple(names[row] for row in kept), tuple(links[row] for row in kept)),
            self.statuses[kept],
            self.times[:, kept],
            {place: self.ratios[row] for place, row in enumerate(kept) if row in self.ratios},
        )


class SharedCases:
    """Makes equal tables of cases one object: most snapshots of a setup have the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[CaseName, ...], tuple[Link, ...]], Cases] = {}
        self._objects: dict[int, tuple[Cases, Cases]] = {}
        """What was asked for and what is shared, by the identity of the first: comparing costs."""

    def of(self, columns: Columns) -> Columns:
        """The same columns, with the table that others have too."""
        cases = columns.cases
        if id(cases) not in self._objects:
            first = self._known.setdefault((cases.names, cases.links), cases)
            self._objects[id(cases)] = cases, first
        _, shared = self._objects[id(cases)]
        return columns if shared is cases else replace(columns, cases=shared)


def link_of(outcome: Outcome) -> Link:
    """What one outcome says of its baseline."""
    return _link(outcome.record, outcome.bench is not None)


def _link(record: CaseRecord | None, paired: bool) -> Link:
    if record is None:
        return _shared_link(None, None, paired)
    return _shared_link(record.baseline_benchmark, record.baseline_case, paired)


@lru_cache(maxsize=2**16)
def _shared_link(benchmark: str | None, case: str | None, paired: bool) -> Link:
    return Link(benchmark, case, paired)


def columns_of(outcomes: Mapping[CaseName, Outcome]) -> Columns:
    """Columns of outcomes that are at hand, in their order."""
    if isinstance(outcomes, StoredOutcomes):
        return outcomes.columns
    return made_columns(
        (
            name,
            outcome.status,
            (outcome.timing.median, outcome.timing.low, outcome.timing.high)
            if outcome.timing
            else None,
            outcome.record,
            outcome.bench is not None,
        )
        for name, outcome in outcomes.items()
    )


def made_columns(rows: Iterable[ColumnsRow]) -> Columns:
    """Columns of cases, in their order."""
    names, links, codes, times = [], [], [], []
    ratios: dict[int, Ratios] = {}
    for row, (name, status, time, record, paired) in enumerate(rows):
        names.append(name)
        links.append(_link(record, paired))
        codes.append(_CODES[status])
        times.append(time or _NO_TIME)
        if record and record.pair_ratios:
            ratios[row] = record.pair_ratios, record.pair_rounds
    return Columns(
        Cases(tuple(names), tuple(links)),
        np.array(codes, np.int8),
        np.ascontiguousarray(np.array(times, np.float64).reshape(-1, 3).T),
        ratios,
    )


def timing_of(median: float, low: float, high: float) -> Timing | None:
    """A time by its columns; ``None`` for NaN."""
    return None if median != median else Timing(median, low, high)


class StoredOutcomes(Mapping[CaseName, Outcome]):
    """Outcomes of one snapshot: columns, and the rest from its files once one is asked for."""

    def __init__(self, columns: Columns, read: Callable[[], Mapping[CaseName, Outcome]]) -> None:
        self.columns = columns
        self._read = read
        self._found: Mapping[CaseName, Outcome] | None = None

    def __getitem__(self, name: CaseName) -> Outcome:
        row = self.columns.cases.rows[name]
        if self._found is None:
            self._found = self._read()
        found = self._found.get(name)
        return found if found is not None else self._plain(name, row)

    def __iter__(self) -> Iterator[CaseName]:
        return iter(self.columns.cases.names)

    def __len__(self) -> int:
        return len(self.columns.cases.names)

    def __contains__(self, name: object) -> bool:
        return name in self.columns.cases.rows

    def _plain(self, name: CaseName, row: int) -> Outcome:
        """By the columns alone: its files were written anew since, and no longer have it."""
        median, low, high = self.columns.times[:, row].tolist()
        status = STATUSES[self.columns.statuses[row]]
        return Outcome(name, status, timing=timing_of(median, low, high))
