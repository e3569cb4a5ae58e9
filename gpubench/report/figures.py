"""Plotly figures as plain data: made from view models, drawn by ``charts.js``.

Colours are names of CSS custom properties (``--series-1``); the page resolves them, so that one
figure serves the light and the dark theme.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpubench.analysis.changes import Change
from gpubench.analysis.direction import direction_word
from gpubench.names import SECONDS
from gpubench.report import text
from gpubench.report.charts import CommitValues, HistoryChart, HistorySeries, Roofline, SizeChart
from gpubench.report.findings import basis
from gpubench.report.navigation import CommitLabel

Figure = dict[str, Any]
"""``{"data": [...], "layout": {...}}``."""

SERIES_COLOURS = 7
"""Distinct series colours in the style sheet; ``--series-0`` is the baseline's."""
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
_DASHES = ("dot", "solid", "dash", "longdash", "dashdot", "longdashdot", "solid")

_MAX_TICKS = 12
"""Labels of an axis that stand beside each other on a narrow screen."""
_MAX_MARKERS = 240
"""Points of all lines over commits up to which each has a marker: more would hide the lines, and
each is an element of the page."""
_MAX_NOTES = 6
"""Changes with words in a chart, the largest: each has a line of its own, so that none lies on
another. The others are marked; the sentences below the chart say more."""
_NOTE_NAME = 20
"""Characters of an implementation's name in such words, so that they fit a phone."""
_NOTE_HEIGHT = 16
"""Pixels of one such line, at its size of 12."""
_UPPER, _LOWER = [0.46, 1.0], [0.0, 0.38]
"""Shares of the height for the speedups and for the times below them."""
_DIGITS = 6
"""Significant ones of the numbers over commits, of which the page shows three: with all of them it
would be twice as large."""
_SUBJECT = 60
_ONE_LINE = {
    "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1, "y1": 1,
    "line": {"color": "--text", "width": 1.25},
}  # fmt: skip
"""At 1x, where both are equally fast."""


