"""The summary of an ``asv run`` in lines, for the end of its output and of ``make bench``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpubench.analysis.run_summary import RunSummary
from gpubench.names import verify_command
from gpubench.report import text
from gpubench.results import Row
from gpubench.statuses import FAILURES, Status

NEXT = "next: gpubench report"
"""The last line: the command that shows all of it."""

MAX_PROBLEMS = 5
"""Kinds of problems that are named; the report has all."""

MAX_REASON_CHARACTERS = 800
"""A longer reason is cut. Our longest, which ends with what to do, has some 600; the report has the
rest."""


def summary_lines(summary: RunSummary) -> list[str]:
    """Return at most a dozen lines that end with the next command."""
    lines: list[str] = []
    compared = [key for key in ("faster", "slower", "unclear") if key in summary.tally]
    if compared:
        said = ", ".join(f"{summary.tally[key]:,} {key}" for key in compared)
        total = text.plural(sum(summary.tally[key] for key in compared), "case")
        lines.append(f"{total} compared with the baseline: {said}")
    lines += [
        f"{word} speedup {_speedup(row)}"
        for word, row in (("best", summary.best), ("worst", summary.worst))
        if row is not None
    ]
    if summary.verified:
        cases = text.plural(summary.verified, "CUDA case")
        lines.append(f"{cases} checked in software, {summary.counted:,} counted: no times")
    lines += _problem_lines(summary.problems)
    if summary.disturbed:
        cases = text.plural(summary.disturbed, "case")
        lines.append(f"{cases} disturbed by other work; measure again on a quiet machine")
    lines += [rename.words for rename in summary.renames]
    return [*lines, NEXT]


def _speedup(row: Row) -> str:
    name = row.name
    case = f" {name.case}" if name.case else ""
    kernel = f"{name.suite}::{name.kernel} {name.implementation}{case}"
    beside = ", beside other work" if row.is_disturbed else ""
    return f"{text.speedup(row.speedup)} ({text.interval(row.speedup)}{beside}): {kernel}"


def _problem_lines(problems: Sequence[tuple[Status, str, Row, int]]) -> Iterator[str]:
    for status, reason, row, count in problems[:MAX_PROBLEMS]:
        said = reason or "no reason is known"
        if len(said) > MAX_REASON_CHARACTERS:
            said = f"{said[: MAX_REASON_CHARACTERS - 1]}…"
        cases = text.plural(count, "case")
        yield f"{cases} {text.status_label(status)}: {said}{_verify(status, row)}"
    if (left := len(problems) - MAX_PROBLEMS) > 0:
        yield f"{text.plural(left, 'more reason')} in the report"


def _verify(status: Status, row: Row) -> str:
    """Return the command that shows more of a case that failed."""
    if status not in FAILURES or row.is_alone:
        return ""
    name = row.name
    command = verify_command(name.suite, name.kernel, name.implementation, name.case)
    return f"; see `{command}`"
