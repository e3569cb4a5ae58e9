"""View model of the changes page: every change of a time on one setup, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.causes import Cause, ExplainedChange
from gpubench.analysis.changes import FEWEST_POINTS, LASTING, LASTING_NEWEST, THRESHOLD
from gpubench.report import text
from gpubench.report.compare import pair_address
from gpubench.report.comparison_view import FactRow, fact_row
from gpubench.report.findings import (
    ONE_COMMIT,
    ChangeView,
    basis,
    case_words,
    change_view,
    disturbed_states,
    history_length,
    processor_states,
)
from gpubench.report.lists import listed, open_at_first
from gpubench.report.site import (
    CommitLabel,
    Link,
    Navigation,
    Site,
    State,
    commit_label,
    kernel_label,
)
from gpubench.report.work import CountChangeRow, CountGroup, count_change_rows, count_groups
from gpubench.results import ABSENT, CaseHistories, History, Ratio

MOST_ROWS = 300
"""Rows on one page, the newest; a longer list is cut and says so."""

_NAMED = 12
"""Cases named in one row beside the largest."""

CAUSES: dict[Cause, str] = {
    "kernel": "the kernel",
    "baseline": "the baseline",
    "environment": "the environment",
    "shared": "the machine, or code that both share",
    "either": "the kernel or its baseline",
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

NO_RECORD = State(
    "No record of the environment",
    "These results were stored without gpubench's record, so that a change of versions or of the "
    "driver can only be told as far as asv's own files do.",
    "asv run",
)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One implementation's changes at one commit that have the same direction and cause."""

    change: ChangeView
    """The largest."""
    kernel: Link
    ratio: Ratio
    """Old time over new time, with its interval."""
    kind: str
    cause: Cause
    why: str
    facts: tuple[FactRow, ...]
    recovered: CommitLabel | None
    speedups: tuple[Ratio | None, Ratio | None]
    comparison: str
    others: tuple[str, ...]
    other_count: int

    @property
    def listed(self) -> dict[str, Any]:
        direction = "slower" if self.change.slower else "faster"
        return listed(
            suite=[self.change.name.suite],
            implementation=[self.change.name.implementation],
            why=[CAUSES[self.cause]],
            only=[direction, "recovered" if self.recovered else "lasting"],
            change=self.change.factor,
            speedup=self.speedups[1],
        )


@dataclass(frozen=True, slots=True)
class CommitChanges:
    commit: CommitLabel
    counts: str
    is_open: bool
    """At first; the list of a long history folds."""
    rows: tuple[ChangeRow, ...]
    counted: tuple[CountChangeRow, ...]
    """Changes of counted work, which are exact."""


@dataclass(frozen=True, slots=True)
class ChangesPage:
    title: str
    navigation: Navigation
    verdict: str
    rule: str
    note: str | None
    causes: dict[str, int]
    """How many rows have which cause, in words."""
    commits: tuple[CommitChanges, ...]
    more: int
    counted: str
    """How often counted work changed, a sentence; empty where nothing was counted twice."""
    states: tuple[State, ...]


def build(history: History, site: Site) -> ChangesPage:
    changes = site.explained(history)
    groups: dict[tuple[object, ...], list[ExplainedChange]] = defaultdict(list)
    for item in changes:
        name, change = item.name, item.change
        what = (name.suite, name.kernel, name.implementation, name.time, change.slower, change.kind)
        where = (change.before, change.after, item.recovered, item.cause, item.facts)
        groups[what + where].append(item)
    listed = list(groups.values())[:MOST_ROWS]
    cases = site.of_cases(history, [largest.name for largest, *_ in listed])
    shown: dict[CommitLabel, list[ChangeRow]] = defaultdict(list)
    for group in listed:
        row = _row(group, cases, site)
        shown[row.change.after].append(row)
    counted: dict[CommitLabel, list[CountChangeRow]] = defaultdict(list)
    count_changes = count_groups(history, site)
    for count_row in count_change_rows(count_changes[:MOST_ROWS], history, site):
        counted[count_row.after].append(count_row)
    newest_first = dict.fromkeys(reversed(site.labels(history)))
    order = [label for label in newest_first if label in shown or label in counted]
    are_open = open_at_first(len(shown[label]) + len(counted[label]) for label in order)
    causes = Counter(group[0].cause for group in groups.values())
    states = [*processor_states(history), *disturbed_states(site.rows_now(history))]
    states += [ONE_COMMIT] if len(history.commits) == 1 else []
    if not any(snapshot.facts for snapshot in history.snapshots):
        states.append(NO_RECORD)
    return ChangesPage(
        title="Changes",
        navigation=site.navigation(history.setup, page="changes"),
        verdict=_verdict(changes, history, bool(count_changes)),
        rule=RULE,
        note=history_length(len(history.commits)),
        causes={CAUSES[cause]: causes[cause] for cause in CAUSES if causes[cause]},
        commits=tuple(
            CommitChanges(
                commit,
                _counts_of_commit(shown[commit], counted[commit]),
                is_open,
                tuple(shown[commit]),
                tuple(counted[commit]),
            )
            for commit, is_open in zip(order, are_open, strict=True)
        ),
        more=max(len(groups) - MOST_ROWS, 0) + max(len(count_changes) - MOST_ROWS, 0),
        counted=_counted_words(count_changes),
        states=tuple(states),
    )


