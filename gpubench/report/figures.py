"""Plotly figures as plain data: made from view models, drawn by ``charts.js``.

Colours are names of CSS custom properties (``--series-1``); the page resolves them, so that one
figure serves the light and the dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from gpubench.report import text
from gpubench.report.size_chart import SizeChart, SizePoint, SizeSeries

Figure = dict[str, Any]
"""``{"data": [...], "layout": {...}}``."""

COLOURS = 7
"""Distinct series colours in the style sheet; ``--series-0`` is the baseline's."""
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
_DASHES = ("dot", "solid", "dash", "longdash", "dashdot", "longdashdot", "solid")
_MOST_TICKS = 12


def size_figure(chart: SizeChart) -> Figure:
    """Speedup over size, both axes logarithmic."""
    points = [point for series in chart.series for point in series.points]
    ratios = [r for p in points for r in (p.speedup.value, p.speedup.low, p.speedup.high)]
    sizes = sorted({point.size for point in points})
    layout = {
        "xaxis": {
            "type": "log",
            "title": {"text": escaped(chart.axis)},
            "tickvals": thinned(sizes),
            "ticktext": [_size_tick(size) for size in thinned(sizes)],
        },
        "yaxis": {**ratio_axis(ratios), "title": {"text": "speedup"}},
        "shapes": [one_line()],
        "showlegend": True,
    }
    return {"data": [_size_trace(series) for series in chart.series], "layout": layout}


def escaped(words: str) -> str:
    """Text for Plotly, which reads a little HTML in its strings."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def series_style(rank: int, is_baseline: bool) -> Figure:
    """Colour, dash and marker of an implementation, the same in every chart of a page."""
    own = colour(rank, is_baseline)
    return {
        "mode": "lines+markers",
        "line": {"color": own, "width": 2, "dash": _DASHES[rank % len(_DASHES)]},
        "marker": {"color": own, "size": 7, "symbol": _SYMBOLS[rank % len(_SYMBOLS)]},
        "hovertemplate": "%{text}<extra></extra>",
    }


def colour(rank: int, is_baseline: bool) -> str:
    """Name of the colour of an implementation."""
    return "--series-0" if is_baseline else f"--series-{1 + (rank - 1) % (COLOURS - 1)}"


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


def one_line() -> Figure:
    """The line at 1x, where both are equally fast."""
    ends = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 1, "y1": 1}
    return {"type": "line", **ends, "line": {"color": "--text", "width": 1.25}}


def thinned(values: Sequence[float]) -> list[float]:
    """At most a dozen of the values, the last among them."""
    stride = math.ceil(len(values) / _MOST_TICKS) or 1
    return list(values)[::-1][::stride][::-1]


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    finite = [value for value in values if 0 < value < math.inf]
    return (min(finite), max(finite)) if finite else (1.0, 1.0)


def ratio_axis(ratios: Iterable[float]) -> Figure:
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


def time_axis(times: Iterable[float]) -> Figure:
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
