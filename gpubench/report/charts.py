"""View models of a kernel's charts: over commits, over sizes, over launches, the roofline.

``figures.py`` draws them; the tables below the charts show the same numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.changes import Change
from gpubench.analysis.choice import HOME, Crossover, crossover
from gpubench.analysis.headline import KernelNow, fastest_variants
from gpubench.analysis.roofline import STREAMS, Attained, MemoryCeiling, attained, memory_ceiling
from gpubench.names import Value, format_identity, parse_identity
from gpubench.report import text
from gpubench.report.findings import ChangeWords, TimeCell, Timing, change_words
from gpubench.report.site import CommitLabel
from gpubench.results import ABSENT, STATUSES, CaseName, History, Ratio, Row, Status, Times

MOST_ROWS = 50
"""Commits in the table of a chart, the newest; a thousand make a page that opens slowly."""

OVER = "cache-resident or undercounted"
"""Instead of a share of the attainable above 100 %."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over the commits of a chart; NaN where there is none."""

    values: tuple[float, ...]
    lows: tuple[float, ...]
    """Lower ends of the intervals; NaN where an interval is not known."""
    highs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HistorySeries:
    """One implementation over the commits."""

    implementation: str
    case: str
    is_baseline: bool
    rank: int
    """Place among the page's implementations: its colour and its marker."""
    times: Curve
    """Seconds."""
    speedups: Curve
    points: tuple[TimeCell, ...]
    """One for each commit that the chart's table lists."""
    changes: tuple[ChangeWords, ...]
    marked: tuple[int, ...]
    """Index of the first commit after each change."""
    stopped: int | None
    """Index of the first commit since which there is no time; ``None`` when there is one."""
    status: Status | None
    """What became of it there; ``None`` when there is a time."""
    sentence: str


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """The chart over commits and its table."""

    commits: tuple[CommitLabel, ...]
    series: tuple[HistorySeries, ...]
    note: str | None
    """What a short history cannot show."""
    listed: tuple[int, ...]
    """Indices of the commits that the table has, the newest first."""


@dataclass(frozen=True, slots=True)
class SizePoint:
    """One implementation at one size, with its fastest launch."""

    size: float
    words: str
    """The sizes by name."""
    speedup: Ratio
    seconds: float
    case: str


@dataclass(frozen=True, slots=True)
class SizeSeries:
    """One implementation over sizes, smallest first."""

    implementation: str
    rank: int
    points: tuple[SizePoint, ...]
    crossover: Crossover
    sentence: str


@dataclass(frozen=True, slots=True)
class SizeChart:
    """One chart for each combination of the parameters (a data type, for example)."""

    parameters: str
    """Identity of the combination; empty without parameters."""
    axis: str
    """What the horizontal axis counts."""
    series: tuple[SizeSeries, ...]


@dataclass(frozen=True, slots=True)
class LaunchCell:
    """One launch."""

    speedup: Ratio | None
    seconds: float | None
    status: Status | None
    """``None``: not in the plan, or not measured."""
    footnote: int | None
    """Number of its reason, from 1."""
    best: bool
    """Fastest in its column."""


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One block shape (and what varies with it)."""

    label: str
    cells: tuple[LaunchCell, ...]


@dataclass(frozen=True, slots=True)
class LaunchMap:
    """One implementation's launches: block by grid, or by size where the grid follows the size."""

    implementation: str
    problem: str
    """The one problem shown; empty where the columns are the problems."""
    corner: str
    """What rows and columns are."""
    columns: tuple[str, ...]
    rows: tuple[LaunchRow, ...]
    reasons: tuple[str, ...]
    """Footnotes, in order."""
    sentence: str


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One implementation at one problem, with its fastest launch."""

    implementation: str
    rank: int
    case: str
    size: str
    intensity: float | None
    """Operations for each byte; ``None`` where the suite counts none."""
    bytes_per_second: float
    flops_per_second: float | None
    share: float
    attainable: str
    """The share in words."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The cases on one device under its ceilings."""

    device: str
    ceilings: MemoryCeiling
    points: tuple[RooflinePoint, ...]
    """Smallest first, by implementation."""
    sentences: tuple[str, ...]

    @property
    def drawn(self) -> bool:
        """Whether there is anything to draw: a point with an intensity."""
        return any(point.intensity for point in self.points)


