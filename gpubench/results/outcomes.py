"""Joins asv's values with the record: one outcome for each case, and why there is no time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from gpubench.names import parse_benchmark_name
from gpubench.record import CaseRecord
from gpubench.results.asv_files import StoredBenchmark, StoredValue
from gpubench.results.model import CaseName, Outcome, Status
from gpubench.results.records import Key, Told

NO_RECORD = "asv stored no value and there is no record; run `asv run --show-stderr`"
NOT_APPLICABLE = "asv stored n/a and there is no record of why; run `asv run --show-stderr`"
NO_TIME = "its outputs were right, but asv stored no time; run `asv run --show-stderr`"
INTERRUPTED = "asv was stopped before it stored a time; run `asv run --skip-existing-successful`"
SIMULATED = (
    "checked on the simulator, whose times mean nothing; "
    "run it on a machine with a GPU, without NUMBA_ENABLE_CUDASIM"
)

_TIMEOUT_SHARE = 0.95
"""A case that ran for this share of its timeout was most likely ended by it."""


def join(
    benchmarks: Iterable[StoredBenchmark], told: Mapping[Key, Told], superseded: frozenset[str]
) -> dict[CaseName, Outcome]:
    """Outcomes of one snapshot; benchmarks named in ``superseded`` are left out."""
    outcomes: dict[CaseName, Outcome] = {}
    stored = {benchmark.name.asv_name: benchmark for benchmark in benchmarks}
    for asv_name, benchmark in stored.items():
        for case, value in benchmark.values.items():
            name = CaseName.of(benchmark.name, case)
            outcomes[name] = _outcome(name, value, told.get((asv_name, case)))
    for (asv_name, case), tale in told.items():
        parsed = parse_benchmark_name(asv_name)
        if parsed and CaseName.of(parsed, case) not in outcomes:
            name = CaseName.of(parsed, case)
            outcomes[name] = _outcome(name, None, tale)
    return {
        name: outcome
        for name, outcome in outcomes.items()
        if name.benchmark.asv_name not in superseded
    }


def _outcome(name: CaseName, value: StoredValue | None, told: Told | None) -> Outcome:
    if told is None:
        return _without_record(name, value or StoredValue(None))
    outcome = told.outcome
    if outcome and outcome.simulated and outcome.status == "ok":
        return Outcome(name, "simulated", outcome.reason or SIMULATED, record=outcome)
    if outcome and outcome.status != "ok":
        return Outcome(name, cast(Status, outcome.status), _reason(outcome), record=outcome)
    if value and value.timing:
        return Outcome(name, "ok", timing=value.timing, record=outcome or told.pending)
    if told.pending:
        return _stopped(name, value, told, told.pending)
    if value is None:
        return Outcome(name, "killed", INTERRUPTED, record=outcome)
    return Outcome(name, "failed", NO_TIME, record=outcome)


def _without_record(name: CaseName, value: StoredValue) -> Outcome:
    if value.timing:
        return Outcome(name, "ok", timing=value.timing)
    if value.not_applicable:
        return Outcome(name, "skipped", NOT_APPLICABLE)
    return Outcome(name, "failed", NO_RECORD)


def _reason(record: CaseRecord) -> str:
    if record.reason:
        return record.reason
    return f"the record gives no reason for {record.status}; run `asv run --show-stderr`"


def _stopped(name: CaseName, value: StoredValue | None, told: Told, started: CaseRecord) -> Outcome:
    """A case that never finished: asv's timeout, or something that killed the process."""
    timeout, seconds = started.timeout, told.pending_seconds
    if seconds is not None and timeout is not None:
        timed_out = seconds >= _TIMEOUT_SHARE * timeout
    else:
        timed_out = value is not None and seconds is None
    if timed_out:
        return Outcome(name, "timed_out", _timed_out_reason(timeout), record=started)
    if value is None and seconds is None:
        return Outcome(name, "killed", INTERRUPTED, record=started)
    return Outcome(name, "killed", _killed_reason(timeout), record=started)


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
