"""Times between the sizes that were measured, with intervals that say how wrong they may be.

**The estimate.** Straight lines between neighbouring sizes, both on logarithms. What costs a power
of the size is a straight line there, whichever power, and a cache that overflows bends two segments
and no other: a curve through all sizes would swing. A fixed cost beside a linear one is a line that
bends slowly. So where the lines bend the same way at both ends of a segment, the estimate does too,
by the smaller of the two (the limiter of Harten, Engquist, Osher and Chakravarthy, J. Comput. Phys.
71, 1987, called minmod); where they do not, or nothing lies beyond, it is straight.

**Its interval** has two parts, which add by their squares. One is the ends' own: the interval of
each time, and the factor by which times differ at another hour: ``BASELINE_MOVED``, or what
verifications on this setup found where that is more (``advice_checks.drifts_of``). The other is
what lies between: a line that bends by a slope somewhere between two sizes misses it by up to that
slope times ``reach``, which is ``h t (1 - t)`` at the share ``t`` of a gap of ``h`` (logarithms),
and beyond the last size the distance to it. How much lines bend is learned by hiding each size in
turn and predicting it from the others: the mean square of ``error / reach`` of a curve, with that
of its whole kernel as one more. Then all intervals of a kernel are widened by one factor, so that
they hold ``LEVEL`` of the hidden sizes, each judged without itself (conformal prediction with a
local scale: Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, JASA 113, 2018, section 5.2). A kernel
with few sizes bends by ``USUAL_BEND``.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from statistics import fmean, median
from typing import Literal, NamedTuple, get_args

from gpubench.analysis.choice import compilation
from gpubench.analysis.comparison import BASELINE_MOVED
from gpubench.analysis.scaling import workers_of
from gpubench.names import format_identity, parse_identity
from gpubench.results import Row

Kind = Literal["measured", "predicted", "wide", "extrapolated"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What an estimate rests on: that very size; sizes on both sides at most ``MOST_APART`` apart;
sizes on both sides that are farther apart; sizes on one side only. The worst comes last."""

MOST_APART = 4.0
"""Largest factor between two neighbouring sizes for an estimate between them to be a prediction."""

LEVEL = 0.95
"""Share of the hidden sizes that the intervals of a kernel hold. They are of the same run; at
another hour times differ by more, and ``advice_checks.LEAST_COVERAGE`` is what has to be left."""

FEWEST = 9
"""Hidden sizes of a kernel from which its intervals are calibrated: of fewer not even the largest
error holds nine of ten."""

REFERENCES = 5
"""Sizes of a way that are measured again to tell what times have become since. Of the library, four
hours later, estimates were wrong by 8.4 % at the median with three, 5.8 % with four and 4.5 % with
five (``docs/measurements.md``)."""

LEAST_DRIFT = math.log(BASELINE_MOVED)
"""Logarithm of the factor by which times differ at another hour, where no more is known."""

CURVES = ("kernel", "end_to_end", "transfer")
"""Labelled times that are estimated between sizes."""

ONCE = ("compile", "start")
"""Labelled times that a process pays once, whatever the size."""

LARGEST = 300.0
"""Logarithm of what is calculated with: the square of more is no number."""

TOGETHER = "together"
"""Backend of implementations whose parts do the work at once."""

AND = " and "
"""Between the devices of these parts."""

WORKERS = "workers"
"""Axis of the number of threads, processes or nodes, beside the sizes."""


class Guess(NamedTuple):
    """Logarithm of a time, with what its interval is made of."""

    log: float
    half: float
    """Half width by the times that it is made of."""
    reach: float = 0.0
    """Half width for each unit by which the line may bend; 0 at a measured size."""
    kind: Kind = "measured"


class Point(NamedTuple):
    """The fastest launch of an implementation at one size."""

    at: tuple[float, ...]
    """Values of the axes."""
    guess: Guess
    variant: str = ""
    """What of its identity is no problem, threads and device aside: ``block=256``."""


class Bend(NamedTuple):
    """How wrong the lines of a curve are."""

    slope: float
    """By which they may bend; ``inf``: not known."""
    factor: float
    """By which intervals are widened; at least 1."""


UNKNOWN = Bend(math.inf, 1.0)

USUAL_BEND = Bend(1.0, 1.0)
"""Of a kernel of which fewer than ``FEWEST`` sizes tell: as if times that did not depend on the
size became proportional to it within a factor of e. Intervals by it held 94 % of 1,399 hidden sizes
of the library and of the suites of systems, 2x apart, and 95 % of 549 that were 4x apart."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A time, in seconds."""

    seconds: float
    low: float
    """0 where the interval is not known."""
    high: float
    """``inf`` where the interval is not known."""
    kind: Kind

    def times(self, factor: float) -> Estimate:
        return Estimate(self.seconds * factor, self.low * factor, self.high * factor, self.kind)