def history_figure(chart: HistoryChart, is_in_scripts: bool = False) -> Figure:
    """Speedup over commits with its interval band, the times below; commits on x by index.

    A thousand commits of several implementations would fill the page with words for what the
    pointer is over. So the numbers stand here once, in the ``columns`` of each series, beside
    ``data`` and ``layout``; a trace names its series and which of that one's columns it draws, and
    ``charts.js`` makes its points and words, with ``commits`` in words, too. Where the numbers and
    commits are in the scripts of the page, the figure has their places there.
    """
    commits = len(chart.commits)
    times = [series.times.values for series in chart.series]
    curves = [series.speedups for series in chart.series if not series.is_baseline]
    ratios = [part for curve in curves for part in (curve.values, curve.lows, curve.highs)]
    ticks = _ticks(commits)
    names = _legend_names(chart.series)
    few = 2 * commits * len(chart.series) <= _MAX_MARKERS
    lines, notes = _marks(chart)
    # plotly draws shapes on an axis without a trace at places that are no numbers.
    speedups = {"yaxis": {**_ratio_axis(ratios), "domain": _UPPER}} if curves else {}
    drawn = {
        "data": [
            _history_trace(series, index, column, few, names[index])
            for column in ("speedups", "times")
            for index, series in enumerate(chart.series)
            if column == "times" or not series.is_baseline
        ],
        "layout": {
            "xaxis": {
                "tickvals": ticks,
                "ticktext": [chart.commits[index].short for index in ticks],
                "range": [-0.6, commits - 0.4],
                "anchor": "y2",
                "title": {"text": "commit, oldest first"},
            },
            **speedups,
            "yaxis2": {
                **_value_axis(times, chart.unit),
                "domain": _LOWER if curves else (0.0, 1.0),
            },
            "shapes": [*([_ONE_LINE] if curves else []), *lines],
            "annotations": notes,
            "showlegend": True,
        },
        "unit": _escaped(chart.unit),
    }
    names = [_name(series.implementation, series.case) for series in chart.series]
    if is_in_scripts:
        marked = [place for place, commit in enumerate(chart.commits) if commit.uncommitted]
        changes = [
            {
                index: f"{_direction(change, chart.unit)} {text.ratio(change.ratio.factor)}"
                for index, change in zip(series.marked, series.changes, strict=True)
            }
            for series in chart.series
        ]
        shown = {"places": _runs(chart.places), "uncommitted": marked, "changes": changes}
        return drawn | {"names": names, "has_times": chart.has_times, **shown}
    columns = [
        {
            "name": name,
            "times": _columns(series.times, chart.unit == SECONDS),
            "speedups": _columns(series.speedups),
        }
        for name, series in zip(names, chart.series, strict=True)
    ]
    commits_in_words = [_escaped(_commit_words(commit)) for commit in chart.commits]
    return drawn | {"columns": columns, "commits": commits_in_words}


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last of neighbouring numbers."""
    gaps = [0, *(at for at in range(1, len(places)) if places[at] - places[at - 1] > 1)]
    return [
        (places[start], places[stop - 1])
        for start, stop in zip(gaps, [*gaps[1:], len(places)], strict=True)
        if stop
    ]


def _legend_names(series: Sequence[HistorySeries]) -> list[str]:
    """Return a name for each series; of several of one implementation each has its case in it."""
    counts = Counter(one.implementation for one in series)
    return [
        f"{one.implementation} {one.case}" if counts[one.implementation] > 1 else one.implementation
        for one in series
    ]


def size_figure(chart: SizeChart) -> Figure:
    """Speedup over size, both axes logarithmic."""
    points = [point for series in chart.series for point in series.points]
    ratios = [(s.value, s.low, s.high) for point in points if (s := point.speedup)]
    sizes = sorted({point.size for point in points})
    ticks = [sizes[index] for index in _ticks(len(sizes))]
    data = []
    for series in chart.series:
        speedups = [point.speedup for point in series.points if point.speedup]
        data.append(
            {
                **_series_style(series.implementation, series.rank),
                "x": [point.size for point in series.points],
                "y": [ratio.value for ratio in speedups],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "width": 4,
                    "array": [r.high - r.value if r.has_interval else 0 for r in speedups],
                    "arrayminus": [r.value - r.low if r.has_interval else 0 for r in speedups],
                },
                "text": [
                    f"{_name(series.implementation, point.name.case)}<br>"
                    f"{text.seconds(point.seconds)}<br>"
                    f"{text.speedup(point.speedup)} ({text.interval(point.speedup)})"
                    for point in series.points
                ],
            }
        )
    layout = {
        "xaxis": {
            "type": "log",
            "title": {"text": _escaped(chart.axis)},
            "tickvals": ticks,
            "ticktext": [_size_tick(size) for size in ticks],
        },
        "yaxis": _ratio_axis(ratios),
        "shapes": [_ONE_LINE],
        "showlegend": True,
    }
    return {"data": data, "layout": layout}


def roofline_figure(chart: Roofline) -> Figure:
    """Operations a second over operations a byte, both axes logarithmic: the roof, and a marker
    for each case."""
    points = [point for point in chart.points if point.intensity and point.flops_per_second]
    intensities = [point.intensity or 1.0 for point in points]
    low, high = min(intensities) / 8, max(intensities) * 8
    ends = [chart.ceilings.attainable(low), chart.ceilings.attainable(high)]
    rates = [*ends, *(point.flops_per_second or 1.0 for point in points)]
    outer = math.log10(min(rates) / 1.6), math.log10(max(rates) * 1.6)
    roof = {"name": "attainable", "mode": "lines", "x": [low, high], "y": ends}
    data = [roof | {"line": {"color": "--text", "width": 1.5}, "hoverinfo": "skip"}]
    doubt = "<br>counts contradict the formula"
    for implementation, group in groupby(points, lambda point: point.row.name.implementation):
        members = list(group)
        data.append(
            {
                **_series_style(implementation, chart.ranks[implementation]),
                "mode": "markers",
                "x": [point.intensity for point in members],
                "y": [point.flops_per_second for point in members],
                "text": [
                    f"{_name(implementation, point.row.name.case)}<br>"
                    f"{text.rate(point.flops_per_second)} GFLOP/s, "
                    f"{text.rate(point.bytes_per_second)} GB/s<br>"
                    f"attainable: {text.share(point.share)}"
                    f"{doubt if chart.notes.get(implementation) else ''}"
                    for point in members
                ],
            }
        )
    layout = {
        "xaxis": _log_axis("operations for each byte", math.log10(low), math.log10(high)),
        "yaxis": {**_log_axis("operations a second", *outer), "exponentformat": "SI"},
        "showlegend": True,
    }
    return {"data": data, "layout": layout}


def _history_trace(series: HistorySeries, index: int, column: str, few: bool, name: str) -> Figure:
    """Return the trace of one series: its ``speedups`` above, with their intervals, or its
    ``times`` below."""
    trace = _series_style(name, series.rank, series.is_baseline)
    trace |= {"legendgroup": trace["name"], "drawn": {"series": index, "column": column}}
    if not few:
        trace["mode"], trace["line"]["width"] = "lines", 1.25
    if column == "speedups":
        trace["drawn"]["band"] = f"{trace['line']['color']}-band"
    else:  # candidates are in the legend by their speedups
        trace |= {"yaxis": "y2", "showlegend": series.is_baseline}
    return trace


def _columns(curve: CommitValues, is_log: bool = True) -> Figure:
    """To some significant digits; NaN for what a logarithmic axis cannot show."""
    values = np.stack([curve.values, curve.lows, curve.highs])
    if is_log:
        values[~(values > 0)] = np.nan
    size = np.where(values == 0, 1.0, np.abs(values))
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
    rounded = np.round(values * scale) / scale
    return dict(zip(("values", "lows", "highs"), rounded.tolist(), strict=True))


def _marks(chart: HistoryChart) -> tuple[list[Figure], list[Figure]]:
    """Return a line before each commit at which something happened to a series, and words at the
    top for the largest, below each other as they follow each other."""
    events = []
    for series in chart.series:
        changes = zip(series.marked, series.changes, series.rest_on, strict=True)
        for index, change, points in changes:
            arrow, word = _direction(change, chart.unit).split()
            factor = f"{word} {text.ratio(change.ratio.factor)}"
            few = f" ({text.plural(points, 'commit')})" if basis(points) else ""
            events.append((index, change.ratio.factor, series, arrow, f"{factor}{few}"))
        if series.left_out:
            what = f"{text.plural(series.left_out, 'older value')} of another version"
            events.append((0, math.inf, series, "◂", what))
        if series.stopped is not None:
            status = text.status_label(series.status or "failed")
            events.append((series.stopped, math.inf, series, "✕", status))
    events.sort(key=lambda event: event[0])
    # The largest, of equals the newest.
    named = sorted(range(len(events)), key=lambda number: (events[number][1], number))
    lines: list[Figure] = []
    notes: list[Figure] = []
    for number, (index, _, series, sign, what) in enumerate(events):
        x, colour = index - 0.5, _colour(series.rank, series.is_baseline)
        ends = {"xref": "x", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1}
        lines.append(
            {"type": "line", **ends, "line": {"color": colour, "width": 1, "dash": "dash"}}
        )
        if number not in named[-_MAX_NOTES:]:
            continue
        name = series.implementation
        short = name if len(name) <= _NOTE_NAME else f"{name[: _NOTE_NAME - 1]}…"
        third = min(3 * index // len(chart.commits), 2)  # words near an end lean inwards
        notes.append(
            {
                "x": x, "xref": "x", "y": 1, "yref": "paper",
                "yshift": -_NOTE_HEIGHT * len(notes),
                "xanchor": ("left", "center", "right")[third], "yanchor": "top",
                "showarrow": False, "bgcolor": "--page", "borderpad": 0,
                "text": _escaped(f"{sign} {short} {what}"), "font": {"color": colour, "size": 12},
            }
        )  # fmt: skip
    return lines, notes


def _direction(change: Change, unit: str) -> str:
    return f"{'▼' if change.slower else '▲'} {direction_word(change, unit)}"


def _commit_words(commit: CommitLabel) -> str:
    words = f"{commit.short} {commit.date} {commit.subject[:_SUBJECT]}"
    return f"{words} (measured with uncommitted changes)" if commit.uncommitted else words


def _escaped(words: str) -> str:
    """Text for Plotly, which reads a little HTML in its strings."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _name(implementation: str, case: str) -> str:
    return f"<b>{_escaped(implementation)}</b> {_escaped(case)}"


