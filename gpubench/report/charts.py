"""View models of a kernel's charts: over commits, over sizes, over launches, the roofline.

``figures.py`` draws them; the tables below the charts show the same numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.changes import Change
from gpubench.analysis.choice import Crossover, crossover
from gpubench.analysis.headline import KernelNow, fastest_variants
from gpubench.analysis.roofline import STREAMS, Attained, MemoryCeiling, attained, memory_ceiling
from gpubench.names import CPU, SECONDS, Value, format_identity, parse_identity
from gpubench.report import text
from gpubench.report.findings import basis, claim, decided_by, measure_again, size_words, wins
from gpubench.report.navigation import CommitLabel, State
from gpubench.results import ABSENT, CaseHistories, CaseName, History, Ratio, Row, Times
from gpubench.results.histories import natural
from gpubench.statuses import STATUSES, Status

MAX_TABLE_COMMITS = 5
"""Commits in the table of a chart, the newest. The others are drawn on request, from the script
that the chart is drawn from: a thousand make a page that opens slowly."""

MAX_EVENTS = 5
"""Changes of a series that its sentence names, the newest; the page of changes has all."""

NO_UNITS: Mapping[CaseName, str] = {}
"""All values are seconds."""

NO_ROOFLINE = "No roofline"

RateNumbers = Mapping[str, Mapping[str, int]]
"""By implementation, and by ``bytes`` or ``flops``, the note that says why a rate does not rest on
counted work."""

NO_NOTES: RateNumbers = {}


@dataclass(frozen=True, slots=True)
class CommitValues:
    """A number over the commits of a chart; NaN where there is none."""

    values: NDArray[np.float64]
    lows: NDArray[np.float64]
    """Lower ends of the intervals; NaN where an interval is not known."""
    highs: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One case at one commit: its time, else by its status why there is none."""

    seconds: float | None
    speedup: Ratio | None
    status: Status | None
    """``None``: not measured."""


@dataclass(frozen=True, slots=True)
class HistorySeries:
    """One implementation over the commits."""

    implementation: str
    case: str
    is_baseline: bool
    rank: int
    """Place among the page's implementations: its colour and its marker."""
    times: CommitValues
    """Seconds."""
    speedups: CommitValues
    points: tuple[HistoryPoint, ...]
    changes: tuple[Change, ...]
    left_out: int
    """Values of another version of the benchmark, which are in no history."""
    rest_on: tuple[int, ...]
    marked: tuple[int, ...]
    """Index of the first commit after each change."""
    stopped: int | None
    """Index of the first commit since which there is no time; ``None`` when there is one."""
    status: Status | None
    """What became of it there; ``None`` when there is a time."""
    sentence: str


@dataclass(frozen=True, slots=True)
class HistoryChart:
    commits: tuple[CommitLabel, ...]
    series: tuple[HistorySeries, ...]
    note: str | None
    listed: tuple[int, ...]
    """Indices of the commits that the table has, the newest first."""
    has_times: bool = True
    """Whether the chart shows times, as processors do not differ."""
    unit: str = SECONDS
    """Of the values of all series."""
    places: tuple[int, ...] = ()
    """Indices of the commits among those of the setup."""


@dataclass(frozen=True, slots=True)
class SizeSeries:
    """One implementation over sizes, smallest first."""

    implementation: str
    rank: int
    points: tuple[Row, ...]
    crossover: Crossover
    sentence: str


@dataclass(frozen=True, slots=True)
class SizeChart:
    """One chart for each combination of the parameters (a data type, for example)."""

    parameters: str
    axis: str
    series: tuple[SizeSeries, ...]


@dataclass(frozen=True, slots=True)
class LaunchMap:
    """One implementation's launches: block by grid, or by size where the grid follows the size."""

    implementation: str
    problem: str
    """The one problem shown; empty where the columns are the problems."""
    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Row | None, ...]]
    """A row for each column by block shape (and what varies with it); ``None``: not in the plan."""
    best: tuple[CaseName, ...]
    reasons: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """The cases on one device under its ceilings."""

    device: str
    ceilings: MemoryCeiling
    points: tuple[Attained, ...]
    """Each implementation with its fastest launch at each problem, smallest first."""
    ranks: Mapping[str, int]
    sentences: tuple[str, ...]
    notes: RateNumbers = field(default_factory=dict)

    @property
    def drawn(self) -> bool:
        return any(point.intensity for point in self.points)


@dataclass(frozen=True, slots=True)
class Rooflines:
    devices: tuple[Roofline, ...]
    missing: tuple[State, ...]
    """Why a device, or the whole kernel, has none."""


