"""What ``gpubench time`` shows: rows as data, and as a rich table. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpubench.analysis.comparison import time_ratios
from gpubench.analysis.control import FalseAlarms, false_alarms
from gpubench.measure.direct import Measured, Twins
from gpubench.names import format_shape
from gpubench.report import text
from gpubench.results import Ratio, Row, measured_rows
from gpubench.results.ratio import paired_speedup
from gpubench.tables.width import unwrapped

COLOURS = {"faster": "green", "slower": "red"}

BANDWIDTHS = ("copy_bytes_per_second", "triad_bytes_per_second")
"""Conditions that say what the memory of a device attains."""


def rows_of(measured: Iterable[Measured]) -> list[Row]:
    """Each measured case beside its baseline, by the report's rules."""
    return measured_rows(
        (one.record, one.samples, [median(samples) for samples in one.by_round]) for one in measured
    )


def by_kernel(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of each kernel."""
    kernels: dict[str, list[Row]] = {}
    for row in rows:
        kernels.setdefault(_kernel(row), []).append(row)
    return list(kernels.values())


def kernel_report(rows: Sequence[Row]) -> list[RenderableType]:
    """The times of one kernel as a table, what there is to know of them, and what has no time."""
    notes: dict[str, int] = {}
    cells = [_cells(row, notes) for row in rows if row.seconds is not None]
    parts: list[RenderableType] = []
    if cells:
        table = Table(title=_kernel(rows[0]), title_justify="left", box=None, header_style="bold")
        names = [name for name in cells[0] if any(row[name] for row in cells)]
        for name in names:
            left = name in ("implementation", "case", "of", "verdict", "launch", "notes")
            table.add_column(name, justify="left" if left else "right", no_wrap=True)
        for row in cells:
            table.add_row(*(row[name] for name in names))
        parts.append(unwrapped(table))
    parts += (Text(f"  [{number}] {note}") for note, number in notes.items())
    return [*parts, *_reason_lines(row for row in rows if not _is_skipped(row))]


def skipped_report(rows: Iterable[Row]) -> list[RenderableType]:
    """Why cases of any kernel were not measured here: a line for each reason, as most are the
    machine's."""
    return list(_reason_lines(filter(_is_skipped, rows), of_all_kernels=True))


def time_row(row: Row) -> dict[str, Any]:
    """One labelled time of one case as JSON shows it; seconds, bytes and operations."""
    seconds = {
        "median": row.seconds,
        "low": row.low,
        "high": row.high,
        "q25": row.q25,
        "q75": row.q75,
        "samples": row.samples,
        "runs_per_sample": row.runs_per_sample,
    }
    return {
        "name": f"{row.name.benchmark.asv_name} {row.name.case}".strip(),
        **asdict(row.name),
        "status": row.status,
        "reason": row.reason,
        "seconds": None if row.seconds is None else seconds,
        "speedup": _speedup(row.speedup, row.pairs),
        "no_speedup": row.missing,
        "bytes_per_second": row.bytes_per_second,
        "flops_per_second": row.flops_per_second,
        "attainable_share": _share(row),
        "max_abs_error": row.max_abs_error,
        "max_rel_error": row.max_rel_error,
        "block": row.block,
        "grid": row.grid,
        "threads": row.threads,
        "method": row.method,
        "conditions": dict(row.conditions),
        "warnings": list(row.warnings),
    }


def control_speedup(twins: Twins) -> Ratio | None:
    """What a comparison of a case with itself says; ``None`` where it failed."""
    if not twins.succeeded:
        return None
    if twins.second is None:
        record = twins.first.record
        return paired_speedup(record.pair_ratios, record.pair_rounds)
    return time_ratios(rows_of([twins.first]), rows_of([twins.second]))[0]


def control_line(alarms: FalseAlarms) -> str:
    """``2 false alarms in 100 comparisons: 2.0 % (99 % interval 0.1-9.1 %)``."""
    return (
        f"{text.plural(alarms.alarms, 'false alarm')} in "
        f"{text.plural(alarms.comparisons, 'comparison')}: {alarms.rate:.1%} "
        f"(99 % interval {alarms.low:.1%} to {alarms.high:.1%})"
    )


def control_table(comparisons: Iterable[Twins]) -> Table:
    """Cases compared with themselves: how often, how often falsely, and the widest ratio seen."""
    table = Table("implementation", "case", box=None, header_style="bold")
    for name in ("comparisons", "false alarms", "farthest ratio"):
        table.add_column(name, justify="right")
    by_case: dict[tuple[str, str], list[Ratio]] = {}
    for twins in comparisons:
        ratios = by_case.setdefault((twins.case.group.title, twins.case.identity), [])
        if ratio := control_speedup(twins):
            ratios.append(ratio)
    for case, ratios in by_case.items():
        alarms = false_alarms(ratios)
        farthest = max(ratios, key=lambda ratio: max(ratio.value, 1 / ratio.value), default=None)
        counts = (str(alarms.comparisons), str(alarms.alarms), text.speedup(farthest))
        table.add_row(*map(escape, case), *counts)
    return unwrapped(table)


def control_rows(comparisons: Iterable[Twins]) -> list[dict[str, Any]]:
    """Every comparison as JSON shows it."""
    return [
        {
            "implementation": twins.case.group.title,
            "case": twins.case.identity,
            "status": twins.first.record.status,
            "reason": twins.first.record.reason,
            "speedup": _speedup(control_speedup(twins), len(twins.first.record.pair_ratios)),
        }
        for twins in comparisons
    ]


def _cells(row: Row, notes: dict[str, int]) -> dict[str, str]:
    """Text of one row by the column's name; ``notes`` are numbered as they come up."""
    pairs = f"speedup from {row.pairs} pairs of samples" if row.pairs and row.speedup else None
    its_notes = filter(None, (pairs, row.missing, *row.warnings))
    numbers = [notes.setdefault(note, len(notes) + 1) for note in its_notes]
    share, verdict = _share(row), "baseline" if row.is_baseline else ""
    if row.speedup:
        colour = COLOURS.get(row.speedup.verdict)
        verdict = f"[{colour}]{row.speedup.verdict}[/]" if colour else row.speedup.verdict
    launch = text.plural(row.threads, "thread") if row.threads is not None else ""
    if row.block and row.grid:
        launch = f"{format_shape(row.grid)} blocks of {format_shape(row.block)}"
    beyond = "over 100: cache-resident or undercounted"
    return {
        "implementation": escape(row.name.implementation),
        "case": escape(row.name.case),
        "of": "" if row.name.time == "kernel" else text.time_label(row.name.time),
        "time": text.seconds(row.seconds),
        "interval": text.seconds_interval(row.low, row.high),
        "speedup": text.speedup(row.speedup),
        "its interval": text.interval(row.speedup) if row.speedup else "",
        "verdict": verdict,
        "GB/s": text.rate(row.bytes_per_second),
        "GFLOP/s": text.rate(row.flops_per_second or None),
        "% of attainable": "" if share is None else beyond if share > 1 else f"{100 * share:.0f}",
        "error": text.error(row.max_rel_error),
        "launch": launch,
        "notes": escape("".join(f"[{number}]" for number in numbers)),
    }


def _reason_lines(rows: Iterable[Row], *, of_all_kernels: bool = False) -> Iterable[Text]:
    """Why cases have no time: one line for each reason, with the cases that it is true of."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        name = row.name
        if row.seconds is None:
            time = "" if name.time == "kernel" else text.time_label(name.time)
            case = ", ".join(filter(None, (name.case, time)))
            if of_all_kernels:
                case = f"{_kernel(row)} {name.implementation} {case}".strip()
            implementation = "" if of_all_kernels else name.implementation
            reason = row.reason or "no reason is known"
            groups.setdefault((row.status, implementation, reason), []).append(case)
    for (status, implementation, reason), cases in groups.items():
        which = cases[0] if len(cases) == 1 else f"{len(cases)} cases, first {cases[0]}"
        if implementation:
            which = f"{implementation} ({which})" if cases[0] else implementation
        style = "bold" if status in ("skipped", "verified") else "bold red"
        line = Text("  ").append(text.status_label(status), style=style)
        yield line.append(f": {which}: {reason}")


def _is_skipped(row: Row) -> bool:
    return row.status in ("skipped", "verified")


def _kernel(row: Row) -> str:
    suite, kernel = row.name.suite, row.name.kernel
    return suite if suite == kernel else f"{suite}/{kernel}"


def _speedup(ratio: Ratio | None, pairs: int) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {
        "value": ratio.value,
        "low": ratio.low if ratio.has_interval else None,
        "high": ratio.high if ratio.has_interval else None,
        "verdict": ratio.verdict,
        "pairs": pairs,
    }


def _share(row: Row) -> float | None:
    """Part of the device's attainable bandwidth; ``None`` where either is not known."""
    attained = [row.conditions.get(name) for name in BANDWIDTHS]
    best = max((float(b) for b in attained if isinstance(b, int | float)), default=0.0)
    rate = row.bytes_per_second
    return rate / best if rate is not None and best > 0 else None
