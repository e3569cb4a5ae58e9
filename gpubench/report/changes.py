"""View model of the changes page: every change of a time on one setup, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.analysis.causes import Cause, Explained, explained_changes
from gpubench.analysis.changes import FEWEST_POINTS, LASTING, LASTING_NEWEST, THRESHOLD
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.speedup import Speedup
from gpubench.report import text
from gpubench.report.compare_data import pair_address
from gpubench.report.comparison_view import FactRow, fact_row
from gpubench.report.findings import ChangeView, case_words, change_view, history_length
from gpubench.report.site import (
    CommitLabel,
    Link,
    Navigation,
    Site,
    State,
    commit_label,
    kernel_label,
)

MOST_ROWS = 300
"""Rows on one page, the newest; a longer list is cut and says so."""

_NAMED = 12
"""Cases named in one row beside the largest."""

CAUSES: dict[Cause, str] = {
    "kernel": "the kernel",
    "baseline": "the baseline",
    "environment": "the environment",
    "shared": "the machine, or code that both share",
}

RULE = (
    f"Steps are found by asv's detector in the times of each case that has {FEWEST_POINTS} or "
    f"more. One is listed where the medians before and after are {(THRESHOLD - 1) * 100:.0f} % or "
    f"more apart, each level holds for {LASTING} commits or more (the newest for "
    f"{LASTING_NEWEST}), and the 99 % interval of their ratio, corrected for the choice of the "
    "place, excludes "
    f"1{text.TIMES}. With fewer times, and at the newest commit, neighbours are held against each "
    "other by their intervals; that is called a difference, and is no step."
)
"""What is claimed, and on which grounds."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One implementation's changes at one commit that have the same direction and cause."""

    change: ChangeView
    """The largest."""
    kernel: Link
    ratio: Speedup
    """Old time over new time, with its interval."""
    kind: str
    cause: Cause
    why: str
    """One sentence."""
    facts: tuple[FactRow, ...]
    recovered: CommitLabel | None
    speedups: tuple[Speedup | None, Speedup | None]
    """Before and after."""
    comparison: str
    """Address of the comparison of the two commits."""
    others: tuple[str, ...]
    """Some of the other cases."""
    other_count: int


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What changed at one commit."""

    commit: CommitLabel
    rows: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Every change on one setup, the newest first."""

    title: str
    navigation: Navigation
    verdict: str
    rule: str
    note: str | None
    causes: dict[str, int]
    """How many rows have which cause, in words."""
    commits: tuple[CommitChanges, ...]
    more: int
    """Rows left out."""
    states: tuple[State, ...]


def build(history: SetupHistory, site: Site) -> ChangesPage:
    """The changes page of one setup."""
    groups = _grouped(explained_changes(history))
    rows = [_row(group, history, site) for group in groups[:MOST_ROWS]]
    return ChangesPage(
        title="Changes",
        navigation=site.navigation(history.setup, page="changes"),
        verdict=_verdict(groups, history),
        rule=RULE,
        note=history_length(len(history.commits)),
        causes=_causes(groups),
        commits=tuple(_by_commit(rows)),
        more=len(groups) - len(rows),
        states=tuple(_states(history)),
    )


def sources(history: SetupHistory, site: Site) -> bytes:
    """Changes with anything that the page is made from."""
    return history.digest + repr(site.navigation(history.setup, page="changes")).encode()


def _grouped(changes: Iterable[Explained]) -> list[tuple[Explained, ...]]:
    """Changes of one implementation at one place, in one direction and for one cause, together."""
    groups: dict[tuple[object, ...], list[Explained]] = defaultdict(list)
    for item in changes:
        name = item.name
        what = (name.suite, name.kernel, name.implementation, name.time, item.change.slower)
        where = (item.before.hash, item.after.hash, item.recovered, item.change.kind)
        groups[(*what, *where, item.cause, item.facts)].append(item)
    return [tuple(group) for group in groups.values()]


