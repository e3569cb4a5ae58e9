"""Two snapshots in words: what the page, the command and a pull request's comment show."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.between_runs import SURE_RATE
from gpubench.analysis.causes import FactChange
from gpubench.analysis.comparison import SAME
from gpubench.analysis.differences import (
    CHANGED,
    GPU_FACTS,
    PROCESSOR_FACTS,
    ComparisonVerdict,
    Difference,
    SetupDifference,
    SnapshotComparison,
)
from gpubench.names import kernel_argument
from gpubench.report import text
from gpubench.report.findings import case_words, counts_in_words, unfinished
from gpubench.report.lists import listed
from gpubench.report.machines import fact_words
from gpubench.report.navigation import CommitLabel, snapshot_label
from gpubench.results import Ratio, Snapshot

COMPARISON_RULE = (
    "Slower and faster: the processes of the two sides differ by more than processes of one commit "
    "do; about 1 in 100 unchanged cases is called so at most, and of the cases that are sure about "
    f"{100 * SURE_RATE:.0f} in 100 is unchanged. Suspect: it looks changed, and one process on a "
    "side cannot tell a slow process from slow code; some in 100 unchanged cases look so. "
    f"Same: the whole 99 % interval of the ratio is within {100 * (SAME - 1):.0f} %. Unclear: "
    "neither; a smaller change than the one that would have shown is possible."
)
"""What the verdicts of stored runs mean, for somebody who reads no other page."""

SHARED = (
    "Most cases of a kind became slower or faster together: {kinds}. That is another processor, "
    "another clock or a busy host, or a change of all of them. It is taken out of each case."
)
"""What cases of a kind share between the two runs."""

MIN_SHARED_SHOWN = math.log(1.01)
"""Less is taken out without a word."""

SHARED_LARGE = (
    " Of {kinds} it is so large that no case is called sure. A case is called there only where it "
    "differs with it and without it."
)

SETUPS = {
    "all": "The two sides differ in {what}. So speedups are compared, not times, and a case "
    "without a speedup on both sides is not judged.",
    "gpu": "The two sides differ in {what}. So speedups of cases on a GPU are compared, not times, "
    "and such a case without a speedup on both sides is not judged.",
}
"""By the cases that it concerns, why times are not compared."""

SETUP_LABELS = {"machine": "machine", "environment": "environment", **PROCESSOR_FACTS, **GPU_FACTS}
"""What can differ between setups, in the order in which it is stated."""

UNCOMMITTED_NOTE = "{side} was measured with uncommitted changes in {paths}"

COMPARED: tuple[ComparisonVerdict, ...] = (
    *("slower", "failed", "faster", "mended", "suspect", "unclear", "same"),
)
"""Verdicts of cases that have a result on both sides, if a failure counts as one."""

_MAX_RENAMES = 3
"""Proposals of ``was:`` lines; more are proposed when these are written."""

_NAMED = 4
"""Cases of one side only that are named; the rest is counted."""

_MAX_PATHS = 5
"""Files with uncommitted changes that are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class SideView:
    machine: str
    environment: str
    commit: CommitLabel


