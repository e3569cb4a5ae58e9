"""What all pages share: addresses, navigation, the newest outcomes of each setup."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property

from gpubench.analysis.baseline import Compared
from gpubench.analysis.headline import KernelKey, KernelNow, current
from gpubench.analysis.history import Setup, SetupHistory, by_setup
from gpubench.analysis.noise import Noise, noise
from gpubench.report import text
from gpubench.results import CaseName, Commit, Results, Snapshot

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
class DataFile:
    """A file beside the pages, before it is made."""

    address: str
    """Relative to the folder of the report."""
    content: Callable[[], str]
    sources: bytes
    """Changes with anything that the content is made from."""

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class State:
    """Something a reader should know before the numbers: what it is, why, what comes next."""

    title: str
    why: str
    command: str | None = None
    """Command line to copy."""


@dataclass(frozen=True)
class Site:
    """Results, arranged for pages."""

    results: Results

    @cached_property
    def histories(self) -> tuple[SetupHistory, ...]:
        return by_setup(self.results)

    @cached_property
    def _slugs(self) -> dict[Setup, str]:
        slugs: dict[Setup, str] = {}
        for history in self.histories[1:]:
            plain = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(_labels(history.setup))).strip("-.")
            slug = f"--{plain[:60]}"
            while slug in slugs.values():
                slug += "-2"
            slugs[history.setup] = slug
        return slugs

    @cached_property
    def _current(self) -> dict[Setup, Mapping[KernelKey, KernelNow]]:
        return {history.setup: current(history) for history in self.histories}

    def current(self, history: SetupHistory) -> Mapping[KernelKey, KernelNow]:
        """Each kernel at the newest commit at which it was measured on that setup."""
        return self._current[history.setup]

    @cached_property
    def commits(self) -> Mapping[str, Commit]:
        """By their hashes."""
        return {commit.hash: commit for commit in self.results.commits}

    @cached_property
    def _places(self) -> dict[int, tuple[SetupHistory, int]]:
        return {
            id(snapshot): (history, place)
            for history in self.histories
            for place, snapshot in enumerate(history.snapshots)
        }

    def compared(self, snapshot: Snapshot) -> Mapping[CaseName, Compared]:
        """Each case of one of the snapshots beside its baseline."""
        history, place = self._places[id(snapshot)]
        return history.compared_at(place)

    @cached_property
    def _labels(self) -> dict[Setup, tuple[CommitLabel, ...]]:
        return {h.setup: tuple(map(commit_label, h.commits)) for h in self.histories}

    def labels(self, history: SetupHistory) -> tuple[CommitLabel, ...]:
        """The commits of a setup in words."""
        return self._labels[history.setup]

    @cached_property
    def _noise(self) -> dict[Setup, Noise]:
        return {history.setup: noise(history) for history in self.histories}

    def noise(self, history: SetupHistory) -> Noise:
        """How much times scatter on a setup."""
        return self._noise[history.setup]

    @cached_property
    def all_sources(self) -> bytes:
        """Changes with anything that is told at all, but for the benchmarks' code."""
        told = self.results
        rest = repr((told.problems, told.machines, told.commits, sorted(self._slugs.items())))
        own = [history.digest for history in self.histories]
        return hashlib.sha256(b"".join([*own, rest.encode()])).digest()

    def changes_looked_for(self) -> AbstractContextManager[None]:
        """Within it another process looks for changes; who asks for them waits for it."""
        return self.histories[0].changes_looked_for() if self.histories else nullcontext()

    @property
    def waits_for_changes(self) -> bool:
        """Whether another process still looks for them."""
        return bool(self.histories) and self.histories[0].waits_for_changes

    def settle(self) -> None:
        """Wait for the changes, before several processes ask for them."""
        for history in self.histories:
            history.changes(next(iter(history.cases)))

    def address(self, setup: Setup | None, kernel: KernelKey | None = None) -> str:
        """File name of the overview or of a kernel's page on a setup."""
        slug = self._slugs.get(setup, "") if setup else ""
        return f"kernel-{kernel_label(kernel)}{slug}.html" if kernel else f"index{slug}.html"

    def page_address(self, page: str, setup: Setup) -> str:
        """File name of one of ``PAGES`` on a setup, or of one of ``SHARED_PAGES``."""
        if page in SHARED_PAGES:
            return f"{page}.html"
        return f"{page}{self._slugs.get(setup, '')}.html"

    def navigation(
        self, setup: Setup | None, kernel: KernelKey | None = None, page: str | None = None
    ) -> Navigation:
        """Links of one page: of a kernel, of one of ``PAGES``, or else of the overview."""
        history = next((h for h in self.histories if h.setup == setup), None)
        kernels = self.current(history) if history else {}
        return Navigation(
            overview=Link("Overview", self.address(setup), kernel is None and page is None),
            kernels=tuple(
                Link(kernel_label(key), self.address(setup, key), key == kernel) for key in kernels
            ),
            setups=tuple(
                Link(setup_label(h.setup), self._counterpart(h, kernel, page), h.setup == setup)
                for h in self.histories
                if len(self.histories) > 1 and page not in SHARED_PAGES
            ),
            pages=tuple(
                Link(title, self.page_address(name, setup), name == page)
                for name, title in (PAGES | SHARED_PAGES).items()
                if setup
            ),
        )

    def _counterpart(
        self, history: SetupHistory, kernel: KernelKey | None, page: str | None
    ) -> str:
        if page:
            return self.page_address(page, history.setup)
        return self.address(history.setup, kernel if kernel in self.current(history) else None)


def kernel_label(key: KernelKey) -> str:
    """``vector_add``, or ``suite.kernel`` where the two differ."""
    suite, kernel = key
    return kernel if suite == kernel else f"{suite}.{kernel}"


def _labels(setup: Setup) -> tuple[str, str]:
    return setup.machine, setup.environment


def setup_label(setup: Setup) -> str:
    """Machine and environment in words."""
    return ", ".join(_labels(setup))


def commit_label(commit: Commit) -> CommitLabel:
    """A commit in words."""
    return CommitLabel(commit.hash[:8], text.date(commit.date), commit.subject or "")