def _row(group: Sequence[Explained], history: SetupHistory, site: Site) -> ChangeRow:
    first = group[0]
    setup, key = history.setup, (first.name.suite, first.name.kernel)
    pair = pair_address((setup, first.before.hash), (setup, first.after.hash))
    return ChangeRow(
        change=change_view(first.name, first.points, first.change),
        kernel=Link(kernel_label(key), site.address(setup, key)),
        ratio=first.change.ratio,
        kind=_kind(first),
        cause=first.cause,
        why=_why(first),
        facts=tuple(map(fact_row, first.facts or ())),
        recovered=commit_label(first.recovered) if first.recovered else None,
        speedups=first.speedups,
        comparison=f"{site.page_address('compare', setup)}#{pair}",
        others=tuple(case_words(item.name) for item in group[1 : _NAMED + 1]),
        other_count=len(group) - 1,
    )


def _kind(item: Explained) -> str:
    if item.change.kind == "step":
        return "step"
    newest = item.change.after == len(item.points) - 1
    return "difference at the newest commit" if newest else "difference between neighbours"


def _why(item: Explained) -> str:
    direction = "slower" if item.change.slower else "faster"
    if item.cause == "environment":
        return (
            f"The environment changed with it. It became {direction}; whether the code did too "
            "needs a run of one of the two commits in the other's environment."
        )
    recorded = (
        "no record tells of the environment"
        if item.facts is None
        else ("what is recorded of the environment did not change")
    )
    if item.cause == "shared":
        return (
            f"{_both(item)} became {direction} alike, and {recorded}: the machine, or code that "
            "they share. The speedup stayed."
        )
    if item.cause == "kernel":
        return f"The kernel became {direction}; {_beside(item)}{recorded}."
    moved = "rose" if item.change.slower else "fell"
    if not item.dependents:
        return f"The baseline became {direction}."
    names = text.join(dict.fromkeys(name.implementation for name in item.dependents))
    return f"The baseline became {direction}: the speedups of {names} {moved} with it."


def _both(item: Explained) -> str:
    return (
        "The baseline and what is compared with it" if item.is_baseline else "It and its baseline"
    )


def _beside(item: Explained) -> str:
    """What the baseline did at the same place; empty where there is none."""
    if item.baseline_change:
        return f"its baseline became {text.factor(item.baseline_change.ratio)}, and "
    has_baseline = item.points[item.change.after].baseline is not None
    return "its baseline did not, and " if has_baseline else ""


def _causes(groups: Iterable[Sequence[Explained]]) -> dict[str, int]:
    counts = Counter(group[0].cause for group in groups)
    return {CAUSES[cause]: counts[cause] for cause in CAUSES if counts[cause]}


def _by_commit(rows: Iterable[ChangeRow]) -> Iterable[CommitChanges]:
    commits: dict[CommitLabel, list[ChangeRow]] = defaultdict(list)
    for row in rows:
        commits[row.change.after].append(row)
    return (CommitChanges(commit, tuple(found)) for commit, found in commits.items())


def _verdict(groups: Sequence[Sequence[Explained]], history: SetupHistory) -> str:
    cases = text.plural(len(history.cases), "case")
    where = f"in {cases} over {text.plural(len(history.commits), 'commit')}"
    changes = [item for group in groups for item in group]
    if not changes:
        return f"No change was found {where}."
    slower = sum(item.change.slower for item in changes)
    undone = sum(item.change.slower and item.recovered is not None for item in changes)
    words = [f"{slower:,} slower" + f" ({undone:,} recovered since)" * bool(undone)] * bool(slower)
    words += [f"{len(changes) - slower:,} faster"] * (len(changes) > slower)
    return f"{text.plural(len(changes), 'change')} {where}: {text.join(words)}."


def _states(history: SetupHistory) -> Iterable[State]:
    if len(history.commits) == 1:
        yield State(
            "One commit so far",
            "Changes over commits show from the second on.",
            "asv run HEAD~10..HEAD --skip-existing",
        )
    if not any(snapshot.facts for snapshot in history.snapshots):
        yield State(
            "No record of the environment",
            "These results were stored without gpubench's record, so that a change of versions or "
            "of the driver can only be told as far as asv's own files do.",
            "asv run",
        )
