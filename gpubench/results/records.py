"""Reads the record beside a result file and settles what it says about each case.

A thousand commits write nearly the same record a thousand times: but for the moment ``at`` most
lines are equal. So a line is decoded once, and what the same lines say of a case is settled once,
for all files that one ``RecordReader`` reads.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.record import (
    APPENDED,
    UNCOMMITTED,
    CaseRecord,
    CountsRecord,
    Disturbance,
    RoundsRecord,
    RunRecord,
    parse_line,
)
from gpubench.results.asv_files import LONGEST, SHORTEST
from gpubench.results.asv_json import UnreadableFile, read_limited
from gpubench.results.ratio import Rounds, rounds_of

RUN = "run"
"""Fact that all processes of one ``asv run`` share; it tells rounds from a repeated run."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseStory:
    """What the lines of a record say of one case: of the last run that measured it."""

    outcome: CaseRecord | None
    """The line that counts; ``None`` when the case never finished."""
    pending: CaseRecord | None = None
    """A ``started`` line that nothing followed for this case: it was stopped."""
    pending_seconds: float | None = None
    """From that line to the next line of any case; ``None`` when it is the last of the file."""
    run: int = 0
    """Number of that run in the file; 0 for one that is not known."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record file, read."""

    stories: Mapping[str, Mapping[str, CaseStory]] = field(default_factory=dict)
    """By asv benchmark and identity; what files have in common is one object."""
    rounds: Mapping[str, Mapping[str, Rounds]] = field(default_factory=dict)
    """Of all processes of that run; cases without any left out."""
    disturbed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Share of the samples of all processes of that run that others disturbed, 0 to 1; cases of
    which it is not known left out."""
    run: RunRecord | None = None
    """The last ``run`` line."""
    faults: tuple[str, ...] = ()
    """Lines that could not be read, one sentence each."""
    opened: bool = True
    """False where the file could not be opened."""
    runs: Sequence[Value | None] = (None,)
    """By ``CaseStory.run``, the fact that tells a run from others."""
    appending: frozenset[Value | None] = frozenset()
    """Of ``runs``, those whose samples asv was to add to what it had."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Samples of all processes of the run that ``rounds`` are of, each of one run of the kernel; 0
    where only an earlier run has any, cases without any on record left out."""
    repeated: frozenset[tuple[str, str]] = frozenset()
    """Benchmark and identity of the cases that several runs have samples of."""
    counted: Mapping[str, Mapping[str, CountsRecord]] = field(default_factory=dict)
    """By asv benchmark and identity, the last line of counts, whichever run wrote it."""


_MOMENT = re.compile(rb'"at": "(\d{4}-[^"]*)"')
_RUN_BITS = 32
"""A line of a case is its number, and above these bits the number of its run."""


class _File:
    """What the lines of one file said so far."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._last_run: RunRecord | None = None
        self._runs: list[Value | None] = [None]
        self._appending: set[Value | None] = set()
        self._uncommitted: dict[int, Value] = {}
        self._rounds: dict[tuple[str, str], tuple[int, list[RoundsRecord]]] = {}
        self._repeated: set[tuple[str, str]] = set()
        self.run = 0
        """Index into the runs of the run that wrote the lines from here on."""
        self.faults: list[str] = []
        self.of_benchmarks: dict[str, list[int]] = defaultdict(list)
        """By asv benchmark, the lines of its cases as numbers, with that of the run."""
        self.counted: dict[str, dict[str, CountsRecord]] = defaultdict(dict)

    def begin(self, record: RunRecord, place: int) -> None:
        """Begin with the lines of a run."""
        at = _moments(self._content, place, 1)[0] or record.at
        self._last_run = replace(record, at=at)
        value = record.facts.get(RUN)
        if value not in self._runs:
            self._runs.append(value)
        self.run = self._runs.index(value)
        if record.facts.get(APPENDED):
            self._appending.add(value)
        if paths := record.facts.get(UNCOMMITTED):
            self._uncommitted[self.run] = paths

    def add_rounds(self, record: RoundsRecord) -> None:
        """Add a process's rounds of a case to those of the same run; where the run is not known,
        the last line counts."""
        key = record.benchmark, record.case
        before = self._rounds.get(key)
        if before is None or before[0] != self.run or self.run == 0:
            if before:
                self._repeated.add(key)
            self._rounds[key] = self.run, []
        self._rounds[key][1].append(record)

    def finish(self, stories: Mapping[str, Mapping[str, CaseStory]]) -> RecordFile:
        """Return the file with the stories of its cases."""
        rounds: dict[str, dict[str, Rounds]] = defaultdict(dict)
        disturbed: dict[str, dict[str, float]] = defaultdict(dict)
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for (benchmark, case), (run, processes) in self._rounds.items():
            story = stories.get(benchmark, {}).get(case)
            counts[benchmark][case] = 0
            if story is None or story.run != run:
                continue
            counts[benchmark][case] = sum(len(one.samples or one.rounds) for one in processes)
            medians = rounds_of(process.rounds for process in processes)
            seconds = medians.counted
            if seconds and SHORTEST <= min(seconds) <= max(seconds) <= LONGEST:
                rounds[benchmark][case] = medians
            share = share_disturbed(process.disturbance for process in processes)
            if share is not None:
                disturbed[benchmark][case] = share
        last = self._last_run
        return RecordFile(
            stories,
            rounds,
            disturbed,
            last and _with_uncommitted(last, self._uncommitted, stories),
            tuple(self.faults),
            runs=self._runs,
            appending=frozenset(self._appending),
            counts=counts,
            repeated=frozenset(self._repeated),
            counted=self.counted,
        )


