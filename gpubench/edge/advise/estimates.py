"""Times between the sizes that were measured, with intervals that say how wrong they may be.

**The estimate.** Straight lines between neighbouring sizes, both on logarithms: what costs a power
of the size is a straight line there, whichever power. Before that, each time is raised to the
longest of all smaller sizes, so that no estimate is below the time of a smaller size. Several sizes
span a grid, and an estimate needs all corners of its cell. Up to ``MAX_FACTOR`` beyond the grid a
line goes on as steeply as over its last such factor, and never falls. Farther away there is none.

**The bound.** No estimate is below the bytes that have to move over the bandwidth that was measured
of the device's memory. A measured time that is shorter shows that a cache holds its arrays: the
bound does not apply there, nor at smaller sizes.

**Its interval** has two parts, which add by their squares. One is the ends' own: the interval of
each time, and the factor by which times differ at another hour. The other is what lies between: a
line that bends by a power of the size somewhere misses it by up to ``h t (1 - t)`` at the share
``t`` of a gap of ``h`` (logarithms), and beyond the last size by ``BEND_BEYOND`` times the
distance.
The interval ends at those of the neighbouring sizes, since a time grows with the size. One that is
wider than ``MAX_FACTOR`` tells nothing: such a time is not known.

The page *Advise* calculates the same in the browser (``reports/advise.js``); a test holds the two
together.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from statistics import median
from typing import Literal, NamedTuple, get_args

from gpubench.analysis.choice import compilation
from gpubench.analysis.comparison import BASELINE_MOVED
from gpubench.names import (
    CPU,
    CURVE_TIMES,
    FRESH_TIMES,
    TOGETHER,
    device_kind,
    format_identity,
    parse_identity,
)
from gpubench.results import Row

Kind = Literal["measured", "predicted", "extrapolated"]
ESTIMATE_KINDS: tuple[Kind, ...] = get_args(Kind)
"""What an estimate rests on: that very size; sizes on both sides; sizes on one side. The worst
comes last."""

Gap = Literal["far", "corner", "single"]
"""Why there is no estimate; ``GAP_WORDS`` has the words."""

GAP_WORDS: Mapping[Gap, str] = {
    "far": "a size is more than 4x from every measured one",
    "corner": "the sizes around it were not all measured",
    "single": "one size was measured, and another is asked for",
}

MAX_FACTOR = 4.0
"""Largest factor between a size and the nearest measured one for an estimate, and largest between
the ends of an interval for a time to be known."""

BEND_BEYOND = 0.5
"""Powers of the size by which a line may bend beyond the last size. Between two sizes it is one
power. ``docs/measurements.md`` says how many hidden sizes these intervals held."""

MIN_DRIFT = math.log(BASELINE_MOVED)
"""Logarithm of the factor by which times differ at another hour, where no more is known."""

ONCE = tuple(reversed(FRESH_TIMES))
"""Labelled times that a process pays once, whatever the size, in the order in which it does."""

AND = " and "
"""Between the devices of these parts."""

Place = tuple[float, ...]
"""Sizes, in the order of the axes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A time, in seconds."""

    seconds: float
    low: float
    high: float
    kind: Kind

    def times(self, factor: float) -> Estimate:
        return Estimate(self.seconds * factor, self.low * factor, self.high * factor, self.kind)


def get_worst(kinds: Iterable[Kind]) -> Kind:
    """Return what a sum of estimates rests on."""
    return max(kinds, key=ESTIMATE_KINDS.index)


def estimate_within(seconds: float, factor: float, kind: Kind) -> Estimate:
    """Return an estimate that may be wrong by a factor to either side."""
    return Estimate(seconds, seconds / factor, seconds * factor, kind)


class Point(NamedTuple):
    """The fastest launch of an implementation at one size."""

    at: Place
    log: float
    """Logarithm of the seconds."""
    half: float
    """Half width of the interval of ``log``."""
    variant: str = ""
    """What of its identity is no problem, threads and device aside: ``block=256``."""
    bound: float | None = None
    """Logarithm of the seconds that its bytes take at the measured bandwidth; ``None``: unknown."""
    held: float | None = None
    """Logarithm of the bytes of memory that it needs; ``None``: unknown."""


class Spot(NamedTuple):
    """Where a place lies on a grid."""

    corners: tuple[tuple[Place, float], ...]
    """Measured places with their weights; the smallest is first, the largest last."""
    reach: float
    """Half width of the interval for each power by which a line may bend; 0 at a measured place."""
    beyond: tuple[float, ...]
    """By axis the logarithm of the factor to the last size; negative below the first."""

    def mix(self, values: Mapping[Place, float], slopes: Slopes = ()) -> float:
        """Return the value on the lines through these."""
        inside = sum(values[at] * weight for at, weight in self.corners)
        ways_out = zip(self.beyond, slopes, strict=False)
        return inside + sum(out * pair[out > 0] for out, pair in ways_out if out)


Slopes = Sequence[tuple[float, float]]
"""By axis below the first size and beyond the last."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The places at which something was measured."""

    axes: tuple[tuple[float, ...], ...]
    """The values along each axis, smallest first."""
    places: frozenset[Place]

    @classmethod
    def of(cls, places: Iterable[Place]) -> Grid:
        kept = frozenset(places)
        return cls(tuple(tuple(sorted({*values})) for values in zip(*kept, strict=True)), kept)

    def find(self, place: Place) -> Spot | Gap:
        """Return the cell that a place lies in or next to, or why there is none."""
        corners: list[tuple[Place, float]] = [((), 1.0)]
        reach, beyond = 0.0, []
        for value, axis in zip(place, self.axes, strict=True):
            nearest = min(abs(math.log(value / measured)) for measured in axis)
            if nearest > math.log(MAX_FACTOR) * (1 + 1e-9):
                return "far"
            if nearest and len(axis) == 1:
                return "single"
            inner = min(max(value, axis[0]), axis[-1])
            beyond.append(math.log(value / inner))
            above = axis[bisect_left(axis, inner)]
            sides = [(above, 1.0)]
            if above != inner:
                below = axis[bisect_left(axis, inner) - 1]
                gap = math.log(above / below)
                t = math.log(inner / below) / gap
                reach += gap * t * (1 - t)
                sides = [(below, 1 - t), (above, t)]
            corners = [
                ((*at, side), weight * share) for at, weight in corners for side, share in sides
            ]
        if any(at not in self.places for at, _ in corners):
            return "corner"
        return Spot(tuple(corners), reach, tuple(beyond))

    def get_slopes(self, values: Mapping[Place, float]) -> Slopes:
        """Return how steep lines are at both ends of each axis, over a factor of ``MAX_FACTOR``
        where there is one: the median of all lines along it."""
        slopes = []
        for k, axis in enumerate(self.axes):
            ends = []
            for end, others in ((axis[0], axis[1:]), (axis[-1], axis[-2::-1])):
                far = (o for o in others if max(o / end, end / o) >= MAX_FACTOR * (1 - 1e-9))
                other = next(far, others[-1] if others else end)
                pairs = ((at, (*at[:k], other, *at[k + 1 :])) for at in self.places if at[k] == end)
                steps = [
                    (values[at] - values[to]) / math.log(end / other)
                    for at, to in pairs
                    if to in self.places and to != at
                ]
                ends.append(median(steps or [0.0]))
            slopes.append((ends[0], ends[1]))
        return slopes


