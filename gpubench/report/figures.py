"""Plotly figures as plain data: made from view models, drawn by ``charts.js``.

Colours are names of CSS custom properties (``--series-1``); the page resolves them, so that one
figure serves the light and the dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby
from typing import Any

from gpubench.report import text
from gpubench.report.history_chart import HistoryChart, HistoryPoint, HistorySeries
from gpubench.report.size_chart import SizeChart, SizePoint, SizeSeries

Figure = dict[str, Any]
"""``{"data": [...], "layout": {...}}``."""

COLOURS = 7
"""Distinct series colours in the style sheet; ``--series-0`` is the baseline's."""
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
_DASHES = ("dot", "solid", "dash", "longdash", "dashdot", "longdashdot", "solid")
_MOST_TICKS = 12
_MOST_MARKERS = 120
"""Points of one series over commits that have a marker each; more would hide their line."""
_NOTE_WIDTH = 0.25
"""Share of the chart's width that the words of a mark may take."""
_UPPER, _LOWER = [0.46, 1.0], [0.0, 0.38]
"""Shares of the height for the speedups and for the times below them."""


def history_figure(chart: HistoryChart) -> Figure:
    """Speedup over commits with its interval band, the times below; commits on x by index."""
    candidates = [series for series in chart.series if not series.is_baseline]
    data: list[Figure] = []
    hovers = {id(series): _hover(chart, series) for series in chart.series}
    for series in candidates:
        data += [*_bands(series), _speedup_trace(series, hovers[id(series)])]
    data += [_time_trace(series, hovers[id(series)]) for series in chart.series]
    ratios = [
        value
        for series in candidates
        for point in series.points
        if point.speedup
        for value in (point.speedup.value, point.speedup.low, point.speedup.high)
    ]
    times = [p.timing.median for s in chart.series for p in s.points if p.timing]
    layout = {
        "xaxis": _commit_axis(chart),
        "yaxis": {**_ratio_axis(ratios), "domain": _UPPER, "title": {"text": "speedup"}},
        "yaxis2": {**_time_axis(times), "domain": _LOWER, "title": {"text": "time"}},
        "shapes": [_one_line(), *_mark_lines(chart)],
        "annotations": list(_mark_notes(chart)),
        "showlegend": True,
    }
    return {"data": data, "layout": layout}


def size_figure(chart: SizeChart) -> Figure:
    """Speedup over size, both axes logarithmic."""
    points = [point for series in chart.series for point in series.points]
    ratios = [r for p in points for r in (p.speedup.value, p.speedup.low, p.speedup.high)]
    sizes = sorted({point.size for point in points})
    layout = {
        "xaxis": {
            "type": "log",
            "title": {"text": escaped(chart.axis)},
            "tickvals": _thinned(sizes),
            "ticktext": [_size_tick(size) for size in _thinned(sizes)],
        },
        "yaxis": {**_ratio_axis(ratios), "title": {"text": "speedup"}},
        "shapes": [_one_line()],
        "showlegend": True,
    }
    return {"data": [_size_trace(series) for series in chart.series], "layout": layout}


