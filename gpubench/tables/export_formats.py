"""Results of one commit in the formats of other programs: text for each, and Parquet.

Bencher and github-action-benchmark hold numbers by name, OpenMetrics numbers by labels. They have
no place for why a case has no number, so that such cases are left out there. CSV and Parquet hold
every case, with its status and reason.
"""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from gpubench.analysis.costs import COSTS, total_costs, worst_resources
from gpubench.report import text
from gpubench.results import CaseCounts, CaseName, Row, Snapshot
from gpubench.statuses import FAILURES

ONE_SETUP = ("bencher", "github-action-benchmark")
"""Formats in which a name tells no machine: they hold results of one machine and environment."""

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
    """Return lines that name failed cases without a number, and count the others without one and
    those whose time other work disturbed."""
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
            "measure again on a quiet machine; csv and parquet have them, with a column `disturbed`"
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


def openmetrics_text(cases: Sequence[ExportedCase]) -> str:
    """Write OpenMetrics text: families with their type, unit and help, ending in ``# EOF``.

    See https://prometheus.io/docs/specs/om/open_metrics_spec.
    """
    timed = [case for case in cases if case.has_time]
    with_interval = [case for case in timed if case.interval]
    with_speedup = [
        case for case in timed if case.row.speedup and math.isfinite(case.row.speedup.value)
    ]
    snapshots = {case.snapshot.id: case.snapshot for case in cases}.values()
    lines = [
        *_family("gpubench_commit", "info", "", "Commit that the other samples are of."),
        *(
            _sample("gpubench_commit_info", _setup(one) | {"commit": one.commit.hash}, 1)
            for one in snapshots
        ),
        *_family("gpubench_commit_date_seconds", "gauge", "seconds", "When it was committed."),
        *(
            _sample("gpubench_commit_date_seconds", _setup(one), one.commit.date)
            for one in snapshots
        ),
        *_family("gpubench_time_seconds", "gauge", "seconds", "Median time of one run."),
        *(_sample("gpubench_time_seconds", _labels(case), case.row.seconds) for case in timed),
    ]
    for end, which in enumerate(("low", "high")):
        name = f"gpubench_time_{which}_seconds"
        side = "Lower" if which == "low" else "Upper"
        lines += _family(name, "gauge", "seconds", f"{side} end of the interval of the time.")
        lines += [
            _sample(name, _labels(case), case.interval[end])
            for case in with_interval
            if case.interval
        ]
    lines += _family(
        "gpubench_speedup_ratio", "gauge", "ratio", "Time of the baseline over that of the case."
    )
    lines += [
        _sample("gpubench_speedup_ratio", _labels(case), case.row.speedup.value)
        for case in with_speedup
        if case.row.speedup
    ]
    lines += _family(
        "gpubench_cost", "gauge", "", "Counted work of one run on the device in software."
    )
    lines += [
        _sample("gpubench_cost", {**_labels(case), "cost": cost}, count)
        for case in cases
        for cost, count in case.costs.items()
    ]
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, kind: str, unit: str, meaning: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {meaning}"


def _sample(name: str, labels: Mapping[str, str], value: float | None) -> str:
    pairs = ",".join(f'{label}="{_escaped(words)}"' for label, words in labels.items())
    return f"{name}{{{pairs}}} {value!r}"


def _escaped(words: str) -> str:
    """Escape a label's value: backslash, quote and line feed, and nothing else."""
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _setup(snapshot: Snapshot) -> dict[str, str]:
    return {"machine": snapshot.setup.machine, "environment": snapshot.setup.environment}


def _labels(case: ExportedCase) -> dict[str, str]:
    """Return the labels of a case, those that are empty left out, as they are the same as none."""
    name, row = case.row.name, case.row
    labels = {
        "suite": name.suite,
        "kernel": name.kernel,
        "implementation": name.implementation,
        "time": name.time,
        "case": name.case,
        "device": row.device,
        **_setup(case.snapshot),
    }
    return {label: words for label, words in labels.items() if words}


WRITERS: Mapping[str, Callable[[Sequence[ExportedCase]], str]] = {
    "bencher": bencher_json,
    "github-action-benchmark": action_json,
    "openmetrics": openmetrics_text,
}
"""Formats that hold cases with a number alone."""


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


def parquet_bytes(columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Write Parquet with DuckDB. ``columns`` are SQL types by names; JSON becomes text."""
    import duckdb

    from gpubench.report.exports import plain

    kinds = {name: "VARCHAR" if kind == "JSON" else kind for name, kind in columns.items()}
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        lines, written = Path(folder, "rows.json"), Path(folder, "rows.parquet")
        with lines.open("w", encoding="utf-8") as file:
            for row in rows:
                cells = map(_json_cell, row)
                file.write(json.dumps(dict(zip(columns, cells, strict=True)), default=plain) + "\n")
        with duckdb.connect() as connection:
            read = connection.read_json(str(lines), format="newline_delimited", columns=kinds)
            read.write_parquet(str(written), compression="zstd")
        return written.read_bytes()


def _json_cell(value: Any) -> Any:
    """Return what DuckDB reads back as the same value: numbers that JSON has not are text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [*map(_json_cell, value)]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _nanoseconds(seconds: float) -> float:
    """Return nanoseconds with as many digits as a time has at most, so that 3e-7 s is 300."""
    return float(f"{seconds * NANOSECONDS:.12g}")


def _short(name: str) -> str:
    """Cut a name to what Bencher takes; the end, which tells cases apart, stays."""
    if len(name) <= MAX_BENCHER_NAME:
        return name
    half = MAX_BENCHER_NAME // 2
    return f"{name[: half - 1]}…{name[-half:]}"
