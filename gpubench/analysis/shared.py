"""What all cases of a run have in common: taken out of their noise, and told once where it lasts.

Another machine, another compiler or code that all share moves many cases alike at one commit. Said
of each case it hides what a commit did to one of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpubench.analysis.changes import THRESHOLD, Change, Verdict
from gpubench.analysis.pooled import PooledLevels
from gpubench.analysis.speedup_changes import decide_by_speedups, newest_ratios
from gpubench.analysis.status_changes import StatusChange, find_status_changes
from gpubench.analysis.steps import FINEST
from gpubench.analysis.together import (
    MAX_TOLERANCE,
    MIN_CASES,
    MIN_TOLERANCE,
    SharedChange,
    Together,
    gather,
    shared_change_of,
)
from gpubench.results import CaseHistories, CaseName, History

MIN_SHARE = 0.4
"""Share of the cases that have to move alike at a commit."""

MAX_COMMITS_APART = 2
"""Commits that the steps of one shared change may be apart."""

Spans = Mapping[CaseName, tuple[int, int]]
"""First and last snapshot with a time of each case."""


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
    judged: frozenset[CaseName] = frozenset()
    """Cases with a verdict."""
    not_judged: frozenset[CaseName] = frozenset()
    """Cases with values at too few commits for a verdict."""
    statuses: Sequence[StatusChange] = ()
    """Where cases became wrong, failed, were skipped or fixed."""


def judge_history(
    parts: Callable[[], Iterable[CaseHistories]],
    outline: History | None = None,
    threshold: Callable[[CaseName], float | None] = lambda _: None,
    is_rate: Callable[[CaseName], bool] = lambda _: False,
) -> JudgedHistory:
    """Judge all cases of a setup.

    First all cases tell what their runs share and how they scatter. Then their times say what most
    of them share. At last the ratio to the baseline decides of each case that was measured in turn
    with it (``gpubench.analysis.speedup_changes``).

    Args:
        parts: some cases at a time, each time that it is called.
        outline: of all of them, to know baselines that stand in another part.
        threshold: factor from which a change of a case counts, where the project says one.
        is_rate: whether more is better, asked of what is no time.
    """
    verdicts: dict[CaseName, Verdict] = {}
    spans: dict[CaseName, tuple[int, int]] = {}
    statuses: list[StatusChange] = []
    measured: set[CaseName] = set()
    together = gather(lambda: ((part.names, part.judged) for part in parts()))
    for part in parts():
        verdicts |= verdicts_of(part, together, least_factors(part.names, threshold))
        spans |= spans_of(part)
        statuses += find_status_changes(part)
        has_value = np.isfinite(part.times[0]).any(axis=1).tolist()
        measured |= {name for name, has in zip(part.names, has_value, strict=True) if has}
    changes = {name: verdict.changes for name, verdict in verdicts.items()}
    of_times = {name: of_case for name, of_case in changes.items() if name.is_time}
    shared = tuple(shared_changes(of_times, spans))
    own = without_shared(changes, shared)
    of_all = _changes_by_case(shared)
    usual = _usual_baselines(outline) if outline else {}
    ratios = [one for part in parts() for one in newest_ratios(part, own, of_all, usual)]
    if ratios:
        pooled = PooledLevels(ratios)
        decided: dict[CaseName, Verdict] = {}
        for part in parts():
            least = least_factors(part.names, threshold)
            decided |= decide_by_speedups(part, verdicts, own, of_all, least, usual, pooled)
        verdicts |= decided
        own |= {name: verdict.changes for name, verdict in decided.items()}
        for name in decided:
            of_case = [*own[name], *of_all.get(name, ())]
            changes[name] = tuple(sorted(of_case, key=lambda change: change.after))
    for name in [name for name in changes if changes[name] and not name.is_time and is_rate(name)]:
        changes[name] = own[name] = tuple(change.of_rate for change in changes[name])
    unstable = {name: one.scatter for name, one in verdicts.items() if one.is_unstable}
    kept = {
        name: tuple(change for change in of_case if change.ratio.factor >= (threshold(name) or 0))
        for name, of_case in own.items()
    }
    judged = frozenset(name for name, one in verdicts.items() if one.is_judged)
    not_judged = frozenset(measured - judged)  # those whose every value was disturbed, too
    every = tuple(sorted([*shared, *together.runs], key=lambda one: one.after))
    return JudgedHistory(changes, kept, every, unstable, judged, not_judged, statuses)


def verdicts_of(
    history: CaseHistories, together: Together, least: Sequence[float]
) -> dict[CaseName, Verdict]:
    """Return what the times of some cases say, without the noise that whole runs share."""
    verdicts = together.verdicts((history.names, history.judged), least)
    if history.by_speedup:
        verdicts = [
            replace(one, changes=tuple(replace(each, basis="speedup") for each in one.changes))
            for one in verdicts
        ]
    return dict(zip(history.names, verdicts, strict=True))


def least_factors(
    names: Iterable[CaseName], threshold: Callable[[CaseName], float | None]
) -> list[float]:
    """Return the factor from which changes of each case are sought: that of the project where it is
    smaller than ours. The others are left out once it is known what most cases share."""
    given = (threshold(name) for name in names)
    return [THRESHOLD if one is None else min(max(one, 1 + FINEST), THRESHOLD) for one in given]


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
            shared.append(shared_change_of(group, measured))
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
