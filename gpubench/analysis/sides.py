"""Which snapshots stand on the two sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.analysis.history import Setup
from gpubench.errors import ResultsError
from gpubench.results import Results, Snapshot


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a commit, or a results folder at its newest commits."""

    label: str
    """As the user named it."""
    snapshots: tuple[Snapshot, ...]
    """One for each machine and environment."""

    def on(self, machine: str | None, environment: str | None) -> Side:
        """The same side without other machines and environments; ``None`` keeps all."""
        kept = tuple(
            snapshot
            for snapshot in self.snapshots
            if machine in (None, snapshot.machine) and environment in (None, snapshot.environment)
        )
        return Side(self.label, kept)


def commit_side(label: str, results: Results, commit: str) -> Side:
    """The side of one commit, given by its full hash."""
    return Side(label, tuple(s for s in results.snapshots if s.commit == commit))


def newest_side(label: str, results: Results) -> Side:
    """The side of a results folder: each machine and environment at its newest commit."""
    newest = {setup_of(snapshot): snapshot for snapshot in results.snapshots}
    return Side(label, tuple(newest[setup] for setup in sorted(newest)))


def setup_of(snapshot: Snapshot) -> Setup:
    """Machine and environment of a snapshot."""
    return Setup(snapshot.machine, snapshot.environment)


def paired(old: Side, new: Side) -> tuple[tuple[Snapshot, Snapshot], ...]:
    """Pairs of snapshots of the same machine and environment; else the only one of each side.

    Raises ``ResultsError`` where neither is to be had.
    """
    at = {setup_of(snapshot): snapshot for snapshot in old.snapshots}
    pairs = tuple((at[setup_of(s)], s) for s in new.snapshots if setup_of(s) in at)
    if pairs:
        return pairs
    if len(old.snapshots) == len(new.snapshots) == 1:
        return ((old.snapshots[0], new.snapshots[0]),)
    raise ResultsError(
        f"{old.label} and {new.label} have no machine and environment in common: "
        f"{_places(old.snapshots)} against {_places(new.snapshots)}; "
        "narrow them to one each with --machine and --environment"
    )


def _places(snapshots: Sequence[Snapshot]) -> str:
    return _join(f"{s.machine} {s.environment}" for s in snapshots) or "nothing measured"


def _join(texts: Iterable[str]) -> str:
    return ", ".join(sorted(set(texts)))
