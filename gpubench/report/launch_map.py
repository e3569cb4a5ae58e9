"""Heatmap of a swept launch: block by grid, or block by size where the grid follows the size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.headline import size_of, sizes_of
from gpubench.analysis.speedup import Speedup
from gpubench.names import Value, format_value, parse_identity
from gpubench.report import text
from gpubench.results import CaseName, Status


@dataclass(frozen=True, slots=True)
class LaunchCell:
    """One launch."""

    speedup: Speedup | None
    seconds: float | None
    status: Status | None
    """``None``: not in the plan, or not measured."""
    footnote: int | None
    """Number of its reason, from 1."""
    best: bool
    """Fastest in its column."""


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One block shape (and what varies with it)."""

    label: str
    cells: tuple[LaunchCell, ...]


@dataclass(frozen=True, slots=True)
class LaunchMap:
    """One implementation's launches."""

    implementation: str
    problem: str
    """The one problem shown; empty where the columns are the problems."""
    corner: str
    """What rows and columns are."""
    columns: tuple[str, ...]
    rows: tuple[LaunchRow, ...]
    reasons: tuple[str, ...]
    """Footnotes, in order."""
    sentence: str


def launch_maps(cases: Iterable[Compared], order: Sequence[str]) -> tuple[LaunchMap, ...]:
    """Maps for the implementations whose launch was swept, in the given order."""
    kernel_times = [c for c in cases if c.outcome.name.time == "kernel" and _launch(c)]
    maps: list[LaunchMap] = []
    for implementation in order:
        own = [c for c in kernel_times if c.outcome.name.implementation == implementation]
        if len({_launch(compared) for compared in own}) > 1:
            maps.extend(_maps(implementation, own))
    return tuple(maps)


def _identity(compared: Compared) -> dict[str, Value]:
    return parse_identity(compared.outcome.name.case)


def _launch(compared: Compared) -> tuple[str, str]:
    values = _identity(compared)
    return str(values.get("block", "")), str(values.get("grid", ""))


def _variant(compared: Compared) -> dict[str, Value]:
    """Parts of the identity that choose how, not what."""
    problem = parse_identity(compared.problem)
    sizes = sizes_of(compared)
    return {
        key: value
        for key, value in _identity(compared).items()
        if key not in sizes and problem.get(key) != value
    }


def _maps(implementation: str, own: Sequence[Compared]) -> Iterable[LaunchMap]:
    if len({_launch(compared)[1] for compared in own}) < 2:
        yield _map(implementation, own, "", _problem_label)
        return
    largest = max(map(size_of, own))
    for problem in sorted({c.problem for c in own if size_of(c) == largest}):
        yield _map(implementation, [c for c in own if c.problem == problem], problem, _grid_label)


def _problem_label(compared: Compared) -> str:
    return compared.problem.replace(" ", ", ") or "all sizes"


def _grid_label(compared: Compared) -> str:
    return str(_identity(compared).get("grid", "cover"))


def _row_labels(own: Sequence[Compared]) -> dict[CaseName, str]:
    """What varies apart from the grid; the bare block where nothing else does."""
    variants = {c.outcome.name: _variant(c) for c in own}
    names = {name for variant in variants.values() for name in variant} - {"grid"}
    varying = {n for n in names if len({variant.get(n) for variant in variants.values()}) > 1}
    if varying <= {"block"}:
        return {name: str(variant.get("block", "default")) for name, variant in variants.items()}
    return {
        name: " ".join(f"{k}={format_value(v)}" for k, v in variant.items() if k in varying)
        for name, variant in variants.items()
    }


def _map(
    implementation: str,
    own: Sequence[Compared],
    problem: str,
    column_label: Callable[[Compared], str],
) -> LaunchMap:
    ordered = sorted(own, key=lambda c: (size_of(c), _extents(_launch(c)[1]), c.problem))
    columns = list(dict.fromkeys(map(column_label, ordered)))
    labels = _row_labels(own)
    by_block = sorted(own, key=lambda c: (_extents(_launch(c)[0]), labels[c.outcome.name]))
    rows = list(dict.fromkeys(labels[c.outcome.name] for c in by_block))
    found = {(labels[c.outcome.name], column_label(c)): c for c in own}
    reasons = _reasons(own)
    best = {column: _fastest(c for c in own if column_label(c) == column) for column in columns}
    return LaunchMap(
        implementation=implementation,
        problem=problem,
        corner="block \\ grid" if problem else "block \\ size",
        columns=tuple(columns),
        rows=tuple(
            LaunchRow(
                row, tuple(_cell(found.get((row, col)), best[col], reasons) for col in columns)
            )
            for row in rows
        ),
        reasons=tuple(reasons),
        sentence=_sentence(implementation, own),
    )


def _extents(shape: str) -> list[int]:
    return [int(extent) if extent.isdigit() else 0 for extent in shape.split("x")]


def _reasons(own: Iterable[Compared]) -> list[str]:
    return list(dict.fromkeys(c.outcome.reason for c in own if c.outcome.reason))


def _fastest(cases: Iterable[Compared]) -> Compared | None:
    timed = [(c.outcome.timing.median, c) for c in cases if c.outcome.timing]
    return min(timed, key=lambda pair: pair[0])[1] if timed else None


def _cell(compared: Compared | None, best: Compared | None, reasons: Sequence[str]) -> LaunchCell:
    if compared is None:
        return LaunchCell(None, None, None, None, False)
    outcome = compared.outcome
    return LaunchCell(
        speedup=compared.speedup,
        seconds=outcome.timing.median if outcome.timing else None,
        status=outcome.status,
        footnote=reasons.index(outcome.reason) + 1 if outcome.reason else None,
        best=compared is best,
    )


def _sentence(implementation: str, own: Sequence[Compared]) -> str:
    largest = max(map(size_of, own))
    best = _fastest(c for c in own if size_of(c) == largest)
    if best is None or best.outcome.timing is None:
        without = {text.status_label(c.outcome.status) for c in own if not c.outcome.timing}
        return f"No launch of {implementation} has a time: {text.join(sorted(without), 'or')}."
    words = f"{implementation} is fastest with {best.outcome.name.case}"
    return f"At the largest size {words}: {text.seconds(best.outcome.timing.median)}."
