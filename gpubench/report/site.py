"""What all pages share: the table's rows and histories, addresses, navigation, labels."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from gpubench.analysis import headline
from gpubench.analysis.changes import Change, changes_of
from gpubench.analysis.comparison import FAILURES
from gpubench.analysis.headline import KernelKey, KernelNow
from gpubench.analysis.noise import Noise, noise
from gpubench.report import text
from gpubench.results import CaseName, Commit, History, Row, Setup, Snapshot, Table

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
        self._rows: dict[int, Mapping[CaseName, Row]] = {}
        self._changes: dict[Setup, Mapping[CaseName, tuple[Change, ...]]] = {}

    @cached_property
    def histories(self) -> tuple[History, ...]:
        """One for each setup, those that still measure first."""
        return tuple(self.table.history(setup) for setup in self.table.setups)

    def rows(self, snapshot: Snapshot) -> Mapping[CaseName, Row]:
        """Each case of one snapshot."""
        if snapshot.id not in self._rows:
            self._rows[snapshot.id] = self.table.rows(snapshot)
        return self._rows[snapshot.id]

    def current(self, history: History) -> Mapping[KernelKey, KernelNow]:
        """Each kernel at the newest commit at which it was measured on that setup."""
        return self._current[history.setup]

    @cached_property
    def _current(self) -> dict[Setup, Mapping[KernelKey, KernelNow]]:
        return {h.setup: headline.current(h, self.rows) for h in self.histories}

    def changes(self, history: History) -> Mapping[CaseName, tuple[Change, ...]]:
        """Changes in each case's times on a setup, as indices into its snapshots."""
        setup = history.setup
        if setup not in self._changes:
            kept = self.table.fits(setup)
            self._changes[setup], fits = changes_of(history, kept)
            if fits != kept:
                self.table.keep_fits(setup, fits)
        return self._changes[setup]

    def labels(self, history: History) -> tuple[CommitLabel, ...]:
        """The commits of a setup in words."""
        return self._labels[history.setup]

    @cached_property
    def _labels(self) -> dict[Setup, tuple[CommitLabel, ...]]:
        return {h.setup: tuple(map(commit_label, h.commits)) for h in self.histories}

    def noise(self, history: History) -> Noise:
        """How much times scatter on a setup."""
        return self._noise[history.setup]

    @cached_property
    def _noise(self) -> dict[Setup, Noise]:
        return {history.setup: noise(history) for history in self.histories}

    @cached_property
    def failures(self) -> Mapping[int, Mapping[CaseName, str]]:
        """Why cases failed, by the snapshot's id: read at once, since all rows are too many."""
        statuses = ", ".join(f"'{status}'" for status in FAILURES)
        _, failures = self.table.query(
            'select snapshot, suite, kernel, implementation, time, "case", reason from results '
            f"where status in ({statuses})"
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
        return (
            f"{page}.html" if page in SHARED_PAGES else f"{page}{self._slugs.get(setup, '')}.html"
        )

    def navigation(
        self, setup: Setup | None, kernel: KernelKey | None = None, page: str | None = None
    ) -> Navigation:
        """Links of one page: of a kernel, of one of ``PAGES``, or else of the overview."""
        kernels = self._current[setup] if setup else {}
        others = self.histories if len(self.histories) > 1 and page not in SHARED_PAGES else ()
        return Navigation(
            overview=Link("Overview", self.address(setup), kernel is None and page is None),
            kernels=tuple(
                Link(kernel_label(key), self.address(setup, key), key == kernel) for key in kernels
            ),
            setups=tuple(
                Link(setup_label(h.setup), self._counterpart(h, kernel, page), h.setup == setup)
                for h in others
            ),
            pages=tuple(
                Link(title, self.page_address(name, setup), name == page)
                for name, title in (PAGES | SHARED_PAGES).items()
                if setup
            ),
        )

    def _counterpart(self, history: History, kernel: KernelKey | None, page: str | None) -> str:
        """The same page on another setup; its overview where it has no such kernel."""
        if page:
            return self.page_address(page, history.setup)
        return self.address(history.setup, kernel if kernel in self.current(history) else None)


def kernel_label(key: KernelKey) -> str:
    """``vector_add``, or ``suite.kernel`` where the two differ."""
    suite, kernel = key
    return kernel if suite == kernel else f"{suite}.{kernel}"


def setup_label(setup: Setup) -> str:
    """Machine and environment in words."""
    return f"{setup.machine}, {setup.environment}"


def commit_label(commit: Commit) -> CommitLabel:
    """A commit in words."""
    return CommitLabel(commit.hash[:8], text.date(commit.date), commit.subject or "")
