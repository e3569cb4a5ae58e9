"""Speedup and times over commits: one series for each implementation at its headline case."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.history import Series, SetupHistory
from gpubench.analysis.setup_table import Course, Places, Times
from gpubench.analysis.speedup import Speedup
from gpubench.report import text
from gpubench.report.findings import ChangeWords, change_words
from gpubench.report.site import CommitLabel
from gpubench.results import CaseName, Status, Timing
from gpubench.results.columns import timing_of

MOST_ROWS = 50
"""Commits in the table of a chart, the newest; a thousand make a page that opens slowly."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One case at one commit; absent times say why by their status."""

    timing: Timing | None
    speedup: Speedup | None
    status: Status | None
    """``None``: not measured at this commit."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A number over the commits of a chart; ``None`` where there is none."""

    values: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    """Lower ends of the intervals; ``None`` where an interval is not known."""
    highs: tuple[float | None, ...]


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
    points: tuple[HistoryPoint, ...]
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
    """The chart and its table."""

    commits: tuple[CommitLabel, ...]
    series: tuple[HistorySeries, ...]
    note: str | None
    """What a short history cannot show."""
    listed: tuple[int, ...]
    """Indices of the commits that the table has, the newest first."""


def history_chart(
    history: SetupHistory,
    labels: Sequence[CommitLabel],
    chosen: Sequence[CaseName],
    baselines: Sequence[CaseName],
    ranks: Mapping[str, int],
    note: str | None,
) -> HistoryChart:
    """Chart of chosen cases (one for each implementation) over the commits that have any.

    ``labels`` are those of all commits of the setup.
    """
    places = history.places_of((*baselines, *chosen))
    listed = tuple(range(len(places)))[: -MOST_ROWS - 1 : -1]
    series = [
        _series(history, name, name in baselines, ranks[name.implementation], places, listed)
        for name in (*baselines, *chosen)
    ]
    commits = tuple(labels[place] for place in places.tolist())
    return HistoryChart(commits, tuple(series), note, listed)


def _series(
    history: SetupHistory,
    name: CaseName,
    is_baseline: bool,
    rank: int,
    places: Places,
    listed: Sequence[int],
) -> HistorySeries:
    points, changes, course = history.cases[name], history.changes(name), history.over(name, places)
    index = {history.commits[place].hash: i for i, place in enumerate(places.tolist())}
    views = tuple(change_words(points, change) for change in changes)
    stopped = index[points.commit(points.stopped).hash] if points.stopped else None
    return HistorySeries(
        implementation=name.implementation,
        case=name.case,
        is_baseline=is_baseline,
        rank=rank,
        times=_curve(course.times, -math.inf),
        speedups=_curve(course.speedups, 0.0),
        points=tuple(_points(course, listed)),
        changes=views,
        marked=tuple(index[points.commit(change.after).hash] for change in changes),
        stopped=stopped,
        status=None if stopped is None else course.statuses[stopped],
        sentence=_sentence(name, points, views),
    )


def _curve(columns: Times, unknown: float) -> Curve:
    """``unknown`` is a lower end that is not known; an upper one is infinite."""
    values, lows, highs = columns
    known = (lows > unknown) & np.isfinite(highs)
    return Curve(_numbers(values, ~np.isnan(values)), _numbers(lows, known), _numbers(highs, known))


def _numbers(values: NDArray[np.float64], known: NDArray[np.bool_]) -> tuple[float | None, ...]:
    numbers: list[float | None] = values.tolist()
    for index in np.flatnonzero(~known).tolist():
        numbers[index] = None
    return tuple(numbers)


def _points(course: Course, listed: Sequence[int]) -> Iterator[HistoryPoint]:
    for index in listed:
        ratio, low, high = course.speedups[:, index].tolist()
        yield HistoryPoint(
            timing=timing_of(*course.times[:, index].tolist()),
            speedup=None if math.isnan(ratio) else Speedup(ratio, low, high),
            status=course.statuses[index],
        )


def _sentence(name: CaseName, points: Series, changes: Sequence[ChangeWords]) -> str:
    found = [f"{change.claim} at {change.after.short}" for change in changes]
    if not found and len(points) > 1 and points[-1].timing:
        found = ["no change"]
    return f"{name.implementation}: {'; '.join([_now(points), *found])}."


def _now(points: Series) -> str:
    newest, stopped = points[-1], points.stopped
    if newest.timing is None:
        now = text.status_label(newest.status)
        return f"{now} since {points.commit(stopped).hash[:8]}" if stopped else now
    now = text.seconds(newest.timing.median)
    if newest.speedup:
        now += f", {text.speedup(newest.speedup)} ({text.interval(newest.speedup)})"
    return f"{now} at the newest commit"
