"""View model of a kernel's page: its charts, its labelled times, every case, what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpubench.analysis.choice import compilation
from gpubench.analysis.headline import Headline, KernelKey, KernelNow, headline
from gpubench.analysis.tally import count
from gpubench.names import TIMES, BenchmarkName, format_shape, split_source
from gpubench.report import charts, text
from gpubench.report.findings import (
    ONE_COMMIT,
    ReasonView,
    TimeCell,
    Timing,
    case_words,
    counts_in_words,
    history_length,
    history_spark,
    reason_views,
    timing,
)
from gpubench.report.site import CommitLabel, Navigation, Site, State, commit_label, kernel_label
from gpubench.report.sparkline import Sparkline
from gpubench.results import ABSENT, COMPARED_TIMES, CaseName, History, Ratio, Row, Status

CALL = ("compile", "transfer", "launch", "kernel")
"""Labelled times that a call consists of, in the order in which they happen."""

BAR_WIDTH = 1000.0
"""Of a whole call, in SVG user units."""


@dataclass(frozen=True, slots=True)
class Legend:
    """One implementation as the page's charts draw it."""

    implementation: str
    title: str
    """The suite's words for it; empty without."""
    rank: int
    is_baseline: bool


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
    speedup: Ratio | None
    bytes: int | None
    """Moved by one run, by the suite's formula."""
    bytes_per_second: float | None
    attainable: str
    """Share of the device's measured ceiling, in words; empty where there is none."""
    flops: int | None
    flops_per_second: float | None
    max_abs_error: float | None
    max_rel_error: float | None
    spark: Sparkline


@dataclass(frozen=True, slots=True)
class TimesRow:
    """One implementation's labelled times at its largest size."""

    implementation: str
    case: str
    cells: tuple[TimeCell, ...]


@dataclass(frozen=True, slots=True)
class TimesTable:
    """Labelled times side by side; they are never mixed."""

    columns: tuple[str, ...]
    rows: tuple[TimesRow, ...]


@dataclass(frozen=True, slots=True)
class BarPart:
    """One labelled time inside a bar."""

    time: str
    label: str
    seconds: float
    left: float
    width: float
    """SVG user units."""