def history_chart(
    history: CaseHistories,
    labels: Sequence[CommitLabel],
    changes: Mapping[CaseName, Sequence[Change]],
    candidates: Sequence[CaseName],
    baselines: Sequence[CaseName],
    ranks: Mapping[str, int],
    note: str | None,
    units: Mapping[CaseName, str] = NO_UNITS,
    not_judged: Collection[CaseName] = (),
) -> HistoryChart:
    """Chart of some cases (one for each implementation) over the commits that know any of them.

    ``labels`` are those of all commits of the setup.
    """
    names = (*baselines, *candidates)
    statuses = history.statuses[[history.rows_of[name] for name in names]]
    places = np.flatnonzero((statuses != ABSENT).any(axis=0))
    commits = tuple(labels[place] for place in places.tolist())
    listed = tuple(range(len(places)))[: -MAX_TABLE_COMMITS - 1 : -1]
    series = []
    for name in names:
        row, unit = history.rows_of[name], units.get(name, SECONDS)
        codes = history.statuses[row, places]
        times, speedups = history.times[:, row, places], history.speedups[:, row, places]
        present, timed = np.flatnonzero(codes != ABSENT), np.flatnonzero(~np.isnan(times[0]))
        since = present[present > timed[-1]] if timed.size else timed
        stopped = int(since[0]) if since.size else None
        first_after = np.searchsorted(places, [change.after for change in changes[name]])
        *points, newest = (
            _point(codes[i], times[0, i], speedups[:, i]) for i in (*listed, present[-1])
        )
        now = _now(newest, unit)
        if newest.seconds is None:
            now += f" since {commits[stopped].short}" if stopped is not None else ""
            if timed.size:
                was, at = text.quantity(times[0, timed[-1]], unit), commits[timed[-1]]
                now += f"; the last value was {was} at {at.short}, {at.date}"
        events = _events(name, changes[name], labels, unit)
        if newest.seconds is not None and not events and present.size > 1 and name.is_time:
            disturbed = int(history.disturbed[row, places[timed]].sum())
            is_judged = name not in not_judged and disturbed < timed.size
            events = [_without_changes(is_judged, disturbed, timed.size)]
        left_out = sum(name.benchmark.asv_name in one.superseded for one in history.snapshots)
        if left_out:
            values = text.plural(left_out, "older value")
            events.append(f"{values} of another version of it left out")
        series.append(
            HistorySeries(
                implementation=name.implementation,
                case=name.case,
                is_baseline=name in baselines,
                rank=ranks[name.implementation],
                times=_curve(np.full_like(times, np.nan) if history.by_speedup else times),
                speedups=_curve(speedups),
                points=tuple(points),
                changes=tuple(changes[name]),
                left_out=left_out,
                rest_on=tuple(change.commits for change in changes[name]),
                marked=tuple(first_after.tolist()),
                stopped=stopped,
                status=None if stopped is None else STATUSES[codes[stopped]],
                sentence=f"{name.implementation}: {'; '.join([now, *events])}.",
            )
        )
    unit = units.get(names[0], SECONDS) if names else SECONDS
    has_times = not history.by_speedup
    return HistoryChart(
        commits, tuple(series), note, listed, has_times, unit, tuple(places.tolist())
    )


def _now(newest: HistoryPoint, unit: str) -> str:
    """Say what stands at the newest commit."""
    if newest.seconds is None:
        return text.status_label(newest.status or "")
    now = text.quantity(newest.seconds, unit)
    if newest.speedup:
        now += f", {text.speedup(newest.speedup)} ({text.interval(newest.speedup)})"
    return f"{now} at the newest commit"


def _events(
    name: CaseName, changes: Sequence[Change], labels: Sequence[CommitLabel], unit: str
) -> list[str]:
    """Say what changed and when: the newest changes, and how many earlier ones there are."""
    events = [
        f"{claim(change, unit)} at {labels[change.after].short}"
        + _in_brackets(decided_by(name, change), basis(change.commits))
        for change in changes
    ]
    if earlier := len(events[:-MAX_EVENTS]):
        events[:earlier] = [text.plural(earlier, "earlier change")]
    return events


def _without_changes(is_judged: bool, disturbed: int, values: int) -> str:
    """Say what is known of times without a change: that there was none, or that nobody can tell."""
    words = "no change of its time was found" if is_judged else "its time is not judged"
    if disturbed:
        return f"{words}: other work disturbed {disturbed:,} of {values:,} values"
    return words if is_judged else f"{words} yet"