@dataclass(frozen=True, slots=True)
class NoRoofline:
    """Why there is no roofline."""

    why: str
    command: str | None
    """What would give it; ``None`` where no command does."""


@dataclass(frozen=True, slots=True)
class Rooflines:
    """All devices of a kernel."""

    devices: tuple[Roofline, ...]
    missing: tuple[NoRoofline, ...]
    """Of a device, or of the whole kernel."""


def history_chart(
    history: History,
    labels: Sequence[CommitLabel],
    changes: Mapping[CaseName, Sequence[Change]],
    candidates: Sequence[CaseName],
    baselines: Sequence[CaseName],
    ranks: Mapping[str, int],
    note: str | None,
) -> HistoryChart:
    """Chart of some cases (one for each implementation) over the commits that know any of them.

    ``labels`` are those of all commits of the setup.
    """
    names = (*baselines, *candidates)
    statuses = history.statuses[[history.rows_of[name] for name in names]]
    places = np.flatnonzero((statuses != ABSENT).any(axis=0))
    commits = tuple(labels[place] for place in places.tolist())
    listed = tuple(range(len(places)))[: -MOST_ROWS - 1 : -1]
    series = []
    for name in names:
        row = history.rows_of[name]
        codes = history.statuses[row, places]
        times, speedups = history.times[:, row, places], history.speedups[:, row, places]
        present = np.flatnonzero(codes != ABSENT)
        *points, newest = (
            _point(codes[i], times[:, i], speedups[:, i]) for i in (*listed, present[-1])
        )
        words = tuple(change_words(history, change) for change in changes[name])
        first_after = np.searchsorted(places, [change.after for change in changes[name]])
        stopped = _stopped(codes, times[0])
        since = None if stopped is None else commits[stopped]
        series.append(
            HistorySeries(
                implementation=name.implementation,
                case=name.case,
                is_baseline=name in baselines,
                rank=ranks[name.implementation],
                times=_curve(times),
                speedups=_curve(speedups),
                points=tuple(points),
                changes=words,
                marked=tuple(first_after.tolist()),
                stopped=stopped,
                status=None if stopped is None else STATUSES[codes[stopped]],
                sentence=_history_sentence(name, newest, since, words, present.size == 1),
            )
        )
    return HistoryChart(commits, tuple(series), note, listed)


def _stopped(codes: NDArray[np.int8], medians: Times) -> int | None:
    """Index of the first commit since which a case has no time, where it had one before."""
    present, timed = np.flatnonzero(codes != ABSENT), np.flatnonzero(~np.isnan(medians))
    since = present[present > timed[-1]] if timed.size else timed
    return int(since[0]) if since.size else None


def _point(code: int, time: Times, speedup: Times) -> TimeCell:
    (median, *ends), ratio = time.tolist(), speedup.tolist()
    low, high = (end if 0 < end < math.inf else None for end in ends)
    return TimeCell(
        timing=None if math.isnan(median) else Timing(median, low, high),
        speedup=None if math.isnan(ratio[0]) else Ratio(*ratio),
        status=None if code == ABSENT else STATUSES[code],
    )


def _curve(columns: Times) -> Curve:
    """Values and both ends of their intervals, shape (3, commits)."""
    shown = columns.copy()
    shown[1:, (columns[1] <= 0) | ~np.isfinite(columns[2])] = np.nan
    values, lows, highs = map(tuple, shown.tolist())
    return Curve(values, lows, highs)


def _history_sentence(
    name: CaseName,
    newest: TimeCell,
    stopped: CommitLabel | None,
    changes: Sequence[ChangeWords],
    is_alone: bool,
) -> str:
    events = [f"{change.claim} at {change.after.short}" for change in changes]
    if newest.timing:
        now = text.seconds(newest.timing.median)
        if newest.speedup:
            now += f", {text.speedup(newest.speedup)} ({text.interval(newest.speedup)})"
        now += " at the newest commit"
        if not events and not is_alone:
            events = ["no change"]
    else:
        now = text.status_label(newest.status or "")
        now += f" since {stopped.short}" if stopped else ""
    return f"{name.implementation}: {'; '.join([now, *events])}."


