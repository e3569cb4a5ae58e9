"""Result files and the records beside them become batches of rows, in several processes if many."""

from __future__ import annotations

import json
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gpubench.collecting import without_collecting
from gpubench.links import leads_out
from gpubench.parallel import in_processes, processors
from gpubench.record import SUFFIX, RunRecord
from gpubench.results.appended import with_all_processes
from gpubench.results.asv_files import read_result_file
from gpubench.results.asv_json import UnreadableFile
from gpubench.results.counts import CountedFiles, counted_cases
from gpubench.results.model import DETAILS, CaseName
from gpubench.results.pairs import BenchmarkPairs
from gpubench.results.records import RecordFile, RecordReader
from gpubench.results.renames import Renamer
from gpubench.results.rows import RowsOfFiles
from gpubench.results.unfinished import with_unfinished

RESULT_SUFFIX = ".json"
NO_RESULTS = ("machine.json", "benchmarks.json")
"""Files of asv's in the folders of results that hold none."""

LINK = "a symbolic link that leads out of the results, which is not followed; copy the file"

PARALLEL_READ_BYTES = 2**25
"""Bytes from which several processes read: 32 MiB take about a second, as starting them does."""

BATCH = 2**23
"""Bytes of files that are read together at most, but for a single file. They are in memory until
their end, in some five times as many bytes; more at once do not save time."""

MAX_DETAILS = 50_000
"""Details, in some 4 KB each, from which a reader forgets what files have in common."""

LARGER = 2**24
"""Bytes: more than a record of ten thousand cases has, and less than glibc's limit of 32 MiB."""

Stamp = tuple[int, int, int, int, int, int]
"""Of the result file and of the record: size, and the moments in ns at which its content and its
entry in the folder changed; -1 where there is none. Anybody can set the first moment, nobody the
second."""


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """A result file and the record beside it, either of which may be missing."""

    name: str
    """Path of both below the results directory, without suffix."""
    result: Path | None
    record: Path | None
    stamp: Stamp

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the result file and of the record; 0 where there is none."""
        return max(self.stamp[0], 0), max(self.stamp[3], 0)

    @property
    def moments(self) -> tuple[int, int]:
        """When the contents of the result file and of the record changed, in ns since 1970; -1
        where there is none."""
        return self.stamp[1], self.stamp[4]


@dataclass(frozen=True, slots=True)
class SnapshotHead:
    """What the two files say beside rows: columns of the table ``snapshots``, and ``versions``."""

    name: str
    """As of ``SnapshotFiles``."""
    stamp: tuple[int, ...]
    """Empty where a file could not be opened: that may change while the file does not."""
    machine: str
    environment: str
    commit: str
    """Eight characters where only a record is left."""
    has_result: bool
    date: float
    """Of the commit; without a result file when it was measured. Seconds since 1970."""
    measured_at: str | None
    facts: Mapping[str, Any]
    concerns: Mapping[str, Any]
    params: Mapping[str, Any]
    faults: Sequence[tuple[str, str]]
    """File and what is wrong with it."""
    is_empty: bool
    """Whether there is nothing of gpubench's in the two files."""
    python: str
    """Version; empty when not known."""
    requirements: Mapping[str, str]
    env_vars: Mapping[str, str]
    started_at: float
    """When the first of its benchmarks started, seconds since 1970; 0 when not known."""
    duration: float | None
    """Seconds that its benchmarks took in sum; ``None`` when not known."""
    unlisted: Sequence[str]
    """Benchmarks in the result file that are not reported."""
    versions: Sequence[tuple[str, str | None, float]]
    """asv's name, version and start of each benchmark; the start in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Several files, read."""

    reader: str
    """Who read them; its batches come in their order."""
    heads: Sequence[SnapshotHead]
    names: Sequence[CaseName]
    """Names that no earlier batch of that reader has."""
    details: Sequence[str]
    """Details that no earlier batch has: JSON, which other processes take faster than objects."""
    cells: Mapping[str, NDArray[Any]]
    """As of ``RowColumns``, with indices into all names and details of that reader; ``snapshot`` is
    an index into ``heads``."""
    profiles: Sequence[str]
    """Launches that no earlier batch of that reader has; ``count_lines`` likewise."""
    count_lines: Sequence[str]
    counted: Sequence[tuple[int, int, int, int]]
    """Of each case with counts its index into ``heads``, and into all names, profiles and sets of
    lines of that reader."""


