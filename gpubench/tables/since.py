"""What `gpubench since` shows: the commit that changed a case. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.bisection import Bisection, Range
from gpubench.analysis.differences import CHANGED
from gpubench.analysis.sequential import CaseEvidence, find_detectable_factor
from gpubench.measure.bisecting import LineCommit
from gpubench.report import text
from gpubench.report.exports import plain
from gpubench.report.findings import case_words
from gpubench.results import CaseName, Ratio

MAX_SHOWN_COMMITS = 10
"""Commits of a range, or skipped ones, that the terminal lists."""


@dataclass(frozen=True, slots=True)
class EndsReport:
    """The two ends side by side, before anything between them is measured."""

    good: str
    bad: str
    """Hashes."""
    cases: Sequence[tuple[CaseName, CaseEvidence]]
    line: Sequence[LineCommit]
    failures: Mapping[int, str]
    """Why a case has no time at an end, by its place."""

    @property
    def changed(self) -> list[int]:
        """Places of the cases that differ between the ends, the surest first."""
        called = [
            place
            for place, (_, its) in enumerate(self.cases)
            if its.verdict in CHANGED and place not in self.failures
        ]
        return sorted(called, key=lambda place: -self.cases[place][1].log_e)


@dataclass(slots=True)
class SinceReport:
    """The search for one commit, as far as it came."""

    ends: EndsReport
    name: CaseName
    bisection: Bisection
    reasons: Mapping[int, str]
    """Why places were skipped."""
    seconds: float = 0.0
    """Since both ends were installed."""
    install_seconds: float = 0.0
    """Of these, that installing other commits took."""

    @property
    def is_found(self) -> bool:
        """Whether the answer is as sure as it was asked for."""
        return self.bisection.likeliest().probability >= self.bisection.sure

    @property
    def found(self) -> Range:
        """The answer: what is likely enough alone, else the shortest range that is."""
        if self.is_found:
            return self.bisection.likeliest()
        return self.bisection.narrowest(self.bisection.sure)

    @property
    def ratio(self) -> Ratio | None:
        """The good end's time over that of the changed commit."""
        return self.bisection.factor_of(self.found.last)

    def previous(self, place: int) -> str:
        """Return the hash before a place of the line."""
        return self.ends.line[place - 1].hash if place else self.ends.good


def ends_lines(ends: EndsReport) -> Iterator[str]:
    """Say that the ends do not differ, with what each case could have shown."""
    yield f"{ends.good[:8]} and {ends.bad[:8]} are not known to differ:"
    for place, (name, evidence) in enumerate(ends.cases):
        words = f"  {case_words(name)}: {ends.failures.get(place, evidence.verdict)}"
        if ratio := evidence.ratio:
            words += f", {text.factor(ratio)} ({text.factor_interval(ratio)})"
            words += f" by {text.plural(len(evidence.logs), 'pair')}"
            detectable = find_detectable_factor(evidence)
            if detectable:
                words += f"; a change of {text.ratio(detectable)} would have shown"
        else:
            words += ", no pair"
        yield words
    if any(evidence.verdict == "unclear" for _, evidence in ends.cases):
        yield "Give more --time, or fewer cases, to decide what is unclear."
        yield "Counts have no noise: --counts searches by what Numba and CUDA kernels do."


