"""What `gpubench calibrate` has measured of a machine, in a file of its own beside the results.

asv takes every ``*.json`` in a machine's folder for results, and warns of one that is not: so the
file has another suffix.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, variance

from gpubench.names import Value
from gpubench.results.kinds import CASE_KINDS, Kind, kind_of
from gpubench.results.model import CaseName, Row

CALIBRATION_FILE = "calibration.gpubench"
"""Name in the folder of a machine."""

CALIBRATION_FORMAT = 1
"""Raised when a reader of an older release could misunderstand the file."""

MIN_RUNS = 2
"""Runs from which a scatter can be told at all."""

MIN_SCATTER = 1e-6
"""A scatter is above 0, also where a clock gives all runs one time."""


@dataclass(frozen=True, slots=True)
class KindCalibration:
    """How much control kernels of one kind differ between runs."""

    scatter: float
    """Standard deviation of the logarithm of a time between runs: 0.015 is 1.5 %."""
    runs: int
    """Processes that were measured."""
    cases: int
    """Control kernels, each at one size."""


def calibrate_kinds(runs: Iterable[Iterable[Row]]) -> dict[Kind, KindCalibration]:
    """Return the scatter of each kind that has control kernels, from the rows of several runs.

    It is the pooled standard deviation of the kind's kernels: the root of the mean of their
    variances. A case is of the kind that its middle run has. Runs that other work disturbed do not
    count, and a case without a time in two others tells nothing.
    """
    rows: dict[CaseName, list[Row]] = {}
    for run in runs:
        for row in run:
            if row.seconds is not None and not row.is_disturbed:
                rows.setdefault(row.name, []).append(row)
    variances: dict[Kind, list[tuple[float, int]]] = {}
    for of_case in rows.values():
        if len(of_case) >= MIN_RUNS:
            logs = [math.log(row.seconds) for row in of_case if row.seconds]
            middle = median(logs)
            nearest = min(of_case, key=lambda row: abs(math.log(row.seconds or 1.0) - middle))
            variances.setdefault(kind_of(nearest), []).append((variance(logs), len(logs)))
    return {
        kind: KindCalibration(
            max(math.sqrt(math.fsum(each for each, _ in found) / len(found)), MIN_SCATTER),
            min(count for _, count in found),
            len(found),
        )
        for kind in CASE_KINDS
        if (found := variances.get(kind))
    }


def write_calibration(
    results: Path,
    machine: str,
    kinds: Mapping[Kind, KindCalibration],
    versions: Mapping[str, Value | None],
) -> Path:
    """Write the file of a machine in asv's folder of results, in place of an earlier one."""
    content = {
        "format": CALIBRATION_FORMAT,
        "kinds": {kind: {"scatter": one.scatter, "runs": one.runs} for kind, one in kinds.items()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": dict(versions),
    }
    path = results / machine / CALIBRATION_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    unfinished.replace(path)
    return path
