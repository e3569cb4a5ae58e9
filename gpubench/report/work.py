"""View model of counted work: what a kernel does on the device in software, and no times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.costs import worst_resources
from gpubench.analysis.headline import KernelKey
from gpubench.names import format_shape
from gpubench.report import text
from gpubench.report.charts import LaunchMap, launch_maps
from gpubench.report.count_view import occupancy_words
from gpubench.report.findings import case_words
from gpubench.report.site import Site
from gpubench.report.work_changes import WorkChange, count_groups, work_changes
from gpubench.report.work_source import (
    SECTOR_COUNTS,
    WAVEFRONT_COUNTS,
    WorkSource,
    build_sources,
    sum_counts,
)
from gpubench.results import CaseCounts, CaseName, History, Row
from gpubench.work import derived

Counted = Mapping[CaseName, CaseCounts]

MAX_CHANGES = 40
"""Changes of counts in a table, the newest; `gpubench query` has all."""


@dataclass(frozen=True, slots=True)
class WorkRow:
    """What one implementation does, at its largest size with the launch that does least."""

    implementation: str
    case: str
    launch: str
    cells: tuple[str, ...]
    """As many as ``WorkView.columns``."""
    bounds: tuple[str, ...]
    """Of each GPU, in words that say that it is a bound; empty without counts."""


@dataclass(frozen=True, slots=True)
class WorkCell:
    """What one launch does."""

    sectors: str
    wavefronts: str
    occupancy: tuple[str, ...]
    """Theoretical occupancy and what limits it, GPUs with the same together; empty where the
    registers are not known."""
    level: int
    """Step of the scale of sectors for each request: 0 for up to 4, 5 for 32."""


@dataclass(frozen=True, slots=True)
class WorkMap:
    """Launches of one implementation: block by grid, or by size."""

    implementation: str
    problem: str
    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[WorkCell | None, ...]]


@dataclass(frozen=True, slots=True)
class WorkView:
    """The section *Work* of a kernel's page."""

    columns: tuple[str, ...]
    rows: tuple[WorkRow, ...]
    missing: tuple[tuple[str, str], ...]
    """Cases without counts, and why."""
    changes: tuple[WorkChange, ...]
    more_changes: int
    maps: tuple[WorkMap, ...]
    architecture: str
    """Compute capability whose registers the maps have."""
    sources: tuple[WorkSource, ...]

    @property
    def has_bounds(self) -> bool:
        """Whether a row states bounds: those of CUDA do."""
        return any(row.bounds for row in self.rows)


# --- in a sentence, and of one case


def work_words(counts: CaseCounts) -> str:
    """Say how a case accesses memory and which lanes are on: ``4.0 sectors a load, 100 % lanes``.

    Without loads its stores count, and without these its atomics.
    """
    totals, words = counts.totals, ["no access of global memory"]
    if counts.target == "cpu":
        return cpu_work_words(totals)
    for kind in ("load", "store", "atomic"):
        if requests := totals.get(f"global_{kind}_requests", 0):
            sectors = totals.get(f"global_{kind}_sectors", 0) / requests
            words = [f"{text.sectors(sectors)} sectors {'an' if kind == 'atomic' else 'a'} {kind}"]
            break
    if lanes := text.lanes_on(derived.inactive_lanes(totals)):
        words.append(f"{lanes} lanes")
    return ", ".join(words)


def cpu_work_words(totals: Mapping[str, int]) -> str:
    """Say how much Numba's code does on the CPU: ``884 LLVM instructions, 100 % vectorized``."""
    words = [f"{derived.executed_instructions(totals):,} LLVM instructions"]
    if vectorized := text.vectorized(derived.vectorized_share(totals)):
        words.append(f"{vectorized} vectorized")
    return ", ".join(words)


def representative(rows: Iterable[Row], counted: Counted) -> Row | None:
    """Return the case that stands for an implementation where nothing was timed: of its largest
    size the launch that does least; ``None`` where none was counted."""
    its = [
        row
        for row in rows
        if (counts := counted.get(row.name)) and counts.missing is None and counts.launches
    ]
    largest = max((row.size for row in its), default=0.0)

    def work(row: Row) -> tuple[int, int]:
        totals = counted[row.name].totals
        return sum_counts(totals, SECTOR_COUNTS), derived.executed_instructions(totals)

    return min((row for row in its if row.size == largest), key=work, default=None)