def since_lines(report: SinceReport, command: str) -> Iterator[str]:
    """Say which commit it was, how sure that is, and what to do next.

    ``command`` is the command without its two ends, for a next one.
    """
    found, line = report.found, report.ends.line
    commits = line[found.first : found.last + 1]
    change = f"{text.factor(report.ratio)} ({text.factor_interval(report.ratio)})"
    which = f"commit {commits[0].hash[:8]}"
    if len(commits) > 1:
        which = f"one of {len(commits):,} commits, {commits[0].hash[:8]} to {commits[-1].hash[:8]}"
    yield f"{case_words(report.name)} is {change} since {which}, at {found.probability:.1%}"
    for place, commit in [*enumerate(commits, found.first)][:MAX_SHOWN_COMMITS]:
        skipped = "  (not measured)" if place in report.bisection.skipped else ""
        yield f"  {commit.hash[:8]}  {text.date(commit.author_date)}  {commit.subject}{skipped}"
    if len(commits) > MAX_SHOWN_COMMITS:
        yield f"  and {len(commits) - MAX_SHOWN_COMMITS:,} more"
    measured = len(report.bisection.logs)
    yield (
        f"{text.plural(report.bisection.pairs, 'pair')} of processes, "
        f"{measured:,} of {text.plural(len(line), 'commit')} measured against "
        f"{report.ends.good[:8]}, in {text.duration(report.seconds)}, of which installing took "
        f"{text.duration(report.install_seconds)}. The line follows first parents."
    )
    for place, reason in [*report.reasons.items()][:MAX_SHOWN_COMMITS]:
        yield f"skipped {line[place].hash[:8]}: {reason.splitlines()[0]}"
    others = [
        case_words(report.ends.cases[place][0])
        for place in report.ends.changed
        if report.ends.cases[place][0] != report.name
    ]
    if others:
        yield f"The ends differ in {text.plural(len(others), 'other case')}: {text.some(others)}"
    yield from map("Next: {}".format, next_commands(report, command))


def next_commands(report: SinceReport, command: str) -> list[str]:
    """Return what to run next: show the commit, look into a merge, or for another change."""
    found, line, ends = report.found, report.ends.line, report.ends
    commit = line[found.last]
    before, behind = report.bisection.changes_elsewhere(found)
    previous = report.previous(found.first)
    commands = [f"git show {commit.hash[:8]}"]
    if found.first != found.last:
        commands = [f"git log -p {previous[:8]}..{commit.hash[:8]}"]
    if not report.is_found:
        commands.append(f"{command} --good {previous[:8]} --bad {commit.hash[:8]}  # more --time")
    elif commit.parents > 1 and found.first == found.last:
        branch = f"{commit.hash[:8]}^2"
        start = f"$(git merge-base {previous[:8]} {branch})"
        commands.append(f"{command} --good {start} --bad {branch}  # the branch that it merged")
    if before:
        commands.append(
            f"{command} --good {ends.good[:8]} --bad {previous[:8]}  # it changed before, too"
        )
    if behind:
        commands.append(
            f"{command} --good {commit.hash[:8]} --bad {ends.bad[:8]}  # it changed again"
        )
    return commands


def since_row(report: SinceReport, command: str) -> dict[str, Any]:
    """Return a search as JSON shows it; what is not known is ``null``."""
    found, line = report.found, report.ends.line
    probabilities = report.bisection.probabilities()
    row: dict[str, Any] = plain(
        {
            "benchmark": report.name.benchmark.asv_name,
            "case": report.name.case,
            "good": report.ends.good,
            "bad": report.ends.bad,
            "found": report.is_found,
            "probability": found.probability,
            "commits": [
                {
                    "hash": commit.hash,
                    "author_date": text.date(commit.author_date),
                    "subject": commit.subject,
                    "probability": float(probabilities[place]),
                    "skipped": report.reasons.get(place),
                    "is_merge": commit.parents > 1,
                }
                for place, commit in enumerate(line)
                if found.first <= place <= found.last
            ],
            "ratio": _ratio(report.ratio),
            "pairs": report.bisection.pairs,
            "measured": len(report.bisection.logs),
            "line": len(line),
            "skipped": {line[place].hash: reason for place, reason in report.reasons.items()},
            "seconds": report.seconds,
            "install_seconds": report.install_seconds,
            "next": next_commands(report, command),
        }
    )
    return row


def ends_row(ends: EndsReport) -> dict[str, Any]:
    """Return ends that do not differ as JSON shows them."""
    row: dict[str, Any] = plain(
        {
            "good": ends.good,
            "bad": ends.bad,
            "found": False,
            "commits": [],
            "cases": [
                {
                    "benchmark": name.benchmark.asv_name,
                    "case": name.case,
                    "verdict": evidence.verdict,
                    "failure": ends.failures.get(place),
                    "ratio": _ratio(evidence.ratio),
                    "pairs": len(evidence.logs),
                    "detectable": find_detectable_factor(evidence),
                }
                for place, (name, evidence) in enumerate(ends.cases)
            ],
        }
    )
    return row


def _ratio(ratio: Ratio | None) -> dict[str, float] | None:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high} if ratio else None
