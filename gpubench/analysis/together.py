"""What all cases of a setup tell before one of them is judged: the noise that their runs share,
newest runs that are off, and how cases of a kind scatter.

It is gathered over some cases at a time, so that no verdict depends on how many are in memory.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.between_runs import MIN_SHARE_NEARER, find_shift
from gpubench.analysis.changes import MIN_POINTS, Change, Verdict, verdicts_in
from gpubench.analysis.moderated import Floats
from gpubench.analysis.pooled import POOLED_COMMITS, PooledLevels
from gpubench.analysis.speedup_changes import MAX_GAIN_APART
from gpubench.analysis.steps import MIN_LEVEL, is_another_mix
from gpubench.results import CaseName, Ratio, Times

MIN_CASES = 10
"""Cases of a commit from which it is told what they share: of fewer, some changed ones could pass
for all."""

MIN_TOLERANCE = math.log(1.1)
MAX_TOLERANCE = math.log(MAX_GAIN_APART)
"""How far the factors of cases that change alike may be from the median one: programs gain
differently by another processor."""

NOISE_COMMITS = 15
"""Commits whose median is the level that shared noise is held against. What lasts for half of them
is no noise; so the newest half keeps what it has."""

MAX_TIMES = 2**19
"""Cases times commits that tell shared noise: of more, every second case does, or every fourth. The
median of hundreds is known well enough."""

Part = tuple[Sequence[CaseName], Times]
"""Some cases, and their times in shape (3, cases, snapshots)."""


@dataclass(frozen=True, slots=True)
class SharedChange:
    """Many cases that changed alike at one commit."""

    before: int
    """Index of the last snapshot before most of them."""
    after: int
    ratio: Ratio
    """Old time over new time: the median of the cases, and their range."""
    changes: Mapping[CaseName, Change]
    """Of the cases that changed alike."""
    measured: int
    """Cases that were measured before and after."""
    runs: int = 0
    """Runs in a row that are off, of which too few are there for a level; 0 of what lasts."""

    @property
    def slower(self) -> bool:
        return self.ratio.value < 1


@dataclass(frozen=True, eq=False)
class Together:
    """What the cases of a setup tell together."""

    noise: Floats
    """What the runs share for a few commits, logarithms, shape (snapshots,)."""
    off: Mapping[CaseName, Floats]
    """How far the newest runs are off for a case, logarithms, oldest first."""
    runs: Sequence[SharedChange]
    """Newest runs that are off."""
    levels: Mapping[str, PooledLevels]
    """How cases scatter, by their kind."""

    def verdicts(self, part: Part, least: Sequence[float] | None = None) -> list[Verdict]:
        """Return what the times of some cases say, without the noise that whole runs share;
        ``least`` as for ``verdicts_in``."""
        names, times = part
        judged = times.copy()
        is_time = _are_times(names)
        judged[:, is_time] = without_noise(times[:, is_time], self.noise)
        for case, name in enumerate(names):
            if name in self.off:
                judged[:, case, -len(self.off[name]) :] *= np.exp(-self.off[name])
        found = verdicts_in(judged, least, [self.levels[_kind(name)] for name in names])
        return [
            replace(verdict, changes=_without_mixes(verdict.changes, times[0, case]))
            for case, verdict in enumerate(found)
        ]


def gather(parts: Callable[[], Iterable[Part]]) -> Together:
    """Return what all cases tell; ``parts`` yields some at a time, each time that it is called."""
    noise = _shared_noise(parts())
    names: list[CaseName] = []
    newest = [np.zeros((0, 0))]
    recent: list[tuple[CaseName, Floats, NDArray[np.intp]]] = []
    for of_part, times in parts():
        is_time = _are_times(of_part)
        logarithms = _logarithms(times[0])
        logarithms[is_time] = _logarithms(without_noise(times[:, is_time], noise)[0])
        for name, values in zip(of_part, logarithms, strict=True):
            places = np.flatnonzero(~np.isnan(values))[-POOLED_COMMITS - 1 :]
            recent.append((name, values[places], places))
        names += [name for name in of_part if name.is_time]
        newest.append(logarithms[is_time, -MIN_POINTS - POOLED_COMMITS :])
    snapshots = len(noise)
    taken, runs = _runs_off(np.vstack(newest[1:] or newest), names, snapshots)
    off = {name: of_case for name, of_case in zip(names, taken, strict=True) if of_case.any()}
    kinds: dict[str, list[Floats]] = defaultdict(list)
    for name, values, places in recent:
        if name in off:
            known = places >= snapshots - len(off[name])
            values[known] -= off[name][places[known] - snapshots]
        kinds[_kind(name)].append(values)
    levels = {kind: PooledLevels(of_kind) for kind, of_kind in kinds.items()}
    return Together(noise, off, runs, levels)


def judge_times(
    names: Sequence[CaseName], times: Times, least: Sequence[float] | None = None
) -> list[Verdict]:
    """Return what the times of these cases, shape (3, cases, snapshots), say by themselves."""
    part = names, times
    return gather(lambda: [part]).verdicts(part, least)


def shared_change_of(group: Mapping[CaseName, Change], measured: int) -> SharedChange:
    """Return changes of cases, alike at one commit, as one; so many cases were ``measured``."""
    ordered = sorted(group.values(), key=lambda change: change.ratio.value)
    usual = Counter((change.before, change.after) for change in ordered).most_common(1)[0][0]
    values = [change.ratio.value for change in ordered]
    ratio = Ratio(median(values), values[0], values[-1])
    return SharedChange(*usual, ratio, dict(sorted(group.items())), max(measured, len(group)))


def without_noise(times: Times, noise: Floats) -> Times:
    """Return times, shape (3, cases, snapshots), without the noise of their runs, logarithms. A
    case whose noise does not become less keeps it."""
    if not noise.any():
        return times
    logarithms = _logarithms(times[0])
    is_less = _jumps(logarithms - noise) < _jumps(logarithms)
    without: Times = times * np.where(is_less[:, None], np.exp(-noise), 1.0)
    return without


def _are_times(names: Sequence[CaseName]) -> NDArray[np.bool_]:
    return np.array([name.is_time for name in names], np.bool_)


def _kind(name: CaseName) -> str:
    """Return what cases scatter alike with: times, or one kind of values."""
    return "time" if name.is_time else name.time


def _logarithms(medians: Floats) -> Floats:
    """Return logarithms; NaN where there is no time above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(medians)
    logarithms[~np.isfinite(logarithms)] = np.nan
    return logarithms