def _in_brackets(*words: str) -> str:
    said = "; ".join(filter(None, words))
    return f" ({said})" if said else ""


def _point(code: int, seconds: float, speedup: Times) -> HistoryPoint:
    return HistoryPoint(
        seconds=None if math.isnan(seconds) else float(seconds),
        speedup=None if math.isnan(speedup[0]) else Ratio(*speedup.tolist()),
        status=None if code == ABSENT else STATUSES[code],
    )


def _curve(columns: Times) -> CommitValues:
    """Values and both ends of their intervals, shape (3, commits)."""
    shown = columns.copy()
    shown[1:, (columns[1] <= 0) | ~np.isfinite(columns[2])] = np.nan
    return CommitValues(*shown)


def size_charts(rows: Iterable[Row], ranks: Mapping[str, int]) -> Iterator[SizeChart]:
    """Charts of the kernel times; combinations with a single size are left out."""
    groups: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.speedup and row.name.time == "kernel":
            groups[row.parameters][row.name.implementation].append(row)
    for parameters, group in sorted(groups.items()):
        axis = f" {text.TIMES_SIGN} ".join(next(iter(group.values()))[0].sizes)
        series = []
        for name in sorted(group, key=lambda name: ranks[name]):
            points = sorted(fastest_variants(group[name]).values(), key=lambda row: row.size)
            border = crossover((row.size, row.speedup) for row in points if row.speedup)
            when = "never clearly faster in this range"
            if border.size is not None or border.largest_win is not None:
                when = f"faster {wins(border, points, unclear='below, it is unclear')}"
            sentence = f"{name} is {when}."
            series.append(SizeSeries(name, ranks[name], tuple(points), border, sentence))
        if len({point.size for s in series for point in s.points}) > 1:
            yield SizeChart(parameters, axis, tuple(series))


def launch_maps(rows: Sequence[Row], implementations: Iterable[str]) -> Iterator[LaunchMap]:
    """Yield maps for the implementations whose launch was swept, in the given order."""
    for implementation in implementations:
        wanted = (implementation, "kernel")
        cases = [row for row in rows if (row.name.implementation, row.name.time) == wanted]
        blocks, grids = ({_shape(row, part) for row in cases} for part in ("block", "grid"))
        if len(grids) > 1:
            largest = max(row.size for row in cases)
            for problem in sorted({row.problem for row in cases if row.size == largest}):
                yield _launch_map([row for row in cases if row.problem == problem], problem)
        elif len(blocks) > 1:
            yield _launch_map(cases, "")


def _shape(row: Row, part: str) -> str:
    return str(parse_identity(row.name.case).get(part, ""))


def _launch_map(rows: Sequence[Row], problem: str) -> LaunchMap:
    """Return the map of one implementation: of one problem, or else of all of them."""
    implementation, labels = rows[0].name.implementation, _row_labels(rows)

    def column_of(row: Row) -> str:
        if problem:
            return _shape(row, "grid") or "cover"
        return row.problem.replace(" ", ", ") or "all sizes"

    by_column = sorted(rows, key=lambda row: (row.size, natural(_shape(row, "grid")), row.problem))
    by_label = sorted(rows, key=lambda row: (natural(_shape(row, "block")), labels[row.name]))
    columns = tuple(dict.fromkeys(map(column_of, by_column)))
    at = {(labels[row.name], column_of(row)): row for row in rows}
    best = [_fastest(row for row in rows if column_of(row) == column) for column in columns]
    largest = max(row.size for row in rows)
    if fastest := _fastest(row for row in rows if row.size == largest):
        sentence = (
            f"At the largest size {implementation} is fastest with {fastest.name.case}: "
            f"{text.seconds(fastest.seconds)}."
        )
    else:
        without = {text.status_label(row.status) for row in rows if row.seconds is None}
        words = text.join(sorted(without), "or")
        sentence = f"No launch of {implementation} has a time: {words}."
    return LaunchMap(
        implementation=implementation,
        problem=problem,
        corner="block \\ grid" if problem else "block \\ size",
        columns=columns,
        rows={
            label: tuple(at.get((label, column)) for column in columns)
            for label in dict.fromkeys(labels[row.name] for row in by_label)
        },
        best=tuple(row.name for row in best if row),
        reasons=tuple(dict.fromkeys(row.reason for row in rows if row.reason)),
        sentence=sentence,
    )


