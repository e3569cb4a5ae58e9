"""Speedup and times over commits: one series for each implementation at its headline case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.history import Point, Series, SetupHistory
from gpubench.analysis.speedup import Speedup
from gpubench.report import text
from gpubench.report.findings import ChangeView, change_view
from gpubench.report.site import CommitLabel, commit_label
from gpubench.results import CaseName, Status, Timing

MOST_ROWS = 200
"""Commits in the table of a chart, the newest; a thousand make a page that opens slowly."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One case at one commit; absent times say why by their status."""

    timing: Timing | None
    speedup: Speedup | None
    status: Status | None
    """``None``: not measured at this commit."""


@dataclass(frozen=True, slots=True)
class HistorySeries:
    """One implementation over the commits."""

    implementation: str
    case: str
    is_baseline: bool
    rank: int
    """Place among the page's implementations: its colour and its marker."""
    points: tuple[HistoryPoint, ...]
    """One for each commit of the chart."""
    changes: tuple[ChangeView, ...]
    marked: tuple[int, ...]
    """Index of the first commit after each change."""
    stopped: int | None
    """Index of the first commit since which there is no time; ``None`` when there is one."""
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


def history_series(
    history: SetupHistory, name: CaseName, is_baseline: bool, rank: int, hashes: Sequence[str]
) -> HistorySeries:
    """The series of one case over the commits of the chart."""
    points = history.cases[name]
    by_commit = {point.commit.hash: point for point in points}
    changes = history.changes(name)
    place = {hash_: index for index, hash_ in enumerate(hashes)}
    views = tuple(change_view(name, points, change) for change in changes)
    stopped = points.stopped
    return HistorySeries(
        implementation=name.implementation,
        case=name.case,
        is_baseline=is_baseline,
        rank=rank,
        points=tuple(_point(by_commit.get(hash_)) for hash_ in hashes),
        changes=views,
        marked=tuple(place[points.commit(change.after).hash] for change in changes),
        stopped=place[points.commit(stopped).hash] if stopped else None,
        sentence=_sentence(name, points, views),
    )


def history_chart(
    history: SetupHistory,
    chosen: Sequence[CaseName],
    baselines: Sequence[CaseName],
    ranks: Mapping[str, int],
    note: str | None,
) -> HistoryChart:
    """Chart of chosen cases (one for each implementation) over the commits that have any."""
    commits = history.commits_of((*baselines, *chosen))
    hashes = [commit.hash for commit in commits]
    series = [
        history_series(history, name, name in baselines, ranks[name.implementation], hashes)
        for name in (*baselines, *chosen)
    ]
    listed = tuple(range(len(commits)))[: -MOST_ROWS - 1 : -1]
    return HistoryChart(tuple(map(commit_label, commits)), tuple(series), note, listed)


def _point(point: Point | None) -> HistoryPoint:
    if point is None:
        return HistoryPoint(None, None, None)
    return HistoryPoint(point.timing, point.speedup, point.status)


def _sentence(name: CaseName, points: Series, changes: Sequence[ChangeView]) -> str:
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
