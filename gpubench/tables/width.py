"""Tables whose lines are as long as they are, also where nobody made the terminal wider."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

UNLIMITED = 10_000
"""Characters of a line that no table needs."""


def unwrapped(table: Table) -> Table:
    """The table, at the width of its longest lines."""
    wide = Console(width=UNLIMITED)
    table.width = Measurement.get(wide, wide.options, table).maximum
    return table
