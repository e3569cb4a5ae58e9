"""How much times scatter on a setup: within a run, and from commit to commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.history import SetupHistory
from gpubench.results import Timing

RECENT = 30
"""Newest times of each case whose scatter counts: older ones may be another machine in all but
name, and a long history would cost more than it tells."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Relative scatter of the times of one setup: 0.01 is one percent."""

    times: int
    """Times at the newest commit that have an interval; ``within`` is of them."""
    within: float | None
    """Median over these of the interval's half width over the median; ``None`` without any."""
    neighbours: int
    """Pairs of neighbouring commits, over all cases' newest; ``between`` is of them."""
    between: float | None
    """Median over these of the relative difference; ``None`` under two commits.

    A change of the code is in it too, but most commits change few cases.
    """


def noise(history: SetupHistory) -> Noise:
    """Noise of a setup from what is stored."""
    latest = history.snapshots[-1].outcomes.values()
    widths = [w for o in latest if o.timing and (w := half_width(o.timing)) is not None]
    recent = (points.medians[-RECENT:] for points in history.cases.values())
    steps = [step for medians in recent for step in _steps(medians)]
    return Noise(
        times=len(widths),
        within=median(widths) if widths else None,
        neighbours=len(steps),
        between=median(steps) if steps else None,
    )


def half_width(timing: Timing) -> float | None:
    """Half the interval's width over the median; ``None`` without an interval."""
    return (timing.high - timing.low) / 2 / timing.median if timing.has_interval else None


def _steps(medians: NDArray[np.float64]) -> Iterator[float]:
    known = medians[~np.isnan(medians)].tolist()
    return (abs(new / old - 1) for old, new in pairwise(known))
