"""Measure commits of a line, each in turn with the good end, as a search asks for them.

One environment keeps the good end, the other one is installed again for each commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpubench.errors import GpubenchError
from gpubench.git import ask_git, named_repository
from gpubench.measure.direct import Job
from gpubench.measure.in_turn import Bench, log_ratio, take_pair

OTHER_SIDE = 1
"""Side of the bench with the commit that is measured; the good end stays at the first."""

_FIELD_SEPARATOR = "%x00"


@dataclass(frozen=True, slots=True)
class LineCommit:
    """One commit of the line from the good end to the bad end."""

    hash: str
    author_date: float
    """Seconds since 1970."""
    subject: str
    parents: int


class CommitBench(Bench, Protocol):
    """A bench whose sides can be given another commit."""

    def put_in_place(self, side: int, label: str) -> object:
        """Install another commit at a side. Raises ``GpubenchError`` where that fails."""

    def has_job(self, side: int, job: Job) -> bool:
        """Return whether a side has the case."""


class Search(Protocol):
    """Says which place is measured next."""

    skipped: set[int]

    def add(self, place: int, log: float) -> None:
        """Add the logarithm of a pair: the good end's time over the place's."""

    def choose(self, at: int | None, move_cost: float) -> int | None:
        """Return the next place, ``None`` where none tells anything; see ``Bisection``."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """What one step of a search gave."""

    place: int
    skipped_because: str = ""
    """Why the place cannot be measured; empty after a pair."""
    install_seconds: float = 0.0
    """That installing before this step took."""


def read_line(repository: str | None, good: str, bad: str) -> list[LineCommit]:
    """Return the commits behind ``good`` up to ``bad``, the oldest first, along first parents: a
    merge stands for the branch that it brought.

    Raises ``GpubenchError`` where there is no such line.
    """
    if repository is None:
        raise GpubenchError("`since` follows commits of git, and this repository is none of git's")
    folder = named_repository(Path(repository))
    short = [good[:8], bad[:8]]
    base = ask_git(folder, "merge-base", good, bad).decode().strip()
    if good == bad:
        raise GpubenchError(f"--good and --bad are the same commit, {short[0]}: name two")
    if base == bad:
        raise GpubenchError(
            f"--good {short[0]} is behind --bad {short[1]}: the good end is the older one. To find "
            "what made a case faster, keep the older one as --good too"
        )
    if base != good:
        start = f"begin where they part: --good {base[:8]}" if base else "they have no common start"
        raise GpubenchError(f"--good {short[0]} is no ancestor of --bad {short[1]}: {start}")
    form = _FIELD_SEPARATOR.join(("%H", "%at", "%P", "%s"))
    arguments = ("log", "--first-parent", "--reverse", f"--format={form}", f"{good}..{bad}")
    line = []
    for printed in ask_git(folder, *arguments).decode(errors="replace").splitlines():
        commit, at, parents, subject = printed.split("\0", 3)
        line.append(LineCommit(commit, float(at), subject, len(parents.split())))
    return line


def search_in_turn(
    job: Job,
    line: Sequence[LineCommit],
    bench: CommitBench,
    search: Search,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[SearchStep]:
    """Measure a case at the places that a search chooses, until it needs none or so many seconds
    are over; yields after each pair, and for each place that cannot be measured.

    The bad end, the last of the line, is installed before. An installation or a pair that would not
    fit into what is left is not begun. Raises ``GpubenchError`` where the good end has no time.
    """
    end = clock() + seconds
    at: int | None = len(line) - 1
    installs: list[float] = []
    pairs: list[float] = []
    while True:
        install_seconds, pair_seconds = map(_mean, (installs, pairs))
        move_cost = install_seconds / pair_seconds if pair_seconds else 0.0
        place = search.choose(at, move_cost)
        needed = pair_seconds + (0.0 if place == at else install_seconds)
        if place is None or clock() + needed >= end:
            return
        reason = ""
        installing = 0.0
        if place != at:
            began = clock()
            reason = _try_to_install(bench, line[place].hash, job)
            installing = clock() - began
            installs.append(installing)
        began = clock()
        if not reason:
            outcome = _measure(bench, job, bool(len(pairs) % 2), end, clock)
            if outcome is None:
                return
            if isinstance(outcome, str):
                reason = outcome
            else:
                pairs.append(clock() - began)
                search.add(place, outcome)
        if reason:
            search.skipped.add(place)
        at = None if reason else place
        yield SearchStep(place, reason, installing)


def _mean(seconds: Sequence[float]) -> float:
    return sum(seconds) / len(seconds) if seconds else 0.0


def _try_to_install(bench: CommitBench, commit: str, job: Job) -> str:
    """Install a commit beside the good end; return why it cannot be measured, empty where it
    can."""
    try:
        bench.put_in_place(OTHER_SIDE, commit)
    except GpubenchError as error:
        return str(error)
    return "" if bench.has_job(OTHER_SIDE, job) else "it does not have the case"


def _measure(
    bench: CommitBench, job: Job, is_reversed: bool, end: float, clock: Callable[[], float]
) -> float | str | None:
    """Return the logarithm of a pair's ratio, the good end's time over the other's; why the other
    has no time; or ``None`` where the time was over."""
    try:
        bench.begin_round()
    except GpubenchError as error:
        return str(error)
    outcomes = take_pair(bench, job, is_reversed, end, clock)
    if outcomes is None:
        return None
    good, other = outcomes
    if good.record.status != "ok":
        raise GpubenchError(
            f"the good end has no time any more: {good.record.status} ({good.record.reason})"
        )
    if other.record.status != "ok":
        return f"the case is {other.record.status}: {other.record.reason}"
    return log_ratio(outcomes)