def _shared_noise(parts: Iterable[Part]) -> Floats:
    """Return what the runs share, logarithms, shape (snapshots,): the median over the cases of how
    far each is from its median over ``NOISE_COMMITS`` commits."""
    snapshots = count = 0
    step, gaps = 1, [np.zeros((0, 0))]
    for names, times in parts:
        snapshots = times.shape[2]
        if snapshots < 2 * NOISE_COMMITS:
            break
        own = _logarithms(times[0, _are_times(names)])
        chosen = own[-count % step :: step]
        count += len(own)
        gaps.append(chosen - _running_median(chosen))
        while sum(map(len, gaps)) * snapshots > MAX_TIMES and sum(map(len, gaps)) > MIN_CASES:
            step *= 2
            gaps = [gaps[0], np.vstack(gaps[1:])[::2]]
    noise = np.zeros(snapshots)
    if count < MIN_CASES or not any(map(len, gaps)):
        return noise
    every = np.vstack(gaps[1:])
    enough = (~np.isnan(every)).sum(axis=0) >= min(MIN_CASES, len(every))
    noise[enough] = _nanmedian(every[:, enough], axis=0)
    noise[-(NOISE_COMMITS // 2) :] = 0
    return noise


def _running_median(logarithms: Floats) -> Floats:
    """Return the median of ``NOISE_COMMITS`` snapshots around each; where a case was not measured,
    its time before counts."""
    known = np.where(np.isnan(logarithms), 0, np.arange(logarithms.shape[1]))
    filled = np.take_along_axis(logarithms, np.maximum.accumulate(known, axis=1), axis=1)
    half = NOISE_COMMITS // 2
    padded = np.pad(filled, ((0, 0), (half, half)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, NOISE_COMMITS, axis=1)
    ordered = np.partition(windows, half, axis=-1)  # NaN is the largest
    medians: Floats = ordered[..., half]
    return medians


def _jumps(logarithms: Floats) -> Floats:
    """Return the median difference of neighbouring snapshots of each case."""
    return _nanmedian(np.abs(np.diff(logarithms, axis=1)), axis=1)


def _nanmedian(values: Floats, axis: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a case or run without any value
        medians: Floats = np.nanmedian(values, axis=axis)
    return medians


def _runs_off(
    newest: Floats, names: Sequence[CaseName], snapshots: int
) -> tuple[Floats, list[SharedChange]]:
    """Return what the newest runs share, shape (cases, newest snapshots), and these runs.

    A run is off where ``MIN_SHARE_NEARER`` of the cases are nearer to their median difference from
    their levels than to none. This function looks at the runs that ``_shared_noise`` leaves: too
    few follow to tell whether it lasts. A case that did not move with the others keeps its times.

    Args:
        newest: logarithms of the newest times, shape (cases, newest snapshots).
        names: of the cases.
        snapshots: that there are in all.
    """
    newest = newest.copy()
    taken, earlier = np.zeros_like(newest), snapshots - newest.shape[1]
    runs: list[SharedChange] = []
    first = max(snapshots - NOISE_COMMITS // 2, 1) if snapshots >= MIN_POINTS else 1
    for place in range(first, snapshots) if len(names) >= MIN_CASES else ():
        column = place - earlier
        levels = _nanmedian(newest[:, max(column - POOLED_COMMITS, 0) : column], axis=1)
        moved = newest[:, column] - levels
        measured = np.flatnonzero(~np.isnan(moved))
        if len(measured) < MIN_CASES:
            continue
        shift, is_nearer = find_shift(moved[measured])
        if is_nearer.mean() < MIN_SHARE_NEARER:
            continue
        near = measured[is_nearer]
        newest[near, column] -= shift
        taken[near, column] = shift
        if abs(shift) >= MIN_TOLERANCE:
            group = {
                names[case]: _moved(levels[case], moved[case], place) for case in near.tolist()
            }
            _add_run(runs, replace(shared_change_of(group, len(measured)), runs=1))
    for run in runs:
        if run.runs >= MIN_LEVEL:  # a level: that is in the changes of the cases
            taken[:, run.after - earlier : run.after - earlier + run.runs] = 0
    return taken, [run for run in runs if run.runs < MIN_LEVEL]


def _moved(level: float, moved: float, place: int) -> Change:
    old, new = math.exp(level), math.exp(level + moved)
    return Change("check", place - 1, place, old, new, Ratio(old / new, old / new, old / new), 1)


def _add_run(runs: list[SharedChange], run: SharedChange) -> None:
    """Add a run that is off; one that follows another and is as far off is told with it."""
    last = runs[-1] if runs else None
    if last and last.after + last.runs == run.after:
        apart = abs(math.log(last.ratio.value / run.ratio.value))
        if apart < abs(math.log(run.ratio.value)) / 2:
            runs[-1] = replace(last, runs=last.runs + 1)
            return
    runs.append(run)


def _without_mixes(changes: Sequence[Change], times: Floats) -> tuple[Change, ...]:
    """Return the changes that the times show as they were measured, shape (snapshots,): what runs
    share is taken out of their noise, and with it the modes of several processors."""
    kept = list(changes)
    for change in changes:
        place = kept.index(change)
        start = kept[place - 1].after if place else 0
        stop = kept[place + 1].after if place + 1 < len(kept) else len(times)
        sides = times[start : change.after], times[change.after : stop]
        if is_another_mix(*(np.log(side[~np.isnan(side)]) for side in sides)):
            kept.remove(change)
    return tuple(kept)
