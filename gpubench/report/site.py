"""What all pages share: the table's rows and histories, addresses, navigation, labels."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from gpubench.analysis.changes import Change, changes_of, changes_of_each, is_much
from gpubench.analysis.comparison import DISTURBED, FAILURES
from gpubench.analysis.headline import KernelKey, KernelNow, current
from gpubench.analysis.noise import Noise, noise
from gpubench.report import text
from gpubench.results import CaseName, Commit, History, Row, Setup, Snapshot, Table
from gpubench.results.ratio import MOST_DISTURBED

T = TypeVar("T")

PAGES = {"changes": "Changes", "compare": "Compare", "choose": "Choose"}
"""Pages that every setup has one of, beside the overview and the kernels: file name and title."""

SHARED_PAGES = {"machines": "Machines and data"}
"""Pages that the report has one of, whatever the setup."""


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
    """The table as pages see it. What several pages show is read or calculated once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._made: dict[tuple[str, Setup | int], Any] = {}
        self._searches: dict[Setup, Future[Any]] = {}

    def _once(self, what: str, of: Setup | int, make: Callable[[], T]) -> T:
        """What was made of it before, or else is made now."""
        if (what, of) not in self._made:
            self._made[what, of] = make()
        made: T = self._made[what, of]
        return made

    @cached_property
    def histories(self) -> tuple[History, ...]:
        """One for each setup, those that still measure first."""
        return tuple(self.table.history(setup) for setup in self.table.setups)

    def rows(self, snapshot: Snapshot) -> Mapping[CaseName, Row]:
        """Each case of one snapshot."""
        return self._once("rows", snapshot.id, lambda: self.table.rows(snapshot))

    def current(self, history: History) -> Mapping[KernelKey, KernelNow]:
        """Each kernel at the newest commit at which it was measured on that setup."""
        return self._once("current", history.setup, lambda: current(history, self.rows))

    def rows_now(self, history: History) -> list[Row]:
        """Each case of those kernels."""
        return [row for now in self.current(history).values() for row in now.cases.values()]

    def begin_search(self) -> None:
        """Have other processes look for the changes of all setups while pages are made, where they
        are more than one process would look for."""
        kept = [self.table.fits(history.setup) for history in self.histories]
        if is_much(self.histories, kept):
            outcomes, waiting = changes_of_each(self.histories, kept), ThreadPoolExecutor(1)
            for history in self.histories:
                self._searches[history.setup] = waiting.submit(next, outcomes)

    def changes(self, history: History) -> Mapping[CaseName, tuple[Change, ...]]:
        """Changes in each case's times on a setup, as indices into its snapshots."""

        def find() -> Mapping[CaseName, tuple[Change, ...]]:
            kept = self.table.fits(history.setup)
            search = self._searches.pop(history.setup, None)
            changes, fits = search.result() if search else changes_of(history, kept)
            if fits != kept:
                self.table.keep_fits(history.setup, fits)
            return changes

        return self._once("changes", history.setup, find)

    def labels(self, history: History) -> tuple[CommitLabel, ...]:
        """The commits of a setup in words."""
        return self._once(
            "labels", history.setup, lambda: tuple(map(commit_label, history.commits))
        )

    def noise(self, history: History) -> Noise:
        """How much times scatter on a setup."""
        return self._once("noise", history.setup, lambda: noise(history))

    @cached_property
    def failures(self) -> Mapping[int, Mapping[CaseName, str]]:
        """Why cases failed or have a time without a verdict, by the snapshot's id: read at once,
        since all rows are too many."""
        statuses = ", ".join(f"'{status}'" for status in FAILURES)
        _, failures = self.table.query(
            f"""
            select snapshot, suite, kernel, implementation, time, "case",
                if(disturbed > {MOST_DISTURBED}, '{DISTURBED}', reason) from results
            where status in ({statuses}) or disturbed > {MOST_DISTURBED}
            """
        )
        reasons: dict[int, dict[CaseName, str]] = defaultdict(dict)
        for snapshot, *name, reason in failures:
            reasons[snapshot][CaseName(*name)] = reason or ""
        return reasons

    @cached_property
    def digest(self) -> str:
        """Changes with anything that pages show, but for the benchmarks' code."""
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
        return f"kernel-{kernel_label(kernel)}{slug}.html" if kernel else f"index{slug}.html"

    def page_address(self, page: str, setup: Setup) -> str:
        """File name of one of ``PAGES`` on a setup, or of one of ``SHARED_PAGES``."""
        return f"{page}{'' if page in SHARED_PAGES else self._slugs.get(setup, '')}.html"

    def navigation(
        self, setup: Setup | None, kernel: KernelKey | None = None, page: str | None = None
    ) -> Navigation:
        """Links of one page: of a kernel, of one of ``PAGES``, or else of the overview."""
        kernels, setups = [], []
        for history in self.histories:
            here, has = history.setup, self.current(history)
            if here == setup:
                kernels = [Link(kernel_label(k), self.address(here, k), k == kernel) for k in has]
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


def kernel_label(key: KernelKey) -> str:
    """``vector_add``, or ``suite.kernel`` where the two differ."""
    suite, kernel = key
    return kernel if suite == kernel else f"{suite}.{kernel}"


def setup_label(setup: Setup) -> str:
    """Machine and environment in words."""
    return f"{setup.machine}, {setup.environment}"


def commit_label(commit: Commit) -> CommitLabel:
    """A commit in words."""
    # As many characters as asv's file names have.
    return CommitLabel(commit.hash[:8], text.date(commit.date), commit.subject or "")
