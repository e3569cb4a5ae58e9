"""The figure of a kernel over commits: numbers once, in columns; ``charts.js`` makes the lines.

A thousand commits of several implementations would fill the page with words for what the pointer
is over, so the browser makes those, too, from the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count

import numpy as np

from gpubench.report import text
from gpubench.report.figures import (
    Figure,
    colour,
    escaped,
    one_line,
    ratio_axis,
    series_style,
    thinned,
    time_axis,
)
from gpubench.report.history_chart import Curve, HistoryChart, HistorySeries

_MOST_MARKERS = 120
"""Points of one series over commits that have a marker each; more would hide their line."""
_NOTE_WIDTH = 0.25
"""Share of the chart's width that the words of a mark may take."""
_UPPER, _LOWER = [0.46, 1.0], [0.0, 0.38]
"""Shares of the height for the speedups and for the times below them."""
_DIGITS = 6
"""Significant ones of the numbers on the page, which shows three."""
_SUBJECT = 60
"""Characters of a commit's subject under the pointer."""


def history_figure(chart: HistoryChart) -> Figure:
    """Speedup over commits with its interval band, the times below; commits on x by index.

    Beside ``data`` and ``layout`` it has the ``columns`` of each series, and ``commits`` in words.
    A trace names its series and which of that one's columns it draws.
    """
    candidates = [index for index, s in enumerate(chart.series) if not s.is_baseline]
    ratios = chain.from_iterable(_known(chart.series[index].speedups) for index in candidates)
    times = (time for series in chart.series for time in series.times.values if time)
    layout = {
        "xaxis": _commit_axis(chart),
        "yaxis": {**ratio_axis(ratios), "domain": _UPPER, "title": {"text": "speedup"}},
        "yaxis2": {**time_axis(times), "domain": _LOWER, "title": {"text": "time"}},
        "shapes": [one_line(), *_mark_lines(chart)],
        "annotations": list(_mark_notes(chart)),
        "showlegend": True,
    }
    return {
        "data": [
            *(_speedup_trace(chart.series[index], index) for index in candidates),
            *(_time_trace(series, index) for index, series in enumerate(chart.series)),
        ],
        "layout": layout,
        "columns": [_columns(series) for series in chart.series],
        "commits": [
            escaped(f"{commit.short} {commit.date} {commit.subject[:_SUBJECT]}")
            for commit in chart.commits
        ],
    }


def _columns(series: HistorySeries) -> Figure:
    return {
        "name": f"<b>{escaped(series.implementation)}</b> {escaped(series.case)}",
        "times": _rounded_curve(series.times),
        "speedups": _rounded_curve(series.speedups),
    }


def _rounded_curve(curve: Curve) -> Figure:
    return {
        "values": _rounded(curve.values),
        "lows": _rounded(curve.lows),
        "highs": _rounded(curve.highs),
    }


def _rounded(numbers: Sequence[float | None]) -> list[float | None]:
    """To some significant digits, which make the page half as large."""
    values = np.array(numbers, np.float64)  # None becomes NaN
    known = values > 0
    scale = 10.0 ** (
        _DIGITS - 1 - np.floor(np.log10(values, where=known, out=np.zeros_like(values)))
    )
    rounded = (np.round(values * scale) / scale).tolist()
    return [
        own if is_known else None for own, is_known in zip(rounded, known.tolist(), strict=True)
    ]


def _known(curve: Curve) -> Iterator[float]:
    """All that the curve and its band show."""
    return (value for part in (curve.values, curve.lows, curve.highs) for value in part if value)


def _style(series: HistorySeries) -> Figure:
    style = series_style(series.rank, series.is_baseline)
    if len(series.times.values) > _MOST_MARKERS:
        style["mode"], style["line"]["width"] = "lines", 1.25
    return style


def _speedup_trace(series: HistorySeries, index: int) -> Figure:
    few = len(series.times.values) <= _MOST_MARKERS
    return {
        **_style(series),
        "name": escaped(series.implementation),
        "legendgroup": series.implementation,
        "error_y": {"type": "data", "symmetric": False, "width": 4 if few else 0},
        "drawn": {
            "series": index,
            "column": "speedups",
            "band": f"{colour(series.rank, False)}-band",
        },
    }


def _time_trace(series: HistorySeries, index: int) -> Figure:
    return {
        **_style(series),
        "name": escaped(series.implementation),
        "legendgroup": series.implementation,
        "showlegend": series.is_baseline,
        "yaxis": "y2",
        "drawn": {"series": index, "column": "times"},
    }


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
            status = text.status_label(series.status or "failed")
            yield series, series.stopped, f"✕ {series.implementation} {status}"


def _mark_lines(chart: HistoryChart) -> Iterator[Figure]:
    for series, index, _ in _marks(chart):
        ends = {"xref": "x", "x0": index - 0.5, "x1": index - 0.5}
        line = {"color": colour(series.rank, series.is_baseline), "width": 1, "dash": "dash"}
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
        font = {"color": colour(series.rank, series.is_baseline), "size": 12}
        yield {**place, **ends, "text": escaped(words), "font": font}


def _commit_axis(chart: HistoryChart) -> Figure:
    indices = thinned(list(range(len(chart.commits))))
    return {
        "tickvals": indices,
        "ticktext": [chart.commits[int(index)].short for index in indices],
        "range": [-0.6, len(chart.commits) - 0.4],
        "anchor": "y2",
        "title": {"text": "commit, oldest first"},
    }
