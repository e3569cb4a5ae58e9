"""Which implementation to use: the fastest at each size, from which size on, and at what cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from gpubench.analysis.baseline import Compared
from gpubench.analysis.crossover import Crossover, crossover
from gpubench.analysis.headline import LAUNCH_PARTS, fastest_variants, size_of, sizes_of
from gpubench.analysis.speedup import Speedup, speedup
from gpubench.names import format_value, parse_identity
from gpubench.results import Timing

HOME = "cpu"
"""Device on which a call works on the caller's arrays: nothing is copied."""


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest at one size."""

    size: float
    compared: Compared
    """The case with the least time."""
    equals: tuple[str, ...]
    """Labels of the fastest and of those that are not clearly slower; it comes first."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring sizes with the same fastest implementations."""

    first: Best
    last: Best
    after: Best | None
    """The size before ``first``, where another is fastest: the border lies between."""

    @property
    def labels(self) -> tuple[str, ...]:
        return self.first.equals


@dataclass(frozen=True, slots=True)
class Repayment:
    """How many calls repay compilation."""

    calls: int | None
    """``None``: never, because a call is not clearly faster than the baseline's."""
    low: int | None
    """Fewest calls that the intervals allow; ``None`` when unknown."""
    high: int | None
    """Most calls that the intervals allow; ``None`` when unknown."""
    compile: Timing
    case: Compared


@dataclass(frozen=True, slots=True)
class Alternative:
    """One implementation on one device, against the baseline."""

    implementation: str
    device: str
    """Empty where no record tells."""
    label: str
    """Implementation, and its device where it runs on several."""
    points: tuple[Compared, ...]
    """Its fastest launch at each size that has a speedup, smallest first."""
    crossover: Crossover
    largest: Compared
    """Its fastest launch at the largest size that has a speedup."""
    end_to_end: Compared | None
    """At the same size from host memory to host memory; ``None``: not measured."""
    end_to_end_crossover: Crossover | None
    repayment: Repayment | None
    """``None``: compilation was not measured."""

    @property
    def copies(self) -> bool:
        """Whether a caller with arrays in host memory pays for copies."""
        return self.device not in ("", HOME)


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


def choices(cases: Iterable[Compared]) -> tuple[Choice, ...]:
    """What to use, for each combination of a kernel's parameters; cases of one kernel now."""
    groups: dict[str, list[Compared]] = defaultdict(list)
    for compared in cases:
        if compared.outcome.timing:
            groups[parameters_of(compared)].append(compared)
    return tuple(_choice(parameters, group) for parameters, group in sorted(groups.items()))


def parameters_of(compared: Compared) -> str:
    """The part of the problem's identity that is no size: ``dtype=float32``."""
    sizes = sizes_of(compared)
    values = parse_identity(compared.problem).items()
    kept = {k: v for k, v in values if k not in sizes and k not in LAUNCH_PARTS}
    return " ".join(f"{name}={format_value(value)}" for name, value in kept.items())


def device_of(compared: Compared) -> str:
    """Device of a case: from the record, else its identity; empty when neither tells."""
    if compared.outcome.record and compared.outcome.record.device:
        return compared.outcome.record.device
    return str(parse_identity(compared.outcome.name.case).get("device", ""))


def compilation(compared: Compared, own: Iterable[Compared]) -> Timing | None:
    """How long it took to compile a case, among ``own``, the times of its implementation: measured
    of it, or else of the largest case with the same parameters on the same device, which is
    compiled alike; ``None`` where it was not measured."""
    wanted, case = (device_of(compared), parameters_of(compared)), compared.outcome.name.case
    alike = [
        each
        for each in own
        if each.outcome.name.time == "compile" and (device_of(each), parameters_of(each)) == wanted
    ]
    nearest = max(alike, key=lambda c: (c.outcome.name.case == case, size_of(c)), default=None)
    return nearest.outcome.timing if nearest else None


def repayment(compilation: Timing, compared: Compared) -> Repayment | None:
    """Calls after which the time saved on each makes up for compilation: ``c / (b - t)``.

    The bounds take the ends of all three intervals together. ``None`` without a baseline's time.
    """
    if compared.speedup is None or compared.baseline is None:
        return None
    baseline, own = compared.baseline.timing, compared.outcome.timing
    if baseline is None or own is None:
        return None
    if compared.speedup.verdict != "faster":
        return Repayment(None, None, None, compilation, compared)
    return Repayment(
        calls=math.ceil(compilation.median / (baseline.median - own.median)),
        low=_calls(compilation.low, baseline.high - own.low),
        high=_calls(compilation.high, baseline.low - own.high),
        compile=compilation,
        case=compared,
    )


