"""What all pages share: the table's rows and histories, addresses, navigation, labels."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Any, TypeVar

import numpy as np

from gpubench.analysis.causes import ExplainedChange, explained_changes, newest_first
from gpubench.analysis.changes import Change, Stops, changes_of_parts, is_much
from gpubench.analysis.comparison import DISTURBED, FAILURES
from gpubench.analysis.headline import KernelKey, KernelNow, current
from gpubench.analysis.noise import RECENT, Noise, noise
from gpubench.names import kernel_title
from gpubench.parallel import processors
from gpubench.report import text
from gpubench.results import (
    STATUSES,
    CaseHistories,
    CaseName,
    Commit,
    History,
    Row,
    Setup,
    Snapshot,
    Table,
)

T = TypeVar("T")

PAGES = {"changes": "Changes", "compare": "Compare", "choose": "Choose", "advise": "Advise"}
"""Pages that every setup has one of, beside the overview and the kernels: file name and title."""

SHARED_PAGES = {"machines": "Machines and data"}
"""Pages that the report has one of, whatever the setup."""


TOGETHER = 2**19
"""Cases times commits that are in memory at once, in 60 to 150 bytes each."""

MOST_ROWS = 2**15
"""Rows beyond which no more snapshots are kept, in some 2 KB each: newest commits of other setups,
which every setup is compared with. Of 20 machines with 1,000 cases each, all stay."""


@dataclass(frozen=True, slots=True)
class Link:
    """One entry of a navigation."""

    label: str
    address: str
    """Relative to the folder of the report."""
    current: bool = False
    """True for the page that it stands on."""


@dataclass(frozen=True, slots=True)
class Navigation:
    """How to get from one page to the others."""

    overview: Link
    kernels: tuple[Link, ...]
    setups: tuple[Link, ...]
    """The same page on other machines and environments; empty when there is one."""
    pages: tuple[Link, ...] = ()
    """Those of ``PAGES``; empty where nothing is measured."""


@dataclass(frozen=True, slots=True)
class CommitLabel:
    """A commit in words."""

    short: str
    date: str
    subject: str
    """Empty without the repository."""


@dataclass(frozen=True, slots=True)
class State:
    """Something a reader should know before the numbers: what it is, why, what comes next."""

    title: str
    why: str
    command: str | None = None
    """Command line to copy."""


class Site:
    """The table as pages see it. What several pages show is read or calculated once; of the setup
    whose pages are made, as long as they are."""

    def __init__(self, table: Table, processes: int | None = None) -> None:
        self.table = table
        self.processes = processes or processors()
        """That may look for changes."""
        self._made: dict[tuple[str, Setup], Any] = {}
        self._setup: Setup | None = None
        self._of_setup: dict[str, Any] = {}
        self._rows: dict[int, Mapping[CaseName, Row]] = {}
        self._fits: dict[Setup, Mapping[bytes, Stops]] = {}

    def once(self, what: str, history: History, make: Callable[[], T]) -> T:
        """What was made of a setup before, or else is made now, and kept: so it has to be small."""
        if (what, history.setup) not in self._made:
            self._made[what, history.setup] = make()
        made: T = self._made[what, history.setup]
        return made

    def _while(self, what: str, history: History, make: Callable[[], T]) -> T:
        """The same, but kept only until another setup is asked for."""
        if what not in self._of(history):
            made = make()  # which may ask for another setup
            self._of(history)[what] = made
        kept: T = self._of(history)[what]
        return kept

    def _of(self, history: History) -> dict[str, Any]:
        """What is kept of this setup, and not of another."""
        if self._setup != history.setup:
            self._setup, self._of_setup = history.setup, {}
        return self._of_setup

    @cached_property
    def histories(self) -> tuple[History, ...]:
        """One for each setup, those that still measure first; last those of which nothing is left,
        since what was measured there has changed."""
        histories = map(self.table.outline, self.table.setups)
        return tuple(sorted(histories, key=lambda history: not history.names))

    def rows(self, snapshot: Snapshot) -> Mapping[CaseName, Row]:
        """Each case of one snapshot. The last that were asked for are kept, two at least."""
        if snapshot.id not in self._rows:
            while len(self._rows) > 1 and sum(map(len, self._rows.values())) > MOST_ROWS:
                del self._rows[next(iter(self._rows))]
            self._rows[snapshot.id] = self.table.rows(snapshot)
        return self._rows[snapshot.id]

    def current(self, history: History) -> Mapping[KernelKey, KernelNow]:
        """Each kernel at the newest commit at which it was measured on that setup."""

        def rows(snapshot: Snapshot, names: Collection[CaseName]) -> Mapping[CaseName, Row]:
            # Of the newest commit, where most are, other setups' pages and the exports show them.
            is_newest = snapshot is history.snapshots[-1]
            return self.rows(snapshot) if is_newest else self.table.rows(snapshot, names)

        return self._while("current", history, lambda: current(history, rows))

    def rows_now(self, history: History) -> list[Row]:
        """Each case of those kernels."""
        return [row for now in self.current(history).values() for row in now.cases.values()]

    def kernels(self, history: History) -> Mapping[KernelKey, range]:
        """All kernels that were measured on a setup, in order: which of its cases are theirs."""

        def find() -> dict[KernelKey, range]:
            found, stop = {}, 0
            for key, cases in groupby((name.suite, name.kernel) for name in history.names):
                start, stop = stop, stop + sum(1 for _ in cases)
                found[key] = range(start, stop)
            return found

        return self.once("kernels", history, find)

    def timed(self, history: History) -> Mapping[KernelKey, frozenset[str]]:
        """Implementations with a time, of each kernel at that commit."""

        def find() -> dict[KernelKey, frozenset[str]]:
            places, statuses, found = history.newest.places, history.newest.statuses, {}
            for key, cases in self.kernels(history).items():
                its = slice(cases.start, cases.stop)
                now = (places[its] == places[its].max()) & (statuses[its] == STATUSES.index("ok"))
                timed = (cases.start + np.flatnonzero(now)).tolist()
                found[key] = frozenset(history.names[case].implementation for case in timed)
            return found

        return self.once("timed", history, find)

    def of_kernel(self, history: History, key: KernelKey) -> CaseHistories:
        """The cases of one kernel over the commits, and what they are compared with."""
        return self.of_cases(history, [history.names[case] for case in self.kernels(history)[key]])

    def of_cases(self, history: History, names: Iterable[CaseName]) -> CaseHistories:
        """Some cases over the commits, with what they are compared with."""
        rows = {history.rows_of[name] for name in names}
        rows |= {*history.newest.baselines[np.array([*rows], np.intp)].tolist()} - {-1}
        ordered = sorted(rows)
        if ordered and ordered[-1] - ordered[0] < self._in_block(history):
            first, block = self._block(history, ordered[0], ordered[-1] + 1)
            return block.part([row - first for row in ordered])
        return self.table.history(history.setup, [history.names[row] for row in ordered])

    def parts(self, history: History) -> Iterator[CaseHistories]:
        """All cases over the commits, some at a time."""
        size = self._in_block(history)
        for start in range(0, len(history.names), size):
            stop = min(start + size, len(history.names))
            first, block = self._block(history, start, stop)
            yield (
                block
                if len(block.names) == stop - start
                else block.part(range(start - first, stop - first))
            )

    def _in_block(self, history: History) -> int:
        """Cases that are in memory at once."""
        return max(TOGETHER // len(history.snapshots), 1)

    def _block(self, history: History, start: int, stop: int) -> tuple[int, CaseHistories]:
        """Cases from one to another over the commits, and others after them: the index of the first
        of these, and all of them."""
        first, block = self._while("block", history, lambda: (0, None))
        if block is None or not first <= start <= stop <= first + len(block.names):
            self._of(history)["block"] = (0, None)  # before there is another
            size, first = self._in_block(history), start
            if len(history.names) <= size:
                first = 0
            names = history.names[first : first + max(size, stop - first)]
            block = self.table.history(history.setup, names)
            self._of(history)["block"] = first, block
        return first, block

    def at(self, history: History, place: int) -> tuple[CaseHistories, int]:
        """All cases at some commits, and the index of one of them among these."""
        if len(history.names) <= self._in_block(history):
            return self._block(history, 0, len(history.names))[1], place
        first, block = self._while("commits", history, lambda: (0, None))
        if block is None or not first <= place < first + len(block.snapshots):
            self._of(history)["commits"] = (0, None)
            first, size = place, max(TOGETHER // len(history.names), 1)
            snapshots = history.snapshots[place : place + size]
            block = self.table.history(history.setup, snapshots=snapshots)
            self._of(history)["commits"] = first, block
        return block, place - first

    def changes(self, history: History) -> Mapping[CaseName, tuple[Change, ...]]:
        """Changes in each case's times on a setup, as indices into its snapshots."""

        def find() -> Mapping[CaseName, tuple[Change, ...]]:
            kept = self.table.fits(history.setup)
            several = is_much(len(history.names) * len(history.snapshots), kept)
            changes, fits = changes_of_parts(
                self.parts(history), kept, self.processes if several else 1
            )
            if fits != kept:
                self._fits[history.setup] = fits
            return changes

        return self._while("changes", history, find)

    def taken_fits(self) -> Mapping[Setup, Mapping[bytes, Stops]]:
        """What was fitted since the last time, for the next report to find."""
        fits, self._fits = self._fits, {}
        return fits

    def explained(self, history: History) -> tuple[ExplainedChange, ...]:
        """Every change on a setup with its cause, the newest first, then the largest."""
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

    def labels(self, history: History) -> tuple[CommitLabel, ...]:
        """The commits of a setup in words."""
        return self.once("labels", history, lambda: tuple(map(commit_label, history.commits)))

    def noise(self, history: History) -> Noise:
        """How much times scatter on a setup."""

        def parts() -> Iterator[CaseHistories]:
            newest = history.snapshots[-RECENT:]
            size = max(TOGETHER // len(newest), 1)
            for start in range(0, len(history.names), size):
                names = history.names[start : start + size]
                yield self.table.history(history.setup, names, newest)

        return self.once("noise", history, lambda: noise(parts()))

    def failures(self, history: History, place: int) -> Mapping[CaseName, str]:
        """Why cases failed, or have a time without a verdict, at one commit."""
        snapshot = history.snapshots[place]
        reasons: dict[int, dict[CaseName, str | None]] = self._while("reasons", history, dict)
        if snapshot.id not in reasons:
            # Those of some commits at once: a query takes as long for one.
            # There may be commits without any case that is still measured.
            together = TOGETHER // max(len(history.names), 1)
            several = history.snapshots[place : place + max(together, 1)]
            reasons = {one.id: {} for one in several} | self.table.reasons(several, FAILURES)
            self._of(history)["reasons"] = reasons
        said = reasons[snapshot.id].items()
        return {name: DISTURBED if reason is None else reason for name, reason in said}

    @cached_property
    def sources(self) -> Mapping[KernelKey, Mapping[str, str]]:
        """What asv shows as the code of each kernel's implementations, by their names."""
        sources: dict[KernelKey, dict[str, str]] = defaultdict(dict)
        for name, source in self.table.sources.items():
            sources[name.suite, name.kernel][name.implementation] = source
        return sources

    @cached_property
    def digest(self) -> str:
        """Changes with anything that the page of all machines shows."""
        table = self.table
        shown = [table.problems, table.machines, table.commits, sorted(self._slugs.items())]
        shown += [history.digest for history in self.histories]
        return hashlib.sha256(repr(shown).encode()).hexdigest()

    @cached_property
    def _slugs(self) -> dict[Setup, str]:
        """Ends of file names by setup; the first has none."""
        slugs: dict[Setup, str] = {}
        for history in self.histories[1:]:
            named = f"{history.setup.machine}-{history.setup.environment}"
            # Cut, since file systems end a name at 255 bytes, and a kernel's name comes before.
            slug = f"--{re.sub(r'[^A-Za-z0-9.]+', '-', named).strip('-.')[:60]}"
            while slug in slugs.values():
                slug += "-2"
            slugs[history.setup] = slug
        return slugs

    def address(self, setup: Setup | None, kernel: KernelKey | None = None) -> str:
        """File name of the overview or of a kernel's page on a setup."""
        slug = self._slugs.get(setup, "") if setup else ""
        return f"kernel-{_file_name(kernel)}{slug}.html" if kernel else f"index{slug}.html"

    def page_address(self, page: str, setup: Setup) -> str:
        """File name of one of ``PAGES`` on a setup, or of one of ``SHARED_PAGES``."""
        return f"{page}{'' if page in SHARED_PAGES else self._slugs.get(setup, '')}.html"

    def navigation(
        self, setup: Setup | None, kernel: KernelKey | None = None, page: str | None = None
    ) -> Navigation:
        """Links of one page: of a kernel, of one of ``PAGES``, or else of the overview."""
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
            if page:
                counterpart = self.page_address(page, here)
            setups.append(Link(setup_label(here), counterpart, here == setup))
        is_shared = len(setups) < 2 or page in SHARED_PAGES
        return Navigation(
            overview=Link("Overview", self.address(setup), kernel is None and page is None),
            kernels=tuple(kernels),
            setups=() if is_shared else tuple(setups),
            pages=tuple(
                Link(title, self.page_address(name, setup), name == page)
                for name, title in (PAGES | SHARED_PAGES).items()
                if setup
            ),
        )

    def _links(self, history: History) -> Sequence[Link]:
        def make() -> list[Link]:
            keys = self.kernels(history)
            return [Link(kernel_label(key), self.address(history.setup, key)) for key in keys]

        return self.once("links", history, make)

    def linked(self, history: History, kernel: KernelKey | None = None) -> str:
        """Changes with the navigation of a page on that setup."""
        links = self.once(
            "linked",
            history,
            lambda: hashlib.sha256(repr([*self.kernels(history)]).encode()).hexdigest(),
        )
        others = [(one.setup, kernel in self.kernels(one)) for one in self.histories]
        return repr((links, others, self._slugs))


def _file_name(key: KernelKey) -> str:
    """A kernel's label; where it has other characters than names in suites have, or is long, with a
    digest, since benchmarks of another project can be called anything."""
    label = kernel_label(key)
    if re.fullmatch(r"[a-z0-9_.]{1,150}", label):
        return label
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_.]+', '-', label)[:150]}-{digest}"


def kernel_label(key: KernelKey) -> str:
    """``vector_add``, or ``suite.kernel`` where the two differ."""
    return kernel_title(*key)


def setup_label(setup: Setup) -> str:
    """Machine and environment in words."""
    return f"{setup.machine}, {setup.environment}"


def commit_label(commit: Commit) -> CommitLabel:
    """A commit in words."""
    # As many characters as asv's file names have.
    return CommitLabel(commit.hash[:8], text.date(commit.date), commit.subject or "")