def worst(kinds: Iterable[Kind]) -> Kind:
    """What a sum of estimates rests on."""
    return max(kinds, key=KINDS.index)


def within(seconds: float, factor: float, kind: Kind) -> Estimate:
    """An estimate that may be wrong by a factor to either side."""
    return Estimate(seconds, seconds / factor, seconds * factor, kind)


@dataclass(frozen=True, slots=True)
class Curve:
    """One labelled time over the axes of its way."""

    points: tuple[Point, ...]
    inside: Bend = UNKNOWN
    """Between two sizes, and at one."""
    beyond: Bend = UNKNOWN
    """Beyond the last size."""

    def at(self, place: Sequence[float]) -> Estimate | None:
        """``None`` where the axes have no points on both sides, or two on one side."""
        guess = interpolated(self.points, place)
        if guess is None:
            return None
        bend = self.beyond if guess.kind == "extrapolated" else self.inside
        # At a measured size nothing bends, whether it is known how much or not.
        half = bend.factor * math.hypot(guess.half, guess.reach and bend.slope * guess.reach)
        seconds = math.exp(max(min(guess.log, LARGEST), -LARGEST))
        if half == math.inf:
            return Estimate(seconds, 0.0, math.inf, guess.kind)
        return within(seconds, math.exp(min(half, LARGEST)), guess.kind)

    def variant(self, place: Sequence[float]) -> str:
        """The launch that was fastest at the nearest size."""

        def distance(point: Point) -> float:
            return sum(abs(math.log(a / b)) for a, b in zip(point.at, place, strict=True))

        return min(self.points, key=distance).variant


@dataclass(frozen=True, slots=True)
class Way:
    """One implementation on one device: one way to a result."""

    implementation: str
    device: str
    """Of pools and clusters without the number of workers: ``processes``. Of parts that do the work
    at once all: ``cpu and cuda:0``."""
    parameters: str
    """Identity of what the kernel varies beside sizes."""
    place: str
    """Machine and environment."""
    axes: tuple[str, ...]
    """Sizes; last ``WORKERS`` where they are counted."""
    curves: Mapping[str, Curve]
    """By the labelled time, those of ``CURVES`` that were measured."""
    once: Mapping[str, Estimate] = field(default_factory=dict)
    """``compile``, and of ``start`` what is more than the first call."""
    compiles: bool = False
    divides: bool = False
    """Whether several implementations do the work at once."""

    @property
    def key(self) -> WayKey:
        """As ``time_of_way`` gives it of a row."""
        return self.implementation, self.device, self.parameters, WORKERS in self.axes

    @property
    def counts(self) -> tuple[float, ...]:
        """Numbers of workers that were measured; empty where they are not counted."""
        if WORKERS not in self.axes:
            return ()
        return tuple(sorted({p.at[-1] for curve in self.curves.values() for p in curve.points}))

    @property
    def copies(self) -> bool:
        """Whether arrays of the host have to be copied."""
        return self.device.partition(":")[0] not in ("", "cpu") or "end_to_end" in self.curves


def interpolated(points: Sequence[Point], place: Sequence[float], axis: int = 0) -> Guess | None:
    """Along one axis between guesses along those after it; ``None`` where there are too few."""
    if axis == len(place):
        return points[0].guess if points else None
    groups: dict[float, list[Point]] = defaultdict(list)
    for point in points:
        groups[point.at[axis]].append(point)
    value = place[axis]
    known = [
        (key, guess)
        for key in sorted(groups)
        if (guess := interpolated(groups[key], place, axis + 1))
    ]
    for key, guess in known:
        if key == value:
            return guess
    if len(known) < 2:
        return None
    after = min(max(bisect([key for key, _ in known], value), 1), len(known) - 1)
    (a, one), (b, other) = known[after - 1], known[after]
    gap = math.log(b / a)
    t = math.log(value / a) / gap
    inside = 0 <= t <= 1
    near: Kind = "predicted" if gap <= math.log(MOST_APART) * (1 + 1e-9) else "wide"
    reach = gap * t * (1 - t) if inside else gap * max(-t, t - 1)
    sag = 0.0
    if inside and 1 < after < len(known) - 1:
        xs, ys = zip(*((math.log(x), g.log) for x, g in known[after - 2 : after + 2]), strict=True)
        slopes = [(ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k]) for k in range(3)]
        bends = [(slopes[k + 1] - slopes[k]) / (xs[k + 2] - xs[k]) for k in range(2)]
        sag = min(bends, key=abs) if bends[0] * bends[1] > 0 else 0.0
    return Guess(
        (1 - t) * one.log + t * other.log - sag * gap * reach,
        abs(1 - t) * one.half + abs(t) * other.half,
        abs(1 - t) * one.reach + abs(t) * other.reach + reach,
        worst((near if inside else "extrapolated", one.kind, other.kind)),
    )