def _calls(seconds: float, saved: float) -> int | None:
    if not (math.isfinite(seconds) and math.isfinite(saved)) or saved <= 0:
        return None
    return max(0, math.ceil(seconds / saved))


def _choice(parameters: str, cases: Sequence[Compared]) -> Choice:
    kernel = [c for c in cases if c.outcome.name.time == "kernel"]
    host = list(_from_host(cases))
    copied = any(c.outcome.name.time == "end_to_end" for c in host)
    labels = _Labels(kernel)
    return Choice(
        parameters,
        _stretches(kernel, labels),
        _stretches(host, labels) if copied else (),
        tuple(_alternatives(cases, labels)),
    )


class _Labels:
    """Names for people: the device is said where an implementation has several."""

    def __init__(self, cases: Iterable[Compared]) -> None:
        self._devices: dict[str, set[str]] = defaultdict(set)
        for compared in cases:
            self._devices[compared.outcome.name.implementation].add(device_of(compared))

    def of(self, compared: Compared) -> str:
        name, device = compared.outcome.name.implementation, device_of(compared)
        return f"{name} on {device}" if len(self._devices[name]) > 1 and device else name


def _from_host(cases: Iterable[Compared]) -> Iterator[Compared]:
    """Cases by their host-to-host time: on the CPU that is the ``kernel`` time."""
    for compared in cases:
        at_home = device_of(compared) in ("", HOME)
        if compared.outcome.name.time == ("kernel" if at_home else "end_to_end"):
            yield compared


def _stretches(cases: Sequence[Compared], labels: _Labels) -> tuple[Stretch, ...]:
    """Sizes, smallest first, joined where the same implementations are fastest."""
    by_size: dict[float, list[Compared]] = defaultdict(list)
    for compared in cases:
        by_size[size_of(compared)].append(compared)
    best = [_best(size, by_size[size], labels) for size in sorted(by_size)]
    runs = [list(run) for _, run in groupby(best, lambda found: set(found.equals))]
    before = [None, *(run[-1] for run in runs)]
    return tuple(Stretch(run[0], run[-1], after) for run, after in zip(runs, before, strict=False))


def _best(size: float, cases: Sequence[Compared], labels: _Labels) -> Best:
    fastest: dict[str, Compared] = {}
    for compared in cases:
        label = labels.of(compared)
        if label not in fastest or _seconds(compared) < _seconds(fastest[label]):
            fastest[label] = compared
    ordered = sorted(fastest.items(), key=lambda item: _seconds(item[1]))
    first = ordered[0][1]
    near = [label for label, compared in ordered[1:] if not _clearly_slower(compared, first)]
    return Best(size, first, (ordered[0][0], *near))


def _seconds(compared: Compared) -> float:
    return compared.outcome.timing.median if compared.outcome.timing else math.inf


def _clearly_slower(compared: Compared, first: Compared) -> bool:
    own, other = compared.outcome.timing, first.outcome.timing
    return bool(own and other and speedup(own, other).verdict == "faster")


def _alternatives(cases: Sequence[Compared], labels: _Labels) -> Iterator[Alternative]:
    groups: dict[tuple[str, str], list[Compared]] = defaultdict(list)
    for compared in cases:
        if not compared.is_baseline:
            key = compared.outcome.name.implementation, device_of(compared)
            groups[key].append(compared)
    for (implementation, device), own in sorted(groups.items()):
        points = _compared(own, "kernel")
        if points:
            yield _alternative(implementation, device, own, points, labels)


def _alternative(
    implementation: str,
    device: str,
    own: Sequence[Compared],
    points: Sequence[Compared],
    labels: _Labels,
) -> Alternative:
    largest, end_to_end = points[-1], _compared(own, "end_to_end")
    same = next((c for c in end_to_end if size_of(c) == size_of(largest)), None)
    timing = compilation(largest, own)
    return Alternative(
        implementation=implementation,
        device=device,
        label=labels.of(largest),
        points=tuple(points),
        crossover=_crossover(points),
        largest=largest,
        end_to_end=same,
        end_to_end_crossover=_crossover(end_to_end) if end_to_end else None,
        repayment=repayment(timing, largest) if timing else None,
    )


def _compared(cases: Iterable[Compared], time: str) -> list[Compared]:
    """The fastest launch at each size that has a speedup, smallest size first."""
    found = (c for c in cases if c.speedup and c.outcome.name.time == time)
    return sorted(fastest_variants(found).values(), key=size_of)


def _crossover(points: Iterable[Compared]) -> Crossover:
    ratios: list[tuple[float, Speedup]] = [(size_of(c), c.speedup) for c in points if c.speedup]
    return crossover(ratios)
