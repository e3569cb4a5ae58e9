"""Changes over commits as rows of a table, for ``gpubench query``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from gpubench.analysis.changes import undone_by
from gpubench.analysis.direction import direction_word
from gpubench.analysis.shared import JudgedHistory, judge_history
from gpubench.names import SECONDS
from gpubench.results import CaseHistories, CaseName, Setup, Table
from gpubench.waiting import say_each

MAX_LISTED_TIMES = 2**19
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
    "kind": ("VARCHAR", "step, or check: the newest commit alone, which is to be checked"),
    "basis": ("VARCHAR", "what decided: speedup, time where its times alone did, or value"),
    "is_shared": ("BOOLEAN", "whether most cases of the machine changed alike at that commit"),
    "direction": ("VARCHAR", "slower or faster; larger or smaller of bytes; else higher or lower"),
    "is_worse": ("BOOLEAN", "slower, larger, or of a rate lower"),
    "factor": ("DOUBLE", "how many times slower, faster, larger or lower; 1 or more"),
    "old_seconds": ("DOUBLE", "median of the old level; over the baseline where processors differ"),
    "new_seconds": ("DOUBLE", "median of the new level; over the baseline where processors differ"),
    "old_value": ("DOUBLE", "median of the old level, in the unit"),
    "new_value": ("DOUBLE", "median of the new level, in the unit"),
    "unit": ("VARCHAR", "unit of the values: seconds, bytes, another"),
    "recovered": ("VARCHAR", "hash of the commit that undid it; null while it lasts"),
}
"""SQL types and meanings of the columns of ``changes``."""


def change_rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each change of each case, in the order of ``CHANGE_COLUMNS``."""
    setups = say_each(table.setups, len(table.setups), "judging machines and environments")
    for setup in setups:
        judged = judge_setup(table, setup)
        shared = {
            (name, change.after) for one in judged.shared for name, change in one.changes.items()
        }
        units: dict[CaseName, str] = {}
        if not all(name.is_time for name in judged.every):
            units = {name: row.unit for name, row in table.newest_rows(setup).items()}
        hashes = [commit.hash for commit in table.outline(setup).commits]
        for name, changes in judged.every.items():
            own = {*judged.changes[name]}
            for number, one in enumerate(changes):
                is_shared = (name, one.after) in shared and one not in own
                if not is_shared and one not in own:  # less than the project asks for
                    continue
                later = undone_by(changes, number)
                ends = one.old, one.new
                yield (
                    *(setup.machine, setup.environment, setup.branch or None),
                    *(name.suite, name.kernel, name.implementation, name.time, name.case),
                    *(hashes[one.before], hashes[one.after], one.kind),
                    *(one.basis if name.is_time else "value", is_shared),
                    *(direction_word(one, units.get(name, SECONDS)), one.slower),
                    *(one.ratio.factor, *(ends if name.is_time else (None, None)), *ends),
                    units.get(name, SECONDS),
                    None if later is None else hashes[changes[later].after],
                )


def judge_setup(table: Table, setup: Setup) -> JudgedHistory:
    """Judge all cases of a setup, some in memory at a time."""
    outline = table.outline(setup)
    size = max(MAX_LISTED_TIMES // max(len(outline.snapshots), 1), 1)

    @lru_cache(maxsize=1)  # all cases are asked for several times, and most setups are one part
    def part(start: int) -> CaseHistories:
        return table.history(setup, outline.names[start : start + size])

    def parts() -> Iterator[CaseHistories]:
        return map(part, range(0, len(outline.names), size))

    return judge_history(parts, outline, table.threshold, table.is_rate)
