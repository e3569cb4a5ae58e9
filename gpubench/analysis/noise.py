"""How much times scatter on a setup: within a run, and from commit to commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpubench.results import ABSENT, CaseHistories

RECENT = 30
"""Newest commits, and times of each case, whose scatter counts: older ones may be another machine
in all but name, and a long history would cost more than it tells."""


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


def noise(histories: Iterable[CaseHistories]) -> Noise:
    """Noise of a setup from what is stored of its cases."""
    of_parts: list[NDArray[np.float64]] = []
    of_cases: list[NDArray[np.float64]] = []
    for history in histories:
        is_time = [name.is_time for name in history.names]
        medians, lows, highs = history.times[:, is_time, -1]
        # Ends that are not known are 0 or less, and infinite.
        with_interval = (lows > 0) & np.isfinite(highs)
        of_parts.append(((highs - lows) / 2 / medians)[with_interval])
        for times, statuses in zip(
            history.times[0, is_time], history.statuses[is_time], strict=True
        ):
            newest = times[statuses != ABSENT][-RECENT:]
            measured = newest[~np.isnan(newest)]
            of_cases.append(np.abs(measured[1:] / measured[:-1] - 1))
    widths, steps = (np.concatenate([*parts, []]) for parts in (of_parts, of_cases))
    return Noise(
        times=len(widths),
        within=float(np.median(widths)) if len(widths) else None,
        neighbours=len(steps),
        between=float(np.median(steps)) if len(steps) else None,
    )