def _series_style(implementation: str, rank: int, is_baseline: bool = False) -> Figure:
    """Colour, dash and marker of an implementation, the same in every chart of a page."""
    colour = _colour(rank, is_baseline)
    return {
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2, "dash": _DASHES[rank % len(_DASHES)]},
        "marker": {"color": colour, "size": 7, "symbol": _SYMBOLS[rank % len(_SYMBOLS)]},
        "hovertemplate": "%{text}<extra></extra>",
        "name": _escaped(implementation),
    }


def _colour(rank: int, is_baseline: bool) -> str:
    return "--series-0" if is_baseline else f"--series-{1 + (rank - 1) % (SERIES_COLOURS - 1)}"


def _ticks(count: int) -> list[int]:
    stride = math.ceil(count / _MAX_TICKS) or 1
    return list(range(count - 1, -1, -stride))[::-1]


def _log_axis(title: str, first: float, last: float) -> Figure:
    return {"type": "log", "title": {"text": title}, "range": [first, last]}


def _ratio_axis(ratios: Sequence[ArrayLike]) -> Figure:
    """Return a log2 axis that always shows 1x."""
    shown = np.append(np.array(ratios, np.float64), 1.0)
    shown = shown[(shown > 0) & np.isfinite(shown)]
    low, high = math.log2(shown.min()), math.log2(shown.max())
    first, last = math.floor(low - 0.15), math.ceil(high + 0.15)
    stride = math.ceil((last - first + 1) / _MAX_TICKS)
    powers = [p for p in range(first, last + 1) if p % stride == 0]
    words = [
        f"{2**p}{text.TIMES_SIGN}" if p >= 0 else f"1/{2**-p}{text.TIMES_SIGN}" for p in powers
    ]
    axis = _log_axis("speedup", first * math.log10(2), last * math.log10(2))
    return {**axis, "tickvals": [2.0**power for power in powers], "ticktext": words}


