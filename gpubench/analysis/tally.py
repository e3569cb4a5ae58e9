"""Counts of verdicts and statuses, and the reasons behind cases without a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.results import Status

SEVERITY: tuple[Status, ...] = (
    "wrong",
    "failed",
    "timed_out",
    "killed",
    "verified",
    "skipped",
    "ok",
)
"""Statuses, the most urgent first."""


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Cases that have no time for the same reason."""

    status: Status
    reason: str
    cases: tuple[Compared, ...]


def count(cases: Iterable[Compared]) -> dict[str, int]:
    """How many cases are what; every case counts once, and what does not occur is left out.

    ``faster``, ``slower``, ``unclear``; ``not compared`` where the baseline is missing; each
    status but ``ok``; ``baseline``; ``time only`` for times that have no speedup by their nature.
    """
    counts: Counter[str] = Counter()
    for compared in cases:
        if compared.outcome.status != "ok":
            counts[compared.outcome.status] += 1
        elif compared.speedup:
            counts[compared.speedup.verdict] += 1
        elif compared.missing:
            counts["not compared"] += 1
        else:
            counts["baseline" if compared.is_baseline else "time only"] += 1
    order = ("faster", "slower", "unclear", "not compared", *SEVERITY, "baseline", "time only")
    return {key: counts[key] for key in order if counts[key]}


def worst_status(cases: Iterable[Compared]) -> Status:
    """The most urgent status among cases; ``ok`` of nothing."""
    found = {compared.outcome.status for compared in cases}
    return next((status for status in SEVERITY if status in found), "ok")


def by_reason(cases: Iterable[Compared]) -> tuple[ReasonGroup, ...]:
    """Cases without a time by status and reason, the most urgent first, then the largest."""
    groups: dict[tuple[Status, str], list[Compared]] = defaultdict(list)
    for compared in cases:
        if compared.outcome.status != "ok":
            groups[compared.outcome.status, compared.outcome.reason or ""].append(compared)
    ordered = sorted(
        groups.items(),
        key=lambda item: (SEVERITY.index(item[0][0]), -len(item[1]), item[0][1]),
    )
    return tuple(ReasonGroup(status, reason, tuple(c)) for (status, reason), c in ordered)
