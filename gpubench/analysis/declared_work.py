"""Declared work that counted work contradicts, so that rates by it mean something else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpubench.analysis.headline import KernelKey
from gpubench.results import CaseCounts, CaseName, Row, Snapshot, Table
from gpubench.work.declared import DeclaredWork, declared_work


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A counted case whose suite declares other work than the case does."""

    name: CaseName
    work: DeclaredWork


@dataclass(frozen=True, slots=True)
class RateDoubt:
    """Why the rates of an implementation rest on no counted work."""

    bytes: Contradiction | None = None
    """Absent where GB/s rests on bytes that its accesses touch, or where nobody counted."""
    flops: Contradiction | None = None
    """Absent where GFLOP/s rests on counted operations, or where nobody counted."""


NO_DOUBT = RateDoubt()


@dataclass(frozen=True, slots=True)
class KernelDoubts:
    """Doubts about the rates of one kernel, whose implementations share its formulas."""

    by_implementation: Mapping[str, RateDoubt] = field(default_factory=dict)
    """Of each implementation that was counted."""

    def of(self, implementation: str) -> RateDoubt:
        """Return the doubt about an implementation.

        One that was not counted, such as NumPy, shares a doubt that all counted ones have.
        """
        doubt = self.by_implementation.get(implementation)
        return self._shared() if doubt is None else doubt

    def _shared(self) -> RateDoubt:
        doubts = [*self.by_implementation.values()]
        return RateDoubt(
            next((one.bytes for one in doubts if all(each.bytes for each in doubts)), None),
            next((one.flops for one in doubts if all(each.flops for each in doubts)), None),
        )


NO_DOUBTS = KernelDoubts()


def find_doubts(table: Table) -> Mapping[KernelKey, KernelDoubts]:
    """Return doubts about the rates of each kernel that was counted.

    The newest commit decides that counted an implementation, on any machine: work does not depend
    on the machine. Of its cases the largest does, since formulas leave out lower powers.
    """
    newest: dict[tuple[str, str, str], tuple[Row, CaseCounts]] = {}
    for snapshot in sorted(_newest_counted(table), key=lambda one: one.commit.date):
        counts = table.counts(snapshot)
        largest: dict[tuple[str, str, str], tuple[Row, CaseCounts]] = {}
        for row in table.rows(snapshot, [*counts]).values():
            key = row.name.suite, row.name.kernel, row.name.implementation
            its = counts[row.name]
            if its.missing is None and (key not in largest or row.size > largest[key][0].size):
                largest[key] = row, its
        newest |= largest
    found: dict[KernelKey, dict[str, RateDoubt]] = defaultdict(dict)
    for (suite, kernel, implementation), (row, its) in newest.items():
        if work := declared_work(row.bytes, row.flops, its.totals):
            contradiction = Contradiction(row.name, work)
            found[suite, kernel][implementation] = RateDoubt(
                contradiction if work.are_bytes_off else None,
                contradiction if work.are_flops_off else None,
            )
    return {key: KernelDoubts(doubts) for key, doubts in found.items()}


def _newest_counted(table: Table) -> Iterable[Snapshot]:
    """Return the newest snapshot with counts of each machine and environment."""
    for setup in table.setups:
        snapshots = table.snapshots(setup)
        counted = table.counted(snapshots)
        places = {place for of_case in counted.values() for place in of_case}
        if places:
            yield snapshots[max(places)]