@dataclass(frozen=True, slots=True)
class LoneCases:
    """Cases that one side alone has."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactRow:
    label: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    title: str
    old: SideView
    new: SideView
    counts: dict[str, int]
    counts_line: str
    setups: str
    """Why times are not compared, a sentence; empty where they are."""
    uncommitted: tuple[str, ...]
    """Of each side that was measured with uncommitted changes: in which files."""
    shared: str
    """What cases of a kind share between the two runs; empty where they share nothing."""
    next_steps: tuple[str, ...]
    """What the verdicts leave open, and the command that decides it: a sentence or two each."""
    suspects: str
    """The command that decides exactly the suspects; empty without any."""
    sure: dict[str, int]
    """How many of the slower and the faster cases are sure."""
    factor: float
    """Least factor of a change that the user asked for; 1 without."""
    rows: tuple[Difference, ...]
    more: int
    only_old: LoneCases
    only_new: LoneCases
    facts: tuple[FactRow, ...]
    unfinished: tuple[str, ...]
    """Of each side that has some: times of a run that was not finished."""
    renames: tuple[str, ...] = ()
    """Proposals of `was:` lines for names that one side alone has."""
    not_compared: tuple[str, ...] = ()
    """Verdict, how many cases and why, of cases on both sides that have no verdict of a change."""
    machine_state: tuple[str, ...] = ()
    """What disturbed the times: sentences without their points."""
    to_decide: str = ""
    """The command that decides what is unclear of two sides measured in turn; empty without any."""
    method: str = ""
    """How both were measured in turn; empty for stored results."""

    @property
    def is_compared(self) -> bool:
        """Whether any case has a result on both sides."""
        return any(self.counts.get(verdict) for verdict in COMPARED)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know before the verdicts."""
        return tuple(filter(None, (self.setups, *self.uncommitted, self.shared)))


def comparison_view(
    comparison: SnapshotComparison, *, everything: bool = False, most: int | None = None
) -> ComparisonView:
    """Put a comparison into words: the cases that differ, or with ``everything`` all.

    ``most`` limits the rows.
    """
    shown = comparison.differences if everything else comparison.differing
    old, new = (
        SideView(side.setup.machine, side.setup.environment, snapshot_label(side))
        for side in (comparison.old, comparison.new)
    )
    only_old, only_new = (
        LoneCases(len(names), tuple(map(case_words, names[:_NAMED])))
        for names in (comparison.only_old, comparison.only_new)
    )
    before, after = (f"{side.machine}, {side.environment}" for side in (old, new))
    title = f"{new.commit.short} on {after} against {old.commit.short} on {before}"
    if before == after:
        title = f"{new.commit.short} against {old.commit.short} on {after}"
    lone = {"only before": only_old.count, "only after": only_new.count}
    counts = comparison.counts | {side: count for side, count in lone.items() if count}
    stopped = (
        (old, unfinished(row.old for row in comparison.differences)),
        (new, unfinished(row.new for row in comparison.differences)),
    )
    return ComparisonView(
        title=title,
        old=old,
        new=new,
        counts=comparison.counts,
        counts_line=counts_in_words(counts) or "nothing to compare",
        setups=setups_in_words(comparison.setups),
        uncommitted=_uncommitted(comparison.old, comparison.new),
        shared=shared_in_words(comparison),
        next_steps=tuple(next_steps(comparison)),
        suspects=suspects_command(comparison) if comparison.counts.get("suspect") else "",
        sure=comparison.sure,
        factor=comparison.factor,
        rows=shown[:most],
        more=len(shown) - len(shown[:most]),
        only_old=only_old,
        only_new=only_new,
        facts=tuple(map(fact_row, comparison.facts)),
        unfinished=tuple(
            f"{side.commit.short} has {words}; if it was stopped, `asv run --skip-existing` "
            "measures the rest"
            for side, words in stopped
            if words
        ),
        renames=tuple(rename.words for rename in comparison.renames[:_MAX_RENAMES]),
        not_compared=tuple(not_compared(comparison)),
        machine_state=tuple(machine_state(comparison)),
        to_decide=longer_command(comparison),
        method=comparison.method,
    )


def not_compared(comparison: SnapshotComparison) -> Iterator[str]:
    """Say how many cases of both sides have no verdict of a change, and why: ``2 cases not
    compared (skipped on both sides)``."""
    reasons = Counter(
        (one.verdict, one.note)
        for one in comparison.differences
        if one.verdict in ("not comparable", "not judged", "not compared")
    )
    for (verdict, note), count in reasons.items():
        why = f" ({note})" if note else ""
        yield f"{text.plural(count, 'case')} {verdict}{why}"


