"""What ``gpubench time`` shows: rows as data, and as a rich table. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.table import Table
from rich.text import Text

from gpubench.analysis.comparison import time_ratio
from gpubench.analysis.control import FalseAlarms, false_alarms
from gpubench.analysis.declared_work import NO_DOUBTS, KernelDoubts
from gpubench.analysis.headline import KernelKey
from gpubench.analysis.roofline import memory_ceiling
from gpubench.measure.direct import Measured, Twins
from gpubench.names import kernel_title, verify_command
from gpubench.report import text
from gpubench.results import Ratio, Row, measured_rows
from gpubench.results.ratio import MIN_UNPAIRED_FACTOR, paired_speedup, rounds_of
from gpubench.results.records import share_disturbed
from gpubench.statuses import UNMEASURED_STATUSES
from gpubench.tables.table import compiled_line, several, table

Doubts = Mapping[KernelKey, KernelDoubts]
NO_DOUBTS_AT_ALL: Doubts = {}

VERDICT_STYLES = {"faster": "green", "slower": "red"}

NO_REASON = "no reason is known"


def rows_of(measured: Iterable[Measured]) -> list[Row]:
    """Return each measured case beside its baseline, by the report's rules."""
    return measured_rows(
        (one.record, one.samples, rounds_of(one.medians), share_disturbed(one.disturbances))
        for one in measured
    )


