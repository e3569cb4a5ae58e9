"""Which implementation to use, where, and with how many workers, for a size that may not have been
measured: the time to the result of every way to it.

The time to the result is ``start + compile + copies + calls x kernel``, of the parts that the asker
has to pay and that were measured. A part is an estimate (``gpubench.analysis.estimates``). Their
errors are independent, so that the sum's interval is as far from the middle as the ends of the
parts', squared and added (Zou and Donner, Statistics in Medicine 27, 2008: the rule of
``independent_quotient``, which compares two sums). The page *Advise* computes the same in the
browser (``reports/advise.js``); a test holds the two together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from gpubench.analysis.estimates import AND, WORKERS, Estimate, Kind, Way, worst
from gpubench.results import Ratio
from gpubench.results.ratio import independent_quotient

Process = Literal["fresh", "cached", "warm"]
"""What a process has to pay: its start and all compilation; its start, with what was compiled kept
on disk; nothing."""

STEPS = 48
"""Places at which two ways are compared for each factor of ten: one that is the best for less than
5 % of a size is not worth a sentence."""

HALVINGS = 40
"""Of a step, until its ends are as close as numbers are."""

MOST_CALLS = 10**6
"""Up to which the number of calls is looked at."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What somebody wants to have computed."""

    sizes: Mapping[str, float]
    calls: int = 1
    from_host: bool = True
    """Arrays are in the host's memory, and the result is wanted there."""
    process: Process = "fresh"
    have: tuple[str, ...] = ()
    """Devices, ``cuda:0``, ``dask:8`` for up to eight workers, or all of a kind: ``cuda``. Empty:
    all that were measured."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Of an hour, by device, kind of device or machine."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the sum that is the time to a result."""

    name: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Total:
    """The time to the result by one way."""

    implementation: str
    device: str
    workers: int | None
    """``None`` where they are not counted."""
    place: str
    variant: str
    """The launch, that of the nearest size."""
    parts: tuple[Term, ...]
    seconds: float
    low: float
    """0 where a part's interval is not known."""
    high: float
    """``inf`` where a part's interval is not known."""
    kind: Kind
    """The worst of the parts."""
    missing: tuple[str, ...]
    """Labelled times that would be parts, and were not measured."""
    divides: bool
    """Whether several implementations do the work at once: dividing it was measured."""
    price: float | None
    """``None`` without a price of its device."""

    @property
    def label(self) -> str:
        return way_label(self.implementation, self.device, self.workers)

    @property
    def once(self) -> float:
        """Seconds that do not get fewer with a part of the work."""
        return sum(p.estimate.seconds for p in self.parts if p.name in ("start", "compile"))

    @property
    def ratio(self) -> Ratio:
        """Its time with its interval, to be divided by another's."""
        return Ratio(self.seconds, self.low, self.high, least=1.0)


