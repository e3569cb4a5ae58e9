"""How tables and lines look on a terminal, whichever command shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import Any

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gpubench.report import text

_UNLIMITED = 10_000
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
        wide = Console(width=_UNLIMITED)
        made.width = Measurement.get(wide, wide.options, made).maximum
    return made


def several(cases: Sequence[str]) -> str:
    """``3 cases, first n=8``; of one its name alone."""
    return cases[0] if len(cases) == 1 else f"{len(cases)} cases, first {cases[0]}"


def compiled_line(compilations: Iterable[tuple[str, float]]) -> str | None:
    """What it cost to compile functions that keep no code: of each process the implementation and
    seconds. ``None`` where none was compiled."""
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


def answer_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """The answer to a query: columns of numbers on the right, in six digits."""
    values = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    numbers = {n for n, vs in values.items() if all(isinstance(v, int | float | None) for v in vs)}
    texts = ([_text(value) for value in row] for row in rows)
    return table(columns, texts, numbers)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