@dataclass(frozen=True, slots=True)
class CallBar:
    """One call, taken apart."""

    label: str
    seconds: float
    parts: tuple[BarPart, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class SplitRow:
    """Where the time of a call goes, of one implementation at its largest size."""

    implementation: str
    case: str
    bars: tuple[CallBar, ...]
    """The first call and a later one, where compilation was measured; else a call."""
    kernel: Ratio | None
    end_to_end: Ratio | None
    end_to_end_seconds: float | None


@dataclass(frozen=True, slots=True)
class MeasuredCode:
    """One implementation's source."""

    implementation: str
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredSource:
    """The YAML and the code that the newest run measured, as asv keeps them."""

    place: str
    """Suite file and line; empty where asv's file has none (a pair, an older run)."""
    declaration: str
    """The kernel in its suite, YAML; empty like ``place``."""
    codes: tuple[MeasuredCode, ...]


@dataclass(frozen=True, slots=True)
class KernelPage:
    """One kernel on one setup."""

    title: str
    navigation: Navigation
    verdict: str
    details: str
    commit: CommitLabel
    legend: tuple[Legend, ...]
    history: charts.HistoryChart | None
    sizes: tuple[charts.SizeChart, ...]
    launches: tuple[charts.LaunchMap, ...]
    times: TimesTable | None
    split: tuple[SplitRow, ...]
    rooflines: charts.Rooflines
    measured: MeasuredSource | None
    cases: tuple[CaseRow, ...]
    reasons: tuple[ReasonView, ...]
    states: tuple[State, ...]


def build(history: History, key: KernelKey, site: Site) -> KernelPage:
    """The page of one kernel, as it was last measured on that setup."""
    now = site.current(history)[key]
    rows = tuple(now.cases.values())
    legend = _legend(rows)
    ranks = {entry.implementation: entry.rank for entry in legend}
    headlines = [headline(rows, implementation) for implementation in ranks]
    at_largest = {h.implementation: _at_largest(rows, h) for h in headlines}
    of_kernel = [i for i, name in enumerate(history.names) if (name.suite, name.kernel) == key]
    commits = int((history.statuses[of_kernel] != ABSENT).any(axis=0).sum())
    roofs, attainable = charts.rooflines(now, history, site.current(history).values(), ranks)
    counts = counts_in_words(count(rows)) or "none is compared"
    return KernelPage(
        title=kernel_label(key),
        navigation=site.navigation(history.setup, key),
        verdict=_verdict(headlines),
        details=f"Of {text.plural(len(rows), 'case')}, {counts}.",
        commit=commit_label(now.commit),
        legend=legend,
        history=_history(site, history, now, headlines, ranks, history_length(commits)),
        sizes=charts.size_charts(rows, ranks),
        launches=charts.launch_maps(rows, list(ranks)),
        times=_times_table(rows, at_largest),
        split=_time_split(rows, at_largest),
        rooflines=roofs,
        measured=_measured_source(key, list(ranks), site.table.sources),
        cases=_case_rows(rows, history, site, ranks, attainable),
        reasons=reason_views(rows),
        states=tuple(_states(history, now, commits)),
    )


def _legend(rows: Sequence[Row]) -> tuple[Legend, ...]:
    """Implementations, the baseline first; ranks follow the names so that colours stay."""
    titles: dict[str, str] = {}
    for row in rows:
        titles[row.name.implementation] = titles.get(row.name.implementation) or row.title or ""
    baselines = {row.name.implementation for row in rows if row.is_baseline}
    names = sorted(titles, key=lambda name: (name not in baselines, name))
    return tuple(Legend(n, titles[n], i, n in baselines) for i, n in enumerate(names))


def _at_largest(rows: Sequence[Row], shown: Headline) -> dict[str, Row]:
    """Labelled times of an implementation at the case that stands for it; without a kernel time,
    at its largest."""
    mine = [row for row in rows if row.name.implementation == shown.implementation]
    case = shown.cases[0] if shown.cases else sorted(mine, key=lambda row: row.size)[-1]
    return {row.name.time: row for row in mine if row.name.case == case.name.case}


def _verdict(headlines: Sequence[Headline]) -> str:
    compared = [(h.speedup, h) for h in headlines if h.speedup]
    if not compared:
        return "No speedup can be stated at this commit."
    speedup, best = max(compared, key=lambda pair: pair[0].value)
    first = best.cases[0]
    others = len(best.cases) - 1
    more = f" and {text.plural(others, 'more case')}" if others else ""
    baseline = first.baseline.implementation if first.baseline else "the baseline"
    unclear = ": unclear" if speedup.verdict == "unclear" else ""
    return (
        f"{best.implementation} reaches {text.speedup(speedup)} ({text.interval(speedup)}) the "
        f"speed of {baseline} at {first.name.case or 'its only case'}{more}{unclear}."
    )


def _history(
    site: Site,
    history: History,
    now: KernelNow,
    headlines: Sequence[Headline],
    ranks: Mapping[str, int],
    note: str | None,
) -> charts.HistoryChart | None:
    """Over commits: each implementation at the case that stands for it today, and what that is
    measured against; baselines alone where there is nothing else."""
    candidates: list[CaseName] = []
    baselines: list[CaseName] = []
    for shown in headlines:
        for row in shown.cases[:1] or _last_timed(history, now, shown.implementation):
            if row.is_baseline:
                continue
            candidates.append(row.name)
            if row.baseline and row.baseline not in baselines:
                baselines.append(row.baseline)
    if not candidates:
        baselines = [row.name for h in headlines for row in h.cases[:1] if row.is_baseline]
    if not candidates and not baselines:
        return None
    return charts.history_chart(
        history, site.labels(history), site.changes(history), candidates, baselines, ranks, note
    )


def _last_timed(history: History, now: KernelNow, implementation: str) -> list[Row]:
    """The largest case that has a time at some commit, though none at the newest."""
    timed = [
        row
        for name, row in now.cases.items()
        if (name.implementation, name.time) == (implementation, "kernel")
        and not np.isnan(history.times[0, history.rows_of[name]]).all()
    ]
    return sorted(timed, key=lambda row: row.size)[-1:]


def _states(history: History, now: KernelNow, commits: int) -> Iterator[State]:
    rows = now.cases.values()
    bench = next((row.bench for row in rows if row.bench), now.key[1])
    if now.commit != history.latest:
        yield State(
            "Not measured at the newest commit",
            f"These are the values of {now.commit.hash[:8]}; the newest commit measured here is "
            f"{history.latest.hash[:8]}.",
            f"asv run --bench {bench} {history.latest.hash[:8]}^!",
        )
    if commits == 1:
        yield ONE_COMMIT
    missing = [row for row in rows if row.missing]
    if missing:
        cases = text.plural(
            len(missing), "case has a time and no speedup", "cases have a time and no speedup"
        )
        yield State(
            "No baseline",
            f"{cases}. {case_words(missing[0].name)}: {missing[0].missing}.",
            f"asv run --bench {bench}",
        )
    if all(row.seconds is None for row in rows):
        yield State(
            "No times",
            "No case of this kernel has a time at this commit; the reasons are below.",
            f"asv run --quick --show-stderr --bench {bench}",
        )


def _case_rows(
    rows: Sequence[Row],
    history: History,
    site: Site,
    ranks: Mapping[str, int],
    attainable: Mapping[CaseName, str],
) -> tuple[CaseRow, ...]:
    """By implementation, labelled time, then size; rows come in natural order, which the sort
    keeps where those are equal."""

    def place(row: Row) -> tuple[int, int, float]:
        return ranks[row.name.implementation], TIMES.index(row.name.time), row.size

    changes = site.changes(history)
    views = []
    for row in sorted(rows, key=place):
        moves_arrays = row.name.time in COMPARED_TIMES  # a compilation or a launch moves none
        views.append(
            CaseRow(
                implementation=row.name.implementation,
                case=row.name.case,
                time=text.time_label(row.name.time),
                device=row.device if row.recorded else "",  # else its identity says it
                launch=_launch(row),
                is_baseline=row.is_baseline,
                status=row.status,
                reason="; ".join(filter(None, (row.reason, row.missing, *row.warnings))),
                timing=timing(row),
                speedup=row.speedup,
                bytes=row.bytes if moves_arrays else None,
                bytes_per_second=row.bytes_per_second,
                attainable=attainable.get(row.name, ""),
                flops=row.flops if moves_arrays else None,
                flops_per_second=row.flops_per_second,
                max_abs_error=row.max_abs_error,
                max_rel_error=row.max_rel_error,
                spark=history_spark(history, row.name, changes[row.name]),
            )
        )
    return tuple(views)


def _launch(row: Row) -> str:
    if row.block and row.grid:
        shape = f"{format_shape(row.grid)} blocks of {format_shape(row.block)}"
        return f"{shape}, {row.shared_bytes} B shared" if row.shared_bytes else shape
    return text.plural(row.threads, "thread") if row.threads else ""


def _times_table(
    rows: Sequence[Row], at_largest: Mapping[str, Mapping[str, Row]]
) -> TimesTable | None:
    """Side by side, where more than one of the labelled times was taken."""
    columns = [time for time in TIMES if any(row.name.time == time for row in rows)]
    if len(columns) < 2:
        return None
    table = []
    for implementation, times in at_largest.items():
        cells = [times.get(time) for time in columns]
        case = next(iter(times.values())).name.case
        table.append(TimesRow(implementation, case, tuple(map(_time_cell, cells))))
    return TimesTable(tuple(map(text.time_label, columns)), tuple(table))


def _time_cell(row: Row | None) -> TimeCell:
    return TimeCell(timing(row), row.speedup, row.status) if row else TimeCell(None, None, None)


def _time_split(
    rows: Sequence[Row], at_largest: Mapping[str, Mapping[str, Row]]
) -> tuple[SplitRow, ...]:
    """Implementations with at least two parts of a call measured at one case."""
    timed = [row for row in rows if row.seconds is not None]
    splits = []
    for implementation, times in at_largest.items():
        seconds = {time: row.seconds for time, row in times.items() if row.seconds is not None}
        if "kernel" not in seconds:
            continue
        kernel = times["kernel"]
        mine = [row for row in timed if row.name.implementation == implementation]
        compiling = compilation(kernel, mine)
        if compiling and compiling.seconds is not None:
            seconds["compile"] = compiling.seconds
        call = {time: seconds[time] for time in CALL if time in seconds}
        if len(call) < 2:
            continue
        bars = [_bar("first call" if "compile" in call else "a call", call)]
        if call.pop("compile", None) is not None:
            bars.append(_bar("later calls", call))
        end_to_end = times.get("end_to_end")
        splits.append(
            SplitRow(
                implementation=implementation,
                case=kernel.name.case,
                bars=tuple(bars),
                kernel=kernel.speedup,
                end_to_end=end_to_end.speedup if end_to_end else None,
                end_to_end_seconds=seconds.get("end_to_end"),
            )
        )
    return tuple(splits)


def _bar(label: str, seconds: Mapping[str, float]) -> CallBar:
    total = sum(seconds.values())
    parts, words, left = [], [], 0.0
    for time, value in seconds.items():
        share = value / total
        name, width = text.time_label(time), BAR_WIDTH * share
        parts.append(BarPart(time, name, value, round(left, 1), round(width, 1)))
        percent = "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"
        words.append(f"{name} {text.seconds(value)} ({percent})")
        left += width
    return CallBar(label, total, tuple(parts), f"{label}: {text.join(words)}.")


def _measured_source(
    key: KernelKey, implementations: Sequence[str], sources: Mapping[BenchmarkName, str]
) -> MeasuredSource | None:
    """Of one kernel, implementations in that order; ``None`` where nothing is kept."""
    kept = {n.implementation: s for n, s in sources.items() if (n.suite, n.kernel) == key}
    parts = {name: split_source(kept[name]) for name in implementations if name in kept}
    if not parts:
        return None
    _, place, declaration = next((part for part in parts.values() if part[1]), ("", "", ""))
    codes = tuple(MeasuredCode(name, code) for name, (code, _, _) in parts.items())
    return MeasuredSource(place, declaration, codes)