def _counts(are_slower: Sequence[bool], note: str = "") -> str:
    """``3 slower and 1 faster``, with a note on the slower."""
    slower = sum(are_slower)
    counted = ((slower, f"slower{note}"), (len(are_slower) - slower, "faster"))
    return text.join(f"{count:,} {words}" for count, words in counted if count)


def _counts_of_commit(rows: Sequence[ChangeRow], counted: Sequence[CountChangeRow]) -> str:
    """``3 slower and 1 faster; 2 with more work``."""
    times = _counts([row.change.slower for row in rows])
    return "; ".join(filter(None, (times, _more_and_less(counted))))


def _more_and_less(counted: Sequence[CountChangeRow | CountGroup]) -> str:
    more = sum(row.grew for row in counted)
    pairs = ((more, "with more work"), (len(counted) - more, "with less work"))
    return text.join(f"{number:,} {words}" for number, words in pairs if number)


def _counted_words(counted: Sequence[CountGroup]) -> str:
    if not counted:
        return ""
    changes = text.plural(len(counted), "change")
    return (
        f"Counted work has {changes}: {_more_and_less(counted)}. Counts are exact, so that any "
        "difference between two neighbouring commits is listed, as counted."
    )


def _row(group: Sequence[ExplainedChange], history: CaseHistories, site: Site) -> ChangeRow:
    largest = group[0]
    change, name, setup = largest.change, largest.name, history.setup
    key = (name.suite, name.kernel)
    pair = pair_address(history.snapshots[change.before], history.snapshots[change.after])
    is_newest = (history.statuses[history.rows_of[name], change.after + 1 :] == ABSENT).all()
    difference = "at the newest commit" if is_newest else "between neighbours"
    kind = "step" if change.kind == "step" else f"difference {difference}"
    view = change_view(history, name, change)
    return ChangeRow(
        change=view,
        kernel=Link(kernel_label(key), site.address(setup, key)),
        ratio=change.ratio,
        kind="; ".join(filter(None, (kind, basis(view.points)))),
        cause=largest.cause,
        why=_why(largest),
        facts=tuple(map(fact_row, largest.facts or ())),
        recovered=commit_label(largest.recovered) if largest.recovered else None,
        speedups=largest.speedups,
        comparison=f"{site.page_address('compare', setup)}#{pair}",
        others=tuple(case_words(item.name) for item in group[1 : _NAMED + 1]),
        other_count=len(group) - 1,
    )


def _why(item: ExplainedChange) -> str:
    direction, moved = ("slower", "rose") if item.change.slower else ("faster", "fell")
    if item.cause == "environment":
        return (
            f"The environment changed with it. It became {direction}; whether the code did too "
            "needs a run of one of the two commits in the other's environment."
        )
    if item.cause == "either":
        return (
            f"The speedup {'fell' if item.change.slower else 'rose'}. "
            "Times of different processors are not compared, so that it is the kernel or its "
            "baseline that changed."
        )
    if item.cause == "baseline":
        names = text.join(dict.fromkeys(name.implementation for name in item.dependents))
        with_it = f": the speedups of {names} {moved} with it" if names else ""
        return f"The baseline became {direction}{with_it}."
    recorded = "what is recorded of the environment did not change"
    if item.facts is None:
        recorded = "no record tells of the environment"
    if item.cause == "shared":
        both = "It and its baseline"
        if item.is_baseline:
            both = "The baseline and what is compared with it"
        return (
            f"{both} became {direction} alike, and {recorded}: the "
            "machine, or code that they share. The speedup stayed."
        )
    beside = "its baseline did not, and " if item.baseline else ""
    if item.baseline_change:
        beside = f"its baseline became {text.factor(item.baseline_change.ratio)}, and "
    return f"The kernel became {direction}; {beside}{recorded}."


def _verdict(changes: Sequence[ExplainedChange], history: History, is_counted: bool) -> str:
    cases = text.plural(len(history.names), "case")
    where = f"in {cases} over {text.plural(len(history.commits), 'commit')}"
    if not changes:
        return f"No change {'of a time ' if is_counted else ''}was found {where}."
    undone = sum(item.change.slower and item.recovered is not None for item in changes)
    note = f" ({undone:,} recovered since)" if undone else ""
    counts = _counts([item.change.slower for item in changes], note)
    return f"{text.plural(len(changes), 'change')} {where}: {counts}."