def is_within(one: Place, other: Place) -> bool:
    """Return whether a place is larger along no axis than another."""
    return all(a <= b for a, b in zip(one, other, strict=True))


@dataclass(frozen=True, slots=True)
class Curve:
    """One labelled time over the sizes."""

    points: tuple[Point, ...]
    """As measured, in the order of their places; at least one."""
    grid: Grid
    logs: Mapping[Place, float]
    """Raised, so that none is below that of a smaller size."""
    halves: Mapping[Place, float]
    """Of these; they reach down to what was measured there."""
    slopes: Slopes
    bounds: Mapping[Place, float] = field(default_factory=dict)
    """Empty where bytes or bandwidth are not known."""
    bound_slopes: Slopes = ()
    cached: tuple[Place, ...] = ()
    """Places whose times are shorter than their bound, as a cache holds their arrays."""
    held: Mapping[Place, float] = field(default_factory=dict)
    """Logarithms of the bytes of memory that it needs; empty where they are not known."""
    held_slopes: Slopes = ()

    @classmethod
    def through(cls, points: Iterable[Point]) -> Curve:
        """Build the curve through these points."""
        its = tuple(sorted(points))
        grid = Grid.of(point.at for point in its)
        logs: dict[Place, float] = {}
        halves: dict[Place, float] = {}
        for place, point in enumerate(its):
            before = its[:place]  # of one axis all are smaller
            if len(grid.axes) > 1:
                before = tuple(other for other in before if is_within(other.at, point.at))
            else:
                before = before[-1:]
            highest = max([point.log, *(logs[other.at] for other in before)])
            logs[point.at] = highest
            halves[point.at] = math.hypot(point.half, highest - point.log)
        bounds = {point.at: point.bound for point in its if point.bound is not None}
        held = {point.at: point.held for point in its if point.held is not None}
        return cls(
            its,
            grid,
            logs,
            halves,
            grid.get_slopes(logs),
            bounds if (is_bounded := len(bounds) == len(its)) else {},
            grid.get_slopes(bounds) if is_bounded else (),
            tuple(at for at, bound in bounds.items() if logs[at] < bound),
            held if (is_held := len(held) == len(its)) else {},
            grid.get_slopes(held) if is_held else (),
        )

    def estimate(self, place: Place) -> Estimate | Gap:
        """Estimate the time at a place, or say why there is no estimate."""
        spot = self.grid.find(place)
        if not isinstance(spot, Spot):
            return spot
        out = sum(map(abs, spot.beyond))
        half = math.hypot(spot.mix(self.halves), spot.reach + BEND_BEYOND * out)
        log = spot.mix(self.logs, self.slopes)
        low, high = log - half, log + half
        (smallest, _), (largest, _) = spot.corners[0], spot.corners[-1]
        if all(each >= 0 for each in spot.beyond):
            log = max(log, self.logs[smallest])
            low = max(low, self.logs[smallest] - self.halves[smallest])
        if all(each <= 0 for each in spot.beyond):
            log = min(log, self.logs[largest])
            high = min(high, self.logs[largest] + self.halves[largest])
        if self.bounds and not any(is_within(place, at) for at in self.cached):
            bound = spot.mix(self.bounds, self.bound_slopes)
            log, low, high = max(log, bound), max(low, bound), max(high, bound)
        kind: Kind = "extrapolated" if out else "predicted" if spot.reach else "measured"
        return Estimate(math.exp(log), math.exp(low), math.exp(high), kind)

    def get_held_bytes(self, place: Place) -> float | None:
        """Return the bytes of memory that a place needs; ``None`` where they are not known."""
        spot = self.grid.find(place)
        if not self.held or not isinstance(spot, Spot):
            return None
        return math.exp(spot.mix(self.held, self.held_slopes))

    def get_variant(self, place: Place) -> str:
        """Return the launch that was fastest at the nearest size."""

        def distance(point: Point) -> float:
            return sum(abs(math.log(a / b)) for a, b in zip(point.at, place, strict=True))

        return min(self.points, key=distance).variant


