"""Costs of counted work that changed at a commit, for a kernel's page, the overview and *Changes*.

What comes in are the count changes of a history, and what leaves are rows: before, after and cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.analysis.costs import CostPair, total_costs, worst_resources
from gpubench.analysis.count_changes import CountChange
from gpubench.report.comparison_view import FactRow, fact_row
from gpubench.report.count_view import change_words
from gpubench.report.lists import listed
from gpubench.report.navigation import CommitLabel, Link, kernel_label
from gpubench.report.site import Site
from gpubench.report.sparkline import Sparkline, sparkline
from gpubench.results import CaseCounts, CaseName, History

MAX_NEWEST = 8
"""Changes of counts that the overview lists; the page of changes has all."""


@dataclass(frozen=True, slots=True)
class WorkChange:
    """One cost that is another since a commit."""

    name: CaseName
    """Of several that changed alike, the largest."""
    others: int
    """How many changed with it."""
    count: str
    before: str
    after: str
    change: str
    grew: bool
    since: CommitLabel
    against: CommitLabel
    why: str


@dataclass(frozen=True, slots=True)
class CountChangeRow:
    """Costs of one implementation that changed at one commit, for the page of changes."""

    name: CaseName
    kernel: Link
    before: CommitLabel
    after: CommitLabel
    costs: tuple[tuple[str, str, str, str], ...]
    """Of each cost what it counts, before, after, and the change."""
    grew: bool
    why: str
    facts: tuple[FactRow, ...]
    others: int
    """Cases that changed with it."""
    spark: Sparkline

    @property
    def listed(self) -> dict[str, Any]:
        return listed(
            suite=[self.name.suite],
            kernel=[self.kernel.label],
            implementation=[self.name.implementation],
            commit=[self.after.short],
            why=["the environment" if self.facts else "the kernel"],
            what=["more work" if self.grew else "less work"],
        )


@dataclass(frozen=True, slots=True)
class CountGroup:
    """Cases of one implementation whose costs changed at one commit in one direction."""

    change: CountChange
    """Of the largest of them."""
    grew: bool
    others: int

    @property
    def pairs(self) -> tuple[CostPair, ...]:
        """Costs of that case that changed in that direction."""
        return tuple(pair for pair in self.change.pairs if (pair.new > pair.old) is self.grew)


def newest_growth(history: History, site: Site) -> tuple[WorkChange, ...]:
    """Return of the newest changes by which counted work grew the first cost each, for the
    overview."""
    grew = [group for group in count_groups(history, site) if group.grew]
    first = [next(work_changes([group], history, site)) for group in grew[:MAX_NEWEST]]
    return tuple(first)


def work_changes(
    groups: Iterable[CountGroup], history: History, site: Site
) -> Iterator[WorkChange]:
    labels = site.labels(history)
    for group in groups:
        change = group.change
        for pair in group.pairs:
            yield WorkChange(
                name=change.name,
                others=group.others,
                count=pair.words,
                before=f"{pair.old:,}",
                after=f"{pair.new:,}",
                change=change_words(pair),
                grew=pair.new > pair.old,
                since=labels[change.after],
                against=labels[change.before],
                why=cause_words(change),
            )


def cause_words(change: CountChange) -> str:
    if not change.facts:
        return "the kernel: what compiles it did not change"
    rows = map(fact_row, change.facts)
    return "another compiler: " + ", ".join(f"{r.label} {r.old} → {r.new}" for r in rows)


def count_groups(history: History, site: Site) -> list[CountGroup]:
    """Group the changes of counted work for the page of changes, the newest first."""
    kept = site.of_setup(history)
    if "count_groups" not in kept:
        kept["count_groups"] = _group_changes(site.count_changes(history))
    groups: list[CountGroup] = kept["count_groups"]
    return groups


def _group_changes(changes_found: Iterable[CountChange]) -> list[CountGroup]:
    groups: dict[tuple[object, ...], list[CountChange]] = defaultdict(list)
    for change in changes_found:
        name = change.name
        place = name.suite, name.kernel, name.implementation, name.time
        for grew in (True, False):
            if any((pair.new > pair.old) is grew for pair in change.pairs):
                groups[(grew, change.before, change.after, *place)].append(change)
    # The natural order of cases ends with the largest size.
    return [
        CountGroup(changes[-1], key[0] is True, len(changes) - 1) for key, changes in groups.items()
    ]


def count_change_rows(
    groups: Sequence[CountGroup], history: History, site: Site
) -> list[CountChangeRow]:
    """Make the rows of these changes."""
    names = {group.change.name for group in groups}
    counted = {
        name: places
        for name, places in site.table.counted(history.snapshots).items()
        if name in names
    }
    profiles = site.table.profiles(
        number for places in counted.values() for number in places.values()
    )
    labels, rows = site.labels(history), []
    for group in groups:
        change, name = group.change, group.change.name
        key = name.suite, name.kernel
        series = {place: profiles[number] for place, number in counted[name].items()}
        rows.append(
            CountChangeRow(
                name=name,
                kernel=Link(kernel_label(key), site.address(history.setup, key)),
                before=labels[change.before],
                after=labels[change.after],
                costs=tuple(
                    (pair.words, f"{pair.old:,}", f"{pair.new:,}", change_words(pair))
                    for pair in group.pairs
                ),
                grew=group.grew,
                why=cause_words(change),
                facts=tuple(map(fact_row, change.facts)),
                others=group.others,
                spark=_spark(group.pairs[0], change.after, series),
            )
        )
    return rows


def _spark(pair: CostPair, after: int, series: Mapping[int, CaseCounts]) -> Sparkline:
    """Draw a cost over the commits; ``series`` has the counts by the snapshot's index."""
    first = min(series)
    values = np.full(max(series) - first + 1, np.nan)
    for place, counts in series.items():
        if counts.missing is None:
            known = {**worst_resources(counts), **total_costs(counts)}
            # The scale is logarithmic, and a count may be 0.
            values[place - first] = max(known.get(pair.cost.name, 0), 0.5)
    label = f"{pair.words} over commits: {pair.old:,} before, {pair.new:,} after"
    return sparkline(values, label, [after - first])
