"""Reads the record beside a result file and settles what it says about each case.

A thousand commits write nearly the same record a thousand times: but for the moment ``at`` most
lines are equal. So a line is decoded once, and what the same lines say of a case is settled once,
for all files that one ``RecordReader`` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.record import (
    FORMAT,
    CaseRecord,
    Line,
    RoundsRecord,
    RunRecord,
    parse_line,
)
from gpubench.results.asv_files import UnreadableFile, read_limited

RUN = "run"
"""Fact that all processes of one ``asv run`` share; it tells rounds from a repeated run."""

CaseKey = tuple[str, str]
"""asv benchmark and identity of a case."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseStory:
    """What the lines of a record say of one case: of the last run that measured it."""

    outcome: CaseRecord | None
    """The line that counts; ``None`` when the case never finished."""
    pending: CaseRecord | None = None
    """A ``started`` line that nothing followed for this case: it was stopped."""
    pending_seconds: float | None = None
    """From that line to the next line of any case; ``None`` when it is the last of the file."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record file, read."""

    stories: Mapping[CaseKey, CaseStory] = field(default_factory=dict)
    """What files have in common is one object."""
    rounds: Mapping[CaseKey, tuple[float, ...]] = field(default_factory=dict)
    """Medians of the rounds of all processes of that run, seconds; cases without any left out."""
    run: RunRecord | None = None
    """The last ``run`` line."""
    faults: tuple[str, ...] = ()
    """Lines that could not be read, one sentence each."""
    opened: bool = True
    """False where the file could not be opened."""


class _LineHead(msgspec.Struct):
    format: int
    kind: str


_HEAD = msgspec.json.Decoder(_LineHead)
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "run": msgspec.json.Decoder(RunRecord),
    "case": msgspec.json.Decoder(CaseRecord),
    "rounds": msgspec.json.Decoder(RoundsRecord),
}


_MOMENT = re.compile(rb'"at": "\d{4}-[^"]*"')
_NO_CASE = -1
"""Instead of the number of a line that says nothing of a case's outcome."""

_FIRST_RUN = -2
"""Instead of the number of a ``run`` line: this for a run that is not known, as before any ``run``
line, and -3, -4 ... for the runs of a file."""


class RecordReader:
    """Reads record files, and decodes what they have in common once."""

    def __init__(self) -> None:
        self._records: list[CaseRecord] = []
        self._numbers: dict[bytes, int] = {}
        """Index into ``_records`` by a line without its moment."""
        self._cases: dict[CaseKey, int] = {}
        self._case_of: list[int] = []
        """Of each record, its number in ``_cases``."""
        self._stories: dict[tuple[int, ...], CaseStory] = {}
        """By the run and the numbers of the lines of one case."""

    def read(self, path: Path) -> RecordFile:
        """Read one file; what cannot be read is named in ``faults``."""
        try:
            content = read_limited(path)
        except OSError as error:
            return RecordFile(faults=(f"it cannot be read: {error}",), opened=False)
        except UnreadableFile as error:
            return RecordFile(faults=(str(error),))
        lines, faults = content.split(b"\n"), []
        momentless = _MOMENT.sub(b"", content).split(b"\n")
        numbers = [self._numbers.get(line, _NO_CASE) for line in momentless]
        runs: list[Value | None] = [None]
        run, last_run = 0, None
        rounds: dict[CaseKey, tuple[int, list[float]]] = {}
        for place in [place for place, number in enumerate(numbers) if number == _NO_CASE]:
            if not lines[place].strip():
                continue
            try:
                record = _decode(lines[place])
            except GpubenchError as error:
                faults.append(f"line {place + 1} is left out: {error}")
                continue
            if isinstance(record, RunRecord):
                last_run, value = record, record.facts.get(RUN)
                if value not in runs:
                    runs.append(value)
                run = runs.index(value)
                numbers[place] = _FIRST_RUN - run
            elif isinstance(record, RoundsRecord):
                key = record.benchmark, record.case
                if key not in rounds or rounds[key][0] != run or runs[run] is None:
                    rounds[key] = run, []  # of the last run; where it is not known, the last line
                rounds[key][1].extend(record.rounds)
            else:
                number = self._numbers.setdefault(momentless[place], len(self._records))
                if number == len(self._records):
                    self._records.append(record)
                    case = record.benchmark, record.case
                    self._case_of.append(self._cases.setdefault(case, len(self._cases)))
                numbers[place] = number
        cases = self._last_runs(numbers)
        last_runs = {key: _FIRST_RUN - of_case[0] for key, of_case in cases.items()}
        return RecordFile(
            stories=self._stories_of(cases, numbers, lines),
            rounds={
                key: tuple(medians)
                for key, (run, medians) in rounds.items()
                if last_runs.get(key) == run
            },
            run=last_run,
            faults=tuple(faults),
        )

    def _last_runs(self, numbers: Sequence[int]) -> dict[CaseKey, list[int]]:
        """Of each case the run that measured it last, then the numbers of its lines."""
        cases: dict[int, list[int]] = {}
        run = _FIRST_RUN  # of lines before any run, which is not known
        for number in numbers:
            if number >= 0:
                case = self._case_of[number]
                of_case = cases.get(case)
                if of_case is None or of_case[0] != run:  # only the last run of a case counts
                    of_case = cases[case] = [run]
                of_case.append(number)
            elif number != _NO_CASE:
                run = number
        keys = list(self._cases)
        return {keys[case]: of_case for case, of_case in cases.items()}

    def _stories_of(
        self,
        cases: Mapping[CaseKey, Sequence[int]],
        numbers: Sequence[int],
        lines: Sequence[bytes],
    ) -> dict[CaseKey, CaseStory]:
        stories = {}
        for key, of_case in cases.items():
            lines_of_case = tuple(of_case)
            story = self._stories.get(lines_of_case)
            if story is None:
                records = [self._records[number] for number in of_case[1:]]
                story = _settle(records, run_is_known=of_case[0] != _FIRST_RUN)
                self._stories[lines_of_case] = story
            if story.pending:
                last = max(place for place, number in enumerate(numbers) if number == of_case[-1])
                story = replace(story, pending_seconds=_seconds_between(lines[last : last + 2]))
            stories[key] = story
        return stories


