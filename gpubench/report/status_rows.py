"""Rows of what became of cases at a commit: failures, and changes that most cases share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.causes import Cause, changed_facts
from gpubench.analysis.status_changes import StatusChange
from gpubench.analysis.together import SharedChange
from gpubench.names import SECONDS
from gpubench.report import text
from gpubench.report.compare import pair_address
from gpubench.report.comparison_view import FactRow, fact_row
from gpubench.report.findings import case_words
from gpubench.report.lists import listed
from gpubench.report.navigation import CommitLabel, Link, kernel_label, snapshot_label
from gpubench.report.site import Site
from gpubench.results import ALONE, CaseName, History, Ratio

CAUSES: dict[Cause, str] = {
    "kernel": "the kernel",
    "baseline": "the baseline",
    "environment": "the environment",
    "shared": "the machine, or code that both share",
    "either": "the kernel or its baseline",
}

NOT_OF_A_KERNEL = "Nothing that is recorded of the environment did."

OFF_RUNS = "Whole runs that are off are no regressions; measure these commits again."

SHARED_BY_ALL = "the machine, or code that all share"


def cause_words(cause: Cause, name: CaseName) -> str:
    """Return a cause in words; a benchmark of an asv project has no kernel."""
    return "the code" if cause == "kernel" and name.implementation == ALONE else CAUSES[cause]


@dataclass(frozen=True, slots=True)
class SharedRow:
    """Many cases that changed alike at one commit."""

    before: CommitLabel
    after: CommitLabel
    slower: bool
    ratio: Ratio
    """Old time over new time: the median of the cases, and their range."""
    claim: str
    why: str
    facts: tuple[FactRow, ...]
    comparison: str
    others: tuple[str, ...]
    acknowledged: str = ""
    """Who knows of it, and why it is accepted; empty for a new one."""

    @property
    def listed(self) -> dict[str, Any]:
        direction = "slower" if self.slower else "faster"
        return listed(
            commit=[self.after.short],
            why=[SHARED_BY_ALL],
            what=[direction],
            state=["acknowledged" if self.acknowledged else ""],
            change=self.ratio.factor,
        )


@dataclass(frozen=True, slots=True)
class StatusRow:
    """Cases of an implementation that have another status since a commit."""

    name: CaseName
    kernel: Link
    before: CommitLabel
    after: CommitLabel
    is_worse: bool
    claim: str
    seconds: float | None
    """The last good value of the first case, or the first one where it is good again."""
    unit: str
    others: int
    acknowledged: str = ""
    """Who knows of it, and why it is accepted; empty for a new one."""

    @property
    def listed(self) -> dict[str, Any]:
        return listed(
            suite=[self.name.suite],
            commit=[self.after.short],
            **listed_name(self.name, self.kernel),
            what=["now without a time" if self.is_worse else "has a time again"],
            state=["acknowledged" if self.acknowledged else ""],
        )


def make_shared_row(one: SharedChange, history: History, site: Site) -> SharedRow:
    old, new = history.snapshots[one.before], history.snapshots[one.after]
    facts = changed_facts(old, new)
    moved, measured = len(one.changes), one.measured
    claim = f"{moved:,} of {text.plural(measured, 'case')} changed alike"
    if one.runs:
        claim += f" in {text.plural(one.runs, 'run')}"
    recorded = "The environment changed with it." if facts else NOT_OF_A_KERNEL
    return SharedRow(
        before=snapshot_label(old),
        after=snapshot_label(new),
        slower=one.slower,
        ratio=one.ratio,
        claim=claim,
        why=f"The machine, or code that all share. {recorded}"
        + (f" {OFF_RUNS}" if one.runs else ""),
        facts=tuple(map(fact_row, facts)),
        comparison=f"{site.page_address('compare', history.setup)}#{pair_address(old, new)}",
        others=tuple(map(case_words, one.changes)),
        acknowledged=site.shared_acknowledged(history, one),
    )


def group_statuses(history: History, site: Site) -> list[list[StatusChange]]:
    """Return changes of one implementation, commit and pair of statuses together, newest first;
    those that the project knows of are apart."""
    groups: dict[tuple[Any, ...], list[StatusChange]] = defaultdict(list)
    for change in site.status_changes(history):
        name = change.name
        where = (-change.after, name.suite, name.kernel, name.implementation, name.time)
        known = str(site.acknowledged(history, name, change) or "")
        groups[*where, known, change.old, change.new].append(change)
    return [groups[key] for key in sorted(groups)]


def make_status_row(group: Sequence[StatusChange], history: History, site: Site) -> StatusRow:
    first = group[0]
    key = (first.name.suite, first.name.kernel)
    old, new = text.status_label(first.old), text.status_label(first.new)
    return StatusRow(
        name=first.name,
        kernel=Link(kernel_label(key), site.address(history.setup, key)),
        before=snapshot_label(history.snapshots[first.before]),
        after=snapshot_label(history.snapshots[first.after]),
        is_worse=first.is_worse,
        claim=f"{new}, before {old}",
        seconds=first.seconds,
        unit=site.units(history).get(first.name, SECONDS),
        others=len(group) - 1,
        acknowledged=str(site.acknowledged(history, first.name, first) or ""),
    )


def listed_name(name: CaseName, kernel: Link) -> dict[str, list[str]]:
    """Return what a row is filtered by: a kernel and its implementation, or asv's benchmark."""
    if name.implementation == ALONE:
        return {"benchmark": [kernel.label]}
    return {"kernel": [kernel.label], "implementation": [name.implementation]}
