"""Joins asv's values with the record: one outcome for each case, and why there is no time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.record import CaseRecord
from gpubench.results.asv_files import StoredBenchmark, Time
from gpubench.results.model import CaseName, Outcome, Status
from gpubench.results.records import Key, Told, whole

NO_RECORD = "asv stored no value and there is no record; run `asv run --show-stderr`"
NOT_APPLICABLE = "asv stored n/a and there is no record of why; run `asv run --show-stderr`"
NO_TIME = "its outputs were right, but asv stored no time; run `asv run --show-stderr`"
INTERRUPTED = "asv was stopped before it stored a time; run `asv run --skip-existing-successful`"
SIMULATED = (
    "checked by an earlier release on Numba's simulator, whose times mean nothing; "
    "run it on a machine with an NVIDIA GPU to measure"
)

_TIMEOUT_SHARE = 0.95
"""A case that ran for this share of its timeout was most likely ended by it."""


class Entry(NamedTuple):
    """What asv and the record hold of one case."""

    time: Time | None
    """``None`` where asv stored nothing."""
    told: Told | None
    benchmark: StoredBenchmark | None
    """Where asv stored it, ``None`` where only the record knows it."""
    row: int
    """Of the case in ``benchmark``."""


def entries(
    benchmarks: Iterable[StoredBenchmark], told: Mapping[Key, Told]
) -> dict[CaseName, Entry]:
    """All cases of one snapshot."""
    found: dict[CaseName, Entry] = {}
    for benchmark in benchmarks:
        asv_name, times = benchmark.asv_name, benchmark.times()
        names = case_names(benchmark.name, benchmark.cases)
        for row, (name, case) in enumerate(zip(names, benchmark.cases, strict=True)):
            found[name] = Entry(times[row], told.get((asv_name, case)), benchmark, row)
    for (asv_name, case), tale in told.items():
        parsed = parse_benchmark_name(asv_name)
        if parsed and (name := case_names(parsed, (case,))[0]) not in found:
            found[name] = Entry(None, tale, None, 0)
    return found


@lru_cache(maxsize=2**14)
def case_names(benchmark: BenchmarkName, cases: tuple[str, ...]) -> tuple[CaseName, ...]:
    """Names of the cases of one benchmark: the same objects for all commits, of which there may be
    thousands."""
    return tuple(CaseName.of(benchmark, case) for case in cases)


def outcomes_of(found: Mapping[CaseName, Entry]) -> dict[CaseName, Outcome]:
    """What became of each case, and why there is no time."""
    return {name: _outcome(name, entry) for name, entry in found.items()}


def _outcome(name: CaseName, entry: Entry) -> Outcome:
    status, reason, record = settled(entry)
    timing = entry.benchmark.timing(entry.row) if entry.benchmark and status == "ok" else None
    return Outcome(name, status, reason, timing, whole(record) if record else None)


def settled(entry: Entry) -> tuple[Status, str | None, CaseRecord | None]:
    """Status, why there is no time, and the line of the record that tells."""
    told = entry.told
    if told is None:
        return _without_record(entry.time)
    outcome, timed = told.outcome, entry.time is not None and entry.time[0] > 0
    if outcome and outcome.simulated and outcome.status == "ok":
        return "verified", outcome.reason or SIMULATED, outcome
    if outcome and outcome.status != "ok":
        return cast(Status, outcome.status), _reason(outcome), outcome
    if timed:
        return "ok", None, outcome or told.pending
    if told.pending:
        return _stopped(entry.benchmark is not None, told, told.pending)
    if entry.benchmark is None:
        return "killed", INTERRUPTED, outcome
    return "failed", NO_TIME, outcome


def _without_record(time: Time | None) -> tuple[Status, str | None, None]:
    if time is None:
        return "failed", NO_RECORD, None
    return ("ok", None, None) if time[0] > 0 else ("skipped", NOT_APPLICABLE, None)


def _reason(record: CaseRecord) -> str:
    if record.reason:
        return record.reason
    return f"the record gives no reason for {record.status}; run `asv run --show-stderr`"


def _stopped(stored: bool, told: Told, started: CaseRecord) -> tuple[Status, str, CaseRecord]:
    """A case that never finished: asv's timeout, or something that killed the process."""
    timeout, seconds = started.timeout, told.pending_seconds
    if seconds is not None and timeout is not None:
        timed_out = seconds >= _TIMEOUT_SHARE * timeout
    else:
        timed_out = stored and seconds is None
    if timed_out:
        return "timed_out", _timed_out_reason(timeout), started
    if not stored and seconds is None:
        return "killed", INTERRUPTED, started
    return "killed", _killed_reason(timeout), started


def _timed_out_reason(timeout: float | None) -> str:
    limit = f"its timeout of {timeout:g} s" if timeout is not None else "its timeout"
    return (
        f"started and never finished, most likely stopped by {limit}; "
        "raise `timeout` under `sampling`, or make the case smaller"
    )


def _killed_reason(timeout: float | None) -> str:
    limit = f" before its timeout of {timeout:g} s" if timeout is not None else ""
    return (
        f"started and ended without an outcome{limit}, most likely killed (a crash, or too "
        "little memory); run `asv run --show-stderr`"
    )
