"""One result file and its record: what reports need of every commit, and all that they tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.collecting import without_collecting
from gpubench.results.asv_files import ResultFile, UnreadableFile, read_result_file
from gpubench.results.columns import Columns, SharedCases
from gpubench.results.layouts import Layouts
from gpubench.results.model import CaseName, Outcome, Pair
from gpubench.results.outcomes import entries, outcomes_of
from gpubench.results.pairs import Roles, with_partners
from gpubench.results.records import StoredRecord, read_record

Stamp = tuple[int, int, int, int]
"""Size and time of change in ns, of the result file and of the record; -1 where there is none."""


@dataclass(frozen=True, slots=True)
class Files:
    """A result file and the record beside it, either of which may be missing."""

    stem: Path
    result: Path | None
    record: Path | None

    def stamp(self) -> Stamp:
        """What changes when one of the two is written."""
        return (*_stamp(self.result), *_stamp(self.record))


@dataclass(frozen=True, slots=True)
class Head:
    """What a result file tells beside values."""

    environment: str
    commit: str
    date: float
    """Seconds since 1970."""
    params: Mapping[str, Any]
    """Machine and environment as asv describes them."""


Versions = tuple[tuple[str, str | None], ...]
"""Which version of which benchmark a file holds values of, by asv's name; that of its place for one
in a pair."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What two files tell of one commit, the outcomes in columns."""

    columns: Columns
    head: Head | None
    """``None`` without a readable result file."""
    versions: Versions = ()
    """Of the result file's benchmarks; most files of a setup share one object."""
    started_at: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """When each of these was measured, seconds since 1970; 0 where that is not stored."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the record's last ``run`` line, as ``at`` is."""
    at: str | None = None
    told: bool = True
    """Whether there is anything of gpubench's in the two files."""
    result_faults: tuple[str, ...] = ()
    record_faults: tuple[str, ...] = ()
    lasting: bool = True
    """False where a file could not be opened: that may change while the file does not."""


def digest_all(files: Sequence[Files], roles: Roles, pairs: Sequence[Pair]) -> list[Digest]:
    """Digests in the order of the files; equal tables of cases are one object."""
    layouts = _layouts(tuple(pairs))
    with without_collecting():
        return sharing(digest(each, roles, layouts) for each in files)


@lru_cache(maxsize=1)
def _layouts(pairs: tuple[Pair, ...]) -> Layouts:
    """One for all parts of the files that a process is given."""
    return Layouts(pairs)


def sharing(digests: Iterable[Digest]) -> list[Digest]:
    """The same digests; equal tables of cases, and of versions, are one object."""
    cases, versions = SharedCases(), dict[Versions, Versions]()
    return [
        replace(
            each,
            columns=cases.of(each.columns),
            versions=versions.setdefault(each.versions, each.versions),
        )
        for each in digests
    ]


def digest(files: Files, roles: Roles, layouts: Layouts) -> Digest:
    """Read the two files; what cannot be read is named in the faults."""
    result, faults, opened = _read_result(files, roles)
    record = _read_record(files)
    benchmarks = result.benchmarks if result else ()
    columns = layouts.columns(benchmarks, record)
    brief = record.brief
    told = brief or record.whole
    return Digest(
        columns=columns,
        head=Head(result.environment, result.commit, result.date, result.params)
        if result
        else None,
        versions=tuple((b.asv_name, b.version) for b in benchmarks),
        started_at=np.array([b.started_at for b in benchmarks], np.float64),
        facts=told.facts,
        at=told.at,
        told=bool(benchmarks or (brief.cases if brief else record.whole.told)),
        result_faults=faults,
        record_faults=record.found_faults,
        lasting=opened and record.opened,
    )


def read_outcomes(files: Files, roles: Roles, pairs: Sequence[Pair]) -> dict[CaseName, Outcome]:
    """All that the two files tell of every case."""
    result, _, _ = _read_result(files, roles)
    found = entries(result.benchmarks if result else (), _read_record(files).whole.told)
    return with_partners(outcomes_of(found), pairs)


def _read_result(files: Files, roles: Roles) -> tuple[ResultFile | None, tuple[str, ...], bool]:
    """The file unless it is unreadable, faults, and whether it could be opened."""
    if files.result is None:
        return None, (), True
    try:
        result = read_result_file(files.result, roles)
    except UnreadableFile as error:
        return None, (str(error),), not isinstance(error.__cause__, OSError)
    if result.machine != files.result.parent.name:
        fault = f"it is of the machine {result.machine!r}, in the folder of another"
        return None, (*result.faults, fault), True
    return result, result.faults, True


def _read_record(files: Files) -> StoredRecord:
    return read_record(files.record) if files.record else StoredRecord()


def _stamp(path: Path | None) -> tuple[int, int]:
    try:
        found = path.stat() if path else None
    except OSError:
        found = None
    return (found.st_size, found.st_mtime_ns) if found else (-1, -1)
