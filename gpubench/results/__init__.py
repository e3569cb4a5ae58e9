"""Results: asv's files and the records beside them as one table, which alone knows the formats.

Files of a results directory enter. What leaves are rows with speedups, and histories as arrays.
``open_table`` reads; ``Table`` gives the rows of a snapshot and the histories of setups; ``model``
says what a row is and ``ratio`` what its intervals are.
"""

from gpubench.results.counts import CaseCounts, LineCounts
from gpubench.results.histories import ABSENT, CaseHistories, History, Newest, natural_order
from gpubench.results.model import (
    ALONE,
    NO_RENAMES,
    CaseName,
    Commit,
    KernelNames,
    Pair,
    PairPattern,
    Problem,
    Renames,
    Row,
    Running,
    Setup,
    Snapshot,
)
from gpubench.results.opening import open_table
from gpubench.results.ratio import VERDICTS, Ratio, Times, Verdict, geometric_mean
from gpubench.results.rows import LAUNCH_PARTS, measured_rows
from gpubench.results.table import Table
from gpubench.table_file import table_path

__all__ = [
    "ABSENT",
    "ALONE",
    "LAUNCH_PARTS",
    "NO_RENAMES",
    "VERDICTS",
    "CaseCounts",
    "CaseHistories",
    "CaseName",
    "Commit",
    "History",
    "KernelNames",
    "LineCounts",
    "Newest",
    "Pair",
    "PairPattern",
    "Problem",
    "Ratio",
    "Renames",
    "Row",
    "Running",
    "Setup",
    "Snapshot",
    "Table",
    "Times",
    "Verdict",
    "geometric_mean",
    "measured_rows",
    "natural_order",
    "open_table",
    "table_path",
]