# --- the section of a kernel's page

_WORK_COLUMNS: Mapping[str, Callable[[CaseCounts], str]] = {
    "Sectors a load": lambda counts: text.sectors(derived.sectors_per_load(counts.totals)),
    "Sectors a store": lambda counts: text.sectors(derived.sectors_per_store(counts.totals)),
    "Excess sectors": lambda counts: f"{derived.excess_sectors(counts.totals):,}",
    "Excess wavefronts": lambda counts: f"{derived.excess_wavefronts(counts.totals):,}",
    "Lanes on": lambda counts: text.lanes_on(derived.inactive_lanes(counts.totals)),
    "PTX instructions": lambda counts: f"{counts.totals.get('ptx_instructions', 0):,}",
    "Divergent branches": lambda counts: f"{counts.totals.get('divergent_branches', 0):,}",
    "Barriers": lambda counts: f"{counts.totals.get('barriers', 0):,}",
    "Floating-point operations": lambda counts: f"{derived.counted_flops(counts.totals):,}",
    "LLVM instructions": lambda counts: f"{counts.totals.get('ir_instructions', 0):,}",
    "Vectorized": lambda counts: _of_cpu(
        counts, text.vectorized(derived.vectorized_share(counts.totals))
    ),
    "Widest lanes": lambda counts: str(derived.widest_lanes(counts.totals) or ""),
    "Bytes loaded": lambda counts: f"{counts.totals.get('load_bytes', 0):,}",
    "Bytes stored": lambda counts: f"{counts.totals.get('store_bytes', 0):,}",
    "Special functions": lambda counts: _of_cpu(
        counts, f"{counts.totals.get('special_functions', 0):,}"
    ),
    "Calls": lambda counts: f"{counts.totals.get('calls', 0):,}",
    "Allocations": lambda counts: f"{counts.totals.get('allocations', 0):,}",
    "Registers": lambda counts: _resource(counts, "registers"),
    "Spilled bytes": lambda counts: _resource(counts, "spill_store_bytes"),
}


def build(
    history: History, key: KernelKey, rows: Sequence[Row], order: Iterable[str], site: Site
) -> WorkView | None:
    """Make the section of a kernel from its current rows, implementations in that order; ``None``
    where no case was counted."""
    now = site.current(history)[key]
    place = history.places[now.commit]
    snapshot = history.snapshots[place]
    every = site.counts(snapshot)
    counted = {row.name: every[row.name] for row in rows if row.name in every}
    changes = [
        group
        for group in count_groups(history, site)
        if (group.change.name.suite, group.change.name.kernel) == key
    ]
    if not counted and not changes:
        return None
    names = [*order]
    shown: list[Row] = []
    for name in names:
        its = (row for row in rows if row.name.implementation == name)
        if row := representative(its, counted):
            shown.append(row)
    used = [
        column
        for column, value in _WORK_COLUMNS.items()
        if any(value(counted[row.name]) not in ("", "0") for row in shown)
    ]
    listed_changes = list(work_changes(changes, history, site))
    return WorkView(
        columns=tuple(used),
        rows=tuple(_work_row(row, counted[row.name], used) for row in shown),
        missing=tuple(
            (case_words(name), counts.missing)
            for name, counts in counted.items()
            if counts.missing is not None
        ),
        changes=tuple(listed_changes[:MAX_CHANGES]),
        more_changes=len(listed_changes[MAX_CHANGES:]),
        maps=tuple(
            _work_map(one, counted)
            for one in launch_maps([row for row in rows if row.name in counted], names)
        ),
        architecture=_architectures(counted[row.name] for row in shown),
        sources=tuple(
            source for row in shown for source in build_sources(row.name, snapshot, site)
        ),
    )


def _work_row(row: Row, counts: CaseCounts, columns: Sequence[str]) -> WorkRow:
    return WorkRow(
        implementation=row.name.implementation,
        case=row.name.case,
        launch=_launches_words(counts),
        cells=tuple(_WORK_COLUMNS[column](counts) for column in columns),
        bounds=tuple(_bounds(counts)),
    )


