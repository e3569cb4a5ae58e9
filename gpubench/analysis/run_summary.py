"""What a run of asv showed in a few numbers: speedups, counts and what is wrong.

The rows of the run enter, a ``RunSummary`` leaves. ``tables/run_summary.py`` writes it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.analysis.renamed import Rename
from gpubench.analysis.tally import by_reason, count
from gpubench.results import Row
from gpubench.statuses import Status


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The cases of one run."""

    tally: Mapping[str, int]
    """How many cases are what (``analysis.tally.count``)."""
    best: Row | None
    """The largest speedup; ``None`` where no case has one."""
    worst: Row | None
    """The smallest; ``None`` where fewer than two cases have one."""
    verified: int
    """CUDA cases that are right on the device in software."""
    counted: int
    """Those of them whose launches are counted."""
    disturbed: int
    """Cases whose samples other work was in, so that they hardly have a verdict."""
    problems: tuple[tuple[Status, str, Row, int], ...]
    """Status and reason of cases without a time, with an example and how many there are, the most
    urgent first; the verified ones apart."""
    renames: tuple[Rename, ...]
    """Names that the commit before had, each with the like one that this run brought."""


def summarize(rows: Iterable[Row], counted: int, renames: Iterable[Rename] = ()) -> RunSummary:
    """Return what the rows of a run show; ``counted`` of their cases have counts.

    Disturbed cases are the best and the worst only where there are no others: their speedup may be
    that of the other work.
    """
    of_run = list(rows)
    every = [row for row in of_run if row.speedup]
    compared = [row for row in every if not row.is_disturbed] or every
    compared.sort(key=lambda row: row.speedup.value if row.speedup else 0.0)
    return RunSummary(
        tally=count(of_run),
        best=compared[-1] if compared else None,
        worst=compared[0] if len(compared) > 1 else None,
        verified=sum(row.status == "verified" for row in of_run),
        counted=counted,
        disturbed=sum(row.is_disturbed for row in of_run),
        problems=tuple(
            (status, reason.partition("\n")[0], cases[0], len(cases))
            for status, reason, cases in by_reason(of_run)
            if status != "verified"
        ),
        renames=tuple(dict.fromkeys(renames)),
    )
