"""Which implementation to use and where, for a size that may not have been measured: the time to
the result of every way to it.

The time to the result is ``start + compile + copies + calls x kernel``, of the parts that the
asker has to pay. A part is an estimate (``gpubench.edge.advise.estimates``). Their errors are
independent, so that the sum's interval is as far from the middle as the ends of the parts', squared
and added (Zou and Donner, Statistics in Medicine 27, 2008: the rule of ``independent_quotient``,
which compares two sums). What a process pays once is added only where it is known of every way, so
that like is ranked with like. A way whose time is not known is not ranked. The page *Advise*
computes the same in the browser (``reports/advise.js``); a test holds the two together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from gpubench.edge.advise.estimates import (
    AND,
    GAP_WORDS,
    MAX_FACTOR,
    ONCE,
    Curve,
    Estimate,
    Kind,
    Way,
    get_worst,
)
from gpubench.names import device_kind
from gpubench.results import Ratio
from gpubench.results.ratio import independent_quotient

Process = Literal["fresh", "cached", "warm"]
"""What a process has to pay: its start and all compilation; its start, with what was compiled kept
on disk; nothing."""

PLACES_A_DECADE = 24
"""Places at which ways are compared for each factor of ten: one that is the fastest for less than
10 % of a size is not worth a sentence."""

MAX_CALLS = 10**6
"""Up to which the number of calls is looked at."""

WIDE = "not known within 4x"
"""Why a way is not ranked: the interval of its time is wider than ``MAX_FACTOR``."""

MEMORY = "needs more memory than its device has"

COPIES = "its copies were not measured"


@dataclass(frozen=True, slots=True)
class Ask:
    """What somebody wants to have computed."""

    sizes: Mapping[str, float]
    """By the name of the axis, in the order of the ways' places."""
    calls: int = 1
    from_host: bool = True
    """Arrays are in the host's memory, and the result is wanted there."""
    process: Process = "fresh"
    have: tuple[str, ...] = ()
    """Devices, ``cuda:0``, ``dask:8`` for up to eight workers, or all of a kind: ``cuda``. Empty:
    all that were measured."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Of an hour, by device, kind of device or machine."""
    machine: str = ""
    """Where it runs, for a price of the machine."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the sum that is the time to a result."""

    name: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Total:
    """The time to the result by one way."""

    label: str
    implementation: str
    device: str
    variant: str
    """The launch, that of the nearest size."""
    parts: tuple[Term, ...]
    seconds: float
    low: float
    high: float
    kind: Kind
    """The worst of the parts."""
    price: float | None
    """``None`` without a price of its device."""

    @property
    def ratio(self) -> Ratio:
        """Its time with its interval, to be divided by another's."""
        return Ratio(self.seconds, self.low, self.high, least=1.0)


@dataclass(frozen=True, slots=True)
class Unranked:
    """A way without a place in the ranking."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring places at which one way is clearly the fastest."""

    label: str
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Advice:
    """All ways to one result, fastest first."""

    parameters: str
    totals: tuple[Total, ...]
    unranked: tuple[Unranked, ...]
    left_out: Mapping[str, tuple[str, ...]]
    """Parts of ``ONCE`` that are added to no way, with the ways of which they were not measured."""
    over_size: tuple[Stretch, ...]
    """Along the size that is asked for; empty with several sizes, and where one way is the fastest
    at all of them."""
    over_calls: tuple[Stretch, ...]
    """Over the number of calls, at this size."""

    @property
    def equals(self) -> tuple[Total, ...]:
        """The others that may be as fast as the first."""
        return tuple(other for other in self.totals[1:] if not is_apart(self.totals[0], other))


def is_apart(one: Total, other: Total) -> bool:
    """Return whether one is clearly the faster."""
    return independent_quotient(one.ratio, other.ratio).verdict != "unclear"


def advise(ways: Iterable[Way], ask: Ask) -> tuple[Advice, ...]:
    """Rank the ways for each combination of parameters; of a setup's devices those that are had."""
    of_parameters: dict[str, list[Way]] = defaultdict(list)
    for way in ways:
        if is_had(way, ask.have):
            of_parameters[way.parameters].append(way)
    return tuple(_advise(name, group, ask) for name, group in of_parameters.items())


