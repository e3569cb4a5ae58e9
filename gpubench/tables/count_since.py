"""What `gpubench since --counts` shows: the commit that changed a count. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.analysis.costs import cost_pairs
from gpubench.analysis.count_bisection import CountBisection
from gpubench.analysis.counted_change import CountedChange, find_counted_change
from gpubench.measure.bisecting import LineCommit
from gpubench.record import CountsRecord, LineRecord
from gpubench.report import text
from gpubench.report.comparison_columns import counted_change_values, counted_change_words
from gpubench.report.exports import plain
from gpubench.report.findings import case_words
from gpubench.results import CaseCounts, CaseName
from gpubench.results.counts import profile_text, read_profile
from gpubench.tables.since import MAX_SHOWN_COMMITS


@dataclass(frozen=True, slots=True)
class CountedCase:
    """Counts of one case at one commit."""

    counts: CaseCounts
    lines: tuple[LineRecord, ...]

    def change_to(self, other: CountedCase) -> CountedChange | None:
        """Return what tells most of how another commit's work differs; ``None`` where it is the
        same."""
        pairs = [*cost_pairs(self.counts, other.counts)]
        return find_counted_change(pairs, self.lines, other.lines)


def read_counts(record: CountsRecord | str) -> CountedCase | str:
    """Read a line of a record; a reason why there are no counts is returned as it is."""
    if isinstance(record, str):
        return record
    if record.missing is not None:
        return record.missing
    lines = tuple(line for launch in record.launches for line in launch.lines)
    return CountedCase(read_profile(profile_text(record)), lines)


@dataclass(frozen=True, slots=True)
class CountedEnds:
    """The counts of all cases at the two ends."""

    good: str
    bad: str
    """Hashes."""
    line: Sequence[LineCommit]
    changes: Mapping[CaseName, CountedChange]
    """Of cases that differ, the largest change first."""
    same: Sequence[CaseName]
    not_counted: Mapping[CaseName, str]
    """Why cases cannot be compared."""


@dataclass(slots=True)
class CountSinceReport:
    """The search for one commit by counts, as far as it came."""

    ends: CountedEnds
    name: CaseName
    bisection: CountBisection
    counted: dict[int, CountedCase]
    """By place; the good end's is -1."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why places were skipped."""
    seconds: float = 0.0
    """Since both ends were counted."""

    @property
    def commits(self) -> Sequence[LineCommit]:
        """The commits of which one made the change."""
        return [self.ends.line[place] for place in self.bisection.places]

    @property
    def change(self) -> CountedChange:
        """What changed between the last commit before and the first one behind."""
        before, behind = (self.counted[at] for at in (self.bisection.before, self.bisection.behind))
        return before.change_to(behind) or self.ends.changes[self.name]

    @property
    def previous(self) -> str:
        """Hash of the last commit before the change."""
        place = self.bisection.before
        return self.ends.good if place < 0 else self.ends.line[place].hash


def count_ends_lines(ends: CountedEnds) -> Iterator[str]:
    """Say that the ends do the same work, and which cases could not be compared."""
    yield f"{ends.good[:8]} and {ends.bad[:8]} differ in no counted work:"
    yield from (f"  {case_words(name)}: the same counts" for name in ends.same)
    yield from (f"  {case_words(name)}: {why}" for name, why in ends.not_counted.items())


