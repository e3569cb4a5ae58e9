"""Speedup over size: a line for each implementation, its crossover in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.crossover import Crossover, crossover
from gpubench.analysis.headline import fastest_variants, size_of, sizes_of
from gpubench.analysis.speedup import Speedup
from gpubench.names import format_value, parse_identity
from gpubench.report import text


@dataclass(frozen=True, slots=True)
class SizePoint:
    """One implementation at one size, with its fastest launch."""

    size: float
    words: str
    """The sizes by name."""
    speedup: Speedup
    seconds: float
    case: str


@dataclass(frozen=True, slots=True)
class SizeSeries:
    """One implementation over sizes, smallest first."""

    implementation: str
    rank: int
    points: tuple[SizePoint, ...]
    crossover: Crossover
    sentence: str


@dataclass(frozen=True, slots=True)
class SizeChart:
    """One chart for each combination of the parameters (a data type, for example)."""

    parameters: str
    """Identity of the combination; empty without parameters."""
    axis: str
    """What the horizontal axis counts."""
    series: tuple[SizeSeries, ...]


def size_charts(cases: Iterable[Compared], ranks: Mapping[str, int]) -> tuple[SizeChart, ...]:
    """Charts of the kernel times; combinations with a single size are left out."""
    groups: dict[str, dict[str, list[Compared]]] = defaultdict(lambda: defaultdict(list))
    for compared in cases:
        if compared.speedup and compared.outcome.name.time == "kernel":
            name = compared.outcome.name.implementation
            groups[_parameters(compared)][name].append(compared)
    charts = (_chart(parameters, group, ranks) for parameters, group in sorted(groups.items()))
    return tuple(
        chart for chart in charts if len({p.size for s in chart.series for p in s.points}) > 1
    )


def _parameters(compared: Compared) -> str:
    sizes = sizes_of(compared)
    values = parse_identity(compared.problem)
    return " ".join(f"{k}={format_value(v)}" for k, v in values.items() if k not in sizes)


def _chart(
    parameters: str, group: Mapping[str, list[Compared]], ranks: Mapping[str, int]
) -> SizeChart:
    names = sizes_of(next(iter(group.values()))[0])
    series = (_series(name, cases, ranks[name]) for name, cases in sorted(group.items()))
    axis = f" {text.TIMES} ".join(names)
    return SizeChart(parameters, axis, tuple(sorted(series, key=lambda s: s.rank)))


def _series(implementation: str, cases: Iterable[Compared], rank: int) -> SizeSeries:
    best = sorted(fastest_variants(cases).values(), key=size_of)
    points = tuple(point for compared in best if (point := _point(compared)))
    found = crossover([(point.size, point.speedup) for point in points])
    return SizeSeries(implementation, rank, points, found, _sentence(implementation, points, found))


def _point(compared: Compared) -> SizePoint | None:
    if compared.speedup is None or compared.outcome.timing is None:
        return None
    words = ", ".join(f"{name} = {text.whole(n)}" for name, n in sizes_of(compared).items())
    timing = compared.outcome.timing
    size, case = size_of(compared), compared.outcome.name.case
    return SizePoint(size, words, compared.speedup, timing.median, case)


def _sentence(implementation: str, points: Iterable[SizePoint], found: Crossover) -> str:
    words = {point.size: point.words for point in points}
    if found.size is None:
        if found.largest_win is None:
            return f"{implementation} is never clearly faster in this range."
        return (
            f"{implementation} is faster at {words[found.largest_win]}, "
            "but not up to the largest size."
        )
    if found.above is None:
        return f"{implementation} is faster at every size measured, from {words[found.size]} on."
    if found.slower is None:
        return f"{implementation} is faster from {words[found.size]} on; below, it is unclear."
    return (
        f"{implementation} is faster from {words[found.size]} on; "
        f"the crossover lies above {words[found.slower]}."
    )