def snapshot_files(
    results_dir: Path, refused: Callable[[str, str], object] = lambda path, why: None
) -> list[SnapshotFiles]:
    """Return all result files and records, in the order of their paths.

    Links that lead out of the folder are left out: a repository could have any file of its
    reader's shown. ``refused`` is called with the path in it of each one, of a folder that cannot
    be read and of a file that is hardly anything but asv's or a record, and with the reason.
    """
    if not results_dir.is_dir():
        return []
    files: dict[tuple[str, str], dict[str, os.DirEntry[str]]] = defaultdict(dict)

    def entries_of(folder: os.DirEntry[str] | Path) -> Iterator[os.DirEntry[str]]:
        # A report looks at every file each time: listing a folder of thousands with pathlib takes
        # longer than all else that is done where none has changed.
        for entry in os.scandir(folder):
            if not (entry.is_symlink() and leads_out(Path(entry.path), results_dir)):
                yield entry
            else:
                refuse(entry, LINK)

    def refuse(entry: os.DirEntry[str], why: str) -> None:
        refused(Path(entry.path).relative_to(results_dir).as_posix(), why)

    for folder in entries_of(results_dir):
        try:
            entries = [*entries_of(folder)] if Path(folder.path).is_dir() else []
        except OSError as error:
            refuse(folder, f"it cannot be read: {error}")
            continue
        for entry in entries:
            suffix = SUFFIX if entry.name.endswith(SUFFIX) else RESULT_SUFFIX
            if not entry.name.endswith(suffix):
                if entry.name.lower().endswith((SUFFIX, RESULT_SUFFIX)):
                    refuse(entry, f"results and records end in .json and {SUFFIX}; rename it")
            elif entry.name not in NO_RESULTS:
                files[folder.name, entry.name.removesuffix(suffix)][suffix] = entry
    listed = []
    for (folder_name, stem), of_stem in sorted(files.items()):
        result, record = of_stem.get(RESULT_SUFFIX), of_stem.get(SUFFIX)
        listed.append(
            SnapshotFiles(
                name=f"{folder_name}/{stem}",
                result=Path(result.path) if result else None,
                record=Path(record.path) if record else None,
                stamp=(*_stamp(result), *_stamp(record)),
            )
        )
    return listed


def _stamp(entry: os.DirEntry[str] | None) -> tuple[int, int, int]:
    try:
        stat = entry.stat() if entry else None
    except OSError:
        stat = None
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) if stat else (-1, -1, -1)