class RecordReader:
    """Reads record files, and decodes what they have in common once."""

    def __init__(self) -> None:
        self._records: list[CaseRecord] = []
        self._numbers: dict[bytes, int] = {}
        """Index into ``_records`` by a line without its moment."""
        self._benchmarks: dict[tuple[int, ...], tuple[Mapping[str, CaseStory], bool]] = {}
        """By the lines of one benchmark; and whether one of its cases was stopped."""
        self._stories: dict[tuple[int, ...], CaseStory] = {}
        """By the lines of one case."""
        self._counted: dict[bytes, CountsRecord] = {}
        """By the digest of a line, which may be long."""

    def read(self, path: Path) -> RecordFile:
        """Read one file; what cannot be read is named in ``faults``."""
        try:
            content = read_limited(path)
        except OSError as error:
            return RecordFile(faults=(f"it cannot be read: {error}",), opened=False)
        except UnreadableFile as error:
            return RecordFile(faults=(str(error),))
        lines = _MOMENT.sub(b'"at": ""', content).split(b"\n")
        file = _File(content)
        # Nearly all lines are known by their text, and nothing else of them is looked at.
        for place, number in enumerate(map(self._numbers.get, lines)):
            if number is None:
                number = self._read_line(lines[place], place, file)
                if number is None:
                    continue
            benchmark = self._records[number].benchmark
            file.of_benchmarks[benchmark].append(file.run << _RUN_BITS | number)
        stories = {
            benchmark: self._benchmark(tuple(of_benchmark), content, lines)
            for benchmark, of_benchmark in file.of_benchmarks.items()
        }
        return file.finish(stories)

    def _read_line(self, line: bytes, place: int, file: _File) -> int | None:
        """Return the index of a new line of a case in ``_records``; keep any other line in the
        file."""
        if not line.strip():
            return None
        digest = hashlib.blake2b(line, digest_size=16).digest()
        try:
            record = self._counted.get(digest) or parse_line(line)
        except GpubenchError as error:
            file.faults.append(f"line {place + 1} is left out: {error}")
            return None
        match record:
            case RunRecord():
                file.begin(record, place)
            case RoundsRecord():
                file.add_rounds(record)
            case CountsRecord():
                self._counted[digest] = file.counted[record.benchmark][record.case] = record
            case _:
                self._records.append(record)
                number = self._numbers[line] = len(self._records) - 1
                return number
        return None

    def _benchmark(
        self, of_benchmark: tuple[int, ...], content: bytes, lines: Sequence[bytes]
    ) -> Mapping[str, CaseStory]:
        """Stories of the cases of one benchmark."""
        stories, is_stopped = self._benchmarks.get(of_benchmark, ({}, False))
        if not stories:
            cases: dict[str, list[int]] = {}
            for line in of_benchmark:
                case = self._record(line).case
                of_case = cases.setdefault(case, [])
                if of_case and of_case[-1] >> _RUN_BITS != line >> _RUN_BITS:
                    of_case.clear()  # only the last run of a case counts
                of_case.append(line)
            stories = {case: self._story(tuple(of_case)) for case, of_case in cases.items()}
            is_stopped = any(story.pending for story in stories.values())
            self._benchmarks[of_benchmark] = stories, is_stopped
        if not is_stopped:  # as nearly always
            return stories
        pending = {case: story for case, story in stories.items() if story.pending}
        for case, story in pending.items():
            started = next(
                place
                for place in reversed(range(len(lines)))
                if (number := self._numbers.get(lines[place])) is not None
                and self._records[number] is story.pending
            )
            pending[case] = replace(story, pending_seconds=_seconds_after(content, started))
        return {**stories, **pending}

    def _record(self, line: int) -> CaseRecord:
        return self._records[line & (1 << _RUN_BITS) - 1]

    def _story(self, of_case: tuple[int, ...]) -> CaseStory:
        if of_case not in self._stories:
            run = of_case[0] >> _RUN_BITS
            self._stories[of_case] = _settle([*map(self._record, of_case)], run)
        return self._stories[of_case]


