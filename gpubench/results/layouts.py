"""What files have in common: a thousand commits tell of the same cases in the same order.

What became of a benchmark's cases is settled once for each way in which files tell of them. Others
that tell of them so give their times alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.results.asv_files import StoredBenchmark
from gpubench.results.columns import Cases, Columns, ColumnsRow, SharedCases, made_columns
from gpubench.results.model import CaseName, Pair
from gpubench.results.outcomes import Entry, case_names, entries, settled
from gpubench.results.pairs import Partner, partner_record, partners
from gpubench.results.records import Key, StoredRecord, Told

_NO_TIMES = np.empty((3, 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Columns of one benchmark but for the times."""

    cases: Cases
    statuses: NDArray[np.int8]
    untimed: NDArray[np.bool_]
    """Where no time counts, though one may be stored."""


class Layouts:
    """Makes columns of files, and keeps what the next file has in common with them."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        self._known: dict[Hashable, _Layout | None] = {}
        self._shared = SharedCases()
        self._joined: dict[tuple[int, ...], Cases] = {}
        """By the identities of the parts, which are kept."""

    def columns(self, benchmarks: Sequence[StoredBenchmark], record: StoredRecord) -> Columns:
        """Columns of the cases that a result file, its record or both have."""
        times = np.concatenate([_NO_TIMES, *(b.ends for b in benchmarks)], axis=1)
        parts = self._parts(benchmarks, record, np.isfinite(times[0]).tobytes())
        if not parts:
            return _columns(entries(benchmarks, record.whole.told), self._pairs)
        times[:, np.concatenate([part.untimed for part in parts])] = np.nan
        statuses = np.concatenate([part.statuses for part in parts])
        return Columns(self._joined_cases([part.cases for part in parts]), statuses, times, {})

    def _parts(
        self, benchmarks: Sequence[StoredBenchmark], record: StoredRecord, timed: bytes
    ) -> list[_Layout] | None:
        """Layout of each benchmark; ``None`` where something in the two files needs more.

        ``timed`` tells of each case whether it has a time.
        """
        brief = None if self._pairs else record.brief
        if brief is None or not brief.cases.keys() <= {b.asv_name for b in benchmarks}:
            return None
        keys, stop = [], 0
        for benchmark in benchmarks:
            start, stop = stop, stop + len(benchmark.cases)
            own = timed[start:stop]
            missing = tuple(m is None for m in benchmark.medians) if b"\0" in own else ()
            told = tuple(brief.cases.get(benchmark.asv_name, ()))
            keys.append((benchmark.asv_name, benchmark.cases, told, brief.runless, own, missing))
        parts: list[_Layout | Literal[False] | None]
        parts = [self._known.get(key, False) for key in keys]  # a key takes long to look up
        new = [row for row, part in enumerate(parts) if part is False]
        tales = record.told_of({benchmarks[row].asv_name for row in new}) if new else {}
        if tales is None:
            return None
        for row in new:
            parts[row] = self._known[keys[row]] = self._layout(benchmarks[row], tales)
        found = [part for part in parts if part]
        return found if len(found) == len(keys) else None

    def _layout(self, benchmark: StoredBenchmark, tales: Mapping[Key, Told]) -> _Layout | None:
        """``None`` where a case has no value of asv: its place is after the others."""
        own = {key: told for key, told in tales.items() if key[0] == benchmark.asv_name}
        found = entries([benchmark], own)
        names = case_names(benchmark.name, benchmark.cases)
        if tuple(found) != names:
            return None
        columns = self._shared.of(_columns(found, ()))
        return _Layout(columns.cases, columns.statuses, np.isnan(columns.times[0]))

    def _joined_cases(self, parts: Sequence[Cases]) -> Cases:
        identity = tuple(map(id, parts))
        if identity not in self._joined:
            names = tuple(chain.from_iterable(part.names for part in parts))
            links = tuple(chain.from_iterable(part.links for part in parts))
            self._joined[identity] = Cases(names, links)
        return self._joined[identity]


def _columns(found: Mapping[CaseName, Entry], pairs: Sequence[Pair]) -> Columns:
    """What ``columns_of`` makes of the outcomes, without making those."""
    placed = partners(found, pairs)
    return made_columns(_row(name, entry, placed.get(name)) for name, entry in found.items())


def _row(name: CaseName, entry: Entry, partner: Partner | None) -> ColumnsRow:
    status, _, record = settled(entry)
    if partner:
        record = partner_record(name.case, partner)
    return name, status, entry.time if status == "ok" else None, record, partner is not None
