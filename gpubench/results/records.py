"""Reads the record beside a result file and settles what it says about each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import get_args

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.record import CaseRecord, RunRecord, Status, parse_line

RUN = "run"
"""Fact that all processes of one ``asv run`` share; it tells rounds from a repeated run."""

Key = tuple[str, str]
"""asv benchmark and identity of a case."""


@dataclass(frozen=True, slots=True)
class Told:
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


@dataclass(frozen=True, slots=True)
class _Line:
    record: CaseRecord
    run: Value | None
    following: str | None = None


def read_record(path: Path) -> RecordFile:
    """Read a record file; lines that cannot be read are faults, the others count."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return RecordFile(faults=(f"it cannot be read: {error}",))
    parsed, faults = _parse(text.splitlines())
    runs = [line for line in parsed if isinstance(line, RunRecord)]
    return RecordFile(
        told={key: _settle(lines) for key, lines in _by_case(parsed).items()},
        facts=dict(runs[-1].facts) if runs else {},
        at=runs[-1].at if runs else None,
        faults=tuple(faults),
    )


def _parse(lines: Iterable[str]) -> tuple[list[RunRecord | CaseRecord], list[str]]:
    parsed, faults = [], []
    for number, line in enumerate(lines, start=1):
        try:
            parsed.append(_checked(parse_line(line)))
        except GpubenchError as error:
            faults.append(f"line {number} is left out: {error}")
    return parsed, faults


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
            and record.status in get_args(Status)
        )
    if not sound:
        raise GpubenchError("a field holds what gpubench does not write")
    return record


def _by_case(parsed: Sequence[RunRecord | CaseRecord]) -> dict[Key, list[_Line]]:
    cases: dict[Key, list[_Line]] = {}
    run: Value | None = None
    for index, line in enumerate(parsed):
        if isinstance(line, RunRecord):
            run = line.facts.get(RUN)
            continue
        following = parsed[index + 1].at if index + 1 < len(parsed) else None
        cases.setdefault((line.benchmark, line.case), []).append(_Line(line, run, following))
    return cases


def _settle(lines: Sequence[_Line]) -> Told:
    """The last outcome counts, unless a round of the same run told something worse.

    Without the ``run`` fact only ``wrong`` outlives a later line: one commit is one code, while
    a failure may have been the machine's.
    """
    last = lines[-1]
    lasting = ("wrong", "failed") if last.run is not None else ("wrong",)
    rounds = [line.record for line in lines if line.run == last.run]
    worst = [record for status in lasting for record in rounds if record.status == status]
    outcomes = worst[:1] or [r for r in reversed(rounds) if r.status != "started"]
    outcome = outcomes[0] if outcomes else None
    if outcome is not None and outcome.pair_ratios:
        outcome = _with_all_pairs(outcome, rounds if last.run is not None else [outcome])
    if worst or last.record.status != "started":
        return Told(outcome)
    seconds = seconds_between(last.record.at, last.following) if last.following else None
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
        outcome,
        pair_ratios=tuple(ratio for ratios in paired for ratio in ratios),
        pair_rounds=tuple(map(len, paired)),
    )


def seconds_between(first: str, second: str) -> float | None:
    """Seconds from one ISO 8601 time to another; ``None`` where one is no time."""
    try:
        return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()
    except (ValueError, TypeError):
        return None
