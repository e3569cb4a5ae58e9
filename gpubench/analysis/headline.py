"""What stands for a kernel: its largest problem, each implementation with its fastest variant."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.speedup import Speedup, geometric_mean
from gpubench.names import Value, parse_identity
from gpubench.results import CaseName, Commit

KernelKey = tuple[str, str]
"""Suite and kernel."""

LAUNCH_PARTS = ("block", "grid", "threads", "device")
"""Parts of an identity that say how a case runs, not what it computes."""


@dataclass(frozen=True, slots=True)
class KernelNow:
    """One kernel at the newest commit at which it was measured on a setup."""

    key: KernelKey
    commit: Commit
    cases: Mapping[CaseName, Compared]


@dataclass(frozen=True, slots=True)
class Headline:
    """One implementation at the largest problems that it was compared on."""

    implementation: str
    cases: tuple[Compared, ...]
    """One for each problem of that size (data types, for example): its fastest variant."""
    speedup: Speedup | None
    """Geometric mean over ``cases``."""


def current(history: SetupHistory) -> dict[KernelKey, KernelNow]:
    """Each kernel as it was last measured on a setup."""
    places = history.newest_places()
    newest: dict[KernelKey, int] = {}
    for name, place in places.items():
        key = (name.suite, name.kernel)
        newest[key] = max(place, newest.get(key, place))
    cases: dict[KernelKey, dict[CaseName, Compared]] = defaultdict(dict)
    for name, place in places.items():
        key = (name.suite, name.kernel)
        if place == newest[key]:
            cases[key][name] = history.compared_at(place)[name]
    return {
        key: KernelNow(key, history.commits[place], cases[key])
        for key, place in sorted(newest.items())
    }


def sizes_of(compared: Compared) -> dict[str, float]:
    """Array sizes of a case by name: from the record, else the problem's whole numbers."""
    record = compared.outcome.record
    if record and record.sizes:
        return {name: _number(record.values.get(name)) for name in record.sizes}
    values = parse_identity(compared.problem)
    return {
        name: float(value)
        for name, value in values.items()
        if name not in LAUNCH_PARTS and isinstance(value, int) and not isinstance(value, bool)
    }


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def size_of(compared: Compared) -> float:
    """One number that orders problems: the product of the array sizes; 0 without any."""
    sizes = sizes_of(compared)
    product = math.prod(sizes.values()) if sizes else 0.0
    return 0.0 if math.isnan(product) else product


def fastest_variants(cases: Iterable[Compared]) -> dict[str, Compared]:
    """For each problem the case with the least time; problems without any time are left out."""
    best: dict[str, Compared] = {}
    for compared in cases:
        timing = compared.outcome.timing
        other = best.get(compared.problem)
        if timing and (
            other is None or not other.outcome.timing or timing.median < other.outcome.timing.median
        ):
            best[compared.problem] = compared
    return best


def headline(cases: Iterable[Compared], implementation: str, time: str = "kernel") -> Headline:
    """The headline of one implementation among the current cases of its kernel.

    Choosing the fastest of several launches favours the candidate a little; the baseline has
    no launches to choose from, and a user of the kernel would choose the same.
    """
    own = [
        c
        for c in cases
        if (c.outcome.name.implementation, c.outcome.name.time) == (implementation, time)
    ]
    best = list(fastest_variants(own).values())
    compared = [c for c in best if c.speedup] or best
    sizes = [size_of(c) for c in compared]
    largest = max(sizes, default=0.0)
    chosen = tuple(c for c, size in zip(compared, sizes, strict=True) if size == largest)
    return Headline(
        implementation, chosen, geometric_mean([c.speedup for c in chosen if c.speedup])
    )
