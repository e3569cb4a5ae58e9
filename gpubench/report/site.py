"""What all pages share: the table's rows and histories, addresses, navigation, labels."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from itertools import chain, groupby
from typing import Any, TypeVar

import numpy as np

from gpubench.analysis.causes import ExplainedChange, explained_changes, newest_first
from gpubench.analysis.changes import THRESHOLD, Change
from gpubench.analysis.count_changes import CountChange, find_count_changes
from gpubench.analysis.declared_work import NO_DOUBTS, KernelDoubts, find_doubts
from gpubench.analysis.headline import KernelKey, KernelNow, current
from gpubench.analysis.noise import RECENT, Noise, noise
from gpubench.analysis.shared import JudgedHistory, judge_history
from gpubench.analysis.status_changes import StatusChange
from gpubench.analysis.together import SharedChange
from gpubench.names import SECONDS
from gpubench.report.navigation import (
    CommitLabel,
    Link,
    Navigation,
    file_name,
    kernel_label,
    setup_label,
    snapshot_label,
)
from gpubench.report.page import Page
from gpubench.results import (
    ALONE,
    CaseCounts,
    CaseHistories,
    CaseName,
    Commit,
    History,
    Row,
    Setup,
    Snapshot,
    Table,
)
from gpubench.results.acknowledgement import Acknowledgement, find_acknowledgement
from gpubench.statuses import STATUSES

T = TypeVar("T")

MAX_CELLS_IN_MEMORY = 2**19
"""Cases times commits that are in memory at once, in 60 to 150 bytes each."""

MAX_ROWS_IN_MEMORY = 2**15
"""Rows beyond which no more snapshots are kept, in some 2 KB each: newest commits of other setups,
which every setup is compared with. Of 20 machines with 1,000 cases each, all stay."""


MAX_FILES_IN_MEMORY = 64
"""Files of code that are in memory at once; kernels of a project lie in some dozen."""


OfHistory = Callable[["Site", History], T]


def kept(method: OfHistory[T]) -> OfHistory[T]:
    """Return what it gives of a setup is kept: so that has to be small."""

    @wraps(method)
    def once(site: Site, history: History) -> T:
        key = method.__name__, history.setup
        if key not in site.made:
            site.made[key] = method(site, history)
        made: T = site.made[key]
        return made

    return once


def kept_meanwhile(method: OfHistory[T]) -> OfHistory[T]:
    """Return what it gives of a setup is kept until another setup is asked for."""

    @wraps(method)
    def once(site: Site, history: History) -> T:
        name = method.__name__
        if name not in site.of_setup(history):
            made = method(site, history)  # which may ask for another setup
            site.of_setup(history)[name] = made
        there: T = site.of_setup(history)[name]
        return there

    return once


class Site:
    """The table as pages see it. What several pages show is read or calculated once."""

    def __init__(self, table: Table, pages: Sequence[Page] = ()) -> None:
        """``pages`` stand in the navigation of each page; commands, which show none, need none."""
        self.table = table
        self.pages = pages
        self.made: dict[tuple[str, Setup], Any] = {}
        self._setup: Setup | None = None
        self._of_setup: dict[str, Any] = {}
        self._rows: dict[int, Mapping[CaseName, Row]] = {}
        self._counts: dict[int, Mapping[CaseName, CaseCounts]] = {}
        self._code: dict[tuple[str, str], str | None] = {}

    def of_setup(self, history: History) -> dict[str, Any]:
        """Return what is kept of this setup, and not of another."""
        if self._setup != history.setup:
            self._setup, self._of_setup = history.setup, {}
        return self._of_setup

    @cached_property
    def histories(self) -> tuple[History, ...]:
        """Return one for each setup, in their order (``Table.setups``); last those of which nothing
        is left, since what was measured there has changed."""
        histories = map(self.table.outline, self.table.setups)
        return tuple(sorted(histories, key=lambda history: not history.names))

    @cached_property
    def measured(self) -> Mapping[Setup, History]:
        """By machine and environment all of their commits, those outside every history too."""
        there = {history.setup.place: history for history in self.histories}
        places = [*there, *(setup.place for setup in self.table.measured)]
        return {place: self._everything(place, there.get(place)) for place in dict.fromkeys(places)}

    def _everything(self, place: Setup, history: History | None) -> History:
        snapshots = self.table.snapshots(place.everywhere)
        if history and len(history.snapshots) == len(snapshots):
            return history
        return self.table.outline(place.everywhere)

    @cached_property
    def histories_of_first_branch(self) -> tuple[History, ...]:
        """Histories that commands answer from: a page of another branch is chosen in a browser."""
        first = self.histories[0].setup.branch if self.histories else ""
        return tuple(one for one in self.histories if one.setup.branch == first)

    def branch_of(self, setup: Setup) -> str:
        """Return the branch whose commits a setup's history has; empty where that is not known."""
        return setup.branch or next(iter(self.table.branches), "")

    def rows(self, snapshot: Snapshot) -> Mapping[CaseName, Row]:
        """Return each case of one snapshot. The last that were asked for are kept, two at least."""
        if snapshot.id not in self._rows:
            while len(self._rows) > 1 and sum(map(len, self._rows.values())) > MAX_ROWS_IN_MEMORY:
                del self._rows[next(iter(self._rows))]
            self._rows[snapshot.id] = self.table.rows(snapshot)
        return self._rows[snapshot.id]

    @kept_meanwhile
    def current(self, history: History) -> Mapping[KernelKey, KernelNow]:
        """Return each kernel at the newest commit at which it was measured on that setup."""

        def rows(snapshot: Snapshot, names: Collection[CaseName]) -> Mapping[CaseName, Row]:
            # Of the newest commit, where most are, other setups' pages and the exports show them.
            is_newest = snapshot is history.snapshots[-1]
            return self.rows(snapshot) if is_newest else self.table.rows(snapshot, names)

        return current(history, rows)

    def rows_now(self, history: History) -> list[Row]:
        """Return the newest row of each case of a setup."""
        return [row for now in self.current(history).values() for row in now.cases.values()]

    @kept
    def kernels(self, history: History) -> Mapping[KernelKey, range]:
        """Return all kernels that were measured on a setup, in order: which of its cases are
        theirs."""
        places, stop = {}, 0
        for key, cases in groupby((name.suite, name.kernel) for name in history.names):
            start, stop = stop, stop + sum(1 for _ in cases)
            places[key] = range(start, stop)
        return places

    @kept_meanwhile
    def units(self, history: History) -> Mapping[CaseName, str]:
        """Return the units of cases that are no times."""
        others = {name for name in history.names if not name.is_time}
        if not others:
            return {}
        rows = self.table.newest_rows(history.setup)
        return {name: row.unit for name, row in rows.items() if name in others}

    def unit(self, history: History | CaseHistories, name: CaseName) -> str:
        """Return the unit of a case: of a time ``SECONDS``."""
        if name.is_time:
            return SECONDS
        return self.units(self.history_of(history.setup)).get(name, "")

    def history_of(self, setup: Setup) -> History:
        """Return the history of a setup."""
        return next(one for one in self.histories if one.setup == setup)

    def not_judged(self, history: History) -> frozenset[CaseName]:
        """Return the cases with values at too few commits for a verdict."""
        return self._judged(history).not_judged

    def count_judged(self, history: History, names: Iterable[CaseName]) -> tuple[int, int]:
        """Return how many of these cases have a verdict, and how many have values at too few
        commits for one. A case without any value is neither."""
        judged, asked = self._judged(history), {*names}
        return len(asked & judged.judged), len(asked & judged.not_judged)

    def is_judged(self, history: History, names: Iterable[CaseName]) -> bool:
        """Return whether any of these cases has a verdict, or none of them has a value."""
        judged, not_judged = self.count_judged(history, names)
        return judged > 0 or not not_judged

    @kept
    def has_choices(self, history: History) -> bool:
        """Return whether any kernel has implementations to choose from."""
        return any(name.implementation != ALONE for name in history.names)

    @kept
    def timed(self, history: History) -> Mapping[KernelKey, frozenset[str]]:
        """Return implementations with a time, of each kernel at that commit."""
        newest, implementations = history.newest, {}
        for key, cases in self.kernels(history).items():
            its = slice(cases.start, cases.stop)
            is_now = newest.places[its] == newest.places[its].max()
            is_timed = is_now & (newest.statuses[its] == STATUSES.index("ok"))
            implementations[key] = frozenset(
                history.names[case].implementation
                for case in (cases.start + np.flatnonzero(is_timed)).tolist()
            )
        return implementations

    def of_kernel(self, history: History, key: KernelKey) -> CaseHistories:
        """Return the cases of one kernel over the commits, and what they are compared with."""
        return self.of_cases(history, [history.names[case] for case in self.kernels(history)[key]])

    def of_cases(self, history: History, names: Iterable[CaseName]) -> CaseHistories:
        """Return some cases over the commits, with what they are compared with."""
        rows = {history.rows_of[name] for name in names}
        rows |= {*history.newest.baselines[np.array([*rows], np.intp)].tolist()} - {-1}
        ordered, size = sorted(rows), self._block_size(history)
        blocks = {row // size for row in ordered}
        if len(blocks) == 1:
            (number,) = blocks
            return self._block(history, number).part([row - number * size for row in ordered])
        return self.table.history(history.setup, [history.names[row] for row in ordered])

    def parts(self, history: History) -> Iterator[CaseHistories]:
        """Return all cases over the commits, some at a time."""
        blocks = math.ceil(len(history.names) / self._block_size(history))
        return (self._block(history, number) for number in range(blocks))

    def _block_size(self, history: History) -> int:
        """Cases that are in memory at once."""
        return max(MAX_CELLS_IN_MEMORY // len(history.snapshots), 1)

    def _block(self, history: History, number: int) -> CaseHistories:
        """Cases over the commits, as many as are in memory at once; the last block is kept."""
        kept, size = self.of_setup(history), self._block_size(history)
        if "block" not in kept or kept["block"][0] != number:
            kept.pop("block", None)  # before there is another
            names = history.names[number * size : (number + 1) * size]
            kept["block"] = number, self.table.history(history.setup, names)
        block: CaseHistories = kept["block"][1]
        return block

    def changes(self, history: History) -> Mapping[CaseName, tuple[Change, ...]]:
        """Return the changes in each case's times on a setup, as indices into its snapshots,
        without those that most cases share (``shared_changes``)."""
        return self._judged(history).changes

    def every_change(self, history: History) -> Mapping[CaseName, tuple[Change, ...]]:
        """Return the changes in each case's times on a setup, those that most cases share too."""
        return self._judged(history).every

    def acknowledged(
        self, history: History, name: CaseName, change: Change | StatusChange
    ) -> Acknowledgement | None:
        """Return the entry of the project that a change belongs to; ``None`` for a new one."""
        known = self.table.acknowledged
        return find_acknowledgement(known, name, history.commits, change.after)

    def shared_acknowledged(self, history: History, shared: SharedChange) -> str:
        """Return who knows of a change that most cases share, and why it is accepted; empty where
        one of its cases is in no entry."""
        known = {self.acknowledged(history, name, one) for name, one in shared.changes.items()}
        return "" if None in known else "; ".join(sorted(map(str, known)))

    def unacknowledged(self, history: History) -> Mapping[CaseName, Sequence[Change]]:
        """Return the changes of each case since the newest one that the project knows of."""
        changes = self.changes(history)
        if not self.table.acknowledged:
            return changes
        since: dict[CaseName, Sequence[Change]] = {}
        for name, of_case in changes.items():
            known = [
                place
                for place, change in enumerate(of_case)
                if self.acknowledged(history, name, change)
            ]
            since[name] = of_case[max(known, default=-1) + 1 :]
        return since

    def shared_changes(self, history: History) -> Sequence[SharedChange]:
        """Return what most cases of a setup share, oldest first."""
        return self._judged(history).shared

    def unstable(self, history: History) -> Mapping[CaseName, float]:
        """Cases whose noise lets nothing be said, with their scatter: a logarithm."""
        return self._judged(history).unstable

    def threshold(self, name: CaseName) -> float:
        """Return the factor from which a case is called slower than it was: that of asv.conf.json,
        else ``THRESHOLD``."""
        return self.table.threshold(name) or THRESHOLD

    def status_changes(self, history: History) -> Sequence[StatusChange]:
        """Return where cases of a setup became wrong or failed, and where they were fixed."""
        return self._judged(history).statuses

    @kept_meanwhile
    def _judged(self, history: History) -> JudgedHistory:
        """Return what is said of all cases on a setup."""
        table = self.table
        return judge_history(lambda: self.parts(history), history, table.threshold, table.is_rate)

    def counts(self, snapshot: Snapshot) -> Mapping[CaseName, CaseCounts]:
        """Return the counted work of each case of one snapshot; that of the last two that were
        asked for is kept."""
        if snapshot.id not in self._counts:
            while len(self._counts) > 1:
                del self._counts[next(iter(self._counts))]
            self._counts[snapshot.id] = self.table.counts(snapshot)
        return self._counts[snapshot.id]

    def code(self, commit: Commit, file: str) -> str | None:
        """Return a file of a commit, kept for the kernels that share it; ``None`` where git has
        none."""
        if (commit.hash, file) not in self._code:
            while len(self._code) >= MAX_FILES_IN_MEMORY:
                del self._code[next(iter(self._code))]
            self._code[commit.hash, file] = self.table.committed(commit, file)
        return self._code[commit.hash, file]

    @kept_meanwhile
    def count_changes(self, history: History) -> Sequence[CountChange]:
        """Return the changes of counted work on a setup, the newest first."""
        return find_count_changes(self.table, history.snapshots)

    def explained(self, history: History) -> tuple[ExplainedChange, ...]:
        """Return every change on a setup with its cause, the newest first, then the largest."""
        changes, current = self.changes(history), self.current(history)

        def rows(snapshot: Snapshot, names: Collection[CaseName]) -> Mapping[CaseName, Row]:
            now = {name: current[name.suite, name.kernel].cases.get(name) for name in names}
            if all(now.values()):
                return {name: row for name, row in now.items() if row}
            return self.table.rows(snapshot, names)

        changed = {(name.suite, name.kernel) for name, steps in changes.items() if steps}
        explained = (
            explained_changes(self.of_kernel(history, key), changes, rows)
            for key in sorted(changed)
        )
        return tuple(sorted(chain.from_iterable(explained), key=newest_first))

    @kept
    def labels(self, history: History) -> tuple[CommitLabel, ...]:
        """Return the commits of a setup in words."""
        return tuple(map(snapshot_label, history.snapshots))

    @kept
    def noise(self, history: History) -> Noise:
        """Return how much times scatter on a setup."""
        newest = history.snapshots[-RECENT:]
        size = max(MAX_CELLS_IN_MEMORY // len(newest), 1)
        return noise(
            self.table.history(history.setup, history.names[start : start + size], newest)
            for start in range(0, len(history.names), size)
        )

    @cached_property
    def _doubts(self) -> Mapping[KernelKey, KernelDoubts]:
        return find_doubts(self.table)

    def doubts(self, key: KernelKey) -> KernelDoubts:
        """Return which rates of a kernel rest on declared work that counts contradict."""
        return self._doubts.get(key, NO_DOUBTS)

    @cached_property
    def sources(self) -> Mapping[KernelKey, Mapping[str, str]]:
        """What asv shows as the code of each kernel's implementations, by their names."""
        sources: dict[KernelKey, dict[str, str]] = defaultdict(dict)
        for name, source in self.table.sources.items():
            sources[name.suite, name.kernel][name.implementation] = source
        return sources

    @cached_property
    def digest(self) -> str:
        """Return a text that changes with anything that the page of all machines shows."""
        table = self.table
        shown = [table.problems, table.machines, table.order, sorted(self._slugs.items())]
        shown += [self.table.branches_outside, [*self.measured]]
        shown += [history.digest for history in (*self.histories, *self.measured.values())]
        return hashlib.sha256(repr(shown).encode()).hexdigest()

    @cached_property
    def _slugs(self) -> dict[Setup, str]:
        """Ends of file names by setup; the first has none."""
        slugs: dict[Setup, str] = {}
        for history in self.histories[1:]:
            setup = history.setup
            named = "-".join(filter(None, (setup.machine, setup.environment, setup.branch)))
            # Cut, since file systems end a name at 255 bytes, and a kernel's name comes before.
            slug = f"--{re.sub(r'[^A-Za-z0-9.]+', '-', named).strip('-.')[:60]}"
            while slug in slugs.values():
                slug += "-2"
            slugs[history.setup] = slug
        return slugs

    def address(self, setup: Setup | None, kernel: KernelKey | None = None) -> str:
        """File name of the overview or of a kernel's page on a setup."""
        slug = self._slugs.get(setup, "") if setup else ""
        return f"kernel-{file_name(kernel)}{slug}.html" if kernel else f"index{slug}.html"

    def page_address(self, page: str, setup: Setup) -> str:
        """Return the file name of a page on a setup; a shared one has the same on all."""
        return f"{page}{'' if page in self._shared else self._slugs.get(setup, '')}.html"

    @cached_property
    def _shared(self) -> frozenset[str]:
        return frozenset(page.name for page in self.pages if page.is_shared)

    @kept
    def pages_there(self, history: History) -> frozenset[str]:
        """Return the names of a setup's pages, and of the pages that all setups share."""
        return frozenset(one.name for one in self.pages if one.is_there(history, self))

    def navigation(
        self, setup: Setup | None, kernel: KernelKey | None = None, page: str | None = None
    ) -> Navigation:
        """Return the links on a kernel's page, on the page of a name, or on the overview."""
        kernels: list[Link] = []
        setups = []
        for history in self.histories:
            here, has = history.setup, self.kernels(history)
            if here == setup:
                kernels = [*self._links(history)]
                if kernel and kernel in has:
                    place = [*has].index(kernel)
                    kernels[place] = replace(kernels[place], current=True)
            # The same page on another setup; its overview where it has no such kernel.
            counterpart = self.address(here, kernel if kernel in has else None)
            if page and page in self.pages_there(history):
                counterpart = self.page_address(page, here)
            setups.append(Link(setup_label(here), counterpart, here == setup))
        is_alone = len(setups) < 2 or page in self._shared
        there = {one.setup: self.pages_there(one) for one in self.histories}
        return Navigation(
            overview=Link("Overview", self.address(setup), kernel is None and page is None),
            kernels=tuple(kernels),
            setups=() if is_alone else tuple(setups),
            noun="benchmark" if setup and "choose" not in there.get(setup, ()) else "kernel",
            pages=tuple(
                Link(one.title, self.page_address(one.name, setup), one.name == page)
                for one in self.pages
                if setup and one.name in there.get(setup, ())
            ),
        )

    @kept
    def _links(self, history: History) -> Sequence[Link]:
        keys = self.kernels(history)
        return [Link(kernel_label(key), self.address(history.setup, key)) for key in keys]

    @kept
    def _linked(self, history: History) -> str:
        return hashlib.sha256(repr([*self.kernels(history)]).encode()).hexdigest()

    def linked(self, history: History, kernel: KernelKey | None = None) -> str:
        """Return a text that changes with the navigation of a page on that setup."""
        others = [
            (one.setup, kernel in self.kernels(one), sorted(self.pages_there(one)))
            for one in self.histories
        ]
        return repr((self._linked(history), others, self._slugs_digest))

    @cached_property
    def _slugs_digest(self) -> str:
        return hashlib.sha256(repr(self._slugs).encode()).hexdigest()