def _value_axis(values: Sequence[ArrayLike], unit: str) -> Figure:
    """Return the axis of times; of another unit a linear one, where a number may be 0 or less."""
    if unit == SECONDS:
        return _time_axis(values)
    title = {"text": _escaped(unit or "value")}
    return {"title": title, "tickformat": "~s", "exponentformat": "SI"}


def _time_axis(times: Sequence[ArrayLike]) -> Figure:
    """Return a log axis with ticks at 1, 2 and 5, or at 1 alone where it spans a thousandfold; at
    tenths of a decade where these would leave it without two."""
    every = np.array(times, np.float64)
    shown = every[every > 0] if (every > 0).any() else np.ones(1)
    first, last = math.log10(shown.min()) - 0.15, math.log10(shown.max()) + 0.15
    mantissas = (1.0, 2.0, 5.0) if last - first < 3 else (1.0,)
    decades = range(math.floor(first), math.ceil(last) + 1)
    ticks = [mantissa * 10.0**decade for decade in decades for mantissa in mantissas]
    digits = 1
    if sum(10**first < tick < 10**last for tick in ticks) < 2:
        fine = [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9]
        ticks = [mantissa * 10.0**decade for decade in decades for mantissa in fine]
        digits = 2
    words = [text.seconds(tick, significant=digits) for tick in ticks]
    return {**_log_axis("time", first, last), "tickvals": ticks, "ticktext": words}


def _size_tick(size: float) -> str:
    exponent = math.log2(size) if size > 0 else 0.5
    if size >= 1024 and exponent.is_integer():
        return f"2<sup>{exponent:.0f}</sup>"
    return text.whole(size)