def _decode(line: bytes) -> Line:
    """One line; raises ``GpubenchError`` for what is no line of this format."""
    try:
        head = _HEAD.decode(line)
        if head.format == FORMAT:
            record: Line = _DECODERS[head.kind].decode(line)
            return record
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
        pass  # damaged, foreign, or with a NaN, which is no JSON but which Python writes
    parsed = parse_line(line.decode("utf-8", errors="replace"))
    try:
        return msgspec.convert(asdict(parsed), type(parsed))
    except (msgspec.MsgspecError, TypeError) as error:
        raise GpubenchError("a field holds what gpubench does not write") from error


def _settle(records: Sequence[CaseRecord], run_is_known: bool) -> CaseStory:
    """The last outcome counts, unless a round of the same run had a worse one.

    Without the ``run`` fact only ``wrong`` outlives a later line: one commit is one code, while
    a failure may have been the machine's.
    """
    lasting = ("wrong", "failed") if run_is_known else ("wrong",)
    worst = next((r for status in lasting for r in records if r.status == status), None)
    finished = [record for record in records if record.status != "started"]
    outcome = worst or (finished[-1] if finished else None)
    if outcome is not None and outcome.pair_ratios:
        outcome = _with_all_pairs(outcome, records if run_is_known else [outcome])
    is_pending = records[-1].status == "started" and worst is None
    return CaseStory(outcome, records[-1] if is_pending else None)


def _with_all_pairs(outcome: CaseRecord, records: Iterable[CaseRecord]) -> CaseRecord:
    """The outcome with the pairs of all processes of its run.

    A process begins with ``started``; of what it writes after that, the last line counts.
    """
    processes: list[CaseRecord] = []
    for record in records:
        if record.status == "started" or not processes:
            processes.append(record)
        processes[-1] = record
    paired = [record for record in processes if record.pair_ratios]
    sizes = (record.pair_rounds or (len(record.pair_ratios),) for record in paired)
    return replace(
        outcome,
        pair_ratios=tuple(chain.from_iterable(record.pair_ratios for record in paired)),
        pair_rounds=tuple(chain.from_iterable(sizes)),
    )


def _seconds_between(lines: Sequence[bytes]) -> float | None:
    """Seconds from one line to the next; ``None`` where there is none."""
    moments = [match[0][7:-1].decode() for line in lines if (match := _MOMENT.search(line))]
    try:
        start, end = map(datetime.fromisoformat, moments)
        return (end - start).total_seconds()
    except (ValueError, TypeError):
        return None
