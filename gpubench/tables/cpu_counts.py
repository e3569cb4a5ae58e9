"""What ``gpubench count --cpu`` shows: as data, as a table, line by line. Nothing here prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.counts.cache_model import FIGURES, MODEL_WORDS
from gpubench.counts.machine import MACHINE_INSTRUCTIONS
from gpubench.counts.numpy_calls import NumpyCounts
from gpubench.counts.remarks import LoopRemark, advice_for
from gpubench.measure.cpu_counting import CpuCode, is_counted_on_cpu
from gpubench.measure.instructions import Instructions
from gpubench.measure.verify_cases import Verified
from gpubench.plan.case import Case
from gpubench.report import text
from gpubench.tables import verdicts
from gpubench.tables.counts import (
    CASE_HEADINGS,
    case_cells,
    declared_lines,
    declared_of,
    source_rows,
)
from gpubench.tables.table import several, table
from gpubench.work import derived

Counted = tuple[Case, Verified, Instructions | None]
"""A case, what became of it, and its instructions; ``None`` where these were not asked for."""

_COLUMNS = (
    *("IR instructions", "flops", "vectorized", "lanes", "bytes loaded", "bytes stored"),
    *("special functions", "calls", "allocations"),
)
_LINE_COLUMNS = ("share of IR", "flops", "vectorized", "bytes loaded", "bytes stored", "calls")
_MORE_COLUMNS = {name: name.replace("_", " ") for name in (MACHINE_INSTRUCTIONS, *FIGURES)}
"""By the name of the count; each where it was counted."""
_CALLGRIND_COLUMN = "instructions with Python"


def report(rows: Sequence[Counted], *, lines: bool = False) -> Iterator[RenderableType]:
    """Show a row for each case, code line by line where asked, why others have no counts, and where
    declared work is not what is counted."""
    numbers = [*_COLUMNS]
    numbers += [
        words
        for name, words in _MORE_COLUMNS.items()
        if any(name in _totals(outcome) for _, outcome, _ in rows)
    ]
    if any(counted is not None for _, _, counted in rows):
        numbers.append(_CALLGRIND_COLUMN)
    shown = (_row(*row, numbers) for row in rows)
    yield table((*CASE_HEADINGS, *numbers), shown, numbers)
    verified = [(case, outcome) for case, outcome, _ in rows]
    if lines:
        for case, outcome in verified:
            yield from _code(case, outcome)
    yield from verdicts.reasons(verified)
    yield from _missing(rows)
    yield from declared_lines(verified)
    makers = {o.counts.made_by for _, o in verified if o.counts and o.counts.made_by}
    yield from (
        Text(
            f"  counted in LLVM's optimized code: {maker}, one thread; what libraries do inside a "
            "call is not counted"
        )
        for maker in sorted(makers)
    )
    if any(name in numbers for name in map(_MORE_COLUMNS.get, FIGURES)):
        yield Text(f"  lines touched and misses: {MODEL_WORDS}")
    ways = {f"{c.counter}, compiled for {c.processor}" for _, _, c in rows if c and c.count}
    yield from (
        Text(f"  {_CALLGRIND_COLUMN}: of one call, by {way}; an empty call is taken off")
        for way in sorted(ways)
    )


def case_row(case: Case, outcome: Verified, counted: Instructions | None) -> dict[str, Any]:
    """Return one case as JSON shows it: ``counts`` of Numba's code, and ``instructions`` where they
    were asked for."""
    row = verdicts.case_row(case, outcome)
    row["counts"] = None if outcome.counts is None else _as_data(case, outcome)
    row["numpy"] = asdict(outcome.cpu_code) if isinstance(outcome.cpu_code, NumpyCounts) else None
    row["instructions"] = None if counted is None else asdict(counted)
    return row


def derived_of(counts: Mapping[str, int]) -> dict[str, float | None]:
    """Return what follows from counts, by name."""
    return {
        "flops": derived.counted_flops(counts),
        "vectorized_share": derived.vectorized_share(counts),
        "widest_lanes": derived.widest_lanes(counts),
    }


def _as_data(case: Case, outcome: Verified) -> dict[str, Any]:
    counts, code = outcome.counts, _code_of(outcome)
    assert counts is not None
    data: dict[str, Any] = {
        "target": counts.target,
        "model": counts.model,
        "made_by": counts.made_by,
        "missing": counts.missing,
    }
    if counts.missing is not None:
        return data
    declared = declared_of(case, counts.totals)
    return {
        **data,
        "totals": counts.totals,
        "cache_model": MODEL_WORDS if FIGURES[0] in counts.totals else None,
        "derived": derived_of(counts.totals),
        "declared": declared and {**asdict(declared), "flops_ratio": declared.flops_ratio},
        "called": dict(code.called) if code else {},
        "lines": [asdict(line) for launch in counts.launches for line in launch.lines],
        "loops": [_loop_as_data(loop) for loop in code.loops] if code else [],
    }


def _loop_as_data(loop: LoopRemark) -> dict[str, Any]:
    data = asdict(loop)
    if loop.reason is not None:
        advice = advice_for(loop.reason)
        data |= {"plain": advice.plain, "remedy": advice.remedy, "cost": advice.cost}
    return data


def _row(
    case: Case, outcome: Verified, counted: Instructions | None, columns: Sequence[str]
) -> tuple[str | Text, ...]:
    totals = _totals(outcome)
    is_numpy = isinstance(outcome.cpu_code, NumpyCounts)
    cells = _cells(totals) if totals or is_numpy else ("",) * len(_COLUMNS)
    for name, words in _MORE_COLUMNS.items():
        if words in columns:
            cells = *cells, f"{totals[name]:,}" if name in totals else ""
    if _CALLGRIND_COLUMN in columns:
        cells = *cells, f"{counted.count:,}" if counted and counted.count is not None else ""
    return *case_cells(case, outcome), *cells


def _code_of(outcome: Verified) -> CpuCode | None:
    return outcome.cpu_code if isinstance(outcome.cpu_code, CpuCode) else None


def _totals(outcome: Verified) -> Mapping[str, int]:
    if isinstance(outcome.cpu_code, NumpyCounts):
        return outcome.cpu_code.totals
    return outcome.counts.totals if outcome.counts is not None else {}


def _cells(counts: Mapping[str, int]) -> tuple[str, ...]:
    if "ir_instructions" not in counts:
        return _numpy_cells(counts)
    names = ("load_bytes", "store_bytes", "special_functions", "calls", "allocations")
    return (
        f"{counts['ir_instructions']:,}",
        f"{derived.counted_flops(counts):,}",
        text.vectorized(derived.vectorized_share(counts)),
        str(derived.widest_lanes(counts) or ""),
        *(f"{counts.get(name, 0):,}" for name in names),
    )


def _numpy_cells(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return what NumPy did; where its calls are not counted, the arrays that it made."""
    made = f"{counts.get('allocations', 0):,}"
    if "calls" not in counts:
        return *("",) * (len(_COLUMNS) - 1), made
    names = ("load_bytes", "store_bytes", "special_functions", "calls")
    flops = f"{derived.counted_flops(counts):,}"
    return "", flops, "", "", *(f"{counts.get(name, 0):,}" for name in names), made