def machine_state(comparison: SnapshotComparison) -> Iterator[str]:
    """Say what disturbed the times of two sides."""
    if comparison.busy:
        yield comparison.busy
    timed = [one for one in comparison.differences if one.old and one.new and one.new.seconds]
    disturbed = sum(any(row and row.is_disturbed for row in (one.old, one.new)) for one in timed)
    if disturbed:
        yield (
            f"other work disturbed more than half of the samples of {disturbed:,} of "
            f"{text.plural(len(timed), 'case')}"
        )


def longer_command(comparison: SnapshotComparison) -> str:
    """Return the command that measures the unclear kernels of two sides in turn for as long as they
    need; empty of stored results, and where that is not known."""
    unclear = [one for one in comparison.differences if one.verdict == "unclear"]
    needed = sum(one.seconds_to_decide or 0.0 for one in unclear)
    if not (comparison.method and needed):
        return ""
    old, new = (side.commit.hash[:8] for side in (comparison.old, comparison.new))
    time = f"{math.ceil(needed / 60)}m"
    names = dict.fromkeys(kernel_argument(one.name.suite, one.name.kernel) for one in unclear)
    which = *names, *comparison.options
    return shlex.join(["gpubench", "compare", "--measure", old, new, *which, "--time", time])


def setups_in_words(setups: SetupDifference) -> str:
    """Say what differs between two setups, and what that means; empty where nothing does."""
    pairs = {
        name: pair
        for name, pair in (("machine", setups.machines), ("environment", setups.environments))
        if pair
    }
    for change in (*setups.processor, *setups.gpu):
        row = fact_row(change)
        pairs[change.name] = row.old, row.new
    if not pairs:
        return ""
    words = (
        f"{label} ({pairs[name][0]}, {pairs[name][1]})"
        for name, label in SETUP_LABELS.items()
        if name in pairs
    )
    concerned = "gpu" if pairs.keys() <= GPU_FACTS.keys() else "all"
    return SETUPS[concerned].format(what=text.join(words))


KINDS_OF_ASV = {"below 10 µs": "times below 10 µs", "bytes not known": "times from 10 µs on"}
"""How asv's benchmarks are told apart, of which no record says threads and bytes."""


def shared_in_words(comparison: SnapshotComparison) -> str:
    """Say what cases of each kind share; empty where they share nothing."""
    ordered = sorted(comparison.shared, key=lambda one: -abs(one.log))
    ordered = [one for one in ordered if abs(one.log) >= MIN_SHARED_SHOWN]
    if not ordered:
        return ""
    names = {one.group: one.group for one in ordered}
    if _are_asvs(comparison):
        names = {group: KINDS_OF_ASV.get(group.rpartition(", ")[2], group) for group in names}
    kinds = [
        f"{names[one.group]} {text.factor(Ratio(math.exp(-one.log), 0.0, math.inf))} "
        f"({text.plural(one.cases, 'case')})"
        for one in ordered
    ]
    large = [names[one.group] for one in ordered if one.is_large]
    words = SHARED.format(kinds="; ".join(kinds))
    return words + (SHARED_LARGE.format(kinds=text.join(large)) if large else "")


PROCESSES_OF_ASV = "-a rounds=4"
"""Option by which asv takes four processes of a benchmark, which find a doubling in nine of ten
(docs/measurement.md)."""


def suspects_command(comparison: SnapshotComparison) -> str:
    """Return the command that measures exactly the suspects in turn; empty where both sides are of
    one commit, and for benchmarks that asv alone can measure."""
    old, new = (side.commit.hash[:8] for side in (comparison.old, comparison.new))
    if old == new or _are_asvs(comparison):
        return ""
    return f"gpubench compare {old} {new} --measure --suspects"


def _are_asvs(comparison: SnapshotComparison) -> bool:
    """Return whether all cases are of an asv project's benchmarks, which are in no suite."""
    return all(one.name.benchmark in comparison.asv_names for one in comparison.differences)


def _deciding(comparison: SnapshotComparison) -> str:
    """Say which command decides what stored runs leave open; empty for sides of one commit."""
    old, new = (side.commit.hash[:8] for side in (comparison.old, comparison.new))
    if old == new:
        return ""
    if _are_asvs(comparison):
        options = f"{PROCESSES_OF_ASV} --interleave-rounds --bench NAME"
        return f"`asv continuous {old} {new} {options}` and another `gpubench compare` decide"
    return f"`gpubench compare {old} {new} --measure KERNEL` decides"


