"""Which implementation to use: the fastest at each size, from which size on, and at what cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpubench.analysis.comparison import time_ratio
from gpubench.analysis.headline import fastest_variants
from gpubench.names import CPU
from gpubench.results import Ratio, Row


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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring sizes with the same fastest implementations."""

    labels: tuple[str, ...]
    """Of the fastest and of those that are not clearly slower; at ``first`` it comes first."""
    first: Row
    """The case with the least time at the smallest size."""
    last: Row
    """The same at the largest."""
    after: Row | None
    """The same at the size before, where another is fastest: the border lies between."""
    unknown: bool = False
    """Whether a difference between these is not known, since a time has no interval."""


@dataclass(frozen=True, slots=True)
class Repayment:
    """How many calls repay compilation."""

    calls: int | None
    """``None``: never, because a call is not clearly faster than the baseline's."""
    low: int | None
    """Fewest calls that the intervals allow; ``None`` when unknown."""
    high: int | None
    """Most calls that the intervals allow; ``None`` when unknown."""
    seconds: float
    """Of compilation."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One implementation on one device, against the baseline."""

    label: str
    """Implementation, and its device where it runs on several."""
    points: tuple[Row, ...]
    """Its fastest launch at each size that has a speedup, smallest first; at least one."""
    crossover: Crossover
    end_to_end: Row | None
    """At the largest size, from host memory to host memory; ``None``: not measured."""
    repayment: Repayment | None
    """``None``: compilation was not measured."""
    start: Row | None
    """Until the first result of a fresh process; ``None``: not measured."""

    @property
    def largest(self) -> Row:
        """Its fastest launch at the largest size that has a speedup."""
        return self.points[-1]

    @property
    def copies(self) -> bool:
        """Whether a caller with arrays in host memory pays for copies."""
        return self.end_to_end is not None or self.largest.device not in ("", CPU)


@dataclass(frozen=True, slots=True)
class Choice:
    """One kernel for one combination of its parameters."""

    parameters: str
    """Identity of the combination; empty without parameters."""
    resident: tuple[Stretch, ...]
    """By the ``kernel`` times: arrays are where the implementation wants them."""
    host: tuple[Stretch, ...]
    """By host-to-host times; empty where nothing that copies was measured so."""
    alternatives: tuple[Alternative, ...]


Labels = Callable[[Row], str]
"""Names an implementation for people; its device is said where it runs on several."""


def choices(rows: Iterable[Row]) -> tuple[Choice, ...]:
    """Return what to use, for each combination of a kernel's parameters; rows of one kernel now."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.seconds is not None:
            groups[row.parameters].append(row)
    return tuple(_choice(parameters, group) for parameters, group in sorted(groups.items()))


def crossover(points: Iterable[tuple[float, Ratio]]) -> Crossover:
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


def compilation(row: Row, rows: Iterable[Row], time: str = "compile") -> Row | None:
    """Return the ``compile`` time of a case, or its ``start``, among the rows of its
    implementation.

    Measured of it, or else of the largest case with the same parameters on the same device, which
    is compiled alike; ``None`` where it was not measured.
    """
    alike = [
        other
        for other in rows
        if other.name.time == time
        and (other.device, other.parameters) == (row.device, row.parameters)
    ]
    return max(alike, key=lambda c: (c.name.case == row.name.case, c.size), default=None)


def repayment(compiling: Row, row: Row) -> Repayment | None:
    """Return the calls after which the time saved on each makes up for compilation: ``c / (b -
    t)``.

    The bounds take the ends of all three intervals together. ``None`` without a baseline's time.
    """
    if row.speedup is None or row.baseline_seconds is None:
        return None
    if row.seconds is None or compiling.seconds is None:
        return None
    if row.speedup.verdict != "faster":
        return Repayment(None, None, None, compiling.seconds)

    def calls(cost: float | None, baseline: float | None, seconds: float | None) -> int | None:
        if cost is None or baseline is None or seconds is None or baseline <= seconds:
            return None
        return max(0, math.ceil(cost / (baseline - seconds)))

    return Repayment(
        calls=calls(compiling.seconds, row.baseline_seconds, row.seconds),
        low=calls(compiling.low, row.baseline_high, row.low),
        high=calls(compiling.high, row.baseline_low, row.high),
        seconds=compiling.seconds,
    )


def _choice(parameters: str, rows: Sequence[Row]) -> Choice:
    kernel = [row for row in rows if row.name.time == "kernel"]
    devices: dict[str, set[str]] = defaultdict(set)
    for row in kernel:
        devices[row.name.implementation].add(row.device)

    def label(row: Row) -> str:
        name = row.name.implementation
        return f"{name} on {row.device}" if len(devices[name]) > 1 and row.device else name

    # By the host-to-host time. Systems on the CPU that keep data in a form of their own have one;
    # for those that work on NumPy's arrays it is the ``kernel`` time.
    apart = {(r.name.implementation, r.device) for r in rows if r.name.time == "end_to_end"}
    host = [
        row
        for row in rows
        if row.name.time == "end_to_end"
        or (
            row.name.time == "kernel"
            and row.device in ("", CPU)
            and (row.name.implementation, row.device) not in apart
        )
    ]
    copied = any(row.name.time == "end_to_end" for row in host)
    return Choice(
        parameters,
        _stretches(kernel, label),
        _stretches(host, label) if copied else (),
        tuple(_alternatives(rows, label)),
    )


def _stretches(rows: Iterable[Row], label: Labels) -> tuple[Stretch, ...]:
    """Sizes, smallest first, joined where the same implementations are fastest."""
    by_size: dict[float, list[Row]] = defaultdict(list)
    for row in rows:
        by_size[row.size].append(row)
    stretches: list[Stretch] = []
    for size in sorted(by_size):
        fastest: dict[str, Row] = {}
        for row in sorted(by_size[size], key=lambda row: row.seconds or math.inf):
            fastest.setdefault(label(row), row)
        first = next(iter(fastest.values()))
        labels, unknown = [], False
        for name, row in fastest.items():
            ratio = time_ratio(row, first)
            if ratio is None or ratio.verdict != "faster":
                labels.append(name)
                unknown |= row is not first and (ratio is None or not ratio.has_interval)
        before = stretches[-1] if stretches else None
        if before and set(before.labels) == set(labels) and before.unknown == unknown:
            stretches[-1] = replace(before, last=first)
        else:
            after = before.last if before else None
            stretches.append(Stretch(tuple(labels), first, first, after, unknown))
    return tuple(stretches)


def _alternatives(rows: Iterable[Row], label: Labels) -> Iterator[Alternative]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if not row.is_baseline:
            groups[row.name.implementation, row.device].append(row)
    for _, group in sorted(groups.items()):
        points, end_to_end = (
            fastest_variants(row for row in group if row.speedup and row.name.time == time)
            for time in ("kernel", "end_to_end")
        )
        if not points:
            continue
        ordered = sorted(points.values(), key=lambda row: row.size)
        largest = ordered[-1]
        compiling = compilation(largest, group)
        yield Alternative(
            label=label(largest),
            points=tuple(ordered),
            crossover=crossover((row.size, row.speedup) for row in ordered if row.speedup),
            end_to_end=next((r for r in end_to_end.values() if r.size == largest.size), None),
            repayment=repayment(compiling, largest) if compiling else None,
            start=compilation(largest, group, "start"),
        )
