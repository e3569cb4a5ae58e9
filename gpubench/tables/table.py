"""How tables and lines look on a terminal, whichever command shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gpubench.report import text

UNLIMITED = 10_000
"""Characters of a line that no table needs."""


def table(
    columns: Iterable[str],
    rows: Iterable[Iterable[str | Text]],
    right: Container[str] = (),
    *,
    folded: bool = False,
    **layout: Any,
) -> Table:
    """Cells under the names of their columns, those of ``right`` on the right, no lines between.

    Text is shown as it is, without rich's markup. Lines are as long as they are, also where nobody
    made the terminal wider, or ``folded`` into it. ``layout`` is rich's: ``title``, ``padding`` ...
    """
    made = Table(box=None, header_style="bold", **layout)
    for name in columns:
        is_right = name in right
        justify: JustifyMethod = "right" if is_right else "left"
        # A name that is too long goes on in the next line: cut off, it may be that of another.
        made.add_column(Text(name), justify=justify, no_wrap=is_right, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    if not folded:
        wide = Console(width=UNLIMITED)
        made.width = Measurement.get(wide, wide.options, made).maximum
    return made


def lines_that_fit(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Container[str], width: int
) -> list[str] | None:
    """Return the lines of ``table``, its header first; ``None`` where they are longer than
    ``width``, so that cells have to be folded, or where a cell has several lines.

    rich takes a millisecond for a row: it wraps each cell and looks for styles in it.
    """
    cells = [columns, *rows]
    if any("\n" in cell or "\t" in cell for row in cells for cell in row):
        return None
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    if sum(widths) + 2 * len(widths) > width:
        return None
    sides = [name in right for name in columns]
    lines = []
    for row in cells:
        padded = (
            " " * (most - cell_len(cell)) + cell if is_right else set_cell_size(cell, most)
            for cell, most, is_right in zip(row, widths, sides, strict=True)
        )
        lines.append(f" {'  '.join(padded)} ")
    return lines


def several(cases: Sequence[str]) -> str:
    """``3 cases, first n=8``; of one its name alone."""
    return cases[0] if len(cases) == 1 else f"{len(cases)} cases, first {cases[0]}"


def compiled_line(compilations: Iterable[tuple[str, float]]) -> str | None:
    """Return what it cost to compile functions that keep no code: of each process the
    implementation and seconds. ``None`` where none was compiled."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for implementation, spent in compilations:
        seconds[implementation] += spent
    if not seconds:
        return None
    slowest_first = sorted(seconds, key=lambda name: -seconds[name])
    return (
        f"{text.seconds(sum(seconds.values()))} went into compiling {text.some(slowest_first)}, "
        "which is done again in every process; with `cache=True` Numba keeps the code"
    )


def answer_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of an answer to a query, its header first: columns of numbers on the right,
    in six digits, and two spaces between columns. Several lines of a text stand below each other.

    rich's table takes 5 ms for a row of 60 cells: it wraps each cell and looks for styles in it.
    """
    cells = [[_text(name) for name in columns], *([_text(v) for v in row] for row in rows)]
    is_right = [
        bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        for place in range(len(columns))
    ]
    widths = [
        max(cell_len(line) for row in cells for line in row[place].split("\n"))
        for place in range(len(columns))
    ]
    lines = []
    for row in cells:
        for parts in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            padded = (
                " " * (width - cell_len(part)) + part if right else set_cell_size(part, width)
                for part, width, right in zip(parts, widths, is_right, strict=True)
            )
            lines.append("  ".join(padded).rstrip())
    return lines


def _text(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace("\t", " ").replace("\r", "")
