"""View model of a kernel's page: its charts, its labelled times, every case, what was measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.analysis.choice import compilation
from gpubench.analysis.declared_work import KernelDoubts
from gpubench.analysis.headline import Headline, KernelKey, KernelNow, headline
from gpubench.analysis.scaling import Scaling, scalings
from gpubench.analysis.tally import count
from gpubench.names import LABELS, split_source
from gpubench.report import charts, text, work
from gpubench.report.declared_view import doubt_words
from gpubench.report.findings import (
    ONE_COMMIT,
    ReasonView,
    case_words,
    counts_in_words,
    disturbed_states,
    history_spark,
    not_judged_words,
    processor_states,
    reason_views,
    running_states,
)
from gpubench.report.lists import listed
from gpubench.report.navigation import CommitLabel, Navigation, State, kernel_label
from gpubench.report.series import SeriesSource, source
from gpubench.report.site import Site
from gpubench.report.sparkline import Sparkline
from gpubench.results import ABSENT, CaseHistories, CaseName, History, Row

CALL = ("compile", "transfer", "launch", "kernel")
"""Labelled times that a call consists of, in the order in which they happen."""

BAR_WIDTH = 1000.0
"""Of a whole call, in SVG user units."""


@dataclass(frozen=True, slots=True)
class ShownCase:
    """One case at the page's commit."""

    row: Row
    share: float | None
    """Of what its device attains; ``None`` where that was not measured."""
    change: float | None
    """How many times faster or slower its newest change made it; ``None``: none was found."""
    spark: Sparkline

    @property
    def listed(self) -> dict[str, Any]:
        row, ratio = self.row, self.row.speedup
        status = ratio.verdict if ratio else text.status_label(row.status)
        return listed(
            implementation=[row.name.implementation],
            backend=[row.backend],
            time=[text.time_label(row.name.time)],
            only=[status, "changed" if self.change else ""],
            seconds=row.value,
            speedup=ratio,
            change=self.change,
        )


@dataclass(frozen=True, slots=True)
class BarPart:
    time: str
    seconds: float
    left: float
    width: float
    """SVG user units."""