def size_charts(rows: Iterable[Row], ranks: Mapping[str, int]) -> tuple[SizeChart, ...]:
    """Charts of the kernel times; combinations with a single size are left out."""
    groups: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.speedup and row.name.time == "kernel":
            groups[row.parameters][row.name.implementation].append(row)
    charts = []
    for parameters, group in sorted(groups.items()):
        axis = f" {text.TIMES} ".join(next(iter(group.values()))[0].sizes)
        names = sorted(group, key=lambda name: ranks[name])
        series = tuple(_size_series(name, ranks[name], group[name]) for name in names)
        if len({point.size for s in series for point in s.points}) > 1:
            charts.append(SizeChart(parameters, axis, series))
    return tuple(charts)


def _size_series(implementation: str, rank: int, rows: Iterable[Row]) -> SizeSeries:
    points = tuple(
        SizePoint(row.size, text.sizes(row.sizes), row.speedup, row.seconds, row.name.case)
        for row in sorted(fastest_variants(rows).values(), key=lambda row: row.size)
        if row.speedup and row.seconds is not None
    )
    border = crossover([(point.size, point.speedup) for point in points])
    words = {point.size: point.words for point in points}
    if border.size is None:
        if border.largest_win is None:
            when = "never clearly faster in this range"
        else:
            when = f"faster at {words[border.largest_win]}, but not up to the largest size"
    elif border.above is None:
        when = f"faster at every size measured, from {words[border.size]} on"
    elif border.slower is None:
        when = f"faster from {words[border.size]} on; below, it is unclear"
    else:
        below = words[border.slower]
        when = f"faster from {words[border.size]} on; the crossover lies above {below}"
    return SizeSeries(implementation, rank, points, border, f"{implementation} is {when}.")


def launch_maps(rows: Iterable[Row], implementations: Sequence[str]) -> tuple[LaunchMap, ...]:
    """Maps for the implementations whose launch was swept, in the given order."""
    by_implementation: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.name.time == "kernel":
            by_implementation[row.name.implementation].append(row)
    maps = []
    for implementation in implementations:
        cases = by_implementation[implementation]
        blocks = {_shape(row, "block") for row in cases}
        grids = {_shape(row, "grid") for row in cases}
        if len(blocks) < 2 and len(grids) < 2:
            continue
        if len(grids) < 2:
            maps.append(_launch_map(cases, "", _problem_label))
            continue
        largest = max(row.size for row in cases)
        for problem in sorted({row.problem for row in cases if row.size == largest}):
            at_problem = [row for row in cases if row.problem == problem]
            maps.append(_launch_map(at_problem, problem, _grid_label))
    return tuple(maps)


def _shape(row: Row, part: str) -> str:
    """The block or the grid as the case's identity has it; empty where it has none."""
    return str(parse_identity(row.name.case).get(part, ""))


def _extents(row: Row, part: str) -> list[int]:
    """Orders blocks and grids by their numbers, not by their text."""
    return [int(n) if n.isdigit() else 0 for n in _shape(row, part).split("x")]


def _problem_label(row: Row) -> str:
    return row.problem.replace(" ", ", ") or "all sizes"


def _grid_label(row: Row) -> str:
    return _shape(row, "grid") or "cover"


def _launch_map(rows: Sequence[Row], problem: str, column_of: Callable[[Row], str]) -> LaunchMap:
    """One implementation's."""
    implementation, labels = rows[0].name.implementation, _row_labels(rows)
    by_column = sorted(rows, key=lambda row: (row.size, _extents(row, "grid"), row.problem))
    by_label = sorted(rows, key=lambda row: (_extents(row, "block"), labels[row.name]))
    columns = tuple(dict.fromkeys(map(column_of, by_column)))
    at = {(labels[row.name], column_of(row)): row for row in rows}
    best = {col: _fastest(row for row in rows if column_of(row) == col) for col in columns}
    reasons = tuple(dict.fromkeys(row.reason for row in rows if row.reason))

    def cell(label: str, column: str) -> LaunchCell:
        row = at.get((label, column))
        if row is None:
            return LaunchCell(None, None, None, None, False)
        footnote = reasons.index(row.reason) + 1 if row.reason else None
        return LaunchCell(row.speedup, row.seconds, row.status, footnote, row is best[column])

    largest = max(row.size for row in rows)
    fastest = _fastest(row for row in rows if row.size == largest)
    if fastest:
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
        rows=tuple(
            LaunchRow(label, tuple(cell(label, column) for column in columns))
            for label in dict.fromkeys(labels[row.name] for row in by_label)
        ),
        reasons=reasons,
        sentence=sentence,
    )


