"""What stands for a kernel: its largest problem, each implementation with its fastest launch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from gpubench.names import KernelKey as KernelKey
from gpubench.results import CaseName, Commit, History, Ratio, Row, Snapshot, geometric_mean
from gpubench.results.histories import natural

RowsOf = Callable[[Snapshot, Collection[CaseName]], Mapping[CaseName, Row]]
"""Reads the rows of some cases of a snapshot."""


@dataclass(frozen=True, slots=True)
class KernelNow:
    """One kernel at the newest commit at which it was measured on a setup."""

    key: KernelKey
    commit: Commit
    cases: Mapping[CaseName, Row]


@dataclass(frozen=True, slots=True)
class Headline:
    """One implementation at the largest problems that it was compared on."""

    implementation: str
    rows: tuple[Row, ...]
    """All that was measured of it."""
    cases: tuple[Row, ...]
    """One for each problem of that size (data types, for example): its fastest launch."""
    speedup: Ratio | None
    """Geometric mean over ``cases``."""

    @property
    def is_baseline(self) -> bool:
        return any(row.is_baseline for row in self.rows)

    @property
    def speed(self) -> float:
        """Orders implementations: the fastest has the largest."""
        return self.speedup.value if self.speedup else 0.0


def current(history: History, rows: RowsOf) -> dict[KernelKey, KernelNow]:
    """Return each kernel as it was last measured on a setup, in natural order: ``k2`` before
    ``k10``."""
    newest: dict[KernelKey, int] = {}
    places = [*zip(history.names, history.newest.places.tolist(), strict=True)]
    for name, place in places:
        key = (name.suite, name.kernel)
        newest[key] = max(place, newest.get(key, place))
    names: dict[int, list[CaseName]] = defaultdict(list)
    for name, place in places:
        if place == newest[name.suite, name.kernel]:
            names[place].append(name)
    cases: dict[KernelKey, dict[CaseName, Row]] = defaultdict(dict)
    for place, of_place in names.items():
        of_snapshot = rows(history.snapshots[place], of_place)
        for name in of_place:
            cases[name.suite, name.kernel][name] = of_snapshot[name]
    return {
        key: KernelNow(key, history.commits[place], cases[key])
        for key, place in sorted(newest.items(), key=lambda item: [*map(natural, item[0])])
    }


def fastest_variants(rows: Iterable[Row]) -> dict[str, Row]:
    """Return for each problem the case with the least time; problems without any time are left
    out."""
    fastest: dict[str, Row] = {}
    for row in rows:
        other = fastest.get(row.problem)
        if row.seconds is not None and (
            other is None or other.seconds is None or row.seconds < other.seconds
        ):
            fastest[row.problem] = row
    return fastest


def does_nothing(rows: Iterable[Row]) -> bool:
    """Return whether a kernel does no work, as its suite says: `work: {bytes: 0, flops: 0}`, of an
    empty launch for example. Where nothing is said it does some."""
    timed = [row for row in rows if row.seconds is not None]
    return bool(timed) and all(row.bytes == 0 and not row.flops for row in timed)


def headline(rows: Iterable[Row], implementation: str) -> Headline:
    """Return the headline of one implementation among the current cases of its kernel.

    Choosing the fastest of several launches favours the candidate a little; the baseline has
    no launches to choose from, and a user of the kernel would choose the same.
    """
    its = tuple(row for row in rows if row.name.implementation == implementation)
    fastest = fastest_variants(row for row in its if row.name.time == "kernel")
    compared = [row for row in fastest.values() if row.speedup] or list(fastest.values())
    largest = max((row.size for row in compared), default=0.0)
    cases = tuple(row for row in compared if row.size == largest)
    speedup = geometric_mean([row.speedup for row in cases if row.speedup])
    return Headline(implementation, its, cases, speedup)
