"""What result files told the last time, on disk: a file that did not change is not read again.

One file beside the results directory, in MessagePack: data only, so that a foreign one can do no
harm. It is used for files of the same size and time of change, and as a whole for the same release
of gpubench and the same pairs. One that is damaged, or was written by another release, is left
aside and written anew; where none can be written there is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpubench import __version__
from gpubench.kept import read_kept, write_kept
from gpubench.results.columns import Cases, Columns, Link, Ratios
from gpubench.results.digests import Digest, Head, Stamp, Versions
from gpubench.results.model import CaseName

FORMAT = 2
"""Raised when what is stored, or what is read from the files, changes."""

FOLDER = ".gpubench-cache"
"""Beside the results directory, with a ``.gitignore`` of its own."""

Known = Mapping[str, tuple[Stamp, Digest]]
"""Digests by the path of their files below the results directory, without suffix."""


class _Row(msgspec.Struct, array_like=True):
    """One ``Digest`` as it is stored."""

    stamp: Stamp
    cases: int
    """Index into ``_Content.cases``."""
    statuses: memoryview
    times: memoryview
    """Views of the file's content: what was read is not copied."""
    ratios: dict[int, Ratios]
    head: Head | None
    versions: int
    """Index into ``_Content.versions``."""
    started_at: memoryview
    facts: dict[str, Any]
    at: str | None
    told: bool
    result_faults: tuple[str, ...]
    record_faults: tuple[str, ...]


class _Content(msgspec.Struct, array_like=True):
    """The whole file."""

    key: str
    cases: list[tuple[list[CaseName], list[Link]]]
    versions: list[Versions]
    rows: dict[str, _Row]


def cache_path(results_dir: Path) -> Path:
    """Where the digests of a results directory are kept."""
    place = results_dir.resolve()
    name = hashlib.sha256(str(place).encode()).hexdigest()[:16]
    return place.parent / FOLDER / f"{name}.results"


def cache_key(*what: object) -> str:
    """Names what digests depend on beside the files; release and format are always part of it."""
    told = repr((FORMAT, __version__, *what))
    return hashlib.sha256(told.encode()).hexdigest()


def read_cache(path: Path, key: str) -> Known:
    """What was kept under that key; nothing where there is no such file, or a damaged one."""
    content = read_kept(path, _Content)
    if content is None or content.key != key:
        return {}
    try:
        shared = [Cases(tuple(names), tuple(links)) for names, links in content.cases]
        return {
            name: (row.stamp, _digest(row, shared[row.cases], content.versions[row.versions]))
            for name, row in content.rows.items()
        }
    except (ValueError, IndexError):
        return {}


def write_cache(path: Path, key: str, known: Known) -> None:
    """Keep digests, whole or not at all; where that is impossible, nothing is kept."""
    lasting = {name: (stamp, found) for name, (stamp, found) in known.items() if found.lasting}
    shared = {id(found.columns.cases): found.columns.cases for _, found in lasting.values()}
    places = {identity: place for place, identity in enumerate(shared)}
    versions = {found.versions: None for _, found in lasting.values()}
    version_places = {each: place for place, each in enumerate(versions)}
    content = _Content(
        key,
        [(list(cases.names), list(cases.links)) for cases in shared.values()],
        list(versions),
        {
            name: _row(
                stamp, found, places[id(found.columns.cases)], version_places[found.versions]
            )
            for name, (stamp, found) in lasting.items()
        },
    )
    write_kept(path, content)


def _row(stamp: Stamp, found: Digest, cases: int, versions: int) -> _Row:
    columns = found.columns
    return _Row(
        stamp=stamp,
        cases=cases,
        statuses=memoryview(columns.statuses.tobytes()),
        times=memoryview(columns.times.tobytes()),
        ratios=dict(columns.ratios),
        head=found.head,
        versions=versions,
        started_at=memoryview(found.started_at.tobytes()),
        facts=dict(found.facts),
        at=found.at,
        told=found.told,
        result_faults=found.result_faults,
        record_faults=found.record_faults,
    )


def _digest(row: _Row, cases: Cases, versions: Versions) -> Digest:
    """The digest of a row; raises ``ValueError`` where a column has not the length of its table."""
    count = len(cases.names)
    statuses: NDArray[np.int8] = np.frombuffer(row.statuses, np.int8).reshape(count)
    times = np.frombuffer(row.times, np.float64).reshape(3, count)
    columns = Columns(cases, statuses, times, row.ratios)
    return Digest(
        columns=columns,
        head=row.head,
        versions=versions,
        started_at=np.frombuffer(row.started_at, np.float64).reshape(len(versions)),
        facts=row.facts,
        at=row.at,
        told=row.told,
        result_faults=row.result_faults,
        record_faults=row.record_faults,
    )
