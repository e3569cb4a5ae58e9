"""View model of counted work: what a kernel does on the device in software, and no times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpubench.analysis.costs import CostPair, total_costs, worst_resources
from gpubench.analysis.count_changes import CountChange
from gpubench.analysis.headline import KernelKey
from gpubench.counts.remarks import advice_for
from gpubench.names import format_shape
from gpubench.report import text
from gpubench.report.charts import LaunchMap, launch_maps
from gpubench.report.comparison_view import FactRow, fact_row
from gpubench.report.count_view import change_words, hint_words, occupancy_words
from gpubench.report.findings import case_words
from gpubench.report.lists import listed
from gpubench.report.site import CommitLabel, Link, Site, kernel_label
from gpubench.report.sparkline import Sparkline, sparkline
from gpubench.results import CaseCounts, CaseName, History, LineCounts, Row, Snapshot
from gpubench.work import derived

Counted = Mapping[CaseName, CaseCounts]

MAX_CHANGES = 40
"""Changes of counts in a table, the newest; `gpubench query` has all."""

MAX_NEWEST = 8
"""Changes of counts that the overview lists; the page of changes has all."""

MAX_SOURCE_LINES = 120
"""Lines of code that a page shows of an implementation."""

MAX_FILES_SHOWN = 3
"""Files of an implementation, those with the most instructions; others are mostly of libraries."""

CONTEXT_LINES = 2
"""Lines that are shown before the first with a count and after the last."""

MAX_PAGE_GAP_LINES = 12
"""Lines without counts that are shown between two with; more are left out."""

MAX_LINE_CHARACTERS = 200
"""Of a line of code; a longer one is cut."""

_SECTOR_COUNTS = ("global_load_sectors", "global_store_sectors", "global_atomic_sectors")
_TRAFFIC_COUNTS = (*_SECTOR_COUNTS, *derived.CPU_BYTES)
_CUDA_HEADINGS = ("Instructions", "Sectors", "Wavefronts", "Lanes on")
_CPU_HEADINGS = ("Instructions", "Bytes moved", "Operations", "Vectorized")
_CUDA_BARS = (
    "instructions of PTX, and sectors, of which the orange part is beyond what the same bytes "
    "would take side by side"
)
_CPU_BARS = "instructions of LLVM's code, and bytes that are loaded and stored"
_REQUEST_COUNTS = ("global_load_requests", "global_store_requests", "global_atomic_requests")
_LINE_COUNTS = ("shared_load_wavefronts", "shared_store_wavefronts", "shared_atomic_wavefronts")


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
class SourceLine:
    """A line of code with what it does; numbers are empty for a line without counts."""

    number: int
    code: str
    instructions: str
    sectors: str
    wavefronts: str
    lanes: str
    instruction_bar: float
    """Percent of the line with the most."""
    sector_bar: float
    excess_bar: float
    """Percent, within ``sector_bar``."""
    is_after_gap: bool
    notes: tuple[str, ...] = ()
    """What costs more than it must there, with what to change, and why a loop of Numba's on the CPU
    is not vectorized."""


@dataclass(frozen=True, slots=True)
class WorkSource:
    """Code of one file that an implementation ran."""

    implementation: str
    case: str
    file: str
    commit: str
    has_text: bool
    """Whether git has the file at that commit."""
    headings: tuple[str, str, str, str]
    """Of the four numbers of a line."""
    bars: str
    """What the bars of a line are."""
    lines: tuple[SourceLine, ...]
    more: int
    """Lines with counts that are left out."""


@dataclass(frozen=True, slots=True)
class WorkChange:
    """One cost that is another since a commit."""

    name: CaseName
    """Of several that changed alike, the largest."""
    others: int
    """How many changed with it."""
    count: str
    before: str
    after: str
    change: str
    grew: bool
    since: CommitLabel
    against: CommitLabel
    why: str


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


@dataclass(frozen=True, slots=True)
class CountChangeRow:
    """Costs of one implementation that changed at one commit, for the page of changes."""

    name: CaseName
    kernel: Link
    before: CommitLabel
    after: CommitLabel
    costs: tuple[tuple[str, str, str, str], ...]
    """Of each cost what it counts, before, after, and the change."""
    grew: bool
    why: str
    facts: tuple[FactRow, ...]
    others: int
    """Cases that changed with it."""
    spark: Sparkline

    @property
    def listed(self) -> dict[str, Any]:
        return listed(
            suite=[self.name.suite],
            kernel=[self.kernel.label],
            implementation=[self.name.implementation],
            commit=[self.after.short],
            why=["the environment" if self.facts else "the kernel"],
            what=["more work" if self.grew else "less work"],
        )


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
        return _sum(totals, _SECTOR_COUNTS), derived.executed_instructions(totals)

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
    listed_changes = list(_work_changes(changes, history, site))
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
        sources=tuple(source for row in shown for source in _sources(row.name, snapshot, site)),
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
    wavefronts = _sum(counts.totals, _LINE_COUNTS)
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


def newest_growth(history: History, site: Site) -> tuple[WorkChange, ...]:
    """Return of the newest changes by which counted work grew the first cost each, for the
    overview."""
    grew = [group for group in count_groups(history, site) if group.grew]
    first = [next(_work_changes([group], history, site)) for group in grew[:MAX_NEWEST]]
    return tuple(first)


def _work_changes(
    groups: Iterable[CountGroup], history: History, site: Site
) -> Iterator[WorkChange]:
    labels = site.labels(history)
    for group in groups:
        change = group.change
        for pair in group.pairs:
            yield WorkChange(
                name=change.name,
                others=group.others,
                count=pair.words,
                before=f"{pair.old:,}",
                after=f"{pair.new:,}",
                change=change_words(pair),
                grew=pair.new > pair.old,
                since=labels[change.after],
                against=labels[change.before],
                why=_cause(change),
            )


def _cause(change: CountChange) -> str:
    if not change.facts:
        return "the kernel: what compiles it did not change"
    rows = map(fact_row, change.facts)
    return "another compiler: " + ", ".join(f"{r.label} {r.old} → {r.new}" for r in rows)


# --- the source, line by line


def _sources(name: CaseName, snapshot: Snapshot, site: Site) -> Iterator[WorkSource]:
    """Make the code that a case ran, a file at a time, the one with the most instructions first."""
    files: dict[str, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    notes: dict[tuple[str, int], list[str]] = defaultdict(list)
    for line in site.table.count_lines(snapshot, name):
        _add(files[line.file][line.line], line)
        notes[line.file, line.line] += map(hint_words, line.hints)
        if line.reason is not None:
            notes[line.file, line.line].append(not_vectorized_words(line.reason))
    ordered = sorted(
        files.items(),
        key=lambda item: -sum(map(derived.executed_instructions, item[1].values())),
    )
    is_on_cpu = site.counts(snapshot)[name].target == "cpu"
    for file, lines in ordered[:MAX_FILES_SHOWN]:
        committed = site.code(snapshot.commit, file)
        texts = [] if committed is None else committed.splitlines()
        numbers = _shown_numbers(sorted(lines), len(texts))
        left_out = len(lines.keys() - {*numbers})
        yield WorkSource(
            implementation=name.implementation,
            case=name.case,
            file=file,
            commit=snapshot.commit.hash[:8],
            has_text=committed is not None,
            headings=_CPU_HEADINGS if is_on_cpu else _CUDA_HEADINGS,
            bars=_CPU_BARS if is_on_cpu else _CUDA_BARS,
            lines=tuple(
                replace(line, notes=tuple(notes[file, line.number]))
                for line in _source_lines(numbers, lines, texts)
            ),
            more=left_out,
        )


def not_vectorized_words(reason: str) -> str:
    """Say why LLVM has not vectorized a loop, in plain words and its own, what to do, and what that
    costs."""
    advice = advice_for(reason)
    return (
        f"Not vectorized: {advice.plain} (LLVM: {reason}). To do: {advice.remedy}. "
        f"Costs: {advice.cost}."
    )


def _add(counts: dict[str, int], line: LineCounts) -> None:
    for name, number in line.counts.items():
        counts[name] = counts.get(name, 0) + number


def _shown_numbers(counted: Sequence[int], length: int) -> list[int]:
    """Choose the lines to show: those with counts and, where there is text, what lies between."""
    numbers: list[int] = []
    for number in counted:
        start = max(number - CONTEXT_LINES, 1)
        if numbers and number - numbers[-1] <= MAX_PAGE_GAP_LINES:
            start = numbers[-1] + 1
        numbers += [*range(start, min(number, length + 1)), number]
    end = numbers[-1] + 1 if numbers else 1
    numbers += range(end, min(end + CONTEXT_LINES, length + 1) if numbers else end)
    return numbers[:MAX_SOURCE_LINES]


def _source_lines(
    numbers: Sequence[int], lines: Mapping[int, Mapping[str, int]], texts: Sequence[str]
) -> Iterator[SourceLine]:
    most_instructions = max(map(derived.executed_instructions, lines.values()), default=0)
    most_sectors = max((_sum(one, _TRAFFIC_COUNTS) for one in lines.values()), default=0)
    before = None
    for number in numbers:
        counts = lines.get(number, {})
        instructions, sectors = derived.executed_instructions(counts), _sum(counts, _TRAFFIC_COUNTS)
        requests, wavefronts = _sum(counts, _REQUEST_COUNTS), _sum(counts, _LINE_COUNTS)
        code = texts[number - 1] if 0 < number <= len(texts) else ""
        flops = derived.counted_flops(counts) if "ir_instructions" in counts else 0
        words = f"{sectors:,} ({text.sectors(sectors / requests)} a request)" if requests else ""
        vectorized = text.vectorized(derived.vectorized_share(counts)) if flops else ""
        yield SourceLine(
            number=number,
            code=code[:MAX_LINE_CHARACTERS],
            instructions=f"{instructions:,}" if counts else "",
            sectors=words or (f"{sectors:,}" if sectors else ""),
            wavefronts=f"{wavefronts or flops:,}" if wavefronts or flops else "",
            lanes=vectorized or text.lanes_on(derived.inactive_lanes(counts)),
            instruction_bar=_percent(instructions, most_instructions),
            sector_bar=_percent(sectors, most_sectors),
            excess_bar=_percent(max(derived.excess_sectors(counts), 0), most_sectors),
            is_after_gap=before is not None and number > before + 1,
        )
        before = number


def _percent(value: int, most: int) -> float:
    return round(100 * value / most, 1) if most else 0.0


# --- the page of changes


@dataclass(frozen=True, slots=True)
class CountGroup:
    """Cases of one implementation whose costs changed at one commit in one direction."""

    change: CountChange
    """Of the largest of them."""
    grew: bool
    others: int

    @property
    def pairs(self) -> tuple[CostPair, ...]:
        """Costs of that case that changed in that direction."""
        return tuple(pair for pair in self.change.pairs if (pair.new > pair.old) is self.grew)


def count_groups(history: History, site: Site) -> list[CountGroup]:
    """Group the changes of counted work for the page of changes, the newest first."""
    kept = site.of_setup(history)
    if "count_groups" not in kept:
        kept["count_groups"] = _group_changes(site.count_changes(history))
    groups: list[CountGroup] = kept["count_groups"]
    return groups


def _group_changes(changes_found: Iterable[CountChange]) -> list[CountGroup]:
    groups: dict[tuple[object, ...], list[CountChange]] = defaultdict(list)
    for change in changes_found:
        name = change.name
        place = name.suite, name.kernel, name.implementation, name.time
        for grew in (True, False):
            if any((pair.new > pair.old) is grew for pair in change.pairs):
                groups[(grew, change.before, change.after, *place)].append(change)
    # The natural order of cases ends with the largest size.
    return [
        CountGroup(changes[-1], key[0] is True, len(changes) - 1) for key, changes in groups.items()
    ]


def count_change_rows(
    groups: Sequence[CountGroup], history: History, site: Site
) -> list[CountChangeRow]:
    """Make the rows of these changes."""
    names = {group.change.name for group in groups}
    counted = {
        name: places
        for name, places in site.table.counted(history.snapshots).items()
        if name in names
    }
    profiles = site.table.profiles(
        number for places in counted.values() for number in places.values()
    )
    labels, rows = site.labels(history), []
    for group in groups:
        change, name = group.change, group.change.name
        key = name.suite, name.kernel
        series = {place: profiles[number] for place, number in counted[name].items()}
        rows.append(
            CountChangeRow(
                name=name,
                kernel=Link(kernel_label(key), site.address(history.setup, key)),
                before=labels[change.before],
                after=labels[change.after],
                costs=tuple(
                    (pair.words, f"{pair.old:,}", f"{pair.new:,}", change_words(pair))
                    for pair in group.pairs
                ),
                grew=group.grew,
                why=_cause(change),
                facts=tuple(map(fact_row, change.facts)),
                others=group.others,
                spark=_spark(group.pairs[0], change.after, series),
            )
        )
    return rows


def _spark(pair: CostPair, after: int, series: Mapping[int, CaseCounts]) -> Sparkline:
    """Draw a cost over the commits; ``series`` has the counts by the snapshot's index."""
    first = min(series)
    values = np.full(max(series) - first + 1, np.nan)
    for place, counts in series.items():
        if counts.missing is None:
            known = {**worst_resources(counts), **total_costs(counts)}
            # The scale is logarithmic, and a count may be 0.
            values[place - first] = max(known.get(pair.cost.name, 0), 0.5)
    label = f"{pair.words} over commits: {pair.old:,} before, {pair.new:,} after"
    return sparkline(values, label, [after - first])


def _sum(counts: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(counts.get(name, 0) for name in names)


def _of_cpu(counts: CaseCounts, words: str) -> str:
    return words if counts.target == "cpu" else ""


def _resource(counts: CaseCounts, name: str) -> str:
    resources = worst_resources(counts)
    return f"{resources[name]:,}" if name in resources else ""
