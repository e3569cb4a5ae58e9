"""Counts of verdicts and statuses, and the reasons behind cases without a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from gpubench.results import Row
from gpubench.statuses import SEVERITY, Status


def count(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many cases are what; every case counts once, and what does not occur is left out.

    ``faster``, ``slower``, ``unclear``; ``not compared`` where the baseline is missing; each
    status but ``ok``; ``baseline``; ``time only`` for times that have no speedup by their nature;
    ``memory or number`` for what is no time.
    """
    counts: Counter[str] = Counter()
    for row in rows:
        if row.status != "ok":
            counts[row.status] += 1
        elif not row.is_time:
            counts["memory or number"] += 1
        elif row.speedup:
            counts[row.speedup.verdict] += 1
        elif row.missing:
            counts["not compared"] += 1
        else:
            is_baseline = row.is_baseline and not row.is_alone
            counts["baseline" if is_baseline else "time only"] += 1
    order = ("faster", "slower", "unclear", "not compared", *SEVERITY, "baseline", "time only")
    order += ("memory or number",)
    return {key: counts[key] for key in order if counts[key]}


def worst_status(rows: Iterable[Row]) -> Status:
    """Return the most urgent status among cases; ``ok`` of nothing."""
    return min((row.status for row in rows), key=SEVERITY.index, default="ok")


def by_reason(rows: Iterable[Row]) -> list[tuple[Status, str, list[Row]]]:
    """Status and reason of cases without a time, with the cases, the most urgent first, then the
    largest."""
    groups: dict[tuple[Status, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.status != "ok":
            groups[row.status, row.reason or ""].append(row)
    ordered = [(status, reason, cases) for (status, reason), cases in groups.items()]
    return sorted(ordered, key=lambda group: (SEVERITY.index(group[0]), -len(group[2]), group[1]))
