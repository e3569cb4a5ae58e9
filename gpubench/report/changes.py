"""View model of the changes page: every change of a time on one setup, and why."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.causes import Cause, ExplainedChange
from gpubench.analysis.changes import MIN_POINTS, THRESHOLD
from gpubench.analysis.direction import direction_word
from gpubench.analysis.shared import MIN_SHARE
from gpubench.analysis.status_changes import StatusChange
from gpubench.analysis.steps import MIN_LEVEL, MIN_NEWEST_LEVEL
from gpubench.report import text
from gpubench.report.compare import pair_address
from gpubench.report.comparison_view import FactRow, fact_row
from gpubench.report.findings import (
    ONE_COMMIT,
    TO_BE_CHECKED,
    ChangeView,
    basis,
    case_words,
    change_view,
    decided_by,
    disturbed_states,
    not_judged_words,
    processor_states,
)
from gpubench.report.lists import listed, open_at_first
from gpubench.report.navigation import (
    CommitLabel,
    Link,
    Navigation,
    State,
    commit_label,
    kernel_label,
)
from gpubench.report.page import Page
from gpubench.report.site import Site
from gpubench.report.status_rows import (
    SharedRow,
    StatusRow,
    cause_words,
    group_statuses,
    listed_name,
    make_shared_row,
    make_status_row,
)
from gpubench.report.work_changes import CountChangeRow, CountGroup, count_change_rows, count_groups
from gpubench.results import ALONE, CaseHistories, History, Ratio

DRAWN_ROWS = 300
"""Rows with a drawing of their history, the newest; older ones have it on the page of the kernel.
So a row takes 1 KB in place of 2."""

MAX_ROWS_TOGETHER = 300
"""Rows whose histories are in memory at once."""


DIRECTIONS = ("slower", "faster", "larger", "smaller", "higher", "lower")


CHANGES_RULE = (
    f"Steps are sought in the series of each case, from {MIN_POINTS} times on by ranks. Where it "
    "was measured in turn with its baseline, the series of the speedup decides. Elsewhere, and "
    "where the baseline itself changed, times alone do. Each row says which. asv's fit "
    "proposes them, and ranks decide: the times after a commit have to lie beyond those before it "
    "by more than chance allows, whatever the noise looks like. A step is listed where the medians "
    f"before and after are {(THRESHOLD - 1) * 100:.0f} % apart or more, or as far as asv.conf.json "
    f"says. Each of its levels holds for {MIN_LEVEL} commits or more (the newest for "
    f"{MIN_NEWEST_LEVEL}). The interval of the ratio "
    "has 99 %, corrected for the choice of the place. The newest commits, and all of a shorter "
    "series, are held against their level by its scatter and that of other cases: "
    "two neighbours that agree are a step, and the newest alone is to be checked. "
    f"What {MIN_SHARE * 100:.0f} % of the cases share is one row, and none of theirs. So is a "
    "whole run that is off. A case is unstable where its noise could hide a doubling. Memory and "
    "tracked numbers are judged by the same rules, where all of their values are above 0."
)
"""What is claimed, and on which grounds."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One implementation's changes at one commit that have the same direction and cause."""

    change: ChangeView
    """The largest."""
    kernel: Link
    ratio: Ratio
    """Old time over new time, with its interval."""
    kind: str
    is_check: bool
    """Whether one commit alone showed it."""
    basis: str
    """Which series decided, in words; empty of what is no time."""
    cause: Cause
    why: str
    facts: tuple[FactRow, ...]
    recovered: CommitLabel | None
    speedups: tuple[Ratio | None, Ratio | None]
    comparison: str
    others: tuple[str, ...]
    """Cases that changed alike."""
    acknowledged: str = ""
    """Who knows of it, and why it is accepted; empty for a new one."""

    @property
    def listed(self) -> dict[str, Any]:
        return listed(
            suite=[self.change.name.suite],
            commit=[self.change.after.short],
            why=[cause_words(self.cause, self.change.name)],
            **listed_name(self.change.name, self.kernel),
            what=[self.change.direction],
            state=[
                "to be checked" if self.is_check else "recovered" if self.recovered else "lasting",
                "acknowledged" if self.acknowledged else "",
            ],
            basis=[self.basis],
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
    """Changes that nobody has accepted come first."""
    counted: tuple[CountChangeRow, ...]
    """Changes of counted work, which are exact."""
    shared: tuple[SharedRow, ...] = ()
    statuses: tuple[StatusRow, ...] = ()


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
    counted: str
    """How often counted work changed, a sentence; empty where nothing was counted twice."""
    states: tuple[State, ...]
    has_speedups: bool = True
    """Whether any change has a speedup before and after it."""
    unstable: tuple[tuple[str, str], ...] = ()
    """Cases whose noise lets nothing be said, and the step that they could hide."""


def build(history: History, site: Site) -> ChangesPage:
    changes = site.explained(history)
    groups: dict[tuple[object, ...], list[ExplainedChange]] = defaultdict(list)
    for item in changes:
        name, change = item.name, item.change
        what = (name.suite, name.kernel, name.implementation, name.time, change.slower, change.kind)
        known = site.acknowledged(history, name, change)
        where = (change.before, change.after, item.recovered, item.cause, item.facts, known)
        groups[(*what, change.basis, *where)].append(item)
    shown: dict[CommitLabel, list[ChangeRow]] = defaultdict(list)
    for row in _change_rows(list(groups.values()), history, site):
        shown[row.change.after].append(row)
    counted: dict[CommitLabel, list[CountChangeRow]] = defaultdict(list)
    count_changes = count_groups(history, site)
    for count_row in count_change_rows(count_changes, history, site):
        counted[count_row.after].append(count_row)
    shared: dict[CommitLabel, list[SharedRow]] = defaultdict(list)
    shared_changes = site.shared_changes(history)
    for one in shared_changes:
        shared_row = make_shared_row(one, history, site)
        shared[shared_row.after].append(shared_row)
    statuses: dict[CommitLabel, list[StatusRow]] = defaultdict(list)
    status_groups = group_statuses(history, site)
    for status_group in status_groups:
        status_row = make_status_row(status_group, history, site)
        statuses[status_row.after].append(status_row)
    newest_first = dict.fromkeys(reversed(site.labels(history)))
    every = (shown, counted, shared, statuses)
    order = [label for label in newest_first if any(label in rows for rows in every)]
    are_open = open_at_first(sum(len(rows[label]) for rows in every) for label in order)
    causes = Counter(cause_words(group[0].cause, group[0].name) for group in groups.values())
    states = [*processor_states(history), *disturbed_states(site.rows_now(history), history.latest)]
    states += [ONE_COMMIT] if len(history.commits) == 1 else []
    return ChangesPage(
        title="Changes",
        navigation=site.navigation(history.setup, page="changes"),
        verdict=_verdict(changes, history, site, bool(count_changes))
        + _shared_and_status_words(len(shared_changes), status_groups),
        rule=CHANGES_RULE,
        note=not_judged_words(*site.count_judged(history, history.names)),
        causes=dict(causes.most_common()),
        commits=tuple(
            CommitChanges(
                commit,
                _counts_of_commit(shown[commit], counted[commit], shared[commit], statuses[commit]),
                is_open,
                tuple(sorted(shown[commit], key=lambda row: bool(row.acknowledged))),
                tuple(counted[commit]),
                tuple(shared[commit]),
                tuple(statuses[commit]),
            )
            for commit, is_open in zip(order, are_open, strict=True)
        ),
        counted=_counted_words(count_changes),
        states=tuple(states),
        has_speedups=any(all(row.speedups) for rows in shown.values() for row in rows),
        unstable=tuple(
            (case_words(name), text.ratio(math.exp(3 * scatter)))
            for name, scatter in site.unstable(history).items()
        ),
    )


def _shared_and_status_words(shared: int, statuses: Sequence[Sequence[StatusChange]]) -> str:
    """Return sentences that follow the verdict; empty where there is nothing to say."""
    words = ""
    if shared:
        words += f" {text.plural(shared, 'change')} more that most cases share."
    lost = sum(len(group) for group in statuses if group[0].is_worse)
    back = sum(map(len, statuses)) - lost
    if lost:
        words += f" {text.plural(lost, 'case')} without a time since: wrong, failed or skipped."
    if back:
        words += f" {text.plural(back, 'case')} with a time again."
    return words


def _counts(directions: Iterable[str], note: str = "") -> str:
    """``3 slower and 1 faster``, with a note on the slower."""
    counts = Counter(directions)
    words = {key: f"{key}{note}" if key == "slower" else key for key in DIRECTIONS}
    return text.join(f"{counts[key]:,} {words[key]}" for key in words if counts[key])


def _counts_of_commit(
    rows: Sequence[ChangeRow],
    counted: Sequence[CountChangeRow],
    shared: Sequence[SharedRow],
    statuses: Sequence[StatusRow],
) -> str:
    """``3 slower and 1 faster; 2 with more work``."""
    times = _counts(row.change.direction for row in rows)
    worse = sum(row.others + 1 for row in statuses if row.is_worse)
    better = sum(row.others + 1 for row in statuses if not row.is_worse)
    words = [row.claim for row in shared]
    words += [times, _more_and_less(counted)]
    words += [f"{worse:,} without a time now"] if worse else []
    words += [f"{better:,} with a time again"] if better else []
    return "; ".join(filter(None, words))


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


def _change_rows(
    groups: Sequence[Sequence[ExplainedChange]], history: History, site: Site
) -> Iterator[ChangeRow]:
    """Yield the rows, newest first, with the histories of some cases in memory at a time."""
    for start in range(0, len(groups), MAX_ROWS_TOGETHER):
        part = groups[start : start + MAX_ROWS_TOGETHER]
        cases = site.of_cases(history, [largest.name for largest, *_ in part])
        for group in part:
            yield _row(group, cases, site, is_drawn=start < DRAWN_ROWS)


def _row(
    group: Sequence[ExplainedChange],
    history: CaseHistories,
    site: Site,
    *,
    is_drawn: bool,
) -> ChangeRow:
    largest = group[0]
    change, name, setup = largest.change, largest.name, history.setup
    key = (name.suite, name.kernel)
    pair = pair_address(history.snapshots[change.before], history.snapshots[change.after])
    is_check = change.kind == "check"
    kind = TO_BE_CHECKED if is_check else "step"
    view = change_view(history, name, change, site, is_drawn=is_drawn)
    return ChangeRow(
        change=view,
        kernel=Link(kernel_label(key), site.address(setup, key)),
        ratio=change.ratio,
        kind="; ".join(
            filter(None, (kind, decided_by(name, change), "" if is_check else basis(view.points)))
        ),
        is_check=is_check,
        basis=decided_by(name, change),
        cause=largest.cause,
        why=_why(largest, history.by_speedup),
        facts=tuple(map(fact_row, largest.facts or ())),
        recovered=commit_label(largest.recovered) if largest.recovered else None,
        speedups=largest.speedups,
        comparison=f"{site.page_address('compare', setup)}#{pair}",
        others=tuple(case_words(item.name) for item in group[1:]),
        acknowledged=str(site.acknowledged(history, name, change) or ""),
    )


def _why(item: ExplainedChange, by_speedup: bool) -> str:
    direction, moved = ("slower", "rose") if item.change.slower else ("faster", "fell")
    if item.change.kind == "check":
        return "Nothing but this commit is beyond all that its level holds: it may be the run."
    if not item.name.is_time:
        verb = "grew" if item.change.new > item.change.old else "shrank"
        changed = "changed with it" if item.facts else "did not change with it"
        return f"The value {verb}. What is recorded of the environment {changed}."
    if item.cause == "environment":
        return (
            f"The environment changed with it. It became {direction}; whether the code did too "
            "needs a run of one of the two commits in the other's environment."
        )
    if item.cause == "either":
        why = "Times of different processors are not compared"
        if not by_speedup:
            why = "Its own times do not show it, nor do those of its baseline"
        return (
            f"The speedup {'fell' if item.change.slower else 'rose'}. {why}, so that it is the "
            "kernel or its baseline that changed."
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
    what = "It" if item.name.implementation == ALONE else "The kernel"
    return f"{what} became {direction}; {beside}{recorded}."


def _verdict(
    changes: Sequence[ExplainedChange], history: History, site: Site, is_counted: bool
) -> str:
    cases = text.plural(len(history.names), "case")
    where = f"in {cases} over {text.plural(len(history.commits), 'commit')}"
    if not site.is_judged(history, history.names):
        return f"Not judged yet: {cases} over {text.plural(len(history.commits), 'commit')}."
    if not changes:
        return f"No change {'of a time ' if is_counted else ''}was found {where}."
    undone = sum(
        item.change.slower and item.recovered is not None and item.name.is_time for item in changes
    )
    note = f" ({undone:,} recovered since)" if undone else ""
    words = (direction_word(item.change, site.unit(history, item.name)) for item in changes)
    counts = _counts(words, note)
    return f"{text.plural(len(changes), 'change')} {where}: {counts}."


def digest(history: History, site: Site) -> str:
    """Return a text that changes with what the page shows."""
    return f"{history.digest}{site.table.acknowledged}"


CHANGES_PAGE = Page("changes", "Changes", build, digest)
