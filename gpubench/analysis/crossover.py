"""From which size on a candidate wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.speedup import Speedup


@dataclass(frozen=True, slots=True)
class Crossover:
    """Smallest measured size from which the candidate is faster at every larger one."""

    size: float | None
    """``None``: never in this range."""
    above: float | None = None
    """Largest measured size below it; ``None`` if none is."""
    largest_win: float | None = None
    """Where ``size`` is ``None``: the largest size at which it was faster all the same."""
    slower: float | None = None
    """Largest measured size below ``size`` at which it is clearly slower.

    The true crossover lies between this and ``size``: sizes between the two are unclear. ``None``
    where it is clearly slower at none; the crossover may then lie below all that was measured.
    """


def crossover(points: Sequence[tuple[float, Speedup]]) -> Crossover:
    """Crossover over sizes; a speedup whose interval allows 1x is no win. Order does not matter."""
    ordered = sorted(points, key=lambda point: point[0])
    start = len(ordered)
    while start and ordered[start - 1][1].verdict == "faster":
        start -= 1
    if start == len(ordered):
        wins = [size for size, ratio in ordered if ratio.verdict == "faster"]
        return Crossover(None, largest_win=wins[-1] if wins else None)
    below = ordered[:start]
    slower = [size for size, ratio in below if ratio.verdict == "slower"]
    return Crossover(
        ordered[start][0],
        above=below[-1][0] if below else None,
        slower=slower[-1] if slower else None,
    )
