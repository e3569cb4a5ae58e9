"""What all cases of a run have in common: taken out of their noise, and told once where it lasts.

Another machine, another compiler or code that all share moves many cases alike at one commit. Said
of each case it hides what a commit did to one of them.
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

from gpubench.analysis.changes import MIN_POINTS, THRESHOLD, Change, Verdict, verdicts_in
from gpubench.analysis.pooled import POOLED_COMMITS
from gpubench.analysis.speedup_changes import (
    MAX_GAIN_APART,
    decide_by_speedups,
    paired_cases,
)
from gpubench.analysis.status_changes import StatusChange, find_status_changes
from gpubench.analysis.steps import FINEST, MIN_LEVEL, is_another_mix
from gpubench.results import CaseHistories, CaseName, History, Ratio, Times

MIN_CASES = 10
"""Cases of a commit from which it is told what they share: of fewer, some changed ones could pass
for all."""

MIN_SHARE = 0.4
"""Share of the cases that have to move alike at a commit."""

MAX_COMMITS_APART = 2
"""Commits that the steps of one shared change may be apart."""

MIN_TOLERANCE = math.log(1.1)
MAX_TOLERANCE = math.log(MAX_GAIN_APART)
"""How far the factors of cases that change alike may be from the median one: programs gain
differently by another processor."""

NOISE_COMMITS = 15
"""Commits whose median is the level that shared noise is held against. What lasts for half of them
is no noise; so the newest half keeps what it has."""

MIN_NEAR = 2 / 3
"""Share of the cases that are nearer to what a run shares than to no change: so many have to be for
a run to be off."""

Spans = Mapping[CaseName, tuple[int, int]]
"""First and last snapshot with a time of each case."""


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


@dataclass(frozen=True, slots=True)
class JudgedHistory:
    """What is said of all cases of a setup."""

    every: Mapping[CaseName, tuple[Change, ...]]
    """All changes of each case, oldest first."""
    changes: Mapping[CaseName, tuple[Change, ...]]
    """Changes that single cases have."""
    shared: tuple[SharedChange, ...]
    """Oldest first."""
    unstable: Mapping[CaseName, float]
    """Scatter of the cases whose noise lets nothing be said, a logarithm."""
    not_judged: frozenset[CaseName] = frozenset()
    """Cases with too few commits for a verdict."""
    statuses: Sequence[StatusChange] = ()
    """Where cases became wrong, failed, were skipped or fixed."""


def judge_history(
    parts: Callable[[], Iterable[CaseHistories]],
    outline: History | None = None,
    threshold: Callable[[CaseName], float | None] = lambda _: None,
    is_rate: Callable[[CaseName], bool] = lambda _: False,
) -> JudgedHistory:
    """Judge all cases of a setup.

    First the times of all cases say what most of them share. Then the ratio to the baseline
    decides of each case that was measured in turn with it (``gpubench.analysis.speedup_changes``).

    Args:
        parts: some cases at a time, each time that it is called.
        outline: of all of them, to know baselines that stand in another part.
        threshold: factor from which a change of a case counts, where the project says one.
        is_rate: whether more is better, asked of what is no time.
    """
    verdicts: dict[CaseName, Verdict] = {}
    runs: list[SharedChange] = []
    spans: dict[CaseName, tuple[int, int]] = {}
    statuses: list[StatusChange] = []
    has_pairs = False
    for part in parts():
        found, off = verdicts_of(part, least_factors(part.names, threshold))
        verdicts |= found
        runs += off
        spans |= spans_of(part)
        statuses += find_status_changes(part)
        has_pairs = has_pairs or paired_cases(part).size > 0
    changes = {name: verdict.changes for name, verdict in verdicts.items()}
    of_times = {name: of_case for name, of_case in changes.items() if name.is_time}
    shared = tuple(shared_changes(of_times, spans))
    own = without_shared(changes, shared)
    if has_pairs:
        of_all = _changes_by_case(shared)
        usual = _usual_baselines(outline) if outline else {}
        decided: dict[CaseName, Verdict] = {}
        for part in parts():
            least = least_factors(part.names, threshold)
            decided |= decide_by_speedups(part, verdicts, own, of_all, least, usual)
        verdicts |= decided
        own |= {name: verdict.changes for name, verdict in decided.items()}
        for name in decided:
            every = [*own[name], *of_all.get(name, ())]
            changes[name] = tuple(sorted(every, key=lambda change: change.after))
    for name in [name for name in changes if changes[name] and not name.is_time and is_rate(name)]:
        changes[name] = own[name] = tuple(change.of_rate for change in changes[name])
    unstable = {name: one.scatter for name, one in verdicts.items() if one.is_unstable}
    kept = {
        name: tuple(change for change in of_case if change.ratio.factor >= (threshold(name) or 0))
        for name, of_case in own.items()
    }
    not_judged = frozenset(name for name, one in verdicts.items() if not one.is_judged)
    together = tuple(sorted([*shared, *_of_all_parts(runs)], key=lambda one: one.after))
    return JudgedHistory(changes, kept, together, unstable, not_judged, statuses)


def least_factors(
    names: Iterable[CaseName], threshold: Callable[[CaseName], float | None]
) -> list[float]:
    """Return the factor from which changes of each case are sought: that of the project where it is
    smaller than ours. The others are left out once it is known what most cases share."""
    given = (threshold(name) for name in names)
    return [THRESHOLD if one is None else min(max(one, 1 + FINEST), THRESHOLD) for one in given]


def verdicts_of(
    history: CaseHistories, least: Sequence[float] | None = None
) -> tuple[dict[CaseName, Verdict], list[SharedChange]]:
    """Return what the times of every case say, without the noise that whole runs share, and the
    newest runs that are off."""
    verdicts, runs = judge_times(history.names, history.judged, least)
    if history.by_speedup:
        verdicts = [
            replace(one, changes=tuple(replace(each, basis="speedup") for each in one.changes))
            for one in verdicts
        ]
    return dict(zip(history.names, verdicts, strict=True)), runs


def judge_times(
    names: Sequence[CaseName], times: Times, least: Sequence[float] | None = None
) -> tuple[list[Verdict], list[SharedChange]]:
    """Return what the times of these cases say, shape (3, cases, snapshots), as ``verdicts_of``."""
    is_time = [name.is_time for name in names]
    judged = times.copy()
    judged[:, is_time], runs = without_runs_off(
        without_shared_noise(judged[:, is_time]), [name for name in names if name.is_time]
    )
    kinds = ["time" if name.is_time else name.time for name in names]
    verdicts = [
        replace(verdict, changes=_without_mixes(verdict.changes, times[0, case]))
        for case, verdict in enumerate(verdicts_in(judged, least, kinds))
    ]
    return verdicts, runs


def _without_mixes(changes: Sequence[Change], times: NDArray[np.float64]) -> tuple[Change, ...]:
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


def without_runs_off(times: Times, names: Sequence[CaseName]) -> tuple[Times, list[SharedChange]]:
    """Return times, shape (3, cases, snapshots), without what the newest runs share, and these.

    A run is off where ``MIN_NEAR`` of the cases are nearer to their median difference from their
    levels than to none. Looked at are the runs that ``without_shared_noise`` leaves: too few follow
    to tell whether it lasts. Of a case that did not move with the others nothing is taken out.
    """
    known = np.where(times[0] > 0, times[0], np.nan)
    logarithms = np.log(known)
    snapshots = times.shape[2]
    first = max(snapshots - NOISE_COMMITS // 2, 1) if snapshots >= MIN_POINTS else 1
    taken = np.zeros_like(logarithms)
    runs: list[SharedChange] = []
    for place in range(first, snapshots) if len(names) >= MIN_CASES else ():
        before = logarithms[:, max(place - POOLED_COMMITS, 0) : place]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a case without any time there
            levels = np.nanmedian(before, axis=1)
        moved = logarithms[:, place] - levels
        measured = np.flatnonzero(~np.isnan(moved))
        if len(measured) < MIN_CASES:
            continue
        shift = float(np.median(moved[measured]))
        near = measured[np.abs(moved[measured] - shift) < np.abs(moved[measured])]
        if len(near) < MIN_NEAR * len(measured):
            continue
        logarithms[near, place] -= shift
        taken[near, place] = shift
        if abs(shift) >= MIN_TOLERANCE:
            group = {
                names[case]: _moved(levels[case], moved[case], place) for case in near.tolist()
            }
            _add_run(runs, replace(_shared_change(group, len(measured)), runs=1))
    for run in runs:
        if run.runs >= MIN_LEVEL:  # a level: that is in the changes of the cases
            taken[:, run.after : run.after + run.runs] = 0
    without: Times = times * np.exp(-taken)
    return without, [run for run in runs if run.runs < MIN_LEVEL]


def _of_all_parts(runs: Sequence[SharedChange]) -> list[SharedChange]:
    """Return runs that are off once each, which parts of the cases found by themselves."""
    found: dict[tuple[int, bool], list[SharedChange]] = defaultdict(list)
    for run in runs:
        found[run.after, run.slower].append(run)
    return [
        replace(
            _shared_change(
                {name: change for run in alike for name, change in run.changes.items()},
                sum(run.measured for run in alike),
            ),
            runs=max(run.runs for run in alike),
        )
        for alike in found.values()
    ]


def _moved(level: float, moved: float, place: int) -> Change:
    old, new = math.exp(level), math.exp(level + moved)
    return Change("check", place - 1, place, old, new, Ratio(old / new, old / new, old / new), 1)


def _add_run(runs: list[SharedChange], run: SharedChange) -> None:
    """Add a run that is off; a run that follows and is as far off joins the first."""
    last = runs[-1] if runs else None
    if last and last.after + last.runs == run.after:
        apart = abs(math.log(last.ratio.value / run.ratio.value))
        if apart < abs(math.log(run.ratio.value)) / 2:
            runs[-1] = replace(last, runs=last.runs + 1)
            return
    runs.append(run)


def _changes_by_case(shared: Iterable[SharedChange]) -> dict[CaseName, list[Change]]:
    by_case: dict[CaseName, list[Change]] = defaultdict(list)
    for one in shared:
        for name, change in one.changes.items():
            by_case[name].append(change)
    return by_case


def _usual_baselines(outline: History) -> dict[CaseName, CaseName]:
    """Return what each case was measured against at its newest commit."""
    numbers = outline.newest.baselines.tolist()
    pairs = zip(outline.names, numbers, strict=True)
    return {name: outline.names[number] for name, number in pairs if number >= 0}


def spans_of(history: CaseHistories) -> dict[CaseName, tuple[int, int]]:
    """Return the first and the last snapshot with a time, of each case that has one.

    Memory and tracked numbers have none: another machine does not move them alike.
    """
    is_timed = ~np.isnan(history.judged[0])
    last = is_timed.shape[1] - 1 - is_timed[:, ::-1].argmax(axis=1)
    places = zip(is_timed.argmax(axis=1).tolist(), last.tolist(), strict=True)
    timed = zip(history.names, places, is_timed.any(axis=1), strict=True)
    return {name: span for name, span, has_time in timed if has_time and name.is_time}


def without_shared_noise(times: Times) -> Times:
    """Return times, shape (3, cases, snapshots), without what each run shares for a few commits.

    That is the median over the cases of how far each is from its median over ``NOISE_COMMITS``
    commits. A case whose noise does not become less keeps it.
    """
    if times.shape[1] < MIN_CASES or times.shape[2] < 2 * NOISE_COMMITS:
        return times
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(times[0])
    logarithms[~np.isfinite(logarithms)] = np.nan
    shared = _shared_noise(logarithms)
    if not shared.any():
        return times
    cleaned = logarithms - shared
    is_less = _jumps(cleaned) < _jumps(logarithms)
    factors = np.where(is_less[:, None], np.exp(-shared), 1.0)
    without: Times = times * factors
    return without


def shared_changes(
    changes: Mapping[CaseName, Sequence[Change]], spans: Spans
) -> list[SharedChange]:
    """Return what ``MIN_SHARE`` of the cases or more share, oldest first.

    Alike are changes in one direction, ``MAX_COMMITS_APART`` commits apart at most, whose factors
    are near the median one: by half of its logarithm, at least 1.1x and at most 1.25x.
    """
    at: dict[tuple[bool, int], list[tuple[CaseName, Change]]] = defaultdict(list)
    for name, of_case in changes.items():
        for change in of_case:
            for place in range(
                change.after - MAX_COMMITS_APART, change.after + MAX_COMMITS_APART + 1
            ):
                at[change.slower, place].append((name, change))
    ends = np.array([*spans.values()], np.intp).reshape(-1, 2)
    taken: set[tuple[CaseName, int]] = set()
    shared = []
    for key in sorted(at, key=lambda key: -len(at[key])):  # the fullest commits first
        near = [(name, change) for name, change in at[key] if (name, change.after) not in taken]
        group = _alike(near)
        measured = int(((ends[:, 0] < key[1]) & (key[1] <= ends[:, 1])).sum())
        if measured >= MIN_CASES and len(group) >= MIN_SHARE * measured:
            taken |= {(name, change.after) for name, change in group.items()}
            shared.append(_shared_change(group, measured))
    return sorted(shared, key=lambda one: one.after)


def without_shared(
    changes: Mapping[CaseName, Sequence[Change]], shared: Iterable[SharedChange]
) -> dict[CaseName, tuple[Change, ...]]:
    """Return the changes that cases have of their own."""
    taken = {(name, change.after) for one in shared for name, change in one.changes.items()}
    return {
        name: tuple(change for change in of_case if (name, change.after) not in taken)
        for name, of_case in changes.items()
    }


def _alike(near: Sequence[tuple[CaseName, Change]]) -> dict[CaseName, Change]:
    """Return the changes near the median one, one of each case."""
    if not near:
        return {}
    sizes = [abs(math.log(change.ratio.value)) for _, change in near]
    middle = float(np.median(sizes))
    tolerance = min(max(middle / 2, MIN_TOLERANCE), MAX_TOLERANCE)
    return {
        name: change
        for (name, change), size in zip(near, sizes, strict=True)
        if abs(size - middle) <= tolerance
    }


def _shared_change(group: Mapping[CaseName, Change], measured: int) -> SharedChange:
    ordered = sorted(group.values(), key=lambda change: change.ratio.value)
    usual = Counter((change.before, change.after) for change in ordered).most_common(1)[0][0]
    values = [change.ratio.value for change in ordered]
    ratio = Ratio(median(values), values[0], values[-1])
    return SharedChange(*usual, ratio, dict(sorted(group.items())), max(measured, len(group)))


def _shared_noise(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the cases of each snapshot share beyond their levels, shape (snapshots,)."""
    counts = (~np.isnan(logarithms)).sum(axis=0)
    levels = _running_median(logarithms)
    shared = np.zeros(len(counts))
    enough = counts >= MIN_CASES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a case without any time there
        shared[enough] = np.nanmedian((logarithms - levels)[:, enough], axis=0)
    shared[-(NOISE_COMMITS // 2) :] = 0
    return np.nan_to_num(shared)


def _running_median(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of ``NOISE_COMMITS`` snapshots around each; where a case was not measured,
    its time before counts."""
    known = np.where(np.isnan(logarithms), 0, np.arange(logarithms.shape[1]))
    filled = np.take_along_axis(logarithms, np.maximum.accumulate(known, axis=1), axis=1)
    half = NOISE_COMMITS // 2
    padded = np.pad(filled, ((0, 0), (half, half)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, NOISE_COMMITS, axis=1)
    ordered = np.partition(windows, half, axis=-1)  # NaN is the largest
    medians: NDArray[np.float64] = ordered[..., half]
    return medians


def _jumps(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median difference of neighbouring snapshots of each case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a case that was measured once
        jumps: NDArray[np.float64] = np.nanmedian(np.abs(np.diff(logarithms, axis=1)), axis=1)
    return jumps
