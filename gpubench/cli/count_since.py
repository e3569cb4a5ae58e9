"""`gpubench since --counts`: bisection by counted work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from gpubench.cli.comparing import name_of
from gpubench.errors import GpubenchError

if TYPE_CHECKING:  # a command imports what measures only when it does: --help answers at once
    from gpubench.analysis.counted_change import CountedChange
    from gpubench.measure.bisecting import LineCommit
    from gpubench.measure.counted_commits import CommitCounter
    from gpubench.measure.direct import Job
    from gpubench.results import CaseName
    from gpubench.tables.count_since import CountedCase, CountedEnds, CountSinceReport

AtCommit = Mapping[int, "CountedCase | str"]
"""Counts of the jobs at a commit by their places, or why there are none."""


@dataclass
class CountSearch:
    """A search on its way: what is known when Ctrl-C ends it stays here."""

    counter: CommitCounter
    jobs: Sequence[Job]
    good: str
    line: Sequence[LineCommit]
    seconds: float
    say: Callable[..., None]
    ends: CountedEnds | None = None
    report: CountSinceReport | None = None

    def count_ends(self) -> None:
        """Count all jobs at both ends. Raises ``GpubenchError`` where no case can be compared."""
        from gpubench.analysis.count_bisection import CountBisection
        from gpubench.tables.count_since import CountedEnds, CountSinceReport

        bad = self.line[-1].hash
        before, after = self._count(self.good), self._count(bad)
        changes: dict[CaseName, CountedChange] = {}
        both: dict[CaseName, tuple[CountedCase, CountedCase]] = {}
        same: list[CaseName] = []
        missing: dict[CaseName, str] = {}
        for place, name in enumerate(map(name_of, self.jobs)):
            old, new = before[place], after[place]
            if isinstance(old, str) or isinstance(new, str):
                sides = zip((self.good, bad), (old, new), strict=True)
                said = [f"{commit[:8]}: {one}" for commit, one in sides if isinstance(one, str)]
                missing[name] = "; ".join(said)
            elif why := why_not_compared(old, new):
                missing[name] = why
            elif change := old.change_to(new):
                changes[name] = change
                both[name] = old, new
            else:
                same.append(name)
        if not (changes or same):
            why = next(iter(missing.values()))
            raise GpubenchError(f"no case has counts at both ends, so that none compare: {why}")
        ordered = sorted(changes, key=lambda name: -changes[name].pairs[0].factor)
        largest = {name: changes[name] for name in ordered}
        self.ends = CountedEnds(self.good, bad, self.line, largest, same, missing)
        if ordered:
            old, new = both[ordered[0]]
            counted = {-1: old, len(self.line) - 1: new}
            bisection = CountBisection(len(self.line))
            self.report = CountSinceReport(self.ends, ordered[0], bisection, counted)

    def find_commit(self) -> None:
        """Search for the commit that changed the case with the largest change."""
        from gpubench.analysis.count_bisection import is_behind

        report = self.report
        if report is None:
            return
        job_place = [*map(name_of, self.jobs)].index(report.name)
        decisive, good = report.ends.changes[report.name].pairs[0], report.counted[-1]
        began = monotonic()
        while (place := report.bisection.choose()) is not None:
            if monotonic() - began > self.seconds:
                return
            commit = self.line[place].hash
            counted = self._try_to_count(commit, job_place)
            reason = counted if isinstance(counted, str) else why_not_compared(good, counted)
            if reason or isinstance(counted, str):
                report.bisection.skipped.add(place)
                report.reasons[place] = reason
            else:
                report.counted[place] = counted
                behind = is_behind(decisive, good.counts, counted.counts)
                report.bisection.add(place, is_behind=behind)
            report.seconds = monotonic() - began
            left = len(report.bisection.places)
            self.say(f"counted at {commit[:8]}; it is one of {left:,} commits")

    def _try_to_count(self, commit: str, place: int) -> CountedCase | str:
        try:
            return self._count(commit)[place]
        except GpubenchError as error:
            return str(error)

    def _count(self, commit: str) -> AtCommit:
        from gpubench.tables.count_since import read_counts

        return {place: read_counts(one) for place, one in self.counter.count(commit).items()}


def why_not_compared(old: CountedCase, new: CountedCase) -> str:
    """Return why counts of two commits do not compare; empty where they do."""
    from gpubench.analysis.count_changes import why_not_comparable

    return why_not_comparable(old.counts, new.counts)
