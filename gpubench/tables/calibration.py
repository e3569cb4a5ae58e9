"""What `gpubench calibrate` shows, as a rich table and plain rows. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.results.calibration import KindCalibration
from gpubench.results.kinds import Kind
from gpubench.tables.table import table


def calibration_report(kinds: Mapping[Kind, KindCalibration]) -> Iterator[RenderableType]:
    """Yield a line for each kind of case, and what it means."""
    rows = [
        (kind, f"{100 * one.scatter:.1f} %", str(one.runs), str(one.cases))
        for kind, one in kinds.items()
    ]
    right = ("differ between runs by", "runs", "control kernels")
    yield table(("times of this kind", *right), rows, right)
    yield Text("Two thirds of all runs are within so much of a kernel's middle.")


def calibration_rows(kinds: Mapping[Kind, KindCalibration]) -> dict[str, dict[str, Any]]:
    """Return each kind as JSON shows it; the scatter is that of a time's logarithm."""
    return {
        kind: {"scatter": one.scatter, "runs": one.runs, "cases": one.cases}
        for kind, one in kinds.items()
    }
