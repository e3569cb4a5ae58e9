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
    history_length,
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
    """One sentence."""
    facts: tuple[FactRow, ...]
    recovered: CommitLabel | None
    speedups: tuple[Ratio | None, Ratio | None]
    """Before and after."""
    comparison: str
    """Address of the comparison of the two commits."""
    others: tuple[str, ...]
    """Some of the other cases."""
    other_count: int

    @property
    def listed(self) -> dict[str, Any]:
        """For a long list."""
        only = [
            "slower" if self.change.slower else "faster",
            "recovered" if self.recovered else "lasting",
        ]
        name, (_, speedup) = self.change.name, self.speedups
        return listed(
            {
                "suite": [name.suite],
                "implementation": [name.implementation],
                "why": [CAUSES[self.cause]],
                "only": only,
            },
            change=self.change.factor,
            speedup=speedup.value if speedup else None,
        )


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What changed at one commit."""

    commit: CommitLabel
    counts: str
    """How many rows are slower, and how many faster."""
    is_open: bool
    """At first; the list of a long history folds."""
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


def build(history: History, site: Site) -> ChangesPage:
    """The changes page of one setup."""
    changes = site.explained(history)
    groups: dict[tuple[object, ...], list[ExplainedChange]] = defaultdict(list)
    for item in changes:
        name, change = item.name, item.change
        what = (name.suite, name.kernel, name.implementation, name.time, change.slower, change.kind)
        where = (change.before, change.after, item.recovered, item.cause, item.facts)
        groups[what + where].append(item)
    shown: dict[CommitLabel, list[ChangeRow]] = defaultdict(list)
    listed = list(groups.values())[:MOST_ROWS]
    cases = site.of_cases(history, [largest.name for largest, *_ in listed])
    for group in listed:
        row = _row(group, cases, site)
        shown[row.change.after].append(row)
    causes = Counter(group[0].cause for group in groups.values())
    states = [ONE_COMMIT] if len(history.commits) == 1 else []
    if not any(snapshot.facts for snapshot in history.snapshots):
        states.append(NO_RECORD)
    return ChangesPage(
        title="Changes",
        navigation=site.navigation(history.setup, page="changes"),
        verdict=_verdict(changes, history),
        rule=RULE,
        note=history_length(len(history.commits)),
        causes={CAUSES[cause]: causes[cause] for cause in CAUSES if causes[cause]},
        commits=tuple(
            CommitChanges(commit, _counts(rows), is_open, tuple(rows))
            for (commit, rows), is_open in zip(
                shown.items(), open_at_first(map(len, shown.values())), strict=True
            )
        ),
        more=max(len(groups) - MOST_ROWS, 0),
        states=tuple(states),
    )


def _counts(rows: Sequence[ChangeRow]) -> str:
    slower = sum(row.change.slower for row in rows)
    faster = len(rows) - slower
    counted = ((slower, "slower"), (faster, "faster"))
    return text.join(f"{count:,} {word}" for count, word in counted if count)


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


def _verdict(changes: Sequence[ExplainedChange], history: History) -> str:
    cases = text.plural(len(history.names), "case")
    where = f"in {cases} over {text.plural(len(history.commits), 'commit')}"
    if not changes:
        return f"No change was found {where}."
    slower = [item for item in changes if item.change.slower]
    undone, faster = sum(bool(item.recovered) for item in slower), len(changes) - len(slower)
    parts = []
    if slower:
        parts.append(
            f"{len(slower):,} slower" + (f" ({undone:,} recovered since)" if undone else "")
        )
    if faster:
        parts.append(f"{faster:,} faster")
    return f"{text.plural(len(changes), 'change')} {where}: {text.join(parts)}."