def _advise(parameters: str, ways: Sequence[Way], ask: Ask) -> Advice:
    left_out: dict[str, tuple[str, ...]] = {}
    for part in parts_of(ask.process):
        lacking = tuple(w.label for w in ways if w.needs(part) and part not in w.once)
        if lacking:
            left_out[part] = lacking
    counted = [part for part in parts_of(ask.process) if part not in left_out]
    tried = [sum_up(way, ask, counted) for way in ways]
    totals = sorted((t for t in tried if isinstance(t, Total)), key=lambda t: t.seconds)
    unranked = (
        Unranked(way.label, why)
        for way, why in zip(ways, tried, strict=True)
        if isinstance(why, str)
    )

    def over_size(value: float) -> list[Total | None]:
        (name,) = ask.sizes
        return get_totals(replace(ask, sizes={name: value}))

    def over_calls(calls: float) -> list[Total | None]:
        return get_totals(replace(ask, calls=int(calls)))

    def get_totals(one: Ask) -> list[Total | None]:
        each = (sum_up(way, one, counted) for way in ways)
        return [total if isinstance(total, Total) else None for total in each]

    curves = [curve for way in ways for curve in way.curves.values()]
    sizes = [size for curve in curves for axis in curve.grid.axes[:1] for size in axis]
    return Advice(
        parameters,
        tuple(totals),
        tuple(unranked),
        left_out,
        find_stretches(over_size, min(sizes), max(sizes)) if len(ask.sizes) == 1 else (),
        find_stretches(over_calls, 1.0, float(MAX_CALLS)),
    )


def parts_of(process: Process) -> tuple[str, ...]:
    """Return which of ``ONCE`` a process pays."""
    return {"fresh": ONCE, "cached": ONCE[:1], "warm": ()}[process]


def is_had(way: Way, have: Sequence[str]) -> bool:
    """Return whether all devices of a way are among those that the asker has; none stand for
    all."""
    return not have or all(
        any(fits(way, device, one) for one in have) for device in way.device.split(AND)
    )


def fits(way: Way, device: str, one: str) -> bool:
    """Return whether a device of a way is this one, of this kind, or has at most so many
    workers."""
    kind = device_kind(device)
    name, _, number = one.rpartition(":")
    if way.workers and name == kind and number.isdecimal():
        return way.workers <= int(number)
    return one in (device, kind)


def sum_up(way: Way, ask: Ask, counted: Sequence[str]) -> Total | str:
    """Return the time to the result, or why it is not known; ``counted`` of ``ONCE`` are added."""
    place = tuple(ask.sizes.values())
    curve = way.curves.get("kernel") or next(iter(way.curves.values()))
    parts = [Term(part, way.once[part]) for part in counted if part in way.once]
    copies: Curve | None = None
    calls = ask.calls
    if ask.from_host:
        copies = way.curves.get("end_to_end") or way.curves.get("transfer")
        if copies is None and way.copies:
            return COPIES
    if copies is not None:
        estimate = copies.estimate(place)
        if isinstance(estimate, str):
            return GAP_WORDS[estimate]
        is_call = copies is way.curves.get("end_to_end")
        parts.append(Term("first call with copies" if is_call else "copies", estimate))
        calls -= is_call
    if calls:
        kernel = way.curves["kernel"].estimate(place) if "kernel" in way.curves else "far"
        if isinstance(kernel, str):
            return GAP_WORDS[kernel] if "kernel" in way.curves else "its kernel was not measured"
        parts.append(Term(f"{calls} call{'s' * (calls != 1)}", kernel.times(calls)))
    held = curve.get_held_bytes(place)
    if held and way.memory and held > way.memory:
        return MEMORY
    estimates = [part.estimate for part in parts]
    seconds = sum(one.seconds for one in estimates)
    low = max(seconds - math.hypot(*(one.seconds - one.low for one in estimates)), 0.0)
    high = seconds + math.hypot(*(one.high - one.seconds for one in estimates))
    if high > MAX_FACTOR * low:
        return WIDE
    hourly = _price(way, ask)
    return Total(
        way.label,
        way.implementation,
        way.device,
        curve.get_variant(place),
        tuple(parts),
        seconds,
        low,
        high,
        get_worst(one.kind for one in estimates),
        None if hourly is None else hourly * seconds / 3600,
    )


def _price(way: Way, ask: Ask) -> float | None:
    """Return the price of the devices, else of their kinds, else of the machine."""
    prices = ask.prices
    of_each = [
        prices.get(device, prices.get(device_kind(device))) for device in way.device.split(AND)
    ]
    known = [price for price in of_each if price is not None]
    return sum(known) if len(known) == len(of_each) else prices.get(ask.machine)


def find_stretches(
    totals: Callable[[float], Sequence[Total | None]], first: float, last: float
) -> tuple[Stretch, ...]:
    """Return where which way is clearly the fastest; nothing where it is the same everywhere."""
    steps = max(math.ceil(PLACES_A_DECADE * math.log10(last / first)), 1)
    found: list[Stretch] = []
    for step in range(steps + 1):
        place = float(math.floor(first * (last / first) ** (step / steps) + 0.5))
        known = sorted((t for t in totals(place) if t), key=lambda t: t.seconds)
        if not known or any(not is_apart(known[0], other) for other in known[1:]):
            continue
        label = known[0].label
        if found and found[-1].label == label:
            found[-1] = replace(found[-1], last=place)
        else:
            found.append(Stretch(label, place, place))
    return tuple(found) if len(found) > 1 else ()
