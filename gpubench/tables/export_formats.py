"""Results of one commit as text in the formats of other programs.

Bencher and github-action-benchmark hold numbers by name. Neither has a place for the reason why a
case has no number: such cases are left out there. CSV holds every case, with its status and reason.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from gpubench.analysis.costs import COSTS, total_costs, worst_resources
from gpubench.report import text
from gpubench.results import CaseCounts, CaseName, Row, Snapshot
from gpubench.statuses import FAILURES

MAX_BENCHER_NAME = 1024
"""Characters of a benchmark's name (https://bencher.dev/docs/reference/bencher-metric-format)."""

NANOSECONDS = 1e9
"""Nanoseconds in a second. Bencher's measure ``latency`` is in nanoseconds; the other format gets
them too, so that a chart's numbers are no tiny fractions."""

_WORDS = {cost.name: cost.words for cost in COSTS}


@dataclass(frozen=True)
class ExportedCase:
    """One case of a snapshot, with what was counted of it."""

    snapshot: Snapshot
    row: Row
    costs: Mapping[str, int]
    """By names of ``COSTS``; empty where nothing was counted."""
    benchmark: str
    """asv's name of it."""

    @property
    def name(self) -> str:
        """Return asv's benchmark and the identity, as ``gpubench plan --list`` has them."""
        return f"{self.benchmark} {self.row.name.case}".rstrip()

    @property
    def has_time(self) -> bool:
        """Return whether it has a time that other programs can hold: finite, above zero, and of an
        undisturbed case, as these formats have no mark for the others."""
        seconds = self.row.seconds
        is_number = seconds is not None and math.isfinite(seconds) and seconds > 0
        return is_number and not self.row.is_disturbed

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return both ends of the time's interval in seconds, where both are finite."""
        low, high = self.row.low, self.row.high
        if low is None or high is None or not (0 < low <= high < math.inf):
            return None
        return low, high


def exported_cases(
    snapshot: Snapshot,
    rows: Mapping[CaseName, Row],
    counts: Mapping[CaseName, CaseCounts],
    asv_name: Callable[[CaseName], str],
) -> list[ExportedCase]:
    """Return every case of a snapshot, in the order of its rows, with its costs."""
    return [
        # Counts of a wrong case say nothing: what it did is not the work that was asked for.
        ExportedCase(
            snapshot,
            row,
            {} if row.status in FAILURES else _costs(counts.get(name)),
            asv_name(name),
        )
        for name, row in rows.items()
    ]


def _costs(counts: CaseCounts | None) -> dict[str, int]:
    """Return all costs of a case; of several kernels the most that one takes of a resource."""
    if counts is None or counts.missing:
        return {}
    known = {**total_costs(counts), **worst_resources(counts)}
    return {cost.name: known[cost.name] for cost in COSTS if cost.name in known}


def left_out(cases: Iterable[ExportedCase]) -> list[str]:
    """Return lines that name the failed cases, count the other cases without a number, and count
    the cases whose time other work disturbed."""
    lines: list[str] = []
    others: dict[str, int] = {}
    disturbed = 0
    for case in cases:
        if case.row.is_disturbed and case.row.seconds is not None:
            disturbed += 1
            continue
        if case.has_time or case.costs:
            continue
        status = case.row.status
        if status in FAILURES:
            lines.append(
                f"left out {case.name}: {text.status_label(status)}"
                f"{f': {case.row.reason}' if case.row.reason else ''}"
            )
        else:
            others[status] = others.get(status, 0) + 1
    lines += [
        f"left out {text.plural(count, 'case')} without a number: {other}"
        for other, count in others.items()
    ]
    if disturbed:
        lines.append(
            f"left out {text.plural(disturbed, 'time')} that other work on the machine disturbed: "
            "measure again on a quiet machine; csv has them, with a column `disturbed`"
        )
    return lines


def bencher_json(cases: Iterable[ExportedCase]) -> str:
    """Write Bencher Metric Format JSON, for ``bencher run --adapter json --file``.

    A time is the measure ``latency`` in nanoseconds, with its interval as ``lower_value`` and
    ``upper_value``; each cost is a measure of its own, ``ptx-instructions`` for example.
    See https://bencher.dev/docs/reference/bencher-metric-format.
    """
    content: dict[str, dict[str, dict[str, float]]] = {}
    for case in cases:
        measures: dict[str, dict[str, float]] = {}
        if case.has_time:
            assert case.row.seconds is not None
            measures["latency"] = {"value": _nanoseconds(case.row.seconds)}
            if case.interval:
                low, high = map(_nanoseconds, case.interval)
                measures["latency"] |= {"lower_value": low, "upper_value": high}
        for name, count in case.costs.items():
            measures[name.replace("_", "-")] = {"value": count}
        if measures:
            content[_short(case.name)] = measures
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def action_json(cases: Iterable[ExportedCase]) -> str:
    """Write what github-action-benchmark reads with ``tool: customSmallerIsBetter``.

    ``range`` is half of the interval, the larger half where they differ. See
    https://github.com/benchmark-action/github-action-benchmark, *Custom*.
    """
    entries: list[dict[str, Any]] = []
    for case in cases:
        name = case.name
        if case.has_time:
            assert case.row.seconds is not None
            value = _nanoseconds(case.row.seconds)
            entry: dict[str, Any] = {"name": name, "unit": "ns", "value": value}
            if case.interval:
                low, high = map(_nanoseconds, case.interval)
                entry["range"] = f"± {max(value - low, high - value):.6g}"
            if extra := _extra(case):
                entry["extra"] = extra
            entries.append(entry)
        entries += [
            {"name": f"{name} [{cost}]", "unit": _WORDS[cost], "value": count}
            for cost, count in case.costs.items()
        ]
    return json.dumps(entries, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _extra(case: ExportedCase) -> str:
    """Return lines for the tooltip of a point."""
    row = case.row
    speedup = f"speedup: {text.speedup(row.speedup)}" if row.speedup else ""
    device = f"device: {row.device}" if row.device else ""
    return "\n".join(filter(None, (speedup, device)))


WRITERS: Mapping[str, Callable[[Sequence[ExportedCase]], str]] = {
    "bencher": bencher_json,
    "github-action-benchmark": action_json,
}
"""Formats that hold cases with a number alone. A name there tells no machine: they hold results of
one machine and environment."""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV with the columns' names first; lists and mappings as JSON, empty where
    there is nothing or no number."""
    written = StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_csv_cell, row) for row in rows)
    return written.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, list | dict):
        return json.dumps(value)
    return value


def _nanoseconds(seconds: float) -> float:
    """Return nanoseconds with as many digits as a time has at most, so that 3e-7 s is 300."""
    return float(f"{seconds * NANOSECONDS:.12g}")


def _short(name: str) -> str:
    """Cut a name to what Bencher takes; the end, which tells cases apart, stays."""
    if len(name) <= MAX_BENCHER_NAME:
        return name
    half = MAX_BENCHER_NAME // 2
    return f"{name[: half - 1]}…{name[-half:]}"