WayKey = tuple[str, str, int | None, str]
"""Implementation, device, threads and parameters."""


@dataclass(frozen=True, slots=True)
class Way:
    """One implementation on one device: one way to a result."""

    implementation: str
    device: str
    """``cuda:0``, ``processes:4``. Of parts that do the work at once all: ``cpu and cuda:0``."""
    threads: int | None
    """``None`` where the suite gives it no number."""
    parameters: str
    """Identity of what the kernel varies beside sizes."""
    curves: Mapping[str, Curve]
    """By the labelled time, those of ``CURVE_TIMES`` that were measured."""
    once: Mapping[str, Estimate] = field(default_factory=dict)
    """``compile``, and of ``start`` what is more than the first call."""
    workers: int | None = None
    """Of a pool or cluster, by its record."""
    compiles: bool = False
    memory: float | None = None
    """Bytes of the memory that its arrays have to fit in; ``None``: unknown."""

    @property
    def label(self) -> str:
        """``dask on dask:8``, ``numba on cpu with 4 threads``."""
        on = f" on {self.device}" if self.device else ""
        counted = f" with {self.threads} thread{'s' * (self.threads != 1)}" if self.threads else ""
        return f"{self.implementation}{on}{counted}"

    @property
    def key(self) -> WayKey:
        return self.implementation, self.device, self.threads, self.parameters

    @property
    def copies(self) -> bool:
        """Whether arrays of the host have to be copied."""
        return device_kind(self.device) not in ("", CPU) or "end_to_end" in self.curves

    def needs(self, part: str) -> bool:
        """Return whether a fresh process pays one of ``ONCE``."""
        return part != "compile" or self.compiles


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is known of a setup beside its times."""

    drift: float = MIN_DRIFT
    """Logarithm of the factor by which times differ at another hour."""
    bandwidth: Callable[[str], float | None] = lambda device: None
    """Bytes a second that the memory of a device was measured to move; ``None``: unknown."""
    memory: Callable[[str], float | None] = lambda device: None
    """Bytes of memory of a device; ``None``: unknown."""


# --- ways, from rows


def find_axes(rows: Iterable[Row], asked: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the sizes that tell the problems of a kernel apart, those that are asked for first.

    A size that is always the same is none of them, nor one that grows with another.
    """
    of_rows = [row.sizes for row in rows]
    kept = [*dict.fromkeys(asked)]
    for name in dict.fromkeys(chain.from_iterable(of_rows)):
        varies = len({sizes.get(name) for sizes in of_rows}) > 1
        if name not in kept and varies and not any(_grows(of_rows, name, o) for o in kept):
            kept.append(name)
    return tuple(kept)


