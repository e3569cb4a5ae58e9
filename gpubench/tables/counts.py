"""What ``gpubench count`` shows: as data, as a table, and line by line. Nothing here prints."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.errors import GpubenchError
from gpubench.measure.verify_cases import Verified
from gpubench.names import format_shape
from gpubench.plan.case import Case
from gpubench.plan.trying import proposed_value
from gpubench.record import CountsRecord, HintRecord, LaunchRecord
from gpubench.report import text
from gpubench.report.count_view import hint_words, occupancy_words
from gpubench.report.declared_view import declared_words
from gpubench.statuses import FAILURES
from gpubench.tables import verdicts
from gpubench.tables.table import table
from gpubench.work import derived
from gpubench.work.bound import (
    MAX_JOINED_SHARED_LOADS,
    Bound,
    add_bounds,
    bound_to_json,
    compute_bound,
    describe_bound,
)
from gpubench.work.counting import MachineCode
from gpubench.work.declared import MAX_DEVIATION, DeclaredWork, declared_work
from gpubench.work.gpus import Gpu
from gpubench.work.occupancy import widest_occupancy

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from softcuda.sass import KernelCode

MAX_TERMINAL_GAP_LINES = 4
"""Lines without counts that are shown between two with; of more, three dots."""

CASE_HEADINGS = ("kernel", "implementation", "case", "verdict")
_NUMBER_COLUMNS = (
    *("launches", "sectors a load", "sectors a store", "excess wavefronts"),
    *("lanes on", "registers", "PTX instructions"),
)


def report(
    rows: Sequence[tuple[Case, Verified]],
    place: verdicts.CudaPlace,
    gpus: Sequence[Gpu] = (),
    *,
    lines: bool = False,
    hints: bool = False,
) -> Iterator[RenderableType]:
    """Show a row for each case, code line by line and hints where asked, bounds on GPUs, and where
    declared work is not what is counted."""
    if rows:
        shown = [each for row in rows for each in _case_rows(*row)]
        yield table((*CASE_HEADINGS, *_NUMBER_COLUMNS), shown, _NUMBER_COLUMNS)
    if lines:
        for case, outcome in rows:
            yield from _code(case, outcome)
    if hints:
        yield from _hint_lines(rows)
    yield from verdicts.reasons(rows)
    for case, outcome in rows:
        name = f"{case.group.title} {case.identity}".strip()
        if outcome.counts is not None and outcome.counts.missing is not None:
            yield Text(f"  not counted: {name}: {outcome.counts.missing}")
        elif outcome.counts is not None and gpus:
            occupancies = (
                f"{gpu.name} {occupancy_words(occupancy)}"
                for gpu in gpus
                if (occupancy := widest_occupancy(outcome.counts.launches, gpu))
            )
            bounds = map(describe_bound, bounds_of(outcome.counts, gpus, outcome.code))
            yield Text(f"  {name}: {'; '.join((*occupancies, *bounds))}")
    if gpus:
        yield Text("  a bound is the least time that counts allow; nothing here was timed")
    yield from declared_lines(rows)
    yield Text(verdicts.summary(rows, place))


def case_row(
    case: Case,
    outcome: Verified,
    gpus: Sequence[Gpu] = (),
    *,
    lines: bool = True,
    hints: bool = False,
) -> dict[str, Any]:
    """Return one case as JSON shows it."""
    row = verdicts.case_row(case, outcome)
    if outcome.counts is not None:
        row["counts"] = _as_data(case, outcome.counts, lines=lines)
        if gpus and outcome.counts.missing is None:
            bounds = bounds_of(outcome.counts, gpus, outcome.code)
            row["counts"]["bounds"] = [bound_to_json(bound) for bound in bounds]
            row["counts"]["occupancy"] = [
                {"gpu": gpu.name, "share": occupancy.share, "limited_by": occupancy.limited_by}
                for gpu in gpus
                if (occupancy := widest_occupancy(outcome.counts.launches, gpu))
            ]
        if hints:
            row["hints"] = _hints_as_data(case, outcome.counts)
        if lines and outcome.code is not None:
            row["counts"]["sass"] = asdict(outcome.code)
    return row


def bounds_of(
    counts: CountsRecord, gpus: Iterable[Gpu], code: MachineCode | None = None
) -> list[Bound]:
    """Return the least time that the launches of a case allow on each GPU, one after another.

    ``code`` tells which loads of shared memory the assembler joined; without it only a quarter of
    them is certain.
    """
    kernels = code.kernels if code else {}
    return [
        add_bounds(
            bound
            for launch in counts.launches
            for bound in repeat(
                compute_bound(
                    gpu,
                    launch.counts,
                    launch.grid,
                    launch.block,
                    joined_shared_loads=(
                        kernels[launch.kernel].joined_shared_loads
                        if launch.kernel in kernels
                        else MAX_JOINED_SHARED_LOADS
                    ),
                ),
                launch.times,
            )
        )
        for gpu in gpus
    ]


def _as_data(case: Case, counts: CountsRecord, *, lines: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"model": counts.model, "missing": counts.missing}
    if counts.missing is not None:
        return data
    launches = [asdict(launch) for launch in counts.launches]
    for launch in launches:
        launch["derived"] = derived_of(launch["counts"])
        if not lines:
            del launch["lines"]
    totals, declared = counts.totals, declared_of(case, counts.totals)
    return {
        **data,
        "totals": totals,
        "derived": derived_of(totals),
        "declared": declared and {**asdict(declared), "flops_ratio": declared.flops_ratio},
        "launches": launches,
    }


def derived_of(counts: Mapping[str, int]) -> dict[str, float | None]:
    """Return what follows from counts, by name."""
    return {
        "sectors_per_load": derived.sectors_per_load(counts),
        "sectors_per_store": derived.sectors_per_store(counts),
        "sectors_per_request": derived.sectors_per_request(counts),
        "excess_sectors": derived.excess_sectors(counts),
        "excess_wavefronts": derived.excess_wavefronts(counts),
        "inactive_lanes": derived.inactive_lanes(counts),
    }


def case_cells(case: Case, outcome: Verified) -> tuple[str | Text, ...]:
    """Return the cells of ``CASE_HEADINGS``."""
    style = "green" if outcome.status == "right" else ""
    style = "bold red" if outcome.status in FAILURES else style
    verdict = Text(text.status_label(outcome.status), style=style)
    return case.group.title.rpartition(" ")[0], case.implementation_name, case.identity, verdict


def _case_rows(case: Case, outcome: Verified) -> Iterator[Sequence[str | Text]]:
    """Yield the case, and below it its kernels where one run launches several."""
    head = case_cells(case, outcome)
    counts = outcome.counts
    if counts is None or counts.missing is not None:
        yield (*head, *("" for _ in _NUMBER_COLUMNS))
        return
    launched = sum(launch.times * launch.summed for launch in counts.launches)
    yield (*head, *_numbers(launched, counts.totals, counts.launches))
    kernels: dict[str, list[LaunchRecord]] = {}
    for launch in counts.launches:
        kernels.setdefault(launch.kernel, []).append(launch)
    if len(kernels) > 1:
        for kernel, launches in kernels.items():
            launched = sum(launch.times * launch.summed for launch in launches)
            totals = CountsRecord("", "", counts.model, None, tuple(launches)).totals
            yield ("", "", f"  {kernel}", "", *_numbers(launched, totals, launches))


def _numbers(
    launched: int, counts: Mapping[str, int], launches: Sequence[LaunchRecord]
) -> tuple[str, ...]:
    registers = [each.resources["registers"] for each in launches if each.resources]
    return (
        f"{launched:,}",
        text.sectors(derived.sectors_per_load(counts)),
        text.sectors(derived.sectors_per_store(counts)),
        f"{derived.excess_wavefronts(counts):,}",
        text.lanes_on(derived.inactive_lanes(counts)),
        str(max(registers)) if registers else "",
        f"{counts.get('ptx_instructions', 0):,}",
    )


def _hint_lines(rows: Sequence[tuple[Case, Verified]]) -> Iterator[Text]:
    """Yield the hints of each kernel of each counted case, in the order of their shares."""
    for case, outcome in rows:
        if outcome.counts is None or outcome.counts.missing is not None:
            continue
        name = f"{case.group.title} {case.identity}".strip()
        of_case = outcome.counts.hints
        yield Text(f"\n{name}: {text.plural(len(of_case), 'hint') if of_case else 'no hint'}")
        for _, line, hint in of_case:
            yield Text(f"  {line.file}:{line.line}: {hint_words(hint)}")
            if command := _trial_command(case, hint):
                yield Text(f"    to count that: {command}")


def _trial_command(case: Case, hint: HintRecord) -> str | None:
    """Return the command that counts what a hint proposes, where that is known."""
    value = proposed_value(case, hint.change)
    if value is None:
        return None
    name = f"{case.suite.suite}::{case.kernel_name} -a implementation={case.implementation_name}"
    return f"gpubench count {name} --hints --try {value}"


def _hints_as_data(case: Case, counts: CountsRecord) -> list[dict[str, Any]]:
    """Return the hints of a case; ``try`` is what ``--try`` takes to count the change."""
    return [
        {
            "kernel": kernel,
            "file": line.file,
            "line": line.line,
            **asdict(hint),
            "try": proposed_value(case, hint.change),
        }
        for kernel, line, hint in counts.hints
    ]


def declared_lines(rows: Sequence[tuple[Case, Verified]]) -> Iterator[Text]:
    """Yield, once for each implementation, that its declared work is not what is counted."""
    seen: set[str] = set()
    for case, outcome in rows:
        if outcome.counts is None or outcome.counts.missing or case.group.title in seen:
            continue
        work = declared_of(case, outcome.counts.totals)
        if work is not None and (words := "; ".join(declared_words(work))):
            seen.add(case.group.title)
            yield Text(f"  work: {case.group.title} {case.identity}: {words}")
    if seen:
        yield Text(
            f"  work is named where it is more than {MAX_DEVIATION:.0%} off".replace("%", " %")
        )


def declared_of(case: Case, counts: Mapping[str, int]) -> DeclaredWork | None:
    """Return what the suite declares beside what was counted; ``None`` without a formula."""
    try:
        nbytes, flops = case.work()
    except GpubenchError:  # a formula has no value, which `gpubench check` says
        return None
    return declared_work(nbytes, flops, counts)


def _code(case: Case, outcome: Verified) -> Iterator[RenderableType]:
    """Yield each kernel of a case with its code, and the counts of every line."""
    counts = outcome.counts
    if counts is None or counts.missing is not None:
        return
    for launch in counts.launches:
        yield Text(f"\n{case.group.title} {case.identity}: {launch_title(launch)}", style="bold")
        if not launch.lines:
            yield Text("  no lines: its code was compiled without them")
        sass = outcome.code.kernels.get(launch.kernel) if outcome.code else None
        for file in dict.fromkeys(line.file for line in launch.lines):
            yield Text(f"  {file}")
            yield _code_table(file, launch, sass)
        if sass is not None:
            yield from _sass_lines(sass)
        elif outcome.code is not None and outcome.code.missing:
            yield Text(f"  instructions are those of PTX: {outcome.code.missing}")


def launch_title(launch: LaunchRecord) -> str:
    """Return a launch in words: its kernel and shape, and how many launches its counts are of."""
    shape = f"{format_shape(launch.grid)} blocks of {format_shape(launch.block)}"
    times = f", {launch.times:,} times" if launch.times > 1 else ""
    times = f", the sum of {launch.summed:,} launches" if launch.summed > 1 else times
    return f"{launch.kernel}, {shape}{times}"


def _sass_lines(code: KernelCode) -> Iterator[Text]:
    """Yield how many instructions of SASS a kernel and each of its loops has."""
    yield Text(
        f"  SASS, each instruction counted once however often it runs: "
        f"{text.plural(code.instructions, 'instruction')}, "
        f"{text.plural(len(code.loops), 'loop') if code.loops else 'no loop'}"
    )
    for loop in code.loops:
        lines = f"line {loop.first_line}"
        if loop.last_line > loop.first_line:
            lines = f"lines {loop.first_line} to {loop.last_line}"
        where = f"{lines} of {loop.file}" if loop.file else "unknown lines"
        inside = f", inside {text.plural(loop.depth - 1, 'loop')}" if loop.depth > 1 else ""
        yield Text(f"    loop in {where}: {loop.instructions:,} in its body{inside}")


def _code_table(file: str, launch: LaunchRecord, sass: KernelCode | None) -> RenderableType:
    by_line = {line.line: line.counts for line in launch.lines if line.file == file}
    total = launch.counts.get("ptx_instructions", 0)
    code = {one.line: one for one in sass.lines if one.file == file} if sass else {}
    numbers = (*_LINE_NUMBERS, *(_SASS_NUMBERS if code else ()))
    cells_by_line: dict[int, tuple[str, ...]] = {}
    for number, counts in by_line.items():
        cells = _line_cells(counts, total)
        if code:
            of_line = code.get(number)
            both = (of_line.instructions, of_line.in_loops) if of_line else (0, 0)
            cells += tuple(f"{count:,}" for count in both)
        cells_by_line[number] = cells
    rows = source_rows(file, cells_by_line, len(numbers))
    return table(("line", *numbers, "code"), rows, ("line", *numbers))


def source_rows(
    file: str, cells_by_line: Mapping[int, tuple[str, ...]], cell_count: int
) -> list[tuple[str, ...]]:
    """Return rows of number, cells and code for the lines that have cells, with the lines between
    where these are few."""
    source, empty = source_lines(file), ("",) * cell_count
    rows: list[tuple[str, ...]] = []
    before = None
    for number in sorted(cells_by_line):
        if before is not None and number - before > MAX_TERMINAL_GAP_LINES + 1:
            rows.append(("...", *empty, ""))
        elif before is not None:
            rows += [
                (str(between), *empty, _line_of(source, between))
                for between in range(before + 1, number)
            ]
        rows.append((str(number), *cells_by_line[number], _line_of(source, number)))
        before = number
    return rows


_LINE_NUMBERS = (
    *("share of PTX", "lanes on", "sectors a load", "sectors a store"),
    *("excess wavefronts", "diverging"),
)


_SASS_NUMBERS = ("SASS", "SASS in loops")
"""Instructions of machine code, each counted once."""


def _line_cells(counts: Mapping[str, int], total: int) -> tuple[str, ...]:
    instructions = counts.get("ptx_instructions", 0)
    diverging = counts.get("divergent_branches", 0)
    has_wavefronts = any(name.endswith("_wavefronts") for name in counts)
    return (
        text.percent(instructions / total) if total else "",
        text.lanes_on(derived.inactive_lanes(counts)),
        text.sectors(derived.sectors_per_load(counts)),
        text.sectors(derived.sectors_per_store(counts)),
        f"{derived.excess_wavefronts(counts):,}" if has_wavefronts else "",
        f"{diverging:,}" if diverging else "",
    )


def source_lines(file: str) -> list[str]:
    """Return the lines of a file that a record names, where Python would import it from; empty
    where it is not here."""
    folders = [Path.cwd(), *map(Path, filter(None, sys.path))]
    for path in (folder / file for folder in folders):
        if path.is_file():
            return linecache.getlines(str(path))
    return []


def _line_of(source: Sequence[str], number: int) -> str:
    return source[number - 1].rstrip().expandtabs() if 0 < number <= len(source) else ""