def _row_labels(rows: Sequence[Row]) -> dict[CaseName, str]:
    """How each case ran, as far as that varies apart from the grid: parts of its identity that
    are neither a size nor of the problem. The bare block where nothing else varies."""
    ways: dict[CaseName, dict[str, Value]] = {}
    for row in rows:
        problem, identity = parse_identity(row.problem), parse_identity(row.name.case)
        ways[row.name] = {
            part: value
            for part, value in identity.items()
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
) -> tuple[Rooflines, dict[CaseName, str]]:
    """Rooflines of a kernel, and for each of its cases the share of the attainable in words.

    ``kernels`` are all those of the setup: some give ceilings. ``ranks`` are in their order.
    """
    timed = [r for r in now.cases.values() if r.seconds is not None and r.name.time == "kernel"]
    if timed and not any(row.bytes for row in timed):
        if any(row.bench for row in timed):
            why = "a pair does not say how many bytes its benchmarks move."
        else:
            why = "the suite does not say how many bytes are moved: add work."
        return Rooflines((), (NoRoofline(why, None),)), {}
    streams = [row for k in kernels if k.key[1] in STREAMS for row in k.cases.values()]
    facts = [snapshot.facts for snapshot in history.snapshots if snapshot.facts]
    devices, missing, words = [], [], dict[CaseName, str]()
    for device in sorted({row.device for row in timed}):
        rows = [row for row in timed if row.device == device]
        ceiling = memory_ceiling(device, rows, facts[-1] if facts else {}, streams)
        if ceiling is None:
            missing.append(_no_ceiling(device))
            continue
        rates = {row.name: rate for row in rows if (rate := attained(row, ceiling))}
        words |= {name: share_words(rate.share) for name, rate in rates.items()}
        points = []
        for implementation, rank in ranks.items():
            best = fastest_variants(r for r in rows if r.name.implementation == implementation)
            shown = [row for row in best.values() if row.name in rates]
            shown.sort(key=lambda row: row.size)
            points += [_roofline_point(rates[row.name], rank) for row in shown]
        sentences = tuple(_roofline_sentences(ceiling, points))
        devices.append(Roofline(device, ceiling, tuple(points), sentences))
    return Rooflines(tuple(devices), tuple(missing)), words


def share_words(share: float) -> str:
    """``62 %``, or what a share above 100 % means."""
    return OVER if share > 1 else f"{text.digits(100 * share, 2)} %"


def _no_ceiling(device: str) -> NoRoofline:
    if device in ("", HOME):
        return NoRoofline(
            "the bandwidth of the CPU was not measured; a kernel named triad or copy gives it.",
            "asv run --bench __triad__",
        )
    return NoRoofline(
        f"the bandwidth of {device} is not in the record; it is measured with the cases.",
        "asv run --skip-existing-successful",
    )


def _roofline_point(rate: Attained, rank: int) -> RooflinePoint:
    row = rate.row
    return RooflinePoint(
        implementation=row.name.implementation,
        rank=rank,
        case=row.name.case,
        size=text.sizes(row.sizes) or row.name.case,
        intensity=rate.intensity,
        bytes_per_second=rate.bytes_per_second,
        flops_per_second=rate.flops_per_second,
        share=rate.share,
        attainable=share_words(rate.share),
    )


def _roofline_sentences(ceiling: MemoryCeiling, points: Sequence[RooflinePoint]) -> Iterator[str]:
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
    for last in {point.implementation: point for point in points}.values():
        of = "" if last.share > 1 else " of what is attainable"
        size = last.size or "its only case"
        yield f"{last.implementation}: {last.attainable}{of} at {size}."
