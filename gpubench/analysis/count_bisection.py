"""Find the commit that changed a count: plain bisection, since counts have no noise."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpubench.analysis.costs import CostPair, cost_pairs
from gpubench.results import CaseCounts


@dataclass(slots=True)
class CountBisection:
    """What is known of the place of a change among the commits behind the good one.

    Places count from 0, the first commit behind the good end, whose own place is -1.
    """

    commits: int
    before: int = -1
    """Last place that is known to stand before the change."""
    behind: int = field(init=False)
    """First place that is known to stand behind it."""
    skipped: set[int] = field(default_factory=set)
    """Places that cannot be counted."""

    def __post_init__(self) -> None:
        """Begin with the bad end behind the change."""
        self.behind = self.commits - 1

    def add(self, place: int, *, is_behind: bool) -> None:
        """Add what counts say of a place."""
        if is_behind:
            self.behind = place
        else:
            self.before = place

    def choose(self) -> int | None:
        """Return the place to count next, nearest to the middle; ``None`` where the answer cannot
        become shorter."""
        middle = (self.before + self.behind) / 2
        places = (one for one in range(self.before + 1, self.behind) if one not in self.skipped)
        return min(places, key=lambda one: abs(one - middle), default=None)

    @property
    def places(self) -> range:
        """The places of which one made the change: one, unless some cannot be counted."""
        return range(self.before + 1, self.behind + 1)

    @property
    def is_found(self) -> bool:
        """Whether the answer is one commit."""
        return len(self.places) == 1


def is_behind(change: CostPair, good: CaseCounts, counts: CaseCounts) -> bool:
    """Return whether a cost is nearer to the bad end's than to the good end's.

    ``change`` has both ends of the cost. So a small change on the way is no answer.
    """
    key = change.cost.name, change.kernel
    values = (pair.new for pair in cost_pairs(good, counts) if (pair.cost.name, pair.kernel) == key)
    value = next(values, change.old)
    return abs(value - change.new) < abs(value - change.old)
