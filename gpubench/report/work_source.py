"""Source lines of an implementation with the work that each line does, for a kernel's page.

What comes in is a case of a snapshot. What leaves is the lines of a file with counts, bars and
notes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpubench.counts.remarks import advice_for
from gpubench.report import text
from gpubench.report.count_view import hint_words
from gpubench.report.site import Site
from gpubench.results import CaseName, LineCounts, Snapshot
from gpubench.work import derived

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

SECTOR_COUNTS = ("global_load_sectors", "global_store_sectors", "global_atomic_sectors")
WAVEFRONT_COUNTS = ("shared_load_wavefronts", "shared_store_wavefronts", "shared_atomic_wavefronts")
_TRAFFIC_COUNTS = (*SECTOR_COUNTS, *derived.CPU_BYTES)
_REQUEST_COUNTS = ("global_load_requests", "global_store_requests", "global_atomic_requests")
_CUDA_HEADINGS = ("Instructions", "Sectors", "Wavefronts", "Lanes on")
_CPU_HEADINGS = ("Instructions", "Bytes moved", "Operations", "Vectorized")
_CUDA_BARS = (
    "instructions of PTX, and sectors, of which the orange part is beyond what the same bytes "
    "would take side by side"
)
_CPU_BARS = "instructions of LLVM's code, and bytes that are loaded and stored"


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


def build_sources(name: CaseName, snapshot: Snapshot, site: Site) -> Iterator[WorkSource]:
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
    most_sectors = max((sum_counts(one, _TRAFFIC_COUNTS) for one in lines.values()), default=0)
    before = None
    for number in numbers:
        counts = lines.get(number, {})
        instructions = derived.executed_instructions(counts)
        sectors = sum_counts(counts, _TRAFFIC_COUNTS)
        requests = sum_counts(counts, _REQUEST_COUNTS)
        wavefronts = sum_counts(counts, WAVEFRONT_COUNTS)
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


def sum_counts(counts: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(counts.get(name, 0) for name in names)