def _launches_words(counts: CaseCounts) -> str:
    first = counts.launches[0]
    if counts.target == "cpu":
        return f"one call, one thread, {counts.made_by}"
    number = sum(launch.times * launch.summed for launch in counts.launches)
    if number > 1:
        return text.plural(number, "launch", "launches")
    return f"{format_shape(first.grid)} blocks of {format_shape(first.block)}"


def _bounds(counts: CaseCounts) -> Iterator[str]:
    """Return the bound on each GPU, in words that begin with "bound"; none of code on the CPU."""
    if counts.target == "cpu":
        return
    # Not at the top: reports without counted work start without it.
    from gpubench.work.bound import add_bounds, compute_bound, describe_bound, repeat_bound
    from gpubench.work.gpus import GPUS

    for gpu in GPUS.values():
        try:
            bounds = (
                repeat_bound(
                    compute_bound(gpu, launch.counts, launch.grid, launch.block), launch.times
                )
                for launch in counts.launches
            )
            yield describe_bound(add_bounds(bounds))
        except ValueError:  # a launch without threads, which only a damaged record has
            yield "no bound"


def bounds_at_sizes(
    site: Site, history: History, key: KernelKey, sizes: Mapping[str, float]
) -> Iterator[str]:
    """Return the bounds of each implementation that was counted at these sizes, in words."""
    snapshot = history.snapshots[-1]
    counted = {
        name: counts
        for name, counts in site.counts(snapshot).items()
        if (name.suite, name.kernel) == key
    }
    rows = site.table.rows(snapshot, [*counted]).values() if counted else ()
    its: dict[str, list[Row]] = {}
    for row in rows:
        if row.sizes == sizes:
            its.setdefault(row.name.implementation, []).append(row)
    for implementation, cases in its.items():
        if least := representative(cases, counted):
            yield f"{implementation}: {'; '.join(_bounds(counted[least.name]))}"


def _work_map(launches: LaunchMap, counted: Counted) -> WorkMap:
    return WorkMap(
        launches.implementation,
        launches.problem,
        launches.corner,
        launches.columns,
        {
            label: tuple(
                _work_cell(counted[row.name]) if row and row.name in counted else None
                for row in rows
            )
            for label, rows in launches.rows.items()
        },
    )


def _work_cell(counts: CaseCounts) -> WorkCell | None:
    if counts.missing is not None or counts.target == "cpu" or not counts.launches:
        return None
    per_request = derived.sectors_per_request(counts.totals)
    wavefronts = sum_counts(counts.totals, WAVEFRONT_COUNTS)
    excess = derived.excess_wavefronts(counts.totals)
    level = 0 if per_request is None else sum(per_request > bound for bound in (4, 8, 12, 16, 24))
    return WorkCell(
        sectors="no sectors" if per_request is None else f"{text.sectors(per_request)} sectors",
        wavefronts=f"{wavefronts:,} wavefronts, {excess:,} excess" if wavefronts else "",
        occupancy=tuple(_occupancy(counts)),
        level=level,
    )


def _architectures(counted: Iterable[CaseCounts]) -> str:
    every = {one for counts in counted for one in counts.architectures}
    return text.join(".".join(map(str, one)) for one in sorted(every))


def _occupancy(counts: CaseCounts) -> Iterator[str]:
    """Return the theoretical occupancy of the launch with the most warps on each GPU, and what
    limits it there."""
    from gpubench.work.gpus import GPUS
    from gpubench.work.occupancy import widest_occupancy

    names: dict[str, list[str]] = {}
    for gpu in GPUS.values():
        if occupancy := widest_occupancy(counts.launches, gpu):
            names.setdefault(occupancy_words(occupancy), []).append(gpu.name)
    yield from (f"{words}: {text.join(gpus)}" for words, gpus in names.items())


def _of_cpu(counts: CaseCounts, words: str) -> str:
    return words if counts.target == "cpu" else ""


def _resource(counts: CaseCounts, name: str) -> str:
    resources = worst_resources(counts)
    return f"{resources[name]:,}" if name in resources else ""
