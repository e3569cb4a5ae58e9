"""Builds rows and histories by hand, without files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpubench.results import (
    ABSENT,
    CaseHistories,
    CaseName,
    Commit,
    Newest,
    Ratio,
    Row,
    Setup,
    Snapshot,
)
from gpubench.results.ratio import quotient
from gpubench.statuses import STATUSES

SETUP = Setup("runner", "env")
NUMPY = CaseName("add", "add", "numpy", "kernel", "n=4")
NUMBA = CaseName("add", "add", "numba", "kernel", "n=4")

Measured = Sequence[tuple[Snapshot, Mapping[CaseName, Row]]]
"""Snapshots of one setup, oldest first, with their rows."""


def snapshot(index: int = 0, setup: Setup = SETUP, **fields: Any) -> Snapshot:
    """The snapshot of the commit of that day."""
    commit = Commit(f"{index:040x}", float(index))
    return Snapshot(index, setup, commit, **fields)


def timed(name: CaseName, seconds: float | None, width: float = 0.01, **fields: Any) -> Row:
    """A case with a time and its interval; without a time it failed."""
    if seconds is None:
        return Row(name, "failed", "broken", **{"problem": name.case, **fields})
    low, high = seconds * (1 - width), seconds * (1 + width)
    fields = {"problem": name.case, "is_baseline": name.implementation == "numpy", **fields}
    return Row(name, "ok", seconds=seconds, low=low, high=high, **fields)


def beside_numpy(rows: Iterable[Row]) -> dict[CaseName, Row]:
    """Rows by their names, those of other implementations against NumPy's at the same problem."""
    by_name = {row.name: row for row in rows}
    joined = {}
    for name, row in by_name.items():
        baseline = replace(name, implementation="numpy", time="kernel")
        if baseline in by_name and name.implementation != "numpy":
            other = by_name[baseline]
            row = replace(
                row,
                baseline=baseline,
                baseline_status=other.status,
                baseline_seconds=other.seconds,
                baseline_low=other.low,
                baseline_high=other.high,
                speedup=_ratio(other, row) if name.time != "compile" else None,
            )
        joined[name] = row
    return joined


def _ratio(old: Row, new: Row) -> Ratio | None:
    if old.seconds is None or new.seconds is None:
        return None
    ends = [np.array([[r.seconds], [r.low], [r.high]], float) for r in (old, new)]
    return Ratio(*quotient(*ends)[:, 0].tolist())


def history_of(measured: Measured) -> CaseHistories:
    """The history of one setup."""
    names = tuple(dict.fromkeys(name for _, rows in measured for name in rows))
    shape = (len(names), len(measured))
    statuses, baselines = np.full(shape, ABSENT, np.int8), np.full(shape, -1, np.int32)
    times, speedups = np.full((3, *shape), np.nan), np.full((3, *shape), np.nan)
    place = {name: index for index, name in enumerate(names)}
    for column, (_, rows) in enumerate(measured):
        for name, row in rows.items():
            index = place[name]
            statuses[index, column] = STATUSES.index(row.status)
            if row.seconds is not None:
                high = math.inf if row.high is None else row.high
                times[:, index, column] = row.seconds, row.low or 0.0, high
            if row.baseline:
                baselines[index, column] = place[row.baseline]
            if row.speedup:
                ratio = row.speedup
                speedups[:, index, column] = ratio.value, ratio.low, ratio.high
    snapshots = tuple(snapshot for snapshot, _ in measured)
    setup = snapshots[0].setup
    each = [rows for _, rows in measured]
    disturbed = np.array([[n in rows and rows[n].is_disturbed for rows in each] for n in names])
    in_turn = np.array([[n in rows and rows[n].pairs > 0 for rows in each] for n in names])
    newest = Newest.of(statuses, baselines)
    return CaseHistories(
        setup, snapshots, names, newest, statuses, times, speedups, baselines, disturbed, in_turn
    )
