"""Changes of a case by its speedups: where pairs were measured, the series of the ratio decides.

The halves of a pair take turns in one process. So what slows down the machine for a minute or a
month is in both, and cancels. Times alone decide where there are no pairs, and where the baseline
itself changed: there a ratio tells nothing of the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.changes import Change, Verdict, verdicts_in
from gpubench.analysis.comparison import BASELINE_MOVED
from gpubench.analysis.pooled import POOLED_COMMITS, PooledLevels
from gpubench.results import CaseHistories, CaseName, Times

MIN_PAIRED_COMMITS = 2
"""Commits with pairs from which a case has a series of the ratio."""

NEIGHBOURS = 3
"""Measured commits to either side of a change of which most have to have pairs, so that the ratio
decides there."""

MAX_COMMITS_BETWEEN_SERIES = 2
"""Measured commits that two series may find the same change apart."""

LEVEL_COMMITS = 7
"""Commits to either side of a change of the baseline whose median ratio is its level there."""

MAX_GAIN_APART = 1.25
"""Factor by which cases gain differently by another machine or compiler."""

Changes = Mapping[CaseName, Sequence[Change]]


@dataclass(frozen=True, eq=False)
class _Series:
    """The ratio of one case over the snapshots."""

    is_paired: NDArray[np.bool_]
    times: Times
    """Shape (3, snapshots): the time over the baseline's, as seconds on the newest machine, and
    the ends of its interval. NaN without pairs."""
    breaks: NDArray[np.intp]
    """Snapshots from which the baseline is another one."""


def newest_ratios(
    history: CaseHistories,
    own: Changes,
    shared: Changes,
    usual_baselines: Mapping[CaseName, CaseName],
) -> list[NDArray[np.float64]]:
    """Return logarithms of the newest ratios of each case with pairs, as many as ``PooledLevels``
    looks at; arguments as for ``decide_by_speedups``."""
    series = _series(history, own, shared, usual_baselines).values()
    return [np.log(one.times[0, one.is_paired])[-POOLED_COMMITS - 1 :] for one in series]


def decide_by_speedups(
    history: CaseHistories,
    verdicts: Mapping[CaseName, Verdict],
    own: Changes,
    shared: Changes,
    least: Sequence[float],
    usual_baselines: Mapping[CaseName, CaseName],
    pooled: PooledLevels,
) -> dict[CaseName, Verdict]:
    """Return what the histories of the cases with pairs say.

    Args:
        history: some cases of a setup.
        verdicts: what the times of all cases say.
        own: the changes of all cases by their times, without what most cases share.
        shared: of those that each case shares with most.
        least: factor of each case of ``history`` from which a change counts.
        usual_baselines: of cases whose baseline is not in ``history``.
        pooled: how the ratios of all cases scatter.
    """
    series = _series(history, own, shared, usual_baselines)
    if not series:
        return {}
    by_ratio = verdicts_in(
        np.stack([one.times for one in series.values()], axis=1),
        [least[case] for case in series],
        [pooled] * len(series),
    )
    decided = {}
    for (case, one), verdict in zip(series.items(), by_ratio, strict=True):
        name = history.names[case]
        timed = np.flatnonzero(~np.isnan(history.judged[0, case]))
        ratio_changes = [
            replace(change, basis="speedup")
            for change in verdict.changes
            if not _is_of_the_machine(change, shared.get(name, ()), timed)
        ]
        time_changes = [
            change
            for change in own.get(name, ())
            if not _ratio_decides(change, one, timed) and not _is_near(change, ratio_changes, timed)
        ]
        changes = sorted([*ratio_changes, *time_changes], key=lambda change: change.after)
        is_mostly_paired = 2 * one.is_paired.sum() >= len(timed)
        scatter = verdict.scatter if is_mostly_paired else verdicts[name].scatter
        is_judged = verdict.is_judged or verdicts[name].is_judged
        decided[name] = Verdict(tuple(changes), scatter, is_judged)
    return decided


def _series(
    history: CaseHistories,
    own: Changes,
    shared: Changes,
    usual_baselines: Mapping[CaseName, CaseName],
) -> dict[int, _Series]:
    """Return the ratios of the cases, by their indices, of which several commits have one.

    None where processors differ: there all times are over the baseline's anyway.
    """
    if history.by_speedup:
        return {}
    paired = _are_paired(history)
    return {
        case: _series_of(history, case, paired[case], own, shared, usual_baselines)
        for case in np.flatnonzero(paired.sum(axis=1) >= MIN_PAIRED_COMMITS).tolist()
    }


def _are_paired(history: CaseHistories) -> NDArray[np.bool_]:
    ratios = history.speedups[0]
    known = np.isfinite(ratios) & (ratios > 0) & ~np.isnan(history.judged[0])
    paired: NDArray[np.bool_] = history.in_turn & known
    return paired


def _series_of(
    history: CaseHistories,
    case: int,
    is_paired: NDArray[np.bool_],
    own: Changes,
    shared: Changes,
    usual_baselines: Mapping[CaseName, CaseName],
) -> _Series:
    places = np.flatnonzero(is_paired)
    with np.errstate(divide="ignore"):
        value, low, high = -np.log(history.speedups[:, case, places])
    ratios = np.stack([value, high, low])  # the least time is at the largest speedup
    usual = usual_baselines.get(history.names[case])
    baselines = [
        history.names[number] if number >= 0 else usual
        for number in history.baselines[case, places].tolist()
    ]
    breaks = _breaks(places, baselines, own)
    for index in breaks:
        before = ratios[0, max(index - LEVEL_COMMITS, 0) : index]
        after = ratios[0, index : index + LEVEL_COMMITS]
        ratios[:, index:] -= np.median(after) - np.median(before)
    seconds = np.log(history.judged[0, case, places])
    for change in shared.get(history.names[case], ()):  # as if the newest machine had measured all
        seconds[places < change.after] += np.log(change.new / change.old)
    ratios += np.median(seconds - ratios[0])
    times: Times = np.full((3, len(is_paired)), np.nan)
    times[:, places] = np.exp(ratios)
    return _Series(is_paired, times, places[breaks])


def _breaks(
    places: NDArray[np.intp], baselines: Sequence[CaseName | None], own: Changes
) -> list[int]:
    """Return the indices into the paired commits from which the baseline is another one: by its
    name, or because it changed."""
    found = {index for index, (old, new) in enumerate(pairwise(baselines), start=1) if old != new}
    for baseline in {*baselines} - {None}:
        for change in own.get(baseline, ()) if baseline else ():
            if change.kind == "step" or change.ratio.factor >= BASELINE_MOVED:
                index = int(np.searchsorted(places, change.after))
                if 0 < index < len(places) and baselines[index] == baseline:
                    found.add(index)
    return sorted(found)


def _ratio_decides(change: Change, series: _Series, timed: NDArray[np.intp]) -> bool:
    """Return whether most neighbours of a change of the times have pairs, with one baseline."""
    place = int(np.searchsorted(timed, change.after))
    sides = timed[max(place - NEIGHBOURS, 0) : place], timed[place : place + NEIGHBOURS]
    if any(2 * series.is_paired[side].sum() <= len(side) for side in sides):
        return False
    apart = np.abs(np.searchsorted(timed, series.breaks) - place)
    return not (apart <= MAX_COMMITS_BETWEEN_SERIES).any()


def _is_near(change: Change, others: Iterable[Change], timed: NDArray[np.intp]) -> bool:
    """Return whether one of these changes is the same one."""
    return any(
        change.slower == other.slower and _apart(change, other, timed) <= MAX_COMMITS_BETWEEN_SERIES
        for other in others
    )


def _is_of_the_machine(change: Change, shared: Iterable[Change], timed: NDArray[np.intp]) -> bool:
    """Return whether a case gained a little more or less than most by what all share."""
    if change.ratio.factor > MAX_GAIN_APART:
        return False
    return any(_apart(change, other, timed) <= MAX_COMMITS_BETWEEN_SERIES for other in shared)


def _apart(change: Change, other: Change, timed: NDArray[np.intp]) -> int:
    """Return how many measured commits lie between two changes."""
    places = np.searchsorted(timed, [change.after, other.after])
    return int(np.ptp(places))
