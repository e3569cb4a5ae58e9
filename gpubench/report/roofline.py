"""Roofline of a kernel: each device's ceilings, and how near its cases come to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.choice import HOME, device_of
from gpubench.analysis.headline import KernelNow, fastest_variants, size_of
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.roofline import STREAMS, Attained, Ceilings, attained, find_ceilings
from gpubench.names import Value
from gpubench.report import text
from gpubench.report.choose import size_words
from gpubench.results import CaseName

OVER = "cache-resident or undercounted"
"""Instead of a share above 100 %."""


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One implementation at one problem, with its fastest launch."""

    implementation: str
    rank: int
    case: str
    size: str
    intensity: float | None
    """Operations for each byte; ``None`` where the suite counts none."""
    bytes_per_second: float
    flops_per_second: float | None
    share: float
    attainable: str
    """The share in words."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The cases on one device under its ceilings."""

    device: str
    ceilings: Ceilings
    points: tuple[RooflinePoint, ...]
    """Smallest first, by implementation."""
    sentences: tuple[str, ...]

    @property
    def drawn(self) -> bool:
        """Whether there is anything to draw: a point with an intensity."""
        return any(point.intensity for point in self.points)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no roofline."""

    why: str
    command: str | None
    """What would give it; ``None`` where no command does."""


@dataclass(frozen=True, slots=True)
class Rooflines:
    """All devices of a kernel."""

    devices: tuple[Roofline, ...]
    missing: tuple[Missing, ...]
    """Of a device, or of the whole kernel."""


def rooflines(
    now: KernelNow,
    history: SetupHistory,
    kernels: Iterable[KernelNow],
    ranks: Mapping[str, int],
) -> tuple[Rooflines, dict[CaseName, str]]:
    """Rooflines of a kernel, and for each of its cases the share of the attainable in words.

    ``kernels`` are all those of the setup: some give ceilings.
    """
    timed = [c for c in now.cases.values() if c.outcome.timing and c.outcome.name.time == "kernel"]
    streams = [c for k in kernels if k.key[1] in STREAMS for c in k.cases.values()]
    facts = _facts(history)
    devices: list[Roofline] = []
    missing, words = list(_no_work(timed)), dict[CaseName, str]()
    for device in sorted({device_of(c) for c in timed}) if not missing else ():
        own = [c for c in timed if device_of(c) == device]
        ceilings = find_ceilings(device, own, facts, streams)
        if ceilings is None:
            missing.append(_no_ceiling(device))
            continue
        found = {c.outcome.name: a for c in own if (a := attained(c, ceilings))}
        words |= {name: share_words(a.share) for name, a in found.items()}
        devices.append(_roofline(ceilings, own, found, ranks))
    return Rooflines(tuple(devices), tuple(missing)), words


def share_words(share: float) -> str:
    """``62 %``, or what a share above 100 % means."""
    return OVER if share > 1 else f"{text.digits(100 * share, 2)} %"


def _facts(history: SetupHistory) -> Mapping[str, Value | None]:
    told = [snapshot.facts for snapshot in history.snapshots if snapshot.facts]
    return told[-1] if told else {}


def _no_work(timed: Sequence[Compared]) -> Iterator[Missing]:
    if timed and not any(c.outcome.record and c.outcome.record.bytes for c in timed):
        if any(c.outcome.bench for c in timed):
            yield Missing("a pair does not say how many bytes its benchmarks move.", None)
        else:
            yield Missing("the suite does not say how many bytes are moved: add work.", None)


def _no_ceiling(device: str) -> Missing:
    if device in ("", HOME):
        return Missing(
            "the bandwidth of the CPU was not measured; a kernel named triad or copy gives it.",
            "asv run --bench __triad__",
        )
    return Missing(
        f"the bandwidth of {device} is not in the record; it is measured with the cases.",
        "asv run --skip-existing-successful",
    )


def _roofline(
    ceilings: Ceilings,
    own: Iterable[Compared],
    found: Mapping[CaseName, Attained],
    ranks: Mapping[str, int],
) -> Roofline:
    groups: dict[str, list[Compared]] = {}
    for compared in own:
        groups.setdefault(compared.outcome.name.implementation, []).append(compared)
    points = tuple(
        _point(found[c.outcome.name], ranks)
        for name in sorted(groups, key=lambda name: ranks[name])
        for c in sorted(fastest_variants(groups[name]).values(), key=size_of)
        if c.outcome.name in found
    )
    return Roofline(ceilings.device, ceilings, points, tuple(_sentences(ceilings, points)))


def _point(found: Attained, ranks: Mapping[str, int]) -> RooflinePoint:
    name = found.compared.outcome.name
    return RooflinePoint(
        implementation=name.implementation,
        rank=ranks[name.implementation],
        case=name.case,
        size=size_words(found.compared),
        intensity=found.intensity,
        bytes_per_second=found.bytes_per_second,
        flops_per_second=found.flops_per_second,
        share=found.share,
        attainable=share_words(found.share),
    )


def _sentences(ceilings: Ceilings, points: Sequence[RooflinePoint]) -> Iterator[str]:
    yield f"Bandwidth {_giga(ceilings.bytes_per_second)} GB/s: {ceilings.source}{_peak(ceilings)}."
    if ceilings.flops_per_second:
        yield f"Arithmetic {_giga(ceilings.flops_per_second)} GFLOP/s, measured on the device."
    else:
        yield (
            "The arithmetic ceiling was not measured: a kernel far below the bandwidth may be "
            "bound by its operations."
        )
    for name in dict.fromkeys(point.implementation for point in points):
        last = [point for point in points if point.implementation == name][-1]
        of = "" if last.share > 1 else " of what is attainable"
        yield f"{name}: {last.attainable}{of} at {last.size or 'its only case'}."


def _peak(ceilings: Ceilings) -> str:
    peak = ceilings.peak_bytes_per_second
    if peak is None:
        return ""
    share = text.digits(100 * ceilings.bytes_per_second / peak, 2)
    return f", {share} % of the datasheet's {_giga(peak)} GB/s"


def _giga(value: float) -> str:
    return text.digits(value / 1e9)
