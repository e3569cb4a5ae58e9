"""Changes of counted work: exact figures, of which any difference between two commits is a change.

Counts repeat, so that no rule for steps is needed. They compare where the same rules counted what
the same compilers made; a machine has no part in them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from gpubench.analysis.causes import FactChange, changed_facts
from gpubench.analysis.comparison import REPLACED
from gpubench.analysis.costs import CostPair, cost_pairs
from gpubench.analysis.counted_change import find_counted_change
from gpubench.analysis.differences import OPEN, Difference, SnapshotComparison
from gpubench.record import ORDER_DEPENDENT
from gpubench.results import CaseCounts, CaseName, LineCounts, Row, Snapshot, Table, natural_order

COMPILERS = ("numba", "llvmlite", "numba_cuda", "python")
"""Facts of a run that decide which code is counted, beside the packages of NVIDIA's compiler."""

COMPILER_PREFIXES = ("nvidia_nvvm", "nvidia_nvjitlink", "nvidia_cuda_nv")
"""Beginnings of the names of packages that hold NVIDIA's compiler, as facts have them."""

NOT_COUNTED = "it ran on the device in software and was not counted"
NO_COUNTS_BEFORE = "no counts before: {reason}"
OTHER_MODEL = "counted by version {old} of the rules before, by {new} after"
OTHER_TARGET = "counted for {old} before, for {new} after"
OTHER_COMPILER = "another compiler: {facts}"

CountVerdict = Literal["grew", "lost", "improved", "allowed", "not judged"]

COUNT_VERDICTS: tuple[CountVerdict, ...] = get_args(CountVerdict)
"""In the order in which they are shown."""

REFUSED: tuple[CountVerdict, ...] = ("grew", "lost")
"""Verdicts that ``--fail-on counts`` refuses."""


CaseLines = tuple[Sequence[LineCounts], Sequence[LineCounts]]
"""Lines of a case with their counts, before and after."""


@dataclass(frozen=True, slots=True)
class CountedSnapshot:
    """A snapshot with the counts and the rows of its cases; no rows where none was counted."""

    snapshot: Snapshot
    counts: Mapping[CaseName, CaseCounts]
    rows: Mapping[CaseName, Row]

    @classmethod
    def of(cls, table: Table, snapshot: Snapshot) -> CountedSnapshot:
        """Read the counts of a snapshot."""
        counts = table.counts(snapshot)
        return cls(snapshot, counts, table.rows(snapshot) if counts else {})


@dataclass(frozen=True, slots=True)
class CountDifference:
    """One cost of a case that differs between two snapshots, or why none of it is judged."""

    name: CaseName
    verdict: CountVerdict
    pair: CostPair | None
    """``None`` where the case as a whole is not judged."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CountComparison:
    """The counted work of two snapshots side by side."""

    differences: tuple[CountDifference, ...]
    """By verdict, then by case."""
    compared: int
    """Cases that were judged."""
    same: int
    """Number of cases whose costs are all equal."""

    @property
    def verdicts(self) -> dict[str, int]:
        """How many differences have which verdict; what does not occur is left out."""
        counts = Counter(difference.verdict for difference in self.differences)
        return {verdict: counts[verdict] for verdict in COUNT_VERDICTS if counts[verdict]}

    @property
    def is_refused(self) -> bool:
        """Whether a cost grew or a case lost its counts."""
        return any(difference.verdict in REFUSED for difference in self.differences)


@dataclass(frozen=True, slots=True)
class CountChange:
    """Costs of a case that differ between two neighbouring commits with counts."""

    name: CaseName
    before: int
    """Index of the snapshot before."""
    after: int
    pairs: tuple[CostPair, ...]
    """Costs that differ, in their order."""
    facts: tuple[FactChange, ...]
    """Compilers that changed with it: then they may be the cause."""


def is_of_a_compiler(fact: str) -> bool:
    """Return whether a fact of that name decides which code is counted."""
    return fact in COMPILERS or fact.startswith(COMPILER_PREFIXES)


def compiler_changes(old: Snapshot, new: Snapshot) -> tuple[FactChange, ...]:
    """Return what differs in the compilers of two snapshots, as far as both say."""
    return tuple(
        fact
        for fact in changed_facts(old, new)
        if is_of_a_compiler(fact.name) and not _is_same_python(fact)
    )


def _is_same_python(fact: FactChange) -> bool:
    """Return whether a fact is two bug-fix releases of Python, which have the same bytecode."""
    releases = [str(value).split(".")[:2] for value in (fact.old, fact.new)]
    return fact.name == "python" and releases[0] == releases[1]


def target_words(counts: CaseCounts) -> str:
    """Return what code was made for: ``compute capability 8.0`` of the device in software, on the
    CPU the compiler's versions and the processor."""
    if counts.made_by is not None:
        return counts.made_by
    capabilities = (".".join(map(str, one)) for one in sorted(counts.architectures))
    return f"compute capability {', '.join(capabilities)}"


