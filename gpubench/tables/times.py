"""What ``gpubench time`` shows: rows as data, and as a rich table. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpubench.analysis.baseline import Compared, compare
from gpubench.analysis.control import FalseAlarms, false_alarms
from gpubench.analysis.paired import paired_speedup
from gpubench.analysis.rounds import Rounds, speedup_of_rounds
from gpubench.analysis.speedup import Speedup
from gpubench.measure.control import Twins
from gpubench.measure.direct import Measured
from gpubench.names import format_shape
from gpubench.record import CaseRecord
from gpubench.report import text
from gpubench.results import CaseName
from gpubench.results.samples import outcome
from gpubench.tables.width import unwrapped

COLOURS = {"faster": "green", "slower": "red", "unclear": ""}

BANDWIDTHS = ("copy_bytes_per_second", "triad_bytes_per_second")
"""Conditions that say what the memory of a device attains."""


def compared(measured: Iterable[Measured]) -> list[Compared]:
    """Each measured case beside its baseline, by the report's rules. Rounds, which a result file of
    asv does not tell, decide the interval of a speedup that is not of pairs."""
    known = [(outcome(one.record, one.samples), one) for one in measured]
    rounds = {found.name: one.by_round for found, one in known}
    cases = compare({found.name: found for found, _ in known}).values()
    return [_by_rounds(case, rounds) for case in cases]


def _by_rounds(case: Compared, rounds: Mapping[CaseName, Rounds]) -> Compared:
    record, baseline = case.outcome.record, case.baseline
    if case.speedup is None or baseline is None or (record and record.pair_ratios):
        return case
    both = rounds[baseline.name], rounds[case.outcome.name]
    return replace(case, speedup=speedup_of_rounds(*both))


def kernel_report(cases: Sequence[Compared]) -> list[RenderableType]:
    """The times of one kernel as a table, what there is to know of them, and what has no time."""
    notes: dict[str, int] = {}
    timed = [case for case in cases if case.outcome.timing is not None]
    rows = [_cells(case, notes) for case in timed]
    listed = [Text(f"  [{number}] {note}") for note, number in notes.items()]
    table: list[RenderableType] = [_table(_title(cases[0]), rows)] if rows else []
    return [*table, *listed, *_untimed(case for case in cases if not _is_skipped(case))]


def skipped_report(cases: Iterable[Compared]) -> list[RenderableType]:
    """Why cases of any kernel were not measured here: a line for each reason, as most are the
    machine's."""
    return list(_untimed(filter(_is_skipped, cases), by_kernel=True))


def _is_skipped(case: Compared) -> bool:
    return case.outcome.timing is None and case.outcome.status in ("skipped", "verified")


def by_kernel(cases: Iterable[Compared]) -> list[list[Compared]]:
    """Cases of each kernel."""
    kernels: dict[tuple[str, str], list[Compared]] = {}
    for case in cases:
        name = case.outcome.name
        kernels.setdefault((name.suite, name.kernel), []).append(case)
    return list(kernels.values())


def time_row(case: Compared) -> dict[str, Any]:
    """One labelled time of one case as JSON shows it; seconds, bytes and operations."""
    found, record = case.outcome, case.outcome.record
    assert record is not None
    seconds = found.timing.median if found.timing else None
    return {
        "name": f"{found.name.benchmark.asv_name} {found.name.case}".strip(),
        **asdict(found.name),
        "status": found.status,
        "reason": found.reason,
        "seconds": _timing(case),
        "speedup": _speedup(case.speedup, record),
        "no_speedup": case.missing,
        "bytes_per_second": _rate(record.bytes, seconds),
        "flops_per_second": _rate(record.flops, seconds),
        "attainable_share": _share(record, seconds),
        "max_abs_error": record.max_abs_error,
        "max_rel_error": record.max_rel_error,
        "block": record.block,
        "grid": record.grid,
        "threads": record.threads,
        "method": record.method,
        "conditions": dict(record.conditions),
        "warnings": list(record.warnings),
    }


def control_speedup(found: Twins) -> Speedup | None:
    """What a comparison of a case with itself says; ``None`` where it failed."""
    if not found.succeeded:
        return None
    if found.second is None:
        record = found.first.record
        return paired_speedup(record.pair_ratios, record.pair_rounds)
    return speedup_of_rounds(found.first.by_round, found.second.by_round)


def control_line(alarms: FalseAlarms) -> str:
    """``2 false alarms in 100 comparisons: 2.0 % (99 % interval 0.1-9.1 %)``."""
    return (
        f"{text.plural(alarms.alarms, 'false alarm')} in "
        f"{text.plural(alarms.comparisons, 'comparison')}: {alarms.rate:.1%} "
        f"(99 % interval {alarms.low:.1%} to {alarms.high:.1%})"
    )


def control_table(found: Sequence[Twins]) -> Table:
    """Cases compared with themselves: how often, how often falsely, and the widest ratio seen."""
    table = Table(box=None, header_style="bold")
    for name in ("implementation", "case", "comparisons", "false alarms", "farthest ratio"):
        table.add_column(name, justify="left" if name in ("implementation", "case") else "right")
    for (implementation, case), group in _by_case(found).items():
        speedups = [s for s in map(control_speedup, group) if s is not None]
        alarms = false_alarms(speedups)
        farthest = max(speedups, key=lambda s: max(s.value, 1 / s.value), default=None)
        cells = (str(alarms.comparisons), str(alarms.alarms), text.speedup(farthest))
        table.add_row(escape(implementation), escape(case), *cells)
    return unwrapped(table)


