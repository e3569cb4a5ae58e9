"""The A/A control: an implementation measured against itself, as it is against its baseline."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpubench.measure.direct import Job, Measure, Measured, measure
from gpubench.measure.paired import Opponent
from gpubench.plan.case import Case

COMPARISONS = 100


@dataclass(frozen=True, slots=True)
class Twins:
    """One comparison of a case with itself."""

    case: Case
    first: Measured
    second: Measured | None
    """``None`` in paired mode, where the first has the ratios of both."""

    @property
    def succeeded(self) -> bool:
        """Whether there is something to compare."""
        told = (self.first,) if self.second is None else (self.first, self.second)
        return all(measured.record.status == "ok" for measured in told)


def twins(
    cases: Iterable[Case], comparisons: int, take: Measure, samples: int | None = None
) -> Iterator[Twins]:
    """So many comparisons, in turn over the ``kernel`` times of these cases.

    In paired mode samples of the two take turns; else their rounds do, in the order ABBA. A case
    that cannot be measured is told once, not counted and not tried again.
    """
    waiting = deque(case for case in cases if "kernel" in case.subject.times)
    done = 0
    while waiting and done < comparisons:
        case = waiting.popleft()
        found = _compare(case, take, samples)
        yield found
        if found.succeeded:
            done += 1
            waiting.append(case)


def _compare(case: Case, take: Measure, samples: int | None) -> Twins:
    paired = case.kernel.sampling.paired
    opponent = Opponent(case) if paired else None
    job = Job(case, "kernel", opponent, samples)
    found = dict(measure([job] if paired else [job, job], take))
    return Twins(case, found[0], None if paired else found[1])
