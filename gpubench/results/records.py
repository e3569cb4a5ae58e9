"""Reads the record beside a result file and settles what it says about each case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args, get_type_hints

import msgspec

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.record import FORMAT, CaseRecord, RunRecord, Status, parse_line
from gpubench.results.asv_files import UnreadableFile, read_limited

RUN = "run"
"""Fact that all processes of one ``asv run`` share; it tells rounds from a repeated run."""

_STATUSES = get_args(Status)

Key = tuple[str, str]
"""asv benchmark and identity of a case."""


class Told(NamedTuple):
    """What the record tells about one case."""

    outcome: CaseRecord | None
    """The line that counts; ``None`` when the case never finished."""
    pending: CaseRecord | None = None
    """A ``started`` line that nothing followed for this case: it was stopped."""
    pending_seconds: float | None = None
    """From that line to the next line of any case; ``None`` when it is the last of the file."""


@dataclass(frozen=True)
class RecordFile:
    """A record file, read."""

    lines: Sequence[Line] = ()
    facts: Mapping[str, Value | None] = field(default_factory=dict)
    """Of the last ``run`` line."""
    at: str | None = None
    """Time of the last ``run`` line."""
    faults: tuple[str, ...] = ()
    """Lines that could not be read, one sentence each."""

    @cached_property
    def told(self) -> Mapping[Key, Told]:
        """What the lines tell of each case."""
        return _told(self.lines)


@dataclass(frozen=True, slots=True)
class Brief:
    """What a record file tells of its cases, but for why and how; other fields are not checked.

    Two files whose ``cases`` and ``runless`` are the same tell the same of each case that has an
    outcome.
    """

    cases: Mapping[str, Sequence[Hashable]]
    """By benchmark, something for each line, in their order."""
    places: Mapping[str, Sequence[int]]
    """By benchmark, numbers of these lines from 0."""
    runs: Sequence[int]
    """Numbers of ``run`` lines."""
    count: int
    """Of all lines."""
    runless: bool
    """Whether the first line is of no run that is known by its fact."""
    facts: Mapping[str, Value | None]
    at: str | None
    """As of ``RecordFile``."""


Line = RunRecord | CaseRecord


@dataclass(frozen=True)
class StoredRecord:
    """A record file's content."""

    content: bytes = b""
    faults: tuple[str, ...] = ()
    """Why there is none."""
    opened: bool = True
    """False where the file could not be opened."""

    @cached_property
    def brief(self) -> Brief | None:
        """The file in brief; ``None`` where that would leave something out."""
        return None if self.faults else _in_brief(self.content)

    @cached_property
    def whole(self) -> RecordFile:
        """All lines; those that cannot be read are faults, the others count."""
        lines, faults = _parse(self.content)
        runs = [line for line in lines if isinstance(line, _RUNS)]
        return RecordFile(
            lines=lines,
            facts=dict(runs[-1].facts) if runs else {},
            at=runs[-1].at if runs else None,
            faults=(*self.faults, *faults),
        )

    def told_of(self, benchmarks: Iterable[str]) -> Mapping[Key, Told] | None:
        """What the lines tell of these benchmarks' cases, if each has an outcome.

        Where not, or where something in these lines is wrong, ``None``: that takes the whole.
        """
        content, brief = self.content.splitlines(), self.brief
        if brief is None or len(content) != brief.count:
            return None
        places = chain(brief.runs, *(brief.places.get(name, ()) for name in benchmarks))
        lines, faults = _parse(b"\n".join(content[place] for place in sorted(places)))
        told = None if faults else _told(lines)
        return None if told is None or any(tale.pending for tale in told.values()) else told

    @property
    def found_faults(self) -> tuple[str, ...]:
        """What is known to be wrong, by what was looked at: all, or what is ``brief``."""
        looked_at_all = "whole" in self.__dict__ or self.brief is None
        return self.whole.faults if looked_at_all else ()


def read_record(path: Path) -> StoredRecord:
    """Read a record file; why it cannot be read is a fault."""
    try:
        return StoredRecord(read_limited(path))
    except OSError as error:
        return StoredRecord(faults=(f"it cannot be read: {error}",), opened=False)
    except UnreadableFile as error:
        return StoredRecord(faults=(str(error),))


def whole(record: CaseRecord) -> CaseRecord:
    """The record itself: what is read from a file only has its fields."""
    if isinstance(record, CaseRecord):
        return record
    given = msgspec.structs.asdict(record)
    del given["format"]
    return CaseRecord(**given)


def _stored(record: type[Line], kind: str) -> Any:
    """A structure with the fields of a record: it is read in a sixth of the time."""
    hints = get_type_hints(record)
    given: list[Any] = []
    for each in fields(record):
        if each.default is not MISSING:
            given.append((each.name, hints[each.name], msgspec.field(default=each.default)))
        elif each.default_factory is not MISSING:
            made = msgspec.field(default_factory=each.default_factory)
            given.append((each.name, hints[each.name], made))
        else:
            given.append((each.name, hints[each.name]))
    given.append(("format", Literal[FORMAT]))
    name = f"Stored{record.__name__}"
    return msgspec.defstruct(name, given, tag_field="kind", tag=kind, gc=False, kw_only=True)


_STORED_RUN = _stored(RunRecord, "run")
_RUNS = (RunRecord, _STORED_RUN)
_STORED_CASE = _stored(CaseRecord, "case")
_DECODER = msgspec.json.Decoder(_STORED_RUN | _STORED_CASE)


class _BriefCase(msgspec.Struct, tag_field="kind", tag="case", frozen=True, kw_only=True, gc=False):
    """Of a ``CaseRecord`` what columns go by, where each case has an outcome."""

    format: Literal[FORMAT]  # type: ignore[valid-type]
    benchmark: str
    case: str
    status: Status
    baseline_benchmark: str | None = None
    baseline_case: str | None = None
    simulated: bool = False
    pair_ratios: tuple[float, ...] = ()


