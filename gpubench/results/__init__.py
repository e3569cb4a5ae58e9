"""asv's result files and the records beside them, as data: the only place to know the formats."""

from gpubench.results.loading import load_results
from gpubench.results.model import (
    CaseName,
    Commit,
    Outcome,
    Pair,
    Problem,
    Results,
    Snapshot,
    Status,
    Timing,
)

__all__ = [
    "CaseName",
    "Commit",
    "Outcome",
    "Pair",
    "Problem",
    "Results",
    "Snapshot",
    "Status",
    "Timing",
    "load_results",
]