def next_steps(comparison: SnapshotComparison) -> Iterator[str]:
    """Say what stays open of stored runs, how large a change would have shown, and which command
    decides."""
    yield from (f"{rename.words}." for rename in comparison.renames[:_MAX_RENAMES])
    if comparison.method:  # measured in turn, which says so itself
        return
    decide = _deciding(comparison)
    if count := comparison.counts.get("suspect", 0):
        command, which = suspects_command(comparison), "this case" if count == 1 else "these"
        how = f". To decide exactly {which}: `{command}`" if command else ""
        yield (
            f"{text.plural(count, 'suspect')}: a side has one process, and a slow process cannot "
            f"be told from slow code{how or (decide and f'; {decide}')}."
        )
    if decide and any(one.verdict in CHANGED and not one.is_sure for one in comparison.differences):
        yield f"A case that is not marked sure may be chance, among so many: {decide}."
    unclear = [one for one in comparison.differences if one.verdict == "unclear"]
    factors = sorted(one.detectable for one in unclear if one.detectable and not one.note)
    if factors:
        middle, most = (text.ratio(factors[place]) for place in (len(factors) // 2, -1))
        size = f"In half of them a change of {middle} would have been, in all of them one of {most}"
        if middle == most:
            size = f"One of {most} would have been"
        yield (
            f"{text.plural(len(factors), 'case')} unclear: no change was shown. {size}. --all "
            f"lists each with its ratio and interval{'; ' if decide else ''}{decide}."
        )
    if disturbed := sum(bool(one.note) for one in unclear):
        yield (
            f"{text.plural(disturbed, 'case')} unclear because other work on the machine disturbed "
            "more than half of the samples. Measure again on a quiet machine: `asv run`."
        )
    judged = [one.processes for one in comparison.differences if one.processes]
    if judged and max(map(min, judged)) == 1:
        four = "The library's default preset takes four; a suite says it with"
        says = f"{four} `sampling: {{rounds: 4}}`"
        if _are_asvs(comparison):
            says = f"`asv run {PROCESSES_OF_ASV}` takes four"
        yield (
            f"Each case has one process on a side, so that none is called slower or faster. {says}."
        )


def factor_in_words(factor: float) -> str:
    """Say what a least factor of changes means; empty for 1."""
    if factor == 1:
        return ""
    return f"Only ratios beyond {factor:.4g}{text.TIMES_SIGN} count as slower or faster (--factor)."


def paths_in_words(snapshot: Snapshot) -> str:
    """Name the files that had uncommitted changes; empty where none had."""
    paths = snapshot.uncommitted
    more = len(paths) - _MAX_PATHS
    return text.join([*paths[:_MAX_PATHS], *([f"{more:,} more"] if more > 0 else [])])


def _uncommitted(old: Snapshot, new: Snapshot) -> tuple[str, ...]:
    sides = [old.commit.hash[:8], new.commit.hash[:8]]
    if sides[0] == sides[1]:
        sides = [f"{sides[0]} before", f"{sides[1]} after"]
    return tuple(
        UNCOMMITTED_NOTE.format(side=side, paths=paths_in_words(snapshot))
        for side, snapshot in zip(sides, (old, new), strict=True)
        if snapshot.uncommitted
    )


def fact_row(change: FactChange) -> FactRow:
    label, old = fact_words(change.name, change.old)
    return FactRow(label, old, fact_words(change.name, change.new)[1])


def difference_listed(row: Difference) -> dict[str, Any]:
    """Return what a long list knows of a row, as ``compare.js`` makes it."""
    return listed(
        suite=[row.name.suite],
        implementation=[row.name.implementation],
        only=[row.verdict],
        change=row.ratio.factor if row.ratio else None,
        speedup=row.new.speedup if row.new else None,
    )