def _row_labels(rows: Sequence[Row]) -> dict[CaseName, str]:
    """Return how each case ran, as far as that varies apart from the grid: parts of its identity
    that are neither a size nor of the problem. The bare block where nothing else varies."""
    ways: dict[CaseName, dict[str, Value]] = {}
    for row in rows:
        problem = parse_identity(row.problem)
        ways[row.name] = {
            part: value
            for part, value in parse_identity(row.name.case).items()
            if part not in row.sizes and problem.get(part) != value
        }
    parts = {part for way in ways.values() for part in way} - {"grid"}
    varying = {part for part in parts if len({way.get(part) for way in ways.values()}) > 1}
    if varying <= {"block"}:
        return {name: str(way.get("block", "default")) for name, way in ways.items()}
    return {
        name: format_identity({part: value for part, value in way.items() if part in varying})
        for name, way in ways.items()
    }


def _fastest(rows: Iterable[Row]) -> Row | None:
    timed = [row for row in rows if row.seconds is not None]
    return min(timed, key=lambda row: row.seconds or 0.0, default=None)


def rooflines(
    now: KernelNow,
    history: History,
    kernels: Iterable[KernelNow],
    ranks: Mapping[str, int],
    notes: RateNumbers = NO_NOTES,
) -> tuple[Rooflines, dict[CaseName, float]]:
    """Rooflines of a kernel, and for each of its cases the share of the attainable.

    ``kernels`` are all those of the setup: some give ceilings. ``ranks`` are in their order.
    ``notes`` are those of ``Roofline``.
    """
    timed = [r for r in now.cases.values() if r.seconds is not None and r.name.time == "kernel"]
    if timed and all(row.is_alone for row in timed):
        return Rooflines((), ()), {}
    if timed and not any(row.bytes for row in timed):
        why = "the suite does not say how many bytes are moved: add work."
        if any(row.bench for row in timed):
            why = "a pair does not say how many bytes its benchmarks move."
        elif any(row.bytes == 0 for row in timed):
            why = "its suite says that it moves no bytes."
        return Rooflines((), (State(NO_ROOFLINE, why),)), {}
    streams = [row for k in kernels if k.key[1] in STREAMS for row in k.cases.values()]
    facts = [snapshot.facts for snapshot in history.snapshots if snapshot.facts]
    devices, missing, shares = [], [], dict[CaseName, float]()
    for device in sorted({row.device for row in timed}):
        rows = [row for row in timed if row.device == device]
        ceiling = memory_ceiling(device, rows, facts[-1] if facts else {}, streams)
        if ceiling is None:
            why = f"the bandwidth of {device} is not in the record; it is measured with the cases."
            command = measure_again(history.latest)
            if device in ("", CPU):
                gives = "a kernel named triad or copy gives it"
                why = f"the bandwidth of the CPU was not measured; {gives}."
                command = "asv run --bench __triad__"
            missing.append(State(NO_ROOFLINE, why, command))
            continue
        rates = {row.name: rate for row in rows if (rate := attained(row, ceiling))}
        shares |= {name: rate.share for name, rate in rates.items()}
        points = []
        for implementation in ranks:
            best = fastest_variants(r for r in rows if r.name.implementation == implementation)
            ordered = sorted(best.values(), key=lambda row: row.size)
            points += [rates[row.name] for row in ordered if row.name in rates]
        sentences = tuple(_roofline_sentences(ceiling, points, notes))
        devices.append(Roofline(device, ceiling, tuple(points), ranks, sentences, notes))
    return Rooflines(tuple(devices), tuple(missing)), shares


def _roofline_sentences(
    ceiling: MemoryCeiling,
    points: Sequence[Attained],
    notes: RateNumbers,
) -> Iterator[str]:
    peak = ceiling.peak_bytes_per_second
    of_peak = ""
    if peak is not None:
        share = text.digits(100 * ceiling.bytes_per_second / peak, 2)
        of_peak = f", {share} % of the datasheet's {text.rate(peak)} GB/s"
    yield f"Bandwidth {text.rate(ceiling.bytes_per_second)} GB/s: {ceiling.source}{of_peak}."
    yield (
        "The arithmetic ceiling was not measured: a kernel far below the bandwidth may be "
        "bound by its operations."
    )
    for implementation, last in {point.row.name.implementation: point for point in points}.items():
        of = "" if last.share > 1 else " of what is attainable"
        size = size_words(last.row) or "its only case"
        numbers = [str(one) for one in sorted({*notes.get(implementation, {}).values()})]
        doubt = f", by a formula that counts contradict (note {text.join(numbers)})"
        yield f"{implementation}: {text.share(last.share)}{of} at {size}{doubt if numbers else ''}."