def _missing(rows: Sequence[Counted]) -> Iterator[Text]:
    """Yield why right cases have no counts, those of one reason together."""
    names: dict[str, list[str]] = defaultdict(list)
    for case, outcome, counted in rows:
        name = f"{case.group.title} {case.identity}".strip()
        if outcome.counts is not None and outcome.counts.missing is not None:
            names[outcome.counts.missing].append(name)
        if counted is not None and counted.missing is not None:
            names[counted.missing].append(name)
        if isinstance(outcome.cpu_code, NumpyCounts):
            if why := outcome.cpu_code.missing:
                names[f"NumPy's calls, operations and bytes: {why}"].append(name)
        elif outcome.status == "right" and not is_counted_on_cpu(case) and counted is None:
            reason = f"LLVM's code is counted of numba, and this is {case.backend}"
            names[f"{reason}; --callgrind counts instructions of NumPy too"].append(name)
    for reason, its in names.items():
        yield Text(f"  not counted: {several(its)}: {reason}")


def _code(case: Case, outcome: Verified) -> Iterator[RenderableType]:
    """Yield the code that a case ran with the counts of every line, and LLVM's reasons."""
    counts, code = outcome.counts, _code_of(outcome)
    if counts is None or counts.missing is not None:
        return
    (launch,) = counts.launches
    yield Text(f"\n{case.group.title} {case.identity}: {launch.kernel}", style="bold")
    total = launch.counts.get("ir_instructions", 0)
    for file in dict.fromkeys(line.file for line in launch.lines):
        by_line = {
            line.line: _line_cells(line.counts, total) for line in launch.lines if line.file == file
        }
        yield Text(f"  {file}")
        rows = source_rows(file, by_line, len(_LINE_COLUMNS))
        yield table(("line", *_LINE_COLUMNS, "code"), rows, ("line", *_LINE_COLUMNS))
        for loop in code.loops if code else ():
            if loop.file == file and loop.line in by_line:
                yield from map(Text, loop_lines(loop))


def loop_lines(loop: LoopRemark) -> Iterator[str]:
    """Yield what LLVM says of a loop, in plain words too, what to do, and at what cost."""
    if loop.reason is None:
        yield f"  line {loop.line}: the loop is vectorized, {loop.width} numbers at once"
        return
    advice = advice_for(loop.reason)
    about = f", at line {loop.reason_line}" if loop.reason_line not in (None, loop.line) else ""
    yield f"  line {loop.line}: the loop is not vectorized: {advice.plain}"
    yield f"    LLVM{about}: {loop.reason}"
    yield f"    to do: {advice.remedy}"
    yield f"    costs: {advice.cost}"


def _line_cells(counts: Mapping[str, int], total: int) -> tuple[str, ...]:
    flops = derived.counted_flops(counts)
    names = ("load_bytes", "store_bytes", "calls")
    return (
        text.percent(counts.get("ir_instructions", 0) / total) if total else "",
        f"{flops:,}" if flops else "",
        text.vectorized(derived.vectorized_share(counts)),
        *(f"{counts[name]:,}" if counts.get(name) else "" for name in names),
    )
