"""The roofline as a Plotly figure: both axes logarithmic, the roof, a marker for each case."""

from __future__ import annotations

import math
from itertools import groupby

from gpubench.report import text
from gpubench.report.figures import Figure, escaped, series_style
from gpubench.report.roofline import Roofline, RooflinePoint

_STEPS = 40
"""Segments of the roof."""


def roofline_figure(chart: Roofline) -> Figure:
    """Operations a second over operations a byte."""
    points = [point for point in chart.points if point.intensity and point.flops_per_second]
    low, high = _range([point.intensity or 1.0 for point in points], 8)
    groups = groupby(points, lambda point: (point.implementation, point.rank))
    rates = [point.flops_per_second or 1.0 for point in points]
    roof = _roof(chart, low, high)
    bottom, top = _range([*rates, *roof["y"]], 1.6)
    layout = {
        "xaxis": {
            "type": "log",
            "title": {"text": "operations for each byte"},
            "range": [math.log10(low), math.log10(high)],
        },
        "yaxis": {
            "type": "log",
            "title": {"text": "operations a second"},
            "range": [math.log10(bottom), math.log10(top)],
            "exponentformat": "SI",
        },
        "showlegend": True,
    }
    return {"data": [roof, *(_trace(*key, list(group)) for key, group in groups)], "layout": layout}


def _range(values: list[float], margin: float) -> tuple[float, float]:
    return min(values) / margin, max(values) * margin


def _roof(chart: Roofline, low: float, high: float) -> Figure:
    step = (high / low) ** (1 / _STEPS)
    xs = [low * step**i for i in range(_STEPS + 1)]
    return {
        "name": "attainable",
        "mode": "lines",
        "x": xs,
        "y": [chart.ceilings.attainable(x) for x in xs],
        "line": {"color": "--text", "width": 1.5},
        "hoverinfo": "skip",
    }


def _trace(implementation: str, rank: int, points: list[RooflinePoint]) -> Figure:
    return {
        **series_style(rank, is_baseline=False),
        "mode": "markers",
        "name": escaped(implementation),
        "x": [point.intensity for point in points],
        "y": [point.flops_per_second for point in points],
        "text": [_hover(point) for point in points],
    }


def _hover(point: RooflinePoint) -> str:
    rate = text.digits((point.flops_per_second or 0) / 1e9)
    return (
        f"<b>{escaped(point.implementation)}</b> {escaped(point.case)}<br>"
        f"{rate} GFLOP/s, {text.digits(point.bytes_per_second / 1e9)} GB/s<br>"
        f"attainable: {escaped(point.attainable)}"
    )