# --- ways, from rows


def axes_of(rows: Iterable[Row], asked: Iterable[str] = ()) -> tuple[str, ...]:
    """Sizes that tell the problems of a kernel apart, those that are asked for first.

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
    """Whether a size is decided by another one and grows with it."""
    if not all({name, other} <= sizes.keys() for sizes in of_rows):
        return False
    pairs = sorted({(sizes[other], sizes[name]) for sizes in of_rows})
    return all(a[0] != b[0] and a[1] <= b[1] for a, b in pairwise(pairs))


def ways_of(
    rows: Iterable[Row], axes: Sequence[str], place: str = "", drift: float = LEAST_DRIFT
) -> tuple[Way, ...]:
    """Every implementation on every device that has a time, in the order of the rows, with
    intervals that are calibrated over all of them; rows of one kernel on one setup. ``drift`` is
    the logarithm of the factor by which times differ at another hour."""
    ways = []
    for (implementation, device, parameters, counted), group in of_ways(rows, axes).items():
        points: dict[str, dict[tuple[float, ...], Point]] = defaultdict(dict)
        for it, row in sorted(group, key=lambda one: one[1].seconds or 0.0):
            if it.at not in points[it.time]:
                points[it.time][it.at] = Point(it.at, _guess(row, drift), it.variant)
        curves = {t: Curve(tuple(sorted(points[t].values()))) for t in CURVES if t in points}
        if not curves:
            continue
        ways.append(
            Way(
                implementation,
                device,
                parameters,
                place,
                (*axes, WORKERS) if counted else (*axes,),
                curves,
                _once([row for _, row in group], drift),
                compiles=any(row.compiled or row.backend == TOGETHER for _, row in group),
                divides=any(row.backend == TOGETHER for _, row in group),
            )
        )
    return calibrated(ways)


WayKey = tuple[str, str, str, bool]
"""Implementation, device, parameters, and whether workers are counted."""


class TimeOfWay(NamedTuple):
    """Which time of which way a row has."""

    way: WayKey
    at: tuple[float, ...]
    """Values of the axes."""
    time: str
    variant: str
    """As of ``Point``."""


def of_ways(rows: Iterable[Row], axes: Sequence[str]) -> dict[WayKey, list[tuple[TimeOfWay, Row]]]:
    """Rows that have a time by the way that they are of."""
    groups: dict[WayKey, list[tuple[TimeOfWay, Row]]] = defaultdict(list)
    for row in rows:
        if row.seconds and (time := time_of_way(row, axes)):
            groups[time.way].append((time, row))
    return groups


def time_of_way(row: Row, axes: Sequence[str]) -> TimeOfWay | None:
    """``None`` where a row has none of these sizes above 0."""
    at = tuple(row.sizes.get(axis, 0.0) for axis in axes)
    if not all(value > 0 for value in at):
        return None
    workers = workers_of(row)
    device = row.device if workers is None else row.device.partition(":")[0]
    if row.backend == TOGETHER:
        device = str(row.conditions.get("devices", device))
    at += () if workers is None else (float(workers),)
    way = (row.name.implementation, device, row.parameters, workers is not None)
    problem = {*parse_identity(row.problem), "device", "threads"}
    identity = parse_identity(row.name.case)
    variant = {name: value for name, value in identity.items() if name not in problem}
    return TimeOfWay(way, at, row.name.time, format_identity(variant))


def _guess(row: Row, drift: float) -> Guess:
    """A measured time. Where it has no interval, its quartiles tell how much samples scatter."""
    seconds = row.seconds or 0.0
    ends = row.low, row.high
    if not (ends[0] and ends[1] and ends[0] > 0 and ends[1] < math.inf):
        ends = row.q25, row.q75
    spread = max((abs(math.log(end / seconds)) for end in ends if end), default=0.0)
    return Guess(math.log(seconds), math.hypot(spread, drift))


def _once(group: Sequence[Row], drift: float) -> dict[str, Estimate]:
    """What a process pays once. ``start`` ends with a first call, which is not counted twice."""
    once: dict[str, Estimate] = {}
    for row in once_rows(group):
        estimate = as_stored(row, drift)
        if row.name.time == "start":
            calls = {r.name.time: r.seconds for r in group if r.name.case == row.name.case}
            called = calls.get("end_to_end") or calls.get("kernel") or 0.0
            ends = (estimate.seconds, estimate.low, estimate.high)
            rest, low, high = (max(each - called, 0.0) for each in ends)
            estimate = Estimate(rest, low, high, "measured")
        once[row.name.time] = estimate
    return once


def once_rows(group: Sequence[Row]) -> Iterator[Row]:
    """The rows of one way by which it is known what a process pays once."""
    for time in ONCE:
        row = compilation(max(group, key=lambda row: row.size), group, time)
        if row is not None and row.seconds:
            yield row


def as_stored(row: Row, drift: float) -> Estimate:
    """A time as it will be measured again, at another hour."""
    return within(row.seconds or 0.0, math.exp(_guess(row, drift).half), "measured")


# --- at another hour


def references(ways: Iterable[Way]) -> set[TimeOfWay]:
    """Times that tell of all others of their ways: some sizes, spread evenly."""
    times = set()
    for way in ways:
        for time, curve in way.curves.items():
            last = len(curve.points) - 1
            for number in range(REFERENCES):
                point = curve.points[round(number * last / (REFERENCES - 1))]
                times.add(TimeOfWay(way.key, point.at, time, point.variant))
    return times


def refreshed(way: Way, fresh: Mapping[TimeOfWay, float]) -> Way:
    """The same with times of a label as much longer or shorter as those, in seconds, that were
    measured again: between two of these by what lies between, elsewhere by their median."""
    curves = {}
    for time, curve in way.curves.items():
        moves = [
            Point(point.at, Guess(math.log(seconds) - point.guess.log, 0.0))
            for point in curve.points
            if (seconds := fresh.get(TimeOfWay(way.key, point.at, time, point.variant)))
        ]
        points = tuple(_moved(point, moves) for point in curve.points) if moves else curve.points
        curves[time] = replace(curve, points=points)
    return replace(way, curves=curves)


def _moved(point: Point, moves: Sequence[Point]) -> Point:
    between = interpolated(moves, point.at)
    if between is None or between.kind == "extrapolated":
        by = median(move.guess.log for move in moves)
    else:
        by = between.log
    return point._replace(guess=point.guess._replace(log=point.guess.log + by))


# --- calibration


class Residual(NamedTuple):
    """What was wrong of a hidden size: the difference of the logarithms, and the guess's parts."""

    error: float
    half: float
    reach: float
    is_beyond: bool
    """Predicted from one side only."""


