"""Reads the record beside a result file and settles what it says about each case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args, get_type_hints

import msgspec

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.record import CaseRecord, RunRecord, Status, line_start, parse_line

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


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record file, read."""

    told: Mapping[Key, Told] = field(default_factory=dict)
    facts: Mapping[str, Value | None] = field(default_factory=dict)
    """Of the last ``run`` line."""
    at: str | None = None
    """Time of the last ``run`` line."""
    faults: tuple[str, ...] = ()
    """Lines that could not be read, one sentence each."""
    opened: bool = True
    """False where the file could not be opened."""


class _Line(NamedTuple):
    record: CaseRecord
    run: Value | None
    place: int
    """Among the lines of the file."""


def read_record(path: Path) -> RecordFile:
    """Read a record file; lines that cannot be read are faults, the others count."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return RecordFile(faults=(f"it cannot be read: {error}",), opened=False)
    parsed, faults = _parse(content.splitlines())
    runs = [line for line in parsed if isinstance(line, RunRecord)]
    return RecordFile(
        told={key: _settle(lines, parsed) for key, lines in _by_case(parsed).items()},
        facts=dict(runs[-1].facts) if runs else {},
        at=runs[-1].at if runs else None,
        faults=tuple(faults),
    )


def whole(record: CaseRecord) -> CaseRecord:
    """The record itself: what is read from a file only has its fields."""
    if isinstance(record, CaseRecord):
        return record
    return CaseRecord(**msgspec.structs.asdict(record))


def _stored_case() -> type[CaseRecord]:
    """A structure with the fields of a ``CaseRecord``: it is read in a sixth of the time."""
    hints = get_type_hints(CaseRecord)
    columns = []
    for each in fields(CaseRecord):
        default = msgspec.field(default=each.default)
        if each.default_factory is not MISSING:
            default = msgspec.field(default_factory=each.default_factory)
        required = (each.name, hints[each.name])
        columns.append((*required, default) if _has_default(each) else required)
    return cast(type[CaseRecord], msgspec.defstruct("StoredCase", columns, gc=False))


def _has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


_DECODERS: tuple[tuple[bytes, Callable[[bytes], CaseRecord | RunRecord]], ...] = (
    (line_start("case").encode(), msgspec.json.Decoder(_stored_case()).decode),
    (line_start("run").encode(), msgspec.json.Decoder(RunRecord).decode),
)


def _parse(lines: Iterable[bytes]) -> tuple[list[RunRecord | CaseRecord], list[str]]:
    parsed, faults = [], []
    for number, line in enumerate(lines, start=1):
        try:
            parsed.append(_parse_line(line))
        except GpubenchError as error:
            faults.append(f"line {number} is left out: {error}")
    return parsed, faults


def _parse_line(line: bytes) -> RunRecord | CaseRecord:
    """One line; those that gpubench wrote take a tenth of the time that others take."""
    for start, decode in _DECODERS:
        if line.startswith(start):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # NaN, for example
                return decode(line)
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


def _by_case(parsed: Sequence[RunRecord | CaseRecord]) -> dict[Key, list[_Line]]:
    cases: dict[Key, list[_Line]] = {}
    run: Value | None = None
    for place, line in enumerate(parsed):
        if isinstance(line, RunRecord):
            run = line.facts.get(RUN)
        else:
            cases.setdefault((line.benchmark, line.case), []).append(_Line(line, run, place))
    return cases


def _settle(lines: Sequence[_Line], parsed: Sequence[RunRecord | CaseRecord]) -> Told:
    """The last outcome counts, unless a round of the same run told something worse.

    Without the ``run`` fact only ``wrong`` outlives a later line: one commit is one code, while
    a failure may have been the machine's.
    """
    last = lines[-1]
    lasting = ("wrong", "failed") if last.run is not None else ("wrong",)
    rounds = [line.record for line in lines if line.run == last.run]
    statuses = [record.status for record in rounds]
    worst = next((rounds[statuses.index(s)] for s in lasting if s in statuses), None)
    outcome = worst or next((r for r in reversed(rounds) if r.status != "started"), None)
    if outcome is not None and outcome.pair_ratios:
        outcome = _with_all_pairs(outcome, rounds if last.run is not None else [outcome])
    if worst or last.record.status != "started":
        return Told(outcome)
    following = parsed[last.place + 1].at if last.place + 1 < len(parsed) else None
    seconds = seconds_between(last.record.at, following) if following else None
    return Told(outcome, last.record, seconds)


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
