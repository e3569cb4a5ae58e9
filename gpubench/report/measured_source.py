"""The YAML and the code that were measured, as asv keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.headline import KernelKey
from gpubench.names import BenchmarkName, split_source


@dataclass(frozen=True, slots=True)
class Code:
    """One implementation's source."""

    implementation: str
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredSource:
    """What was measured, by the newest run."""

    place: str
    """Suite file and line; empty where asv's file has none (a pair, an older run)."""
    declaration: str
    """The kernel in its suite, YAML; empty like ``place``."""
    codes: tuple[Code, ...]


def measured_source(
    key: KernelKey, order: Sequence[str], sources: Mapping[BenchmarkName, str]
) -> MeasuredSource | None:
    """Of one kernel, implementations in that order; ``None`` where nothing is kept."""
    own = {n.implementation: s for n, s in sources.items() if (n.suite, n.kernel) == key}
    parts = {name: split_source(own[name]) for name in order if name in own}
    if not parts:
        return None
    declared = next((part for part in parts.values() if part[1]), ("", "", ""))
    codes = tuple(Code(name, part[0]) for name, part in parts.items())
    return MeasuredSource(declared[1], declared[2], codes)