def escaped(words: str) -> str:
    """Text for Plotly, which reads a little HTML in its strings."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def series_style(rank: int, is_baseline: bool) -> Figure:
    """Colour, dash and marker of an implementation, the same in every chart of a page."""
    colour = _colour(rank, is_baseline)
    return {
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2, "dash": _DASHES[rank % len(_DASHES)]},
        "marker": {"color": colour, "size": 7, "symbol": _SYMBOLS[rank % len(_SYMBOLS)]},
        "hovertemplate": "%{text}<extra></extra>",
    }


def _history_style(series: HistorySeries) -> Figure:
    style = series_style(series.rank, series.is_baseline)
    if len(series.points) > _MOST_MARKERS:
        style["mode"], style["line"]["width"] = "lines", 1.25
    return style


def _colour(rank: int, is_baseline: bool) -> str:
    return "--series-0" if is_baseline else f"--series-{1 + (rank - 1) % (COLOURS - 1)}"


def _speedup_trace(series: HistorySeries, hover: list[str]) -> Figure:
    return {
        **_history_style(series),
        "name": escaped(series.implementation),
        "legendgroup": series.implementation,
        "x": list(range(len(series.points))),
        "y": [point.speedup.value if point.speedup else None for point in series.points],
        "error_y": _error_bars(series.points),
        "text": hover,
    }


def _time_trace(series: HistorySeries, hover: list[str]) -> Figure:
    return {
        **_history_style(series),
        "name": escaped(series.implementation),
        "legendgroup": series.implementation,
        "showlegend": series.is_baseline,
        "x": list(range(len(series.points))),
        "y": [point.timing.median if point.timing else None for point in series.points],
        "yaxis": "y2",
        "text": hover,
    }


def _hover(chart: HistoryChart, series: HistorySeries) -> list[str]:
    name = f"<b>{escaped(series.implementation)}</b> {escaped(series.case)}"
    return [
        f"{name}<br>{commit.short} {commit.date} {escaped(commit.subject[:60])}{_times(point)}"
        for commit, point in zip(chart.commits, series.points, strict=True)
    ]


def _times(point: HistoryPoint) -> str:
    """Lines of their own for the time and the speedup, where there are any."""
    words, timing = "", point.timing
    if timing:
        ends = text.seconds_interval(timing.low, timing.high)
        words = f"<br>{text.seconds(timing.median)} ({ends})"
    if point.speedup:
        words += f"<br>{text.speedup(point.speedup)} ({text.interval(point.speedup)})"
    return words


def _stretches(points: Sequence[HistoryPoint]) -> Iterator[list[tuple[int, HistoryPoint]]]:
    """Runs of neighbouring points whose speedup has an interval."""
    indexed = enumerate(points)
    for known, run in groupby(indexed, lambda p: bool(p[1].speedup and p[1].speedup.has_interval)):
        if known:
            yield list(run)


def _bands(series: HistorySeries) -> Iterator[Figure]:
    for run in _stretches(series.points):
        xs = [index for index, _ in run]
        ratios = [point.speedup for _, point in run if point.speedup]
        if len(run) > 1:
            yield {
                "x": xs + xs[::-1],
                "y": [r.low for r in ratios] + [r.high for r in reversed(ratios)],
                "fill": "toself",
                "fillcolor": f"{_colour(series.rank, False)}-band",
                "line": {"width": 0},
                "mode": "lines",
                "hoverinfo": "skip",
                "showlegend": False,
                "legendgroup": series.implementation,
            }


def _error_bars(points: Sequence[HistoryPoint]) -> Figure:
    """Intervals of the points that stand alone and so have no band."""
    above, below = [0.0] * len(points), [0.0] * len(points)
    for run in _stretches(points):
        index, ratio = run[0][0], run[0][1].speedup
        if len(run) == 1 and ratio:
            above[index], below[index] = ratio.high - ratio.value, ratio.value - ratio.low
    caps = 4 if len(points) <= _MOST_MARKERS else 0
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": caps}


def _size_trace(series: SizeSeries) -> Figure:
    ratios = [point.speedup for point in series.points]
    known = [ratio.has_interval for ratio in ratios]
    pairs = list(zip(ratios, known, strict=True))
    return {
        **series_style(series.rank, False),
        "name": escaped(series.implementation),
        "x": [point.size for point in series.points],
        "y": [ratio.value for ratio in ratios],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [r.high - r.value if sure else 0 for r, sure in pairs],
            "arrayminus": [r.value - r.low if sure else 0 for r, sure in pairs],
            "width": 4,
        },
        "text": [_size_hover(series, point) for point in series.points],
    }


def _size_hover(series: SizeSeries, point: SizePoint) -> str:
    return (
        f"<b>{escaped(series.implementation)}</b> {escaped(point.case)}<br>"
        f"{text.seconds(point.seconds)}<br>"
        f"{text.speedup(point.speedup)} ({text.interval(point.speedup)})"
    )


def _one_line() -> Figure:
    """The line at 1x, where both are equally fast."""
    ends = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1, "y1": 1}
    return {"type": "line", **ends, "line": {"color": "--text", "width": 1.25}}


def _marks(chart: HistoryChart) -> Iterator[tuple[HistorySeries, int, str]]:
    """What happened to which series before which commit, in words."""
    for series in chart.series:
        for index, change in zip(series.marked, series.changes, strict=True):
            arrow, word = ("▼", "slower") if change.slower else ("▲", "faster")
            yield (
                series,
                index,
                f"{arrow} {series.implementation} {word} {text.ratio(change.factor)}",
            )
        if series.stopped is not None:
            status = text.status_label(series.points[series.stopped].status or "failed")
            yield series, series.stopped, f"✕ {series.implementation} {status}"


def _mark_lines(chart: HistoryChart) -> Iterator[Figure]:
    for series, index, _ in _marks(chart):
        ends = {"xref": "x", "x0": index - 0.5, "x1": index - 0.5}
        line = {"color": _colour(series.rank, series.is_baseline), "width": 1, "dash": "dash"}
        yield {"type": "line", **ends, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _mark_notes(chart: HistoryChart) -> Iterator[Figure]:
    """Words at the top of each line, below each other where lines are near each other."""
    taken: list[tuple[int, int]] = []
    near = len(chart.commits) * _NOTE_WIDTH
    for series, index, words in _marks(chart):
        right = index > len(chart.commits) / 2
        beside = {row for other, row in taken if abs(index - other) <= near}
        row = next(row for row in count() if row not in beside)
        taken.append((index, row))
        place = {"x": index - 0.5, "xref": "x", "y": 1, "yref": "paper", "yshift": -14 * row}
        ends = {"xanchor": "right" if right else "left", "yanchor": "top", "showarrow": False}
        font = {"color": _colour(series.rank, series.is_baseline), "size": 12}
        yield {**place, **ends, "text": escaped(words), "font": font}


def _commit_axis(chart: HistoryChart) -> Figure:
    indices = _thinned(list(range(len(chart.commits))))
    return {
        "tickvals": indices,
        "ticktext": [chart.commits[int(index)].short for index in indices],
        "range": [-0.6, len(chart.commits) - 0.4],
        "anchor": "y2",
        "title": {"text": "commit, oldest first"},
    }


def _thinned(values: Sequence[float]) -> list[float]:
    """At most a dozen of the values, the last among them."""
    stride = math.ceil(len(values) / _MOST_TICKS) or 1
    return list(values)[::-1][::stride][::-1]


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    finite = [value for value in values if 0 < value < math.inf]
    return (min(finite), max(finite)) if finite else (1.0, 1.0)


def _ratio_axis(ratios: Iterable[float]) -> Figure:
    """A log2 axis that always shows 1x."""
    low, high = _bounds([*ratios, 1.0])
    first, last = math.floor(math.log2(low) - 0.15), math.ceil(math.log2(high) + 0.15)
    stride = math.ceil((last - first + 1) / _MOST_TICKS)
    powers = [p for p in range(first, last + 1) if p % stride == 0]
    return {
        "type": "log",
        "range": [first * math.log10(2), last * math.log10(2)],
        "tickvals": [2.0**power for power in powers],
        "ticktext": [_power_tick(power) for power in powers],
    }


def _power_tick(power: int) -> str:
    return f"{2**power}{text.TIMES}" if power >= 0 else f"1/{2**-power}{text.TIMES}"


def _time_axis(times: Iterable[float]) -> Figure:
    """A log axis with ticks at 1, 2 and 5, in units of their own."""
    low, high = _bounds(times)
    first, last = math.log10(low) - 0.15, math.log10(high) + 0.15
    mantissas = (1, 2, 5) if last - first < 3 else (1,)
    decades = range(math.floor(first), math.ceil(last) + 1)
    ticks = [m * 10.0**decade for decade in decades for m in mantissas]
    ticks = [tick for tick in ticks if first <= math.log10(tick) <= last]
    return {
        "type": "log",
        "range": [first, last],
        "tickvals": ticks,
        "ticktext": [_time_tick(tick) for tick in ticks],
    }


def _time_tick(tick: float) -> str:
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if tick >= 0.999 * factor:
            return f"{tick / factor:.0f} {unit}"
    return f"{tick:.0e} s"


def _size_tick(size: float) -> str:
    exponent = math.log2(size) if size > 0 else 0.5
    if size >= 1024 and exponent.is_integer():
        return f"2<sup>{exponent:.0f}</sup>"
    return text.whole(size)