def by_kernel(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each kernel, by its name among all."""
    kernels: dict[str, list[Row]] = {}
    for row in rows:
        kernels.setdefault(kernel_title(row.name.suite, row.name.kernel), []).append(row)
    return kernels


def report(
    rows: Sequence[Row], width: int | None = None, doubts: Doubts = NO_DOUBTS_AT_ALL
) -> Iterator[Table | Text]:
    """Yield the times of each kernel as a table, what there is to know of them, and what has no
    time; then why cases of any kernel were not measured here, as most reasons are the machine's.

    ``width``: characters of the terminal; ``None`` where lines may be as long as they are.
    ``doubts``: about rates, where stored counts contradict what suites declare."""
    for kernel, its_rows in by_kernel(rows).items():
        notes: dict[str, int] = {}
        cells = [
            _cells(row, notes, _rate_doubts(row, doubts))
            for row in its_rows
            if row.seconds is not None
        ]
        if cells:
            yield from _fitting(cells, width, kernel)
        elif any(row.status not in UNMEASURED_STATUSES for row in its_rows):
            yield Text(kernel, "table.title")
        yield from (Text(f"  [{number}] {note}") for note, number in notes.items())
        yield from _reasons(row for row in its_rows if row.status not in UNMEASURED_STATUSES)
    yield from _reasons(row for row in rows if row.status in UNMEASURED_STATUSES)
    compiled = (
        (f"{kernel_title(row.name.suite, row.name.kernel)} {row.name.implementation}", seconds)
        for row in rows
        if isinstance(seconds := row.conditions.get("compile_seconds"), float)
    )
    if line := compiled_line(compiled):
        yield Text(line)


LEFT_OUT_FIRST = ("GFLOP/s", "GB/s", "% of attainable", "launch", "error")
"""Columns that a narrow terminal has no room for: what can be calculated, or said by --json."""


def _fitting(
    cells: Sequence[dict[str, str | Text]], width: int | None, title: str
) -> Iterator[Table | Text]:
    """Yield the table, without columns for which a terminal of that width has no room."""
    shown = [name for name in cells[0] if any(row[name] for row in cells)]
    right = set(shown) - {"implementation", "case", "of", "verdict", "launch", "notes"}
    left_out: list[str] = []
    for name in (*LEFT_OUT_FIRST, ""):
        rows = ([row[one] for one in shown] for row in cells)
        made = table(shown, rows, right, title=title, title_justify="left")
        if width is None or (made.width or 0) <= width:
            break
        if name in shown:
            shown.remove(name)
            left_out.append(name)
    yield made
    if left_out:
        yield Text(f"  no room for {', '.join(left_out)}: widen the terminal, or use --json")


_ALIKE = (
    *("bytes_per_second", "flops_per_second", "peak_bytes"),
    *("max_abs_error", "max_rel_error", "score"),
    *("disturbed", "layouts", "block", "grid", "threads", "method", "warnings"),
)
"""Columns of a row that JSON has under their names."""


def time_row(row: Row, doubts: Doubts = NO_DOUBTS_AT_ALL) -> dict[str, Any]:
    """Return one labelled time of one case as JSON shows it; seconds, bytes and operations."""
    seconds = {"median": row.seconds}
    for name in ("low", "high", "q25", "q75", "samples", "runs_per_sample"):
        seconds[name] = getattr(row, name)
    return {
        "name": f"{row.name.benchmark.asv_name} {row.name.case}".strip(),
        **asdict(row.name),
        "status": row.status,
        "reason": row.reason,
        "seconds": None if row.seconds is None else seconds,
        "speedup": _speedup(row.speedup, row.pairs),
        "no_speedup": row.missing,
        "attainable_share": _share(row),
        **{name: getattr(row, name) for name in _ALIKE},
        "rate_doubts": _rate_doubts(row, doubts),
        "conditions": dict(row.conditions),
    }


def control_speedup(twins: Twins) -> Ratio | None:
    """Return what a comparison of a case with itself says; ``None`` where it failed."""
    if not twins.succeeded:
        return None
    record = twins.first.record
    if ratio := paired_speedup(record.pair_ratios, record.pair_rounds):
        (row,) = rows_of([twins.first])
        return replace(ratio, least=MIN_UNPAIRED_FACTOR) if row.is_disturbed else ratio
    if twins.second is None:  # too few pairs
        return None
    return time_ratio(*rows_of([twins.first]), *rows_of([twins.second]))


def control_line(alarms: FalseAlarms) -> str:
    """``2 false alarms in 100 comparisons: 2.0 % (99 % interval 0.1-9.1 %)``."""
    return (
        f"{text.plural(alarms.alarms, 'false alarm')} in "
        f"{text.plural(alarms.comparisons, 'comparison')}: {alarms.rate:.1%} "
        f"(99 % interval {alarms.low:.1%} to {alarms.high:.1%})"
    )


def control_table(comparisons: Iterable[tuple[Twins, Ratio | None]]) -> Table:
    """Cases compared with themselves: how often, how often falsely, and the widest ratio seen."""
    by_case: dict[tuple[str, str], list[Ratio]] = {}
    for twins, ratio in comparisons:
        ratios = by_case.setdefault((twins.case.group.title, twins.case.identity), [])
        if ratio:
            ratios.append(ratio)
    rows = []
    for case, ratios in by_case.items():
        alarms = false_alarms(ratios)
        farthest = max(ratios, key=lambda ratio: ratio.factor, default=None)
        counts = (str(alarms.comparisons), str(alarms.alarms), text.speedup(farthest))
        rows.append((*case, *counts))
    right = ("comparisons", "false alarms", "farthest ratio")
    return table(("implementation", "case", *right), rows, right)


def control_rows(comparisons: Iterable[tuple[Twins, Ratio | None]]) -> list[dict[str, Any]]:
    """Return every comparison as JSON shows it."""
    return [
        {
            "implementation": twins.case.group.title,
            "case": twins.case.identity,
            "status": twins.first.record.status,
            "reason": twins.first.record.reason,
            "speedup": _speedup(ratio, len(twins.first.record.pair_ratios)),
        }
        for twins, ratio in comparisons
    ]


def _rate_doubts(row: Row, doubts: Doubts) -> list[str]:
    """Say why rates of a row do not rest on counted work."""
    if not doubts:
        return []
    from gpubench.report.declared_view import doubt_words  # which brings all of the report

    rates = {"bytes": row.bytes_per_second, "flops": row.flops_per_second}
    doubt = doubts.get((row.name.suite, row.name.kernel), NO_DOUBTS).of(row.name.implementation)
    return [words for kind, words in doubt_words(doubt).items() if rates[kind]]


def _cells(row: Row, notes: dict[str, int], doubts: Iterable[str]) -> dict[str, str | Text]:
    """Text of one row by the column's name; ``notes`` are numbered as they come up."""
    its_notes = filter(None, (text.disturbed(row), row.missing, *doubts, *row.warnings))
    numbers = [notes.setdefault(note, len(notes) + 1) for note in its_notes]
    share, verdict = _share(row), Text("baseline" if row.is_baseline else "")
    if row.speedup:
        verdict = Text(row.speedup.verdict, VERDICT_STYLES.get(row.speedup.verdict, ""))
    beyond = "over 100: cache-resident or undercounted"
    return {
        "implementation": row.name.implementation,
        "case": row.name.case,
        "of": "" if row.name.time == "kernel" else text.time_label(row.name.time),
        "time": text.seconds(row.seconds),
        "interval": text.seconds_interval(row.low, row.high),
        "speedup": text.speedup(row.speedup),
        "its interval": text.interval(row.speedup) if row.speedup else "",
        "verdict": verdict,
        "GB/s": text.rate(row.bytes_per_second or None),
        "GFLOP/s": text.rate(row.flops_per_second or None),
        "% of attainable": "" if share is None else beyond if share > 1 else f"{100 * share:.0f}",
        "memory": text.memory(row.peak_bytes),
        "error": text.error(row.max_rel_error),
        "score": text.score(row.score),
        "launch": text.launch(row),
        "notes": "".join(f"[{number}]" for number in numbers),
    }


def _reasons(rows: Iterable[Row]) -> Iterator[Text]:
    """Yield why cases have no time: one line for each reason, of what is skipped for all kernels;
    below what failed, the command that shows more."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    first: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        if row.seconds is None:
            name, implementation = row.name, row.name.implementation
            time = "" if name.time == "kernel" else text.time_label(name.time)
            case = ", ".join(filter(None, (name.case, time)))
            if row.status in UNMEASURED_STATUSES:
                case = f"{kernel_title(name.suite, name.kernel)} {implementation} {case}".strip()
                implementation = ""
            key: tuple[str, str, str] = (row.status, implementation, row.reason or NO_REASON)
            groups.setdefault(key, []).append(case)
            first.setdefault(key, row)
    for key, cases in groups.items():
        status, implementation, reason = key
        which = several(cases)
        if implementation:
            which = f"{implementation} ({which})" if cases[0] else implementation
        line = Text("  ").append(
            text.status_label(status), "bold red" if implementation else "bold"
        )
        yield line.append(f": {which}: {reason}")
        if status not in UNMEASURED_STATUSES:
            name = first[key].name
            command = verify_command(name.suite, name.kernel, name.implementation, name.case)
            yield Text(f"    next: {command}")


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
    ceiling, rate = memory_ceiling(row.device, [row], {}, ()), row.bytes_per_second
    return rate / ceiling.bytes_per_second if ceiling and rate is not None else None
