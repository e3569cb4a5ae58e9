"""Figures are plain data that Plotly draws: axes, colours, marks and words."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gpubench.analysis.changes import Change
from gpubench.analysis.choice import Crossover
from gpubench.report.charts import CommitValues, HistoryChart, HistorySeries, SizeChart, SizeSeries
from gpubench.report.figures import SERIES_COLOURS, history_figure, size_figure
from gpubench.report.navigation import CommitLabel
from gpubench.results import CaseName, Ratio, Row

NAN = math.nan


def curve(*values: float, width: float = 0.1) -> CommitValues:
    middle = np.array(values)
    return CommitValues(middle, middle * (1 - width), middle * (1 + width))


def series(
    implementation: str, rank: int, times: CommitValues, speedups: CommitValues | None = None
) -> HistorySeries:
    nothing = CommitValues(*np.full((3, len(times.values)), NAN))
    return HistorySeries(
        implementation=implementation,
        case="n=4",
        is_baseline=speedups is None,
        rank=rank,
        times=times,
        speedups=speedups or nothing,
        points=(),
        changes=(),
        rest_on=(),
        left_out=0,
        marked=(),
        stopped=None,
        status=None,
        sentence="",
    )


def chart(*drawn: HistorySeries) -> HistoryChart:
    commits = len(drawn[0].times.values)
    labels = tuple(
        CommitLabel(f"{index:08x}", "2026-01-01", f"Change <{index}>" + "x" * 80)
        for index in range(commits)
    )
    return HistoryChart(labels, drawn, None, ())


def test_numbers_over_commits_stand_in_the_figure_once_with_six_digits() -> None:
    figure = history_figure(chart(series("numpy", 0, curve(1.23456789e-5, NAN, 0.0, width=0.0))))

    (columns,) = figure["columns"]
    first, *rest = columns["times"]["values"]
    assert first == 1.23457e-05
    assert all(math.isnan(value) for value in rest)
    assert all("x" not in trace for trace in figure["data"])


def test_a_series_draws_its_speedups_and_its_times_and_a_baseline_its_times_alone() -> None:
    figure = history_figure(
        chart(
            series("numpy", 0, curve(4.0, 4.0)),
            series("numba", 1, curve(2.0, 2.0), curve(2.0, 2.0)),
        )
    )

    drawn = [(trace["drawn"]["series"], trace["drawn"]["column"]) for trace in figure["data"]]
    assert drawn == [(1, "speedups"), (0, "times"), (1, "times")]
    assert figure["data"][0]["drawn"]["band"] == "--series-1-band"
    assert [trace.get("showlegend", True) for trace in figure["data"]] == [True, True, False]


def test_an_axis_of_ratios_shows_the_data_and_always_1x() -> None:
    slow = history_figure(chart(series("numba", 1, curve(2.0, 2.0), curve(1 / 8, 1 / 8))))[
        "layout"
    ]["yaxis"]

    assert slow["ticktext"][0] == "1/16×"
    assert "1×" in slow["ticktext"]
    low, high = slow["range"]
    assert low <= math.log10(1 / 8 * 0.9)
    assert high >= 0


def test_an_unknown_end_of_an_interval_does_not_stretch_the_axis() -> None:
    axis = size_figure(sizes((2.0, Ratio(2.0, 0.0, math.inf))))["layout"]["yaxis"]

    assert axis["ticktext"] == ["1/2×", "1×", "2×", "4×"]


def test_words_of_people_are_no_markup() -> None:
    figure = history_figure(chart(series("numba", 1, curve(2.0), curve(2.0))))

    (commit,) = figure["commits"]
    assert commit.startswith("00000000 2026-01-01 Change &lt;0&gt;")
    assert len(commit) < 100


def test_an_axis_of_many_commits_names_a_dozen_and_the_newest() -> None:
    axis = history_figure(chart(series("numpy", 0, curve(*[1.0] * 100))))["layout"]["xaxis"]

    assert axis["tickvals"] == list(range(0, 100, 9))
    assert axis["ticktext"][-1] == f"{99:08x}"
    assert axis["range"] == [-0.6, 99.6]


def test_implementations_beyond_the_colours_begin_again_and_never_take_the_baselines() -> None:
    drawn = [
        series(f"i{rank}", rank, curve(1.0), curve(1.0)) for rank in range(1, SERIES_COLOURS + 3)
    ]

    figure = history_figure(chart(*drawn))

    colours = [trace["line"]["color"] for trace in figure["data"][: len(drawn)]]
    assert colours[:7] == [f"--series-{i}" for i in (1, 2, 3, 4, 5, 6, 1)]
    assert "--series-0" not in colours


def test_a_case_that_stopped_is_marked_where_it_did() -> None:
    change = Change("step", 0, 1, 2.0, 1.0, Ratio(2.0, 1.9, 2.1))
    stopped = replace(
        series("numba", 1, curve(*[1.0] * 8), curve(*[1.0] * 8)),
        changes=(change,),
        rest_on=(6,),
        marked=(1,),
        stopped=6,
        status="timed_out",
    )

    layout = history_figure(chart(stopped))["layout"]

    notes = [(note["text"], note["xanchor"]) for note in layout["annotations"]]
    assert notes == [("▲ numba faster 2.00×", "left"), ("✕ numba timed out", "right")]
    assert [shape.get("x0") for shape in layout["shapes"]] == [0, 0.5, 5.5]


def sizes(*points: tuple[float, Ratio]) -> SizeChart:
    name = CaseName("add", "add", "a<b", "kernel", "n=1")
    drawn = tuple(Row(name, "ok", seconds=1e-3, speedup=ratio, size=size) for size, ratio in points)
    return SizeChart("", "n", (SizeSeries("a<b", 1, drawn, Crossover(None), ""),))


def test_a_bar_has_the_length_of_the_interval_and_none_where_it_is_not_known() -> None:
    (trace,) = size_figure(sizes((2.0, Ratio(2.0, 1.5, 3.0)), (4.0, Ratio(2.0, 0.0, math.inf))))[
        "data"
    ]

    assert trace["error_y"]["array"] == [1.0, 0]
    assert trace["error_y"]["arrayminus"] == [0.5, 0]
    assert trace["name"] == "a&lt;b"
    assert trace["text"][1].endswith("2.00× (no interval)")


@pytest.mark.parametrize(
    ("size", "words"), [(1024.0, "2<sup>10</sup>"), (1000.0, "1,000"), (512.0, "512")]
)
def test_sizes_are_powers_of_two_where_that_is_shorter(size: float, words: str) -> None:
    axis = size_figure(sizes((size, Ratio(2.0, 1.9, 2.1))))["layout"]["xaxis"]

    assert axis["ticktext"] == [words]


def test_ticks_of_times_are_round_numbers_in_a_unit_that_fits() -> None:
    axis = history_figure(chart(series("numpy", 0, curve(8e-6, 210e-6))))["layout"]["yaxis2"]

    low, high = (10**end for end in axis["range"])
    ticks = zip(axis["tickvals"], axis["ticktext"], strict=True)
    shown = [
        words.replace("\N{NARROW NO-BREAK SPACE}", " ") for at, words in ticks if low < at < high
    ]
    assert shown == ["10 µs", "20 µs", "50 µs", "100 µs", "200 µs"]


def test_times_that_hardly_differ_have_ticks_beside_them() -> None:
    axis = history_figure(chart(series("numpy", 0, curve(3.2e-7, 3.4e-7))))["layout"]["yaxis2"]

    low, high = (10**end for end in axis["range"])
    ticks = zip(axis["tickvals"], axis["ticktext"], strict=True)
    shown = [words for at, words in ticks if low < at < high]
    assert [words[:3] for words in shown] == ["250", "300", "350", "400"]


def test_times_of_many_magnitudes_have_a_tick_for_each_power_of_ten() -> None:
    axis = history_figure(chart(series("numpy", 0, curve(2e-9, 2.0))))["layout"]["yaxis2"]

    assert [words[0] for words in axis["ticktext"]] == ["1"] * len(axis["ticktext"])


def test_a_chart_without_any_time_still_has_axes() -> None:
    drawn = series("numba", 1, curve(NAN, NAN), curve(NAN, NAN))
    layout = history_figure(chart(drawn))["layout"]

    assert all(math.isfinite(end) for name in ("yaxis", "yaxis2") for end in layout[name]["range"])


def test_a_baseline_alone_has_no_axis_of_ratios() -> None:
    layout = history_figure(chart(series("numpy", 0, curve(1e-5, 1e-5))))["layout"]

    assert "yaxis" not in layout
    assert (layout["shapes"], layout["yaxis2"]["domain"]) == ([], (0.0, 1.0))
