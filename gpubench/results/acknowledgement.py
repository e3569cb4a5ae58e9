"""A change that somebody knows of: at which commit, of which benchmarks, why, and who says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpubench.names import kernel_title
from gpubench.results.model import CaseName, Commit

MAX_COMMITS_OFF = 2
"""Measured commits that a change may be found off the one that made it."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One entry of ``gpubench-acknowledged.yaml``."""

    commit: str
    """The beginning of its hash, seven characters or more."""
    benchmarks: tuple[str, ...]
    """Patterns with ``*``, ``?`` and ``[...]``."""
    reason: str
    by: str
    """Empty where nobody is named."""

    def covers(self, name: CaseName) -> bool:
        """Return whether a pattern fits a case: the name of its benchmark for asv, its kernel, or
        its kernel with implementation and case."""
        kernel = kernel_title(name.suite, name.kernel)
        words = f"{kernel} {name.implementation} {name.case}".strip()
        names = (name.benchmark.asv_name, kernel, f"{kernel} {name.implementation}", words)
        return any(fnmatchcase(each, pattern) for each in names for pattern in self.benchmarks)

    def is_at(self, commits: Sequence[Commit], place: int) -> bool:
        """Return whether a change that was found at this place of a history is at its commit."""
        near = commits[max(place - MAX_COMMITS_OFF, 0) : place + MAX_COMMITS_OFF + 1]
        return any(commit.hash.startswith(self.commit) for commit in near)

    def is_between(self, commits: Sequence[Commit], before: str, after: str) -> bool:
        """Return whether its commit follows one and is the other, or stands before that."""
        hashes = [commit.hash for commit in commits]
        if before not in hashes or after not in hashes:
            return False
        between = hashes[hashes.index(before) + 1 : hashes.index(after) + 1]
        return any(each.startswith(self.commit) for each in between)

    def __str__(self) -> str:
        return f"acknowledged{f' by {self.by}' if self.by else ''}: {self.reason}"


def find_acknowledgement(
    known: Sequence[Acknowledgement], name: CaseName, commits: Sequence[Commit], place: int
) -> Acknowledgement | None:
    """Return the entry that a change of a case at this place belongs to."""
    return next((one for one in known if one.covers(name) and one.is_at(commits, place)), None)
