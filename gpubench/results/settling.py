"""Status of one case, by what asv stored of the case and what the record tells.

What comes in is whether asv's result file has a time, and the lines of the record. What leaves is a
status, the reason why there is no time, and the record line that explains it.
"""

from __future__ import annotations

from typing import cast

from gpubench.record import CaseRecord
from gpubench.results.records import CaseStory
from gpubench.statuses import Status

NO_RECORD = "asv stored no value and there is no record; run `asv run --show-stderr`"
NOT_APPLICABLE = "asv stored n/a and there is no record of why; run `asv run --show-stderr`"
NO_TIME = "its outputs were right, but asv stored no time; run `asv run --show-stderr`"
INTERRUPTED = "asv was stopped before it stored a time; run `asv run --skip-existing-successful`"

_TIMEOUT_SHARE = 0.95
"""A case that ran for this share of its timeout was most likely ended by it: between its
``started`` line and asv's kill lie the start of the process and asv's own polling, but a crash so
shortly before the limit is rare."""

STORED_TIME, STORED_NOTHING, STORED_NA, NOT_STORED = range(4)
"""What asv stored of a case: a time, nothing, n/a; the last one: it does not have the case."""

Settled = tuple[Status, str | None, CaseRecord | None]
"""Status of a case, why there is no time, and the line of the record that explains it."""


def settle_status(story: CaseStory | None, stored: int) -> Settled:
    """Return the status of a case by its record and by what asv stored."""
    if story is None:
        if stored == STORED_TIME:
            return "ok", None, None
        if stored == STORED_NA:
            return "skipped", NOT_APPLICABLE, None
        return "failed", NO_RECORD, None
    outcome, pending = story.outcome, story.pending
    if outcome and outcome.status != "ok":
        reason = outcome.reason or (
            f"the record gives no reason for {outcome.status}; run `asv run --show-stderr`"
        )
        return cast(Status, outcome.status), reason, outcome
    if stored == STORED_TIME:
        return "ok", None, outcome or pending
    if pending:
        return _stopped(pending, story.pending_seconds, stored != NOT_STORED)
    if stored == NOT_STORED:
        return "killed", INTERRUPTED, outcome
    return "failed", NO_TIME, outcome


def _stopped(started: CaseRecord, seconds: float | None, is_stored: bool) -> Settled:
    """Return a case that never finished: asv's timeout, or something that killed the process."""
    timeout = started.timeout
    if seconds is not None and timeout is not None:
        timed_out = seconds >= _TIMEOUT_SHARE * timeout
    else:
        timed_out = is_stored and seconds is None
    if timed_out:
        limit = f"its timeout of {timeout:g} s" if timeout is not None else "its timeout"
        reason = (
            f"started and never finished, most likely stopped by {limit}; "
            "raise `timeout` under `sampling`, or make the case smaller"
        )
        return "timed_out", reason, started
    if not is_stored and seconds is None:
        return "killed", INTERRUPTED, started
    limit = f" before its timeout of {timeout:g} s" if timeout is not None else ""
    reason = (
        f"started and ended without an outcome{limit}, most likely killed (a crash, or too "
        "little memory); run `asv run --show-stderr`"
    )
    return "killed", reason, started
