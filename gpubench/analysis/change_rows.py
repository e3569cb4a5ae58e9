"""Changes over commits as rows of a table, for ``gpubench query``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpubench.analysis.changes import changes_of, undone_by
from gpubench.results import Table

MAX_TIMES = 2**19
"""Cases times commits that are in memory at once, in 60 to 150 bytes each."""

CHANGE_COLUMNS = {
    "machine": ("VARCHAR", "name of the machine, as pages show it"),
    "environment": ("VARCHAR", "asv's name of the environment"),
    "branch": ("VARCHAR", "branch whose history it is in, where there are several"),
    "suite": ("VARCHAR", "suite"),
    "kernel": ("VARCHAR", "kernel"),
    "implementation": ("VARCHAR", "implementation of the kernel"),
    "time": ("VARCHAR", "what is measured, as in results"),
    "identity": ("VARCHAR", "identity of the case: its parameters"),
    "before": ("VARCHAR", "hash of the last commit with the old level"),
    "commit": ("VARCHAR", "hash of the first commit with the new level"),
    "kind": ("VARCHAR", "step, or difference between two neighbours"),
    "direction": ("VARCHAR", "slower or faster"),
    "factor": ("DOUBLE", "how many times slower or faster, 1 or more"),
    "old_seconds": ("DOUBLE", "median of the old level; over the baseline where processors differ"),
    "new_seconds": ("DOUBLE", "median of the new level; over the baseline where processors differ"),
    "recovered": ("VARCHAR", "hash of the commit that undid it; null while it lasts"),
}
"""SQL types and meanings of the columns of ``changes``."""


def change_rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each change of each case, in the order of ``CHANGE_COLUMNS``."""
    for setup in table.setups:
        outline = table.outline(setup)
        size = max(MAX_TIMES // max(len(outline.snapshots), 1), 1)
        for start in range(0, len(outline.names), size):
            history = table.history(setup, outline.names[start : start + size])
            hashes = [commit.hash for commit in history.commits]
            for name, changes in changes_of(history).items():
                for number, one in enumerate(changes):
                    later = undone_by(changes, number)
                    yield (
                        *(setup.machine, setup.environment, setup.branch or None),
                        *(name.suite, name.kernel, name.implementation, name.time, name.case),
                        *(hashes[one.before], hashes[one.after], one.kind),
                        "slower" if one.slower else "faster",
                        *(one.ratio.factor, one.old, one.new),
                        None if later is None else hashes[changes[later].after],
                    )