@dataclass(frozen=True, slots=True)
class Crossing:
    """From where on another way is the fastest."""

    value: float
    """Of the size, or number of calls."""
    low: float | None
    """From where down the other is clearly the faster; ``None``: nowhere that was looked at."""
    high: float | None
    """From where up this one is."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Together:
    """What several devices at once could take at best, each with a share of the work."""

    labels: tuple[str, ...]
    """The fastest way on each device that shares no processor with the others."""
    seconds: float
    """A bound: nothing is lost by splitting, and each device is as fast with a part as with all."""


@dataclass(frozen=True, slots=True)
class Advice:
    """All ways to one result, fastest first."""

    parameters: str
    totals: tuple[Total, ...]
    left_out: tuple[str, ...]
    """Ways without an estimate, and why."""
    over_size: tuple[Crossing, ...]
    """Along the size that is asked for, at so many calls; empty where there are several sizes."""
    over_calls: tuple[Crossing, ...]
    """Over the number of calls, at this size."""
    together: Together | None

    @property
    def best(self) -> Total:
        return self.totals[0]

    @property
    def divided(self) -> Total | None:
        """The fastest of those that divide the work, which was measured; ``None`` without any."""
        return next((total for total in self.totals if total.divides), None)

    @property
    def alone(self) -> Total | None:
        """The fastest of those that do not."""
        return next((total for total in self.totals if not total.divides), None)

    @property
    def equals(self) -> tuple[Total, ...]:
        """The others that may be as fast."""
        return tuple(other for other in self.totals[1:] if not apart(self.best, other))


def way_label(implementation: str, device: str, workers: float | None) -> str:
    """``dask on processes with 4 workers``."""
    on = f" on {device}" if device else ""
    counted = f" with {workers:g} worker{'s' * (workers != 1)}" if workers else ""
    return f"{implementation}{on}{counted}"


def apart(one: Total, other: Total) -> bool:
    """Whether one is clearly the faster."""
    return independent_quotient(one.ratio, other.ratio).verdict != "unclear"


def advise(ways: Iterable[Way], ask: Ask) -> tuple[Advice, ...]:
    """What to use, for each combination of parameters; nothing of those without any estimate."""
    of_parameters: dict[str, list[Way]] = defaultdict(list)
    for way in ways:
        of_parameters[way.parameters].append(way)
    advices = []
    for parameters, group in of_parameters.items():
        choices = [(way, count) for way in group for count in counts_of(way, ask.have)]
        tried = [total_of(way, count, ask) for way, count in choices]
        totals = sorted((t for t in tried if isinstance(t, Total)), key=lambda t: t.seconds)
        if not totals:
            continue
        left_out = tuple(
            f"{way_label(way.implementation, way.device, count)}: {why}"
            for (way, count), why in zip(choices, tried, strict=True)
            if isinstance(why, str)
        )
        over = over_size(choices, ask), over_calls(choices, ask)
        advices.append(Advice(parameters, tuple(totals), left_out, *over, together(totals)))
    return tuple(advices)


def counts_of(way: Way, have: Sequence[str]) -> tuple[float | None, ...]:
    """Numbers of workers to look at, ``None`` where they are not counted; nothing of a device that
    is not there. A number that is asked for and was not measured is estimated."""
    measured: tuple[float | None, ...] = way.counts or (None,)
    if not have:
        return measured
    if AND in way.device:
        devices = way.device.split(AND)
        is_there = all({device, device.partition(":")[0]} & {*have} for device in devices)
        return measured if is_there else ()
    kept: dict[float | None, None] = {}
    kind = way.device.partition(":")[0]
    for one in have:
        name, _, number = one.rpartition(":")
        if one in (way.device, kind):
            kept |= dict.fromkeys(measured)
        elif way.counts and name == way.device and number.isdigit() and int(number):
            kept |= dict.fromkeys(c for c in measured if c is not None and c <= int(number))
            kept[float(number)] = None
    return tuple(kept)


def total_of(way: Way, count: float | None, ask: Ask) -> Total | str:
    """The time to the result, or why there is no estimate of it."""
    place = [ask.sizes[axis] for axis in way.axes if axis != WORKERS]
    place += [] if count is None else [count]
    curve = way.curves.get("kernel")
    kernel = curve.at(place) if curve else None
    copied, copies = (
        way.curves[time].at(place) if ask.from_host and time in way.curves else None
        for time in ("end_to_end", "transfer")
    )
    parts = []
    if ask.process != "warm" and "start" in way.once:
        parts.append(Term("start", way.once["start"]))
    if ask.process == "fresh" and "compile" in way.once:
        parts.append(Term("compile", way.once["compile"]))
    calls = ask.calls
    if copied:
        parts.append(Term("first call with copies", copied))
        calls -= 1
    elif copies:
        parts.append(Term("copies", copies))
    elif ask.from_host and way.copies:
        return "its copies were not measured, or not around this size: add end_to_end to measure"
    if calls and not kernel:
        points = (curve or next(iter(way.curves.values()))).points
        places = ", ".join("x".join(f"{value:g}" for value in point.at) for point in points[:6])
        return f"no estimate from what was measured: {' x '.join(way.axes)} = {places}"
    if calls and kernel:
        parts.append(Term(f"{calls} call{'s' * (calls != 1)}", kernel.times(calls)))
    missing = []
    if ask.process == "fresh" and way.compiles and not {"compile", "start"} & way.once.keys():
        missing.append("compile")
    if ask.process != "warm" and "start" not in way.once:
        missing.append("start")
    estimates = [part.estimate for part in parts]
    seconds = sum(one.seconds for one in estimates)
    below = math.hypot(*(one.seconds - one.low for one in estimates))
    above = math.hypot(*(one.high - one.seconds for one in estimates))
    known = above < math.inf
    hourly = _price(way, ask.prices)
    return Total(
        way.implementation,
        way.device,
        None if count is None else int(count),
        way.place,
        (curve or way.curves["end_to_end"]).variant(place),
        tuple(parts),
        seconds,
        max(seconds - below, 0.0) if known else 0.0,
        seconds + above,
        worst(one.kind for one in estimates),
        tuple(missing),
        way.divides,
        None if hourly is None else hourly * seconds / 3600,
    )


def _price(way: Way, prices: Mapping[str, float]) -> float | None:
    """That of the device comes before that of its kind, and this before that of the machine."""
    devices = way.device.split(AND)
    kinds = [device.partition(":")[0] for device in devices]
    of_each = [prices.get(*each) for each in zip(devices, map(prices.get, kinds), strict=True)]
    known = [price for price in of_each if price is not None]
    if len(known) == len(devices):
        return sum(known)
    return prices.get(way.place, prices.get(way.place.partition(",")[0]))


# --- crossings

Choices = Sequence[tuple[Way, float | None]]


def over_size(choices: Choices, ask: Ask) -> tuple[Crossing, ...]:
    """Along the one size, where it was measured."""
    if len(ask.sizes) != 1:
        return ()
    ((name, _),) = ask.sizes.items()
    values = [p.at[0] for way, _ in choices for curve in way.curves.values() for p in curve.points]

    def totals(value: float) -> list[Total | None]:
        every = _totals(choices, replace(ask, sizes={name: value}))
        return [None if total and total.kind == "extrapolated" else total for total in every]

    return crossings(totals, min(values), max(values))


def over_calls(choices: Choices, ask: Ask) -> tuple[Crossing, ...]:
    """Over the number of calls, at the size that is asked for."""

    def totals(calls: float) -> list[Total | None]:
        return _totals(choices, replace(ask, calls=math.floor(calls)))

    return crossings(totals, 1.0, float(MOST_CALLS))


def _totals(choices: Choices, ask: Ask) -> list[Total | None]:
    tried = (total_of(way, count, ask) for way, count in choices)
    return [total if isinstance(total, Total) else None for total in tried]


def crossings(
    totals: Callable[[float], Sequence[Total | None]], first: float, last: float
) -> tuple[Crossing, ...]:
    """Where the fastest changes between two places; ``totals`` are in the same order everywhere."""
    steps = max(math.ceil(STEPS * math.log10(last / first)), 1)
    places: list[float] = [first * (last / first) ** (step / steps) for step in range(steps + 1)]
    every = [totals(place) for place in places]

    def ratio(each: Sequence[Total | None], pair: tuple[int, int]) -> Ratio | None:
        """Above 1 where the second is the faster."""
        one, other = (each[index] for index in pair)
        return independent_quotient(one.ratio, other.ratio) if one and other else None

    def begins(pair: tuple[int, int], end: str, step: int) -> float:
        """Where after a step the ratio, or an end of its interval, goes over 1."""
        low, high = places[step], places[step + 1]
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            if getattr(ratio(totals(middle), pair) or Ratio(1.0, 0.0, math.inf), end) > 1:
                high = middle
            else:
                low = middle
        return high

    crossed = []
    for step, pair in enumerate(pairwise(map(_fastest, every))):
        if pair[0] == pair[1]:
            continue
        ratios = [ratio(each, pair) for each in every]
        if not ratios[step] or not ratios[step + 1]:
            continue  # one of them was not measured there
        down = (i for i in range(step, -1, -1) if (r := ratios[i]) and r.high < 1)
        up = (i for i in range(step + 1, steps + 1) if (r := ratios[i]) and r.low > 1)
        before, after = next(down, None), next(up, None)
        labels = [total.label for index in pair if (total := every[step][index])]
        crossed.append(
            Crossing(
                begins(pair, "value", step),
                None if before is None else begins(pair, "high", before),
                None if after is None else begins(pair, "low", after - 1),
                *labels,
            )
        )
    return tuple(crossed)


def _fastest(totals: Sequence[Total | None]) -> int:
    """Place of the fastest; without any the first."""
    times = [total.seconds if total else math.inf for total in totals]
    return times.index(min(times))


# --- together


def together(totals: Sequence[Total]) -> Together | None:
    """A bound on what devices at once take. What is paid once each pays in full; the rest is
    divided so that all end together. ``None`` with one device, and where a second does not help."""
    fastest: dict[tuple[str, str], Total] = {}
    for total in (total for total in totals if not total.divides):
        # Threads, pools and local clusters share the host's processors.
        kind = total.device.partition(":")[0]
        own = total.device if kind in ("cuda", "cl") or "://" in total.device else "host"
        fastest.setdefault((total.place, own), total)
    labels: list[str] = []
    rate = paid = 0.0
    seconds = math.inf
    for total in sorted(fastest.values(), key=lambda total: total.once):
        divided = total.seconds - total.once
        if total.once >= seconds or divided <= 0:
            continue
        labels.append(total.label)
        rate, paid = rate + 1 / divided, paid + total.once / divided
        seconds = (1 + paid) / rate
    return Together(tuple(labels), seconds) if len(labels) > 1 else None