def why_not_comparable(old: CaseCounts, new: CaseCounts) -> str:
    """Return why two counts do not compare, whatever compiled them; empty where they do."""
    if old.model != new.model:
        return OTHER_MODEL.format(old=old.model, new=new.model)
    if target_words(old) != target_words(new):
        return OTHER_TARGET.format(old=target_words(old), new=target_words(new))
    return ""


def compare_counts(
    old: CountedSnapshot, new: CountedSnapshot, allowed: Mapping[str, float]
) -> CountComparison:
    """Compare the counts of two snapshots.

    ``allowed`` has, by the name of a cost or of its group, the share by which it may grow.
    """
    compilers = ", ".join(
        f"{fact.name} {fact.old} → {fact.new}"
        for fact in compiler_changes(old.snapshot, new.snapshot)
    )
    differences: list[CountDifference] = []
    compared = same = 0
    for name in sorted(old.counts.keys() & new.rows.keys(), key=natural_order):
        before, after = old.counts[name], new.counts.get(name)
        versions = {row.version for row in (old.rows.get(name), new.rows.get(name)) if row}
        if after is None:
            if before.missing is None and new.rows[name].status == "verified":
                differences.append(CountDifference(name, "lost", None, NOT_COUNTED))
        elif before.missing is not None:
            note = NO_COUNTS_BEFORE.format(reason=before.missing)
            differences.append(CountDifference(name, "not judged", None, note))
        elif after.missing is not None:
            is_exact = not after.missing.startswith(ORDER_DEPENDENT)
            verdict: CountVerdict = "lost" if is_exact else "not judged"
            differences.append(CountDifference(name, verdict, None, after.missing))
        elif len(versions - {None}) > 1:
            differences.append(CountDifference(name, "not judged", None, REPLACED))
        elif note := why_not_comparable(before, after):
            differences.append(CountDifference(name, "not judged", None, note))
        else:
            changed = [pair for pair in cost_pairs(before, after) if pair.old != pair.new]
            if changed and compilers:
                note = OTHER_COMPILER.format(facts=compilers)
                differences += [CountDifference(name, "not judged", one, note) for one in changed]
                continue
            compared += 1
            same += not changed
            differences += [
                CountDifference(name, _verdict(pair, allowed), pair) for pair in changed
            ]
    differences.sort(key=lambda item: COUNT_VERDICTS.index(item.verdict))  # which keeps the order
    return CountComparison(tuple(differences), compared, same)


def _verdict(pair: CostPair, allowed: Mapping[str, float]) -> CountVerdict:
    if pair.new < pair.old:
        return "improved"
    share = allowed.get(pair.cost.name, allowed.get(pair.cost.group, pair.cost.tolerance))
    is_allowed = pair.new <= pair.old * (1 + share) or pair.new - pair.old <= pair.cost.slack
    return "allowed" if is_allowed else "grew"


def with_counted(
    comparison: SnapshotComparison,
    counted: CountComparison,
    lines_of: Callable[[CaseName], CaseLines],
) -> SnapshotComparison:
    """Add what counts say to the cases that times leave open."""
    judged: dict[CaseName, list[CostPair]] = defaultdict(list)
    for item in counted.differences:
        if item.pair is not None and item.verdict != "not judged":
            judged[item.name].append(item.pair)

    def decide(item: Difference) -> Difference:
        if item.verdict not in OPEN or item.name not in judged:
            return item
        change = find_counted_change(judged[item.name], *lines_of(item.name))
        return replace(item, counted=change)

    return replace(comparison, differences=tuple(map(decide, comparison.differences)))


def find_count_changes(table: Table, snapshots: Sequence[Snapshot]) -> list[CountChange]:
    """Find every change of a cost between neighbouring commits with counts, the newest first."""
    counted = table.counted(snapshots)
    profiles = table.profiles(
        number for of_case in counted.values() if len({*of_case.values()}) > 1
        for number in of_case.values()
    )  # fmt: skip
    changes = []
    for name, of_case in counted.items():
        if len({*of_case.values()}) < 2:  # as nearly always
            continue
        places = sorted(place for place in of_case if profiles[of_case[place]].missing is None)
        for before, after in pairwise(places):
            if of_case[before] == of_case[after]:
                continue
            old, new = profiles[of_case[before]], profiles[of_case[after]]
            if why_not_comparable(old, new):
                continue
            pairs = tuple(pair for pair in cost_pairs(old, new) if pair.is_change)
            if pairs:
                facts = compiler_changes(snapshots[before], snapshots[after])
                changes.append(CountChange(name, before, after, pairs, facts))
    return sorted(changes, key=lambda change: -change.after)