class _BriefRun(msgspec.Struct, tag_field="kind", tag="run", kw_only=True, gc=False):
    """A ``RunRecord`` whose facts are not looked at yet."""

    format: Literal[FORMAT]  # type: ignore[valid-type]
    at: str
    facts: msgspec.Raw = msgspec.Raw(b"{}")


class _RunFact(msgspec.Struct, gc=False):
    run: Value | None = None


_BRIEF = msgspec.json.Decoder(_BriefRun | _BriefCase)
_RUN_FACT = msgspec.json.Decoder(_RunFact)
_FACTS = msgspec.json.Decoder(dict[str, Value | None])


def _in_brief(content: bytes) -> Brief | None:
    cases: dict[str, list[Hashable]] = defaultdict(list)
    places: dict[str, list[int]] = defaultdict(list)
    runs: dict[Value | None, int] = {}
    run_places: list[int] = []
    last: _BriefRun | None = None
    first, run = True, None
    try:
        lines = _BRIEF.decode_lines(content)
        for place, line in enumerate(lines):
            if type(line) is _BriefRun:
                last = line
                run_places.append(place)
                run = _RUN_FACT.decode(line.facts).run
                first = runs.setdefault(run, len(runs)) == 0
            elif line.pair_ratios:
                return None
            else:
                runs = runs or {None: 0}  # before any run
                cases[line.benchmark].append(line if first else (line, runs[run]))
                places[line.benchmark].append(place)
        facts = _FACTS.decode(last.facts) if last else {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return Brief(
        cases=cases,
        places=places,
        runs=run_places,
        count=len(lines),
        runless=next(iter(runs), None) is None,
        facts=facts,
        at=last.at if last else None,
    )


def _parse(content: bytes) -> tuple[list[Line], list[str]]:
    """Lines and faults. Files that gpubench wrote take a tenth of the time of others."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return _DECODER.decode_lines(content), []
    lines: list[Line] = []
    faults: list[str] = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            lines.append(_parse_line(line))
        except GpubenchError as error:
            faults.append(f"line {number} is left out: {error}")
    return lines, faults


def _parse_line(line: bytes) -> Line:
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # NaN, for example
        return cast(Line, _DECODER.decode(line))
    return _checked(parse_line(line.decode("utf-8", errors="replace")))


def _checked(record: RunRecord | CaseRecord) -> RunRecord | CaseRecord:
    """The record, where the fields that are read here hold what they should."""
    if isinstance(record, RunRecord):
        sound = isinstance(record.facts, Mapping) and isinstance(record.at, str)
    else:
        texts = (record.benchmark, record.case, record.at, record.reason or "", record.device)
        shapes = (record.block or (), record.grid or ())
        lists = (record.sizes, record.warnings, *shapes, record.pair_ratios, record.pair_rounds)
        sound = (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(items, tuple) for items in lists)
            and all(isinstance(ratio, int | float) for ratio in record.pair_ratios)
            and isinstance(record.values, Mapping)
            and record.status in _STATUSES
        )
    if not sound:
        raise GpubenchError("a field holds what gpubench does not write")
    return record


def _told(lines: Sequence[Line]) -> dict[Key, Told]:
    runs: list[Value | None] = []
    cases: dict[Key, list[int]] = {}
    run: Value | None = None
    for place, line in enumerate(lines):
        if isinstance(line, _RUNS):
            run = line.facts.get(RUN)
        else:
            cases.setdefault((line.benchmark, line.case), []).append(place)
        runs.append(run)
    return {key: _settle(places, lines, runs) for key, places in cases.items()}


def _settle(places: Sequence[int], lines: Sequence[Line], runs: Sequence[Value | None]) -> Told:
    """The last outcome counts, unless a round of the same run told something worse.

    Without the ``run`` fact only ``wrong`` outlives a later line: one commit is one code, while
    a failure may have been the machine's.
    """
    run = runs[places[-1]]
    lasting = ("wrong", "failed") if run is not None else ("wrong",)
    rounds = [cast(CaseRecord, lines[place]) for place in places if runs[place] == run]
    last = rounds[-1]
    outcome = last if last.status != "started" else None
    worst = None
    if len(rounds) > 1:
        statuses = [record.status for record in rounds]
        worst = next((rounds[statuses.index(s)] for s in lasting if s in statuses), None)
        outcome = worst or next((r for r in reversed(rounds) if r.status != "started"), None)
    if outcome is not None and outcome.pair_ratios:
        outcome = _with_all_pairs(outcome, rounds if run is not None else [outcome])
    if worst or last.status != "started":
        return Told(outcome)
    following = lines[places[-1] + 1].at if places[-1] + 1 < len(lines) else None
    return Told(outcome, last, seconds_between(last.at, following) if following else None)


def _with_all_pairs(outcome: CaseRecord, rounds: Iterable[CaseRecord]) -> CaseRecord:
    """The outcome with the pairs of all rounds: each round's process writes its own.

    A process begins with ``started``; of what it writes after that, the last line counts.
    """
    processes: list[tuple[float, ...]] = []
    for record in rounds:
        if record.status == "started" or not processes:
            processes.append(())
        processes[-1] = record.pair_ratios
    paired = [ratios for ratios in processes if ratios]
    return replace(
        whole(outcome),
        pair_ratios=tuple(ratio for ratios in paired for ratio in ratios),
        pair_rounds=tuple(map(len, paired)),
    )


def seconds_between(first: str, second: str) -> float | None:
    """Seconds from one ISO 8601 time to another; ``None`` where one is no time."""
    try:
        return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()
    except (ValueError, TypeError):
        return None
