"""The full table of a kernel's cases, and its labelled times side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import COMPARED_TIMES, Compared
from gpubench.analysis.headline import headline, size_of
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.setup_table import natural_order
from gpubench.analysis.speedup import Speedup
from gpubench.names import TIMES, format_shape
from gpubench.record import CaseRecord
from gpubench.report import text
from gpubench.report.findings import history_spark
from gpubench.report.sparkline import Sparkline
from gpubench.results import CaseName, Status, Timing


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case at the page's commit."""

    implementation: str
    case: str
    time: str
    """Which of the labelled times, in words."""
    device: str
    launch: str
    """Grid and block, or threads; empty without a launch."""
    is_baseline: bool
    status: Status
    reason: str
    """Why there is no time or no speedup; warnings; empty when there is nothing to say."""
    timing: Timing | None
    speedup: Speedup | None
    bytes: int | None
    """Moved by one run, by the suite's formula."""
    attainable: str
    """Share of the device's measured ceiling, in words; empty where there is none."""
    flops: int | None
    max_abs_error: float | None
    max_rel_error: float | None
    spark: Sparkline


@dataclass(frozen=True, slots=True)
class TimeCell:
    """One labelled time of one implementation."""

    timing: Timing | None
    speedup: Speedup | None
    status: Status | None
    """``None``: not measured."""


@dataclass(frozen=True, slots=True)
class TimesRow:
    """One implementation's labelled times at its headline case."""

    implementation: str
    case: str
    cells: tuple[TimeCell, ...]


@dataclass(frozen=True, slots=True)
class TimesTable:
    """Labelled times side by side; they are never mixed."""

    columns: tuple[str, ...]
    rows: tuple[TimesRow, ...]


def case_rows(
    cases: Mapping[CaseName, Compared],
    history: SetupHistory,
    order: Sequence[str],
    attainable: Mapping[CaseName, str],
) -> tuple[CaseRow, ...]:
    """A row for each case: by implementation, labelled time, then size.

    ``attainable`` has the share of the ceiling in words, for cases that have one.
    """
    ordered = sorted(
        cases.values(),
        key=lambda c: (
            order.index(c.outcome.name.implementation),
            TIMES.index(c.outcome.name.time),
            size_of(c),
            natural_order(c.outcome.name),
        ),
    )
    return tuple(
        _case_row(compared, history, attainable.get(compared.outcome.name, ""))
        for compared in ordered
    )


def _case_row(compared: Compared, history: SetupHistory, attainable: str) -> CaseRow:
    outcome = compared.outcome
    record, points = outcome.record, history.cases[outcome.name]
    work = record if outcome.name.time in COMPARED_TIMES else None  # a compilation moves no arrays
    return CaseRow(
        implementation=outcome.name.implementation,
        case=outcome.name.case,
        time=text.time_label(outcome.name.time),
        device=record.device if record else "",
        launch=_launch(record),
        is_baseline=compared.is_baseline,
        status=outcome.status,
        reason=_remarks(compared),
        timing=outcome.timing,
        speedup=compared.speedup,
        bytes=work.bytes if work else None,
        attainable=attainable,
        flops=work.flops if work else None,
        max_abs_error=record.max_abs_error if record else None,
        max_rel_error=record.max_rel_error if record else None,
        spark=history_spark(points, history.changes(outcome.name)),
    )


def _launch(record: CaseRecord | None) -> str:
    if record is None:
        return ""
    if record.block and record.grid:
        shape = f"{format_shape(record.grid)} blocks of {format_shape(record.block)}"
        return f"{shape}, {record.shared_bytes} B shared" if record.shared_bytes else shape
    return text.plural(record.threads, "thread") if record.threads else ""


def _remarks(compared: Compared) -> str:
    outcome = compared.outcome
    warnings = outcome.record.warnings if outcome.record else ()
    return "; ".join(filter(None, (outcome.reason, compared.missing, *warnings)))


def times_table(cases: Iterable[Compared], order: Sequence[str]) -> TimesTable | None:
    """Side by side, where more than one of the labelled times was taken."""
    cases = list(cases)
    columns = [time for time in TIMES if any(c.outcome.name.time == time for c in cases)]
    if len(columns) < 2:
        return None
    rows = (_times_row(cases, implementation, columns) for implementation in order)
    return TimesTable(tuple(map(text.time_label, columns)), tuple(row for row in rows if row))


def _times_row(
    cases: Sequence[Compared], implementation: str, columns: Sequence[str]
) -> TimesRow | None:
    own = [c for c in cases if c.outcome.name.implementation == implementation]
    chosen = headline(own, implementation).cases or tuple(sorted(own, key=size_of)[-1:])
    if not chosen:
        return None
    case = chosen[0].outcome.name.case
    at = {c.outcome.name.time: c for c in own if c.outcome.name.case == case}
    return TimesRow(implementation, case, tuple(_time_cell(at.get(time)) for time in columns))


def _time_cell(compared: Compared | None) -> TimeCell:
    if compared is None:
        return TimeCell(None, None, None)
    return TimeCell(compared.outcome.timing, compared.speedup, compared.outcome.status)
