"""What pages name and link: commits, kernels and setups in words, and the way between pages."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from gpubench.analysis.headline import KernelKey
from gpubench.names import kernel_title
from gpubench.report import text
from gpubench.results import Commit, Setup, Snapshot

MAX_NAME_CHARACTERS = 48
"""Of a foreign benchmark in the name of its page: module, class and function often have 80."""


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
    """Beside overviews and kernels; empty where nothing is measured."""
    noun: str = "kernel"
    """What ``kernels`` are called: benchmarks in an asv project that has no suites."""


@dataclass(frozen=True, slots=True)
class CommitLabel:
    """A commit in words."""

    short: str
    date: str
    subject: str
    """Empty without the repository."""
    uncommitted: str = ""
    """Files that differed from the commit when it was measured; empty where none is known to."""
    address: str = ""
    """Of its page on the web; empty where none is known."""


@dataclass(frozen=True, slots=True)
class State:
    """Something a reader should know before the numbers: what it is, why, what comes next."""

    title: str
    why: str
    command: str | None = None
    """Command line to copy."""


@lru_cache(maxsize=2**14)
def file_name(key: KernelKey) -> str:
    """Return a kernel's label; where it has other characters than names in suites have, or is long,
    its end with a digest, since benchmarks of another project can be called anything."""
    label = kernel_label(key)
    if re.fullmatch(r"[a-z0-9_.]{1,150}", label):
        return label
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:8]
    # A report of many setups names a page in thousands of links.
    end = re.sub(r"[^A-Za-z0-9_.]+", "-", label)[-MAX_NAME_CHARACTERS:]
    whole = end if len(end) < MAX_NAME_CHARACTERS else end.partition(".")[2] or end
    return f"{whole}-{digest}"


def kernel_label(key: KernelKey) -> str:
    """``vector_add``, or ``suite.kernel`` where the two differ."""
    return kernel_title(*key)


def setup_label(setup: Setup) -> str:
    """Machine, environment and, of several, the branch in words."""
    return ", ".join(filter(None, (setup.machine, setup.environment, setup.branch)))


def commit_label(commit: Commit) -> CommitLabel:
    """Return a commit in words."""
    # As many characters as asv's file names have.
    return CommitLabel(
        commit.hash[:8], text.date(commit.date), commit.subject or "", address=commit.address
    )


def snapshot_label(snapshot: Snapshot) -> CommitLabel:
    """Return the commit of a snapshot in words, and what was not committed when it was measured."""
    return replace(commit_label(snapshot.commit), uncommitted=text.some(snapshot.uncommitted))