def read_all(files: Sequence[SnapshotFiles], pairs: BenchmarkPairs) -> Iterator[Batch]:
    """Read files in batches, in their order; in several processes where there is much."""
    sizes = [sum(file.sizes) for file in files]
    processes = processors() if sum(sizes) >= PARALLEL_READ_BYTES else 1
    most = min(BATCH, sum(sizes) // processes + 1)
    batches: list[list[SnapshotFiles]] = []
    for file, before in zip(files, accumulate(sizes, initial=0), strict=False):
        if before // most >= len(batches):
            batches.append([])
        batches[-1].append(file)
    read = partial(_read_batch, run=secrets.token_hex(8), pairs=pairs)
    try:
        yield from in_processes(read, batches, processes)
    finally:
        _readers.clear()


_readers: dict[str, Reader] = {}
"""The reader of this process, by what it reads for. A reader is kept from batch to batch, since a
process gets batches one by one."""


def _read_batch(files: Sequence[SnapshotFiles], run: str, pairs: BenchmarkPairs) -> Batch:
    if run not in _readers or _readers[run].is_full:
        _readers.clear()
        _readers[run] = Reader(pairs)
    return _readers[run].read(files)


class Reader:
    """Reads files in batches; what they have in common is decoded once, and given once."""

    def __init__(self, pairs: BenchmarkPairs) -> None:
        self._name = secrets.token_hex(8)
        self._pairs = pairs
        self._records, self._rows = RecordReader(), RowsOfFiles(pairs)
        self._renamer = Renamer(pairs.renames)
        self._counts = CountedFiles()
        self._given = (0, 0, 0, 0)
        """Names, details, profiles and sets of lines in the batches so far."""

    @property
    def is_full(self) -> bool:
        """Whether it knows as much as it should."""
        return max(self._given[1:]) >= MAX_DETAILS

    @without_collecting()  # until all but the batch is gone
    def read(self, files: Iterable[SnapshotFiles]) -> Batch:
        """Read some files; what cannot be read is named in the faults."""
        # glibc gives memory back to the system that exceeds twice the largest block freed so far,
        # and gets it anew, page by page: that took a quarter of the time to read a record.
        bytes(LARGER)
        heads = []
        counted: list[tuple[int, int, int, int]] = []
        for number, file in enumerate(files):
            head, record = _read(
                number, file, self._records, self._rows, self._pairs, self._renamer
            )
            heads.append(head)
            counted += (
                (number, self._rows.number_of(name), *self._counts.numbers(counts))
                for name, counts in counted_cases(record)
            )
        columns = self._rows.columns()
        profiles, lines = [*self._counts.profiles], [*self._counts.lines]
        starts = self._given
        self._given = len(columns.names), len(columns.details), len(profiles), len(lines)
        details = columns.details[starts[1] :]
        texts = [json.dumps({name: getattr(one, name) for name in DETAILS}) for one in details]
        return Batch(
            self._name,
            heads,
            columns.names[starts[0] :],
            texts,
            columns.cells,
            profiles[starts[2] :],
            lines[starts[3] :],
            counted,
        )


def _read(
    number: int,
    files: SnapshotFiles,
    records: RecordReader,
    rows: RowsOfFiles,
    pairs: BenchmarkPairs,
    renamer: Renamer,
) -> tuple[SnapshotHead, RecordFile]:
    record = records.read(files.record) if files.record else RecordFile()
    faults = [(f"{files.name}{SUFFIX}", fault) for fault in record.faults]
    result, opened = None, record.opened
    folder, _, stem = files.name.partition("/")
    if files.result:
        try:
            result = read_result_file(files.result, folder, pairs)
        except UnreadableFile as error:
            faults.insert(0, (f"{files.name}.json", str(error)))
            opened = opened and not isinstance(error.__cause__, OSError)
    if result:
        faults[:0] = [(f"{files.name}.json", fault) for fault in result.faults]
    result, record = with_all_processes(result, record, files.record)
    shown, record = renamer.apply(*with_unfinished(result, record, files.record))
    rows.add(number, shown, record)
    commit, _, environment = stem.partition("-")
    benchmarks = shown.benchmarks if shown else ()
    run = record.run or RunRecord("")
    head = SnapshotHead(
        name=files.name,
        stamp=files.stamp if opened else (),
        machine=folder,
        environment=result.environment if result else environment,
        commit=result.commit if result else commit,
        has_result=result is not None,
        date=result.date if result else _seconds(run.at),
        measured_at=run.at or None,
        facts=run.facts,
        concerns=run.concerns,
        params=result.params if result else {},
        faults=faults,
        is_empty=not (benchmarks or record.stories or record.counted),
        python=result.python if result else "",
        requirements=result.requirements if result else {},
        env_vars=result.env_vars if result else {},
        started_at=min((b.started_at for b in benchmarks if b.started_at), default=0.0),
        duration=result.duration if result else None,
        unlisted=result.unlisted if result else (),
        versions=[(b.asv_name, b.version, b.started_at) for b in benchmarks],
    )
    return head, record


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError, OSError):  # no moment, or one beyond what the system counts
        return 0.0