def control_rows(found: Iterable[Twins]) -> list[dict[str, Any]]:
    """Every comparison as JSON shows it."""
    return [
        {
            "implementation": twins.case.subject.title,
            "case": twins.case.identity,
            "status": twins.first.record.status,
            "reason": twins.first.record.reason,
            "speedup": _speedup(control_speedup(twins), twins.first.record),
        }
        for twins in found
    ]


def _by_case(found: Iterable[Twins]) -> dict[tuple[str, str], list[Twins]]:
    cases: dict[tuple[str, str], list[Twins]] = {}
    for twins in found:
        cases.setdefault((twins.case.subject.title, twins.case.identity), []).append(twins)
    return cases


def _table(title: str, rows: Sequence[dict[str, str]]) -> Table:
    """Columns that nothing fills are left out; lines are as long as they are."""
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for name in rows[0]:
        if any(row[name] for row in rows):
            left = name in ("implementation", "case", "of", "verdict", "launch", "notes")
            table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[str(column.header)] for column in table.columns))
    return unwrapped(table)


def _title(case: Compared) -> str:
    name = case.outcome.name
    return name.suite if name.suite == name.kernel else f"{name.suite}/{name.kernel}"


def _cells(case: Compared, notes: dict[str, int]) -> dict[str, str]:
    """Text of one row by the column's name; ``notes`` are numbered as they come up."""
    name, found, record = case.outcome.name, case.outcome.timing, case.outcome.record
    assert record is not None and found is not None
    share = _share(record, found.median)
    numbers = (notes.setdefault(note, len(notes) + 1) for note in _notes(case, record))
    return {
        "implementation": escape(name.implementation),
        "case": escape(name.case),
        "of": "" if name.time == "kernel" else text.time_label(name.time),
        "time": text.seconds(found.median),
        "99 % interval": text.seconds_interval(max(found.low, 0.0), found.high),
        "speedup": text.speedup(case.speedup),
        "its interval": text.interval(case.speedup) if case.speedup else "",
        "verdict": _verdict(case),
        "GB/s": text.rate(record.bytes, found.median),
        "GFLOP/s": text.rate(record.flops or None, found.median),
        "% of attainable": "" if share is None else _percent(share),
        "error": text.error(record.max_rel_error),
        "launch": _launch(record),
        "notes": escape("".join(f"[{number}]" for number in numbers)),
    }


def _untimed(cases: Iterable[Compared], by_kernel: bool = False) -> list[RenderableType]:
    """Why cases have no time: one line for each reason, with the cases that it is true of."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for case in cases:
        found = case.outcome
        if found.timing is None:
            what = "" if by_kernel else found.name.implementation
            name = _named(case) if by_kernel else _short(case)
            key = (found.status, what, found.reason or "no reason is known")
            groups.setdefault(key, []).append(name)
    return [_reason_line(*key, names) for key, names in groups.items()]


def _reason_line(status: str, implementation: str, reason: str, names: Sequence[str]) -> Text:
    urgent = status not in ("skipped", "verified")
    which = names[0] if len(names) == 1 else f"{len(names)} cases, first {names[0]}"
    if implementation:
        which = f"{implementation} ({which})" if names[0] else implementation
    line = Text("  ")
    line.append(text.status_label(status), style="bold red" if urgent else "bold")
    return line.append(f": {which}: {reason}")


def _named(case: Compared) -> str:
    return f"{_title(case)} {case.outcome.name.implementation} {_short(case)}".strip()


def _short(case: Compared) -> str:
    name = case.outcome.name
    time = "" if name.time == "kernel" else text.time_label(name.time)
    return ", ".join(part for part in (name.case, time) if part)


def _verdict(case: Compared) -> str:
    if case.speedup is None:
        return "baseline" if case.is_baseline else ""
    verdict = case.speedup.verdict
    colour = COLOURS[verdict]
    return f"[{colour}]{verdict}[/]" if colour else verdict


def _notes(case: Compared, record: CaseRecord) -> list[str]:
    said = (case.missing, *record.warnings)
    paired = (
        f"speedup from {len(record.pair_ratios)} pairs of samples"
        if record.pair_ratios and case.speedup
        else None
    )
    return [note for note in (paired, *said) if note]


def _launch(record: CaseRecord) -> str:
    if record.block is None or record.grid is None:
        return "" if record.threads is None else text.plural(record.threads, "thread")
    return f"{format_shape(record.grid)} blocks of {format_shape(record.block)}"


def _timing(case: Compared) -> dict[str, Any] | None:
    found = case.outcome.timing
    if found is None:
        return None
    return {
        "median": found.median,
        "low": max(found.low, 0.0) if found.has_interval else None,
        "high": found.high if found.has_interval else None,
        "q25": found.q25,
        "q75": found.q75,
        "samples": found.repeat,
        "runs_per_sample": found.number,
    }


def _speedup(value: Speedup | None, record: CaseRecord) -> dict[str, Any] | None:
    if value is None:
        return None
    return {
        "value": value.value,
        "low": value.low if value.has_interval else None,
        "high": value.high if value.has_interval else None,
        "verdict": value.verdict,
        "pairs": len(record.pair_ratios),
    }


def _rate(amount: int | None, seconds: float | None) -> float | None:
    return amount / seconds if amount is not None and seconds else None


def _share(record: CaseRecord, seconds: float | None) -> float | None:
    """Part of the device's attainable bandwidth; ``None`` where either is not known."""
    rate = _rate(record.bytes, seconds)
    known = map(record.conditions.get, BANDWIDTHS)
    best = max((float(b) for b in known if isinstance(b, int | float)), default=0.0)
    return rate / best if rate is not None and best > 0 else None


def _percent(share: float) -> str:
    return "over 100: cache-resident or undercounted" if share > 1 else f"{100 * share:.0f}"