def calibrated(ways: Sequence[Way]) -> tuple[Way, ...]:
    """The ways of a kernel with what their lines bend, so that the intervals hold ``LEVEL`` of the
    sizes that are hidden one by one."""
    curves = [curve for way in ways for curve in way.curves.values()]
    residuals = [[*_residuals(curve)] for curve in curves]
    inside = _bends([[one for one in own if not one.is_beyond] for own in residuals], USUAL_BEND)
    beyond = _bends([[one for one in own if one.is_beyond] for own in residuals], UNKNOWN)
    bent = (
        replace(curve, inside=one, beyond=other)
        for curve, one, other in zip(curves, inside, beyond, strict=True)
    )
    return tuple(replace(way, curves={time: next(bent) for time in way.curves}) for way in ways)


def _residuals(curve: Curve) -> Iterator[Residual]:
    """Of each point as predicted from the others, where these tell."""
    for place, point in enumerate(curve.points):
        others = curve.points[:place] + curve.points[place + 1 :]
        guess = interpolated(others, point.at)
        if guess and guess.reach:
            error = abs(guess.log - point.guess.log)
            yield Residual(error, guess.half, guess.reach, guess.kind == "extrapolated")


def _bends(of_curves: Sequence[Sequence[Residual]], few: Bend) -> list[Bend]:
    """How wrong the lines of each curve are by its residuals, shrunk to the mean of all by one;
    ``few`` where there are fewer than ``FEWEST``."""
    slopes = [[(one.error / one.reach) ** 2 for one in own] for own in of_curves]
    every = [*chain.from_iterable(slopes)]
    if len(every) < FEWEST:
        return [few] * len(of_curves)
    shared = fmean(every)

    def slope(own: Sequence[float]) -> float:
        return math.sqrt((shared + sum(own)) / (1 + len(own)))

    factor = largest_of_level(
        one.error / math.hypot(one.half, slope([*own[:place], *own[place + 1 :]]) * one.reach)
        for residuals, own in zip(of_curves, slopes, strict=True)
        for place, one in enumerate(residuals)
    )
    return [Bend(slope(own), max(1.0, factor)) for own in slopes]


def largest_of_level(values: Iterable[float]) -> float:
    """What holds ``LEVEL`` of these and, with that probability, another one of their kind."""
    ordered = sorted(values)
    return ordered[min(math.ceil(LEVEL * (len(ordered) + 1)), len(ordered)) - 1]