@dataclass(frozen=True, slots=True)
class CallBar:
    label: str
    seconds: float
    parts: tuple[BarPart, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where the time of a call goes, of one implementation at its largest size."""

    kernel: Row
    end_to_end: Row | None
    bars: tuple[CallBar, ...]
    """The first call and a later one, where compilation was measured; else a call."""


@dataclass(frozen=True, slots=True)
class MeasuredSource:
    """The YAML and the code that the newest run measured, as asv keeps them."""

    place: str
    """Suite file and line; empty where asv's file has none (a pair, an older run)."""
    declaration: str
    """The kernel in its suite, YAML; empty like ``place``."""
    codes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RateNotes:
    """Why rates of some implementations do not rest on counted work."""

    sentences: tuple[str, ...]
    numbers: Mapping[str, Mapping[str, int]]
    """By implementation, and by ``bytes`` or ``flops``, which sentence says so, from 1 on."""


@dataclass(frozen=True)
class CaseColumns:
    """Which columns the list of all cases has: those with something in them."""

    value: str
    """Head of the column of values."""
    launch: bool
    speedup: bool
    rates: bool
    error: bool

    @classmethod
    def of(cls, rows: Collection[Row]) -> CaseColumns:
        """Look for what these rows have."""
        return cls(
            value="Time" if all(row.is_time for row in rows) else "Value",
            launch=any(text.launch(row) for row in rows),
            speedup=any(row.speedup for row in rows)
            or any(row.is_baseline and not row.is_alone for row in rows),
            rates=any(row.bytes_per_second or row.flops_per_second for row in rows),
            error=any(row.max_abs_error is not None for row in rows),
        )


@dataclass(frozen=True, slots=True)
class KernelPage:
    title: str
    navigation: Navigation
    verdict: str
    details: str
    commit: CommitLabel
    history: charts.HistoryChart | None
    explored: SeriesSource
    """Where the values of every case are, on every setup."""
    sizes: tuple[charts.SizeChart, ...]
    launches: tuple[charts.LaunchMap, ...]
    workers: tuple[int, ...]
    scalings: tuple[Scaling, ...]
    time_columns: tuple[str, ...]
    times: Mapping[str, Mapping[str, Row]]
    """By implementation and labelled time, at the case that stands for it."""
    split: tuple[TimeSplit, ...]
    call: tuple[str, ...]
    rooflines: charts.Rooflines
    rate_notes: RateNotes
    measured: MeasuredSource | None
    work: work.WorkView | None
    """``None`` where nothing was counted."""
    cases: tuple[ShownCase, ...]
    columns: CaseColumns
    scored: bool
    with_memory: bool
    reasons: tuple[ReasonView, ...]
    states: tuple[State, ...]


def build(history: History, key: KernelKey, site: Site) -> KernelPage:
    """Return the page of one kernel, as it was last measured on that setup."""
    now, cases = site.current(history)[key], site.of_kernel(history, key)
    rows = tuple(now.cases.values())
    headlines = _headlines(rows)
    ranks = {shown.implementation: rank for rank, shown in enumerate(headlines)}
    at_largest = {shown.implementation: _at_largest(shown) for shown in headlines}
    its = [name for name in cases.names if (name.suite, name.kernel) == key]
    statuses = cases.statuses[[cases.rows_of[name] for name in its]]
    commits = int((statuses != ABSENT).any(axis=0).sum())
    changes = site.every_change(history)
    candidates, against = _over_commits(headlines, cases)
    chart = None
    if candidates or against:
        chart = charts.history_chart(
            cases,
            site.labels(history),
            changes,
            candidates,
            against,
            ranks,
            not_judged_words(*site.count_judged(history, its)),
            site.units(history),
            site.not_judged(history),
        )
    notes = _rate_notes(rows, site.doubts(key))
    kernels = site.current(history).values()
    roofs, shares = charts.rooflines(now, history, kernels, ranks, notes.numbers)
    scaled = scalings(rows)
    counts = counts_in_words(count(rows)) or "none is compared"

    def place(row: Row) -> tuple[int, int, float]:  # of equals the natural order stays
        return ranks[row.name.implementation], LABELS.index(row.name.time), row.size

    def shown(row: Row) -> ShownCase:
        its = changes[row.name]
        spark = history_spark(cases, row.name, its, row.unit)
        change = its[-1].ratio.factor if its else None
        return ShownCase(row, shares.get(row.name), change, spark)

    return KernelPage(
        title=kernel_label(key),
        navigation=site.navigation(history.setup, key),
        verdict=_verdict(headlines),
        details=f"Of {text.plural(len(rows), 'case')}, {counts}.",
        commit=site.labels(history)[history.places[now.commit]],
        history=chart,
        explored=source(history, key, site),
        sizes=tuple(charts.size_charts(rows, ranks)),
        launches=tuple(charts.launch_maps(rows, ranks)),
        workers=tuple(sorted({point.workers for one in scaled for point in one.points})),
        scalings=scaled,
        time_columns=tuple(t for t in LABELS if any(row.name.time == t for row in rows)),
        times=at_largest,
        split=tuple(_time_splits(headlines, at_largest)),
        call=CALL,
        rooflines=roofs,
        rate_notes=notes,
        measured=_measured_source(ranks, site.sources.get(key, {})),
        work=work.build(history, key, rows, ranks, site),
        cases=tuple(map(shown, sorted(rows, key=place))),
        columns=CaseColumns.of(rows),
        scored=any(row.score is not None for row in rows),
        with_memory=any(row.peak_bytes is not None for row in rows),
        reasons=reason_views(rows),
        states=tuple(_states(history, now, commits)),
    )


def charted_cases(history: History, key: KernelKey, site: Site) -> tuple[CaseName, ...]:
    """Return the cases of the chart over commits, in its order."""
    rows = tuple(site.current(history)[key].cases.values())
    candidates, against = _over_commits(_headlines(rows), site.of_kernel(history, key))
    return *against, *candidates


def _headlines(rows: Sequence[Row]) -> list[Headline]:
    """Return what stands for each implementation: the baseline first, the others by their names, so
    that each keeps its colour."""
    baselines = {row.name.implementation for row in rows if row.is_baseline}
    names = {row.name.implementation for row in rows}
    ordered = sorted(names, key=lambda name: (name not in baselines, name))
    return [headline(rows, implementation) for implementation in ordered]


def _rate_notes(rows: Iterable[Row], doubts: KernelDoubts) -> RateNotes:
    """Return number the doubts about the rates that the page shows."""
    sentences: dict[str, int] = {}
    numbers: dict[str, dict[str, int]] = {}
    for row in rows:
        implementation = row.name.implementation
        rates = {"bytes": row.bytes_per_second, "flops": row.flops_per_second}
        for kind, words in doubt_words(doubts.of(implementation)).items():
            if rates[kind]:
                number = sentences.setdefault(words, len(sentences) + 1)
                numbers.setdefault(implementation, {})[kind] = number
    return RateNotes(tuple(sentences), numbers)


def _at_largest(shown: Headline) -> dict[str, Row]:
    """Labelled times of an implementation at the case that stands for it; without a kernel time,
    at its largest."""
    case = shown.cases[0] if shown.cases else sorted(shown.rows, key=lambda row: row.size)[-1]
    return {row.name.time: row for row in shown.rows if row.name.case == case.name.case}


def _verdict(headlines: Sequence[Headline]) -> str:
    rows = [row for h in headlines for row in h.rows]
    if all(row.is_alone for row in rows):
        values = [row.value for row in rows if row.value is not None]
        if not values:
            return "No case has a value at this commit."
        least, most = (text.quantity(end(values), rows[0].unit) for end in (min, max))
        return f"{least if least == most else f'From {least} to {most}'} at this commit."
    stated = [one for one in headlines if one.speedup and one.speedup.has_interval]
    best = max(stated or headlines, key=lambda shown: shown.speed)
    if not best.speedup:
        return "No speedup can be stated at this commit."
    if not stated and any(row.is_disturbed for row in best.cases):
        return "No speedup can be stated at this commit: other work disturbed the times."
    first, *others = best.cases
    more = f" and {text.plural(len(others), 'more case')}" if others else ""
    baseline = first.baseline.implementation if first.baseline else "the baseline"
    unclear = ": unclear" if best.speedup.verdict == "unclear" else ""
    return (
        f"{best.implementation} reaches {text.speedup(best.speedup)} "
        f"({text.interval(best.speedup)}) the speed of {baseline} at "
        f"{first.name.case or 'its only case'}{more}{unclear}."
    )


def _over_commits(
    headlines: Sequence[Headline], history: CaseHistories
) -> tuple[list[CaseName], list[CaseName]]:
    """Return each implementation at the case that stands for it today, and what these are measured
    against; baselines alone where there is nothing else."""
    candidates, baselines, alone = [], list[CaseName | None](), list[CaseName | None]()
    for shown in headlines:
        stands = shown.cases
        if not stands:  # no time at the newest commit, but perhaps at an earlier one
            once_timed = (
                row
                for row in shown.rows
                if (row.name.time == "kernel" or not row.is_time)
                and not np.isnan(history.times[0, history.rows_of[row.name]]).all()
            )
            stands = tuple(sorted(once_timed, key=lambda row: row.size)[-1:])
        if stands and stands[0].is_baseline:
            alone.append(stands[0].name)
        elif stands:
            candidates.append(stands[0].name)
            baselines.append(stands[0].baseline)
    if not candidates:
        baselines = alone
    return candidates, [*dict.fromkeys(filter(None, baselines))]


def _states(history: History, now: KernelNow, commits: int) -> Iterator[State]:
    rows = now.cases.values()
    bench = next((row.bench for row in rows if row.bench), now.key[1])
    yield from running_states(history.snapshots)
    yield from processor_states(history)
    yield from disturbed_states(rows, now.commit)
    if now.commit != history.latest and not history.snapshots[-1].running:
        yield State(
            "Not measured at the newest commit",
            f"These are the values of {now.commit.hash[:8]}; the newest commit measured here is "
            f"{history.latest.hash[:8]}.",
            f"asv run --bench {bench} {history.latest.hash[:8]}^!",
        )
    if commits == 1 and not history.snapshots[-1].running:
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
    if all(row.value is None for row in rows):
        yield State(
            "No times",
            "No case of this kernel has a time at this commit; the reasons are below.",
            f"asv run --quick --show-stderr --bench {bench}",
        )


def _time_splits(
    headlines: Iterable[Headline], at_largest: Mapping[str, Mapping[str, Row]]
) -> Iterator[TimeSplit]:
    """Yield implementations with at least two parts of a call measured at one case."""
    for shown in headlines:
        times = at_largest[shown.implementation]
        kernel = times.get("kernel")
        if kernel is None or kernel.seconds is None:
            continue
        timed = (row for row in shown.rows if row.seconds is not None)
        parts = {**times, "compile": compilation(kernel, timed) or times.get("compile")}
        call = {
            time: row.seconds
            for time in CALL
            if (row := parts.get(time)) and row.seconds is not None
        }
        if len(call) < 2:
            continue
        bars = [_bar("first call" if "compile" in call else "a call", call)]
        if call.pop("compile", None) is not None:
            bars.append(_bar("later calls", call))
        yield TimeSplit(kernel, times.get("end_to_end"), tuple(bars))


def _bar(label: str, seconds: Mapping[str, float]) -> CallBar:
    total = sum(seconds.values())
    parts, words, left = [], [], 0.0
    for time, value in seconds.items():
        share = value / total
        name, width = text.time_label(time), BAR_WIDTH * share
        parts.append(BarPart(time, value, round(left, 1), round(width, 1)))
        percent = "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"
        words.append(f"{name} {text.seconds(value)} ({percent})")
        left += width
    return CallBar(label, total, tuple(parts), f"{label}: {text.join(words)}.")


def _measured_source(
    implementations: Iterable[str], kept: Mapping[str, str]
) -> MeasuredSource | None:
    """Return that of one kernel, implementations in that order; ``None`` where nothing is kept."""
    parts = {name: split_source(kept[name]) for name in implementations if name in kept}
    if not parts:
        return None
    _, place, declaration = next((part for part in parts.values() if part[1]), ("", "", ""))
    codes = {name: code for name, (code, _, _) in parts.items()}
    return MeasuredSource(place, declaration, codes)