def count_since_lines(report: CountSinceReport, command: str) -> Iterator[str]:
    """Say which commit it was, and what to do next; ``command`` is without its two ends."""
    commits, line = report.commits, report.ends.line
    which = f"commit {commits[0].hash[:8]}"
    if len(commits) > 1:
        which = f"one of {len(commits):,} commits, {commits[0].hash[:8]} to {commits[-1].hash[:8]}"
    change = counted_change_words(report.change)
    yield f"{case_words(report.name)} does {change} since {which}"
    for place, commit in [*zip(report.bisection.places, commits, strict=True)][:MAX_SHOWN_COMMITS]:
        skipped = "  (not counted)" if place in report.bisection.skipped else ""
        yield f"  {commit.hash[:8]}  {text.date(commit.author_date)}  {commit.subject}{skipped}"
    if len(commits) > MAX_SHOWN_COMMITS:
        yield f"  and {len(commits) - MAX_SHOWN_COMMITS:,} more"
    for pair in report.change.pairs:
        yield f"{pair.words}: {pair.old:,} at {report.previous[:8]}, {pair.new:,} behind it"
    yield (
        f"counted at {len(report.counted) - 1:,} of {text.plural(len(line), 'commit')} and at "
        f"{report.ends.good[:8]}, once each: counts have no noise. The search took "
        f"{text.duration(report.seconds)}. The line follows first parents."
    )
    for place, reason in [*report.reasons.items()][:MAX_SHOWN_COMMITS]:
        yield f"skipped {line[place].hash[:8]}: {reason.splitlines()[0]}"
    others = [case_words(name) for name in report.ends.changes if name != report.name]
    if others:
        yield f"The ends differ in {text.plural(len(others), 'other case')}: {text.some(others)}"
    for name, why in report.ends.not_counted.items():
        yield f"not compared: {case_words(name)}: {why}"
    yield from map("Next: {}".format, _next_commands(report, command))


def _next_commands(report: CountSinceReport, command: str) -> list[str]:
    """Return what to run next: show the commit, or search for another change."""
    ends, bisection, commit = report.ends, report.bisection, report.commits[-1].hash[:8]
    commands = [f"git show {commit}"]
    if not bisection.is_found:
        commands = [f"git log -p {report.previous[:8]}..{commit}"]
        if bisection.choose() is not None:
            again = f"{command} --good {report.previous[:8]} --bad {commit}"
            commands.append(f"{again}  # more --time")
    good, before = report.counted[-1], report.counted[bisection.before]
    behind, bad = report.counted[bisection.behind], report.counted[len(ends.line) - 1]
    if good.change_to(before):
        again = f"{command} --good {ends.good[:8]} --bad {report.previous[:8]}"
        commands.append(f"{again}  # it changed before, too")
    if behind.change_to(bad):
        commands.append(f"{command} --good {commit} --bad {ends.bad[:8]}  # it changed again")
    return commands


def count_since_row(report: CountSinceReport, command: str) -> dict[str, Any]:
    """Return a search as JSON shows it; what is not known is ``null``."""
    row: dict[str, Any] = plain(
        {
            **_ends_values(report.ends),
            "benchmark": report.name.benchmark.asv_name,
            "case": report.name.case,
            "found": report.bisection.is_found,
            "commits": [
                {
                    "hash": commit.hash,
                    "author_date": text.date(commit.author_date),
                    "subject": commit.subject,
                    "skipped": report.reasons.get(place),
                    "is_merge": commit.parents > 1,
                }
                for place, commit in zip(report.bisection.places, report.commits, strict=True)
            ],
            "counted": counted_change_values(report.change),
            "measured": len(report.counted) - 1,
            "line": len(report.ends.line),
            "skipped": {
                report.ends.line[place].hash: reason for place, reason in report.reasons.items()
            },
            "seconds": report.seconds,
            "next": _next_commands(report, command),
        }
    )
    return row


def count_ends_row(ends: CountedEnds) -> dict[str, Any]:
    """Return ends that do the same work as JSON shows them."""
    row: dict[str, Any] = plain({**_ends_values(ends), "found": False, "commits": []})
    return row


def _ends_values(ends: CountedEnds) -> dict[str, Any]:
    cases: list[dict[str, Any]] = [
        {"benchmark": name.benchmark.asv_name, "case": name.case, "counted": counted, "reason": why}
        for name, counted, why in (
            *((name, counted_change_values(one), None) for name, one in ends.changes.items()),
            *((name, None, None) for name in ends.same),
            *((name, None, why) for name, why in ends.not_counted.items()),
        )
    ]
    return {"good": ends.good, "bad": ends.bad, "cases": cases}