def _grows(of_rows: Iterable[Mapping[str, float]], name: str, other: str) -> bool:
    """Return whether a size is decided by another one and grows with it."""
    if not all({name, other} <= sizes.keys() for sizes in of_rows):
        return False
    pairs = sorted({(sizes[other], sizes[name]) for sizes in of_rows})
    return all(a[0] != b[0] and a[1] <= b[1] for a, b in pairwise(pairs))


def build_ways(
    rows: Iterable[Row], axes: Sequence[str], conditions: Conditions | None = None
) -> tuple[Way, ...]:
    """Build every way that has a time which nothing disturbed, in the order of the rows, which are
    of one kernel on one setup."""
    known = conditions or Conditions()
    ways = []
    for key, group in group_by_way(rows, axes).items():
        points: dict[str, dict[Place, Point]] = defaultdict(dict)
        for at, row in sorted(group, key=lambda one: one[1].seconds or 0.0):
            points[row.name.time].setdefault(at, _point(at, row, known))
        curves = {t: Curve.through(points[t].values()) for t in CURVE_TIMES if t in points}
        if not curves:
            continue
        its = [row for _, row in group]
        counted = its[0].conditions.get("workers")
        ways.append(
            Way(
                *key,
                curves,
                _once(its, known.drift),
                counted if isinstance(counted, int) and ":" in key[1] else None,
                compiles=any(row.compiled or row.backend == TOGETHER for row in its),
                memory=known.memory(key[1]),
            )
        )
    return tuple(ways)


def group_by_way(rows: Iterable[Row], axes: Sequence[str]) -> dict[WayKey, list[tuple[Place, Row]]]:
    """Return rows that have a time which nothing disturbed, with their places, by their way."""
    groups: dict[WayKey, list[tuple[Place, Row]]] = defaultdict(list)
    for row in rows:
        at = tuple(row.sizes.get(axis, 0.0) for axis in axes)
        if row.seconds and not row.is_disturbed and all(value > 0 for value in at):
            groups[get_key(row)].append((at, row))
    return groups


def get_key(row: Row) -> WayKey:
    """Return the way that a row is of."""
    device = row.device
    if row.backend == TOGETHER:
        device = str(row.conditions.get("devices", device))
    return row.name.implementation, device, row.threads, row.parameters


def get_variant(row: Row) -> str:
    """Return what of a row's identity is no problem, threads and device aside."""
    problem = {*parse_identity(row.problem), "device", "threads"}
    identity = parse_identity(row.name.case)
    return format_identity({name: value for name, value in identity.items() if name not in problem})


def _point(at: Place, row: Row, known: Conditions) -> Point:
    seconds = row.seconds or 0.0
    rate, bound = known.bandwidth(get_key(row)[1]), None
    if rate and row.bytes and row.name.time != "transfer":
        bound = math.log(row.bytes / rate)
    array_bytes = row.conditions.get("array_bytes")
    # What a run holds comes on top of its arrays.
    held = (row.peak_bytes or 0) + (array_bytes if isinstance(array_bytes, int) else 0)
    return Point(
        at,
        math.log(seconds),
        math.hypot(_spread(row), known.drift),
        get_variant(row),
        bound,
        math.log(held) if held > 0 else None,
    )


def _spread(row: Row) -> float:
    """Half width of the interval of a measured time. Where it has none, its quartiles tell."""
    seconds = row.seconds or 0.0
    ends = row.low, row.high
    if not (ends[0] and ends[1] and ends[0] > 0 and ends[1] < math.inf):
        ends = row.q25, row.q75
    return max((abs(math.log(end / seconds)) for end in ends if end and end > 0), default=0.0)


def _once(group: Sequence[Row], drift: float) -> dict[str, Estimate]:
    """Return what a process pays once. ``start`` ends with a first call, which is not counted
    twice."""
    once: dict[str, Estimate] = {}
    for row in _once_rows(group):
        factor = math.exp(math.hypot(_spread(row), drift))
        estimate = estimate_within(row.seconds or 0.0, factor, "measured")
        if row.name.time == "start":
            calls = {r.name.time: r.seconds for r in group if r.name.case == row.name.case}
            called = calls.get("end_to_end") or calls.get("kernel") or 0.0
            ends = (estimate.seconds, estimate.low, estimate.high)
            rest, low, high = (max(each - called, 0.0) for each in ends)
            estimate = Estimate(rest, low, high, "measured")
        once[row.name.time] = estimate
    return once


def _once_rows(group: Sequence[Row]) -> Iterator[Row]:
    for time in ONCE:
        row = compilation(max(group, key=lambda row: row.size), group, time)
        if row is not None and row.seconds:
            yield row
