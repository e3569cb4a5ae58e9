"""Where a call's time goes: compile, transfer, launch and kernel, as bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.choice import compilation
from gpubench.analysis.headline import headline, size_of
from gpubench.analysis.speedup import Speedup
from gpubench.report import text

PARTS = ("compile", "transfer", "launch", "kernel")
"""Labelled times that a call consists of, in the order in which they happen."""

WIDTH = 1000.0
"""Of a bar, in SVG user units."""


@dataclass(frozen=True, slots=True)
class Part:
    """One labelled time inside a bar."""

    time: str
    label: str
    seconds: float
    left: float
    width: float
    """SVG user units."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One call, taken apart."""

    label: str
    seconds: float
    parts: tuple[Part, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class SplitRow:
    """One implementation at its largest case."""

    implementation: str
    case: str
    bars: tuple[Bar, ...]
    """The first call and a later one, where compilation was measured; else a call."""
    kernel: Speedup | None
    end_to_end: Speedup | None
    end_to_end_seconds: float | None


def time_split(cases: Iterable[Compared], order: Sequence[str]) -> tuple[SplitRow, ...]:
    """Implementations with at least two parts measured at one case."""
    cases = [compared for compared in cases if compared.outcome.timing]
    rows = (_row(cases, implementation) for implementation in order)
    return tuple(row for row in rows if row)


def _row(cases: Sequence[Compared], implementation: str) -> SplitRow | None:
    own = [c for c in cases if c.outcome.name.implementation == implementation]
    chosen = headline(own, implementation).cases or tuple(sorted(own, key=size_of)[-1:])
    if not chosen:
        return None
    case = chosen[0].outcome.name.case
    at = {c.outcome.name.time: c for c in own if c.outcome.name.case == case}
    timings = {time: c.outcome.timing for time, c in at.items()}
    timings["compile"] = compilation(chosen[0], own)
    seconds = {time: timing.median for time, timing in timings.items() if timing}
    bars = _bars({time: seconds[time] for time in PARTS if time in seconds})
    if not bars:
        return None
    kernel, end_to_end = at.get("kernel"), at.get("end_to_end")
    return SplitRow(
        implementation=implementation,
        case=case,
        bars=bars,
        kernel=kernel.speedup if kernel else None,
        end_to_end=end_to_end.speedup if end_to_end else None,
        end_to_end_seconds=seconds.get("end_to_end"),
    )


def _bars(seconds: Mapping[str, float]) -> tuple[Bar, ...]:
    if len(seconds) < 2 or "kernel" not in seconds:
        return ()
    later = {time: value for time, value in seconds.items() if time != "compile"}
    if len(later) == len(seconds):
        return (_bar("a call", seconds),)
    return _bar("first call", seconds), _bar("later calls", later)


def _bar(label: str, seconds: Mapping[str, float]) -> Bar:
    total = sum(seconds.values())
    parts, left = [], 0.0
    for time, value in seconds.items():
        width = round(WIDTH * value / total, 1)
        parts.append(Part(time, text.time_label(time), value, round(left, 1), width))
        left += WIDTH * value / total
    words = text.join(
        f"{part.label} {text.seconds(part.seconds)} ({_percent(part.seconds / total)})"
        for part in parts
    )
    return Bar(label, total, tuple(parts), f"{label}: {words}.")


def _percent(share: float) -> str:
    return "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"