def _with_uncommitted(
    last: RunRecord,
    uncommitted: Mapping[int, Value],
    stories: Mapping[str, Mapping[str, CaseStory]],
) -> RunRecord:
    """Return the facts of the last run with the uncommitted files of all runs that a case is of."""
    counting = {story.run for cases in stories.values() for story in cases.values()}
    paths = {
        path
        for run, of_run in uncommitted.items()
        if run in counting
        for path in str(of_run).split(", ")
    }
    if not paths:
        return last
    return replace(last, facts={**last.facts, UNCOMMITTED: ", ".join(sorted(paths))})


def _settle(records: Sequence[CaseRecord], run: int) -> CaseStory:
    """Return the last outcome counts, unless a round of the same run had a worse one.

    Without the ``run`` fact only ``wrong`` outlives a later line: one commit is one code, while
    a failure may have been the machine's.
    """
    lasting = ("wrong", "failed") if run else ("wrong",)
    worst = next((r for status in lasting for r in records if r.status == status), None)
    finished = [record for record in records if record.status != "started"]
    outcome = worst or (finished[-1] if finished else None)
    if outcome is not None and outcome.pair_ratios:
        outcome = _with_all_pairs(outcome, records if run else [outcome])
    is_pending = records[-1].status == "started" and worst is None
    return CaseStory(outcome, records[-1] if is_pending else None, run=run)


def _with_all_pairs(outcome: CaseRecord, records: Iterable[CaseRecord]) -> CaseRecord:
    """Return the outcome with the pairs of all processes of its run.

    A process begins with ``started``; of what it writes after that, the last line counts.
    """
    processes: list[CaseRecord] = []
    for record in records:
        if record.status == "started" or not processes:
            processes.append(record)
        processes[-1] = record
    return with_pairs(outcome, processes)


def with_pairs(outcome: CaseRecord, processes: Iterable[CaseRecord]) -> CaseRecord:
    """Return the outcome with the pairs of several processes, one record of each."""
    paired = [record for record in processes if record.pair_ratios]
    sizes = (record.pair_rounds or (len(record.pair_ratios),) for record in paired)
    by_process = (record.pair_processes or (len(record.pair_ratios),) for record in paired)
    return replace(
        outcome,
        pair_ratios=tuple(chain.from_iterable(record.pair_ratios for record in paired)),
        pair_rounds=tuple(chain.from_iterable(sizes)),
        pair_processes=tuple(chain.from_iterable(by_process)),
    )


def share_disturbed(processes: Iterable[Disturbance | None]) -> float | None:
    """Share of all samples of these processes, 0 to 1; ``None`` where nothing is known."""
    known = [one for one in processes if one is not None]
    taken = [len(one.waiting) + one.again for one in known]
    waited = sum(one.disturbed * count for one, count in zip(known, taken, strict=True))
    return waited / sum(taken) if sum(taken) else None


def _moments(content: bytes, place: int, count: int) -> list[str]:
    """Return when so many lines from that place on were written, as far as they say."""
    lines = content.split(b"\n", place + count)[place : place + count]
    return [
        match[1].decode(errors="replace") if (match := _MOMENT.search(line)) else ""
        for line in lines
    ]


def _seconds_after(content: bytes, place: int) -> float | None:
    """Seconds from a line to the next one; ``None`` where there is none."""
    try:
        start, end = map(datetime.fromisoformat, _moments(content, place, 2))
        return (end - start).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
