"""A tour of a grid, as a table and in words. Nothing here prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from rich.table import Table
from rich.text import Text

from gpubench.grid_tour import Place, Tour, Visit
from gpubench.names import format_shape

WIDTH = 80
"""Characters of a terminal that nobody has made wider."""
MOST_ROWS = 32
MOST_COLUMNS = 16
_FIRST_COLUMN, _GAP = len(" block \\ thread "), 2
WARP = 32
"""Threads that run in step, on every NVIDIA GPU (CUDA C++ Programming Guide, "SIMT")."""

_NAMES = "xyz"


def grid_report(tour: Tour) -> Iterator[Table | str]:
    """What was launched, a table of blocks and threads, what it leaves out, and how it maps."""
    threads = math.prod(tour.grid) * math.prod(tour.block)
    yield (
        f"{_count(math.prod(tour.grid), 'block')} of {_count(math.prod(tour.block), 'thread')}: "
        f"{_count(threads, 'thread')}, on {tour.device} ({tour.name})"
    )
    yield grid_table(tour)
    if left_out := _left_out(tour):
        yield left_out
    yield from mapping(tour)


def grid_table(tour: Tour) -> Table:
    """One row for each block, one column for each thread; in it, the thread's element."""
    dimensions = _dimensions(tour)
    columns = list(islice(_places(tour.block), _columns(tour)))
    heads = [_index(place, dimensions) for place in columns]
    table = Table("block \\ thread", *heads, box=None, header_style="bold")
    elements = {(visit.block, visit.thread): visit for visit in tour.visits}
    for block in islice(_places(tour.grid), MOST_ROWS):
        cells = [Text(_element(elements[block, thread], dimensions)) for thread in columns]
        table.add_row(_index(block, dimensions), *cells)
    return table


def mapping(tour: Tour) -> Iterator[str]:
    """How a thread finds its element, and what that means for arrays of other shapes."""
    dimensions = _dimensions(tour)
    names = _NAMES[:dimensions]
    extents = [g * b for g, b in zip(tour.grid, tour.block, strict=True)][:dimensions]
    if dimensions == 1:
        yield (
            "i = cuda.grid(1) is blockIdx.x * blockDim.x + threadIdx.x: "
            f"the threads cover an array of {_count(extents[0], 'element')}, a[i]"
        )
    else:
        yield (
            f"{', '.join(names)} = cuda.grid({dimensions}), x as blockIdx.x * blockDim.x + "
            f"threadIdx.x: the threads cover an array of shape {extents[::-1]}, "
            f"a[{', '.join(names[::-1])}]; x is its last dimension"
        )
    blocks = [
        f"ceil(extent / {threads}){f' along {name}' if dimensions > 1 else ''}"
        for name, threads in zip(names, tour.block, strict=False)
    ]
    yield (
        f"an array of another shape takes {', '.join(blocks)} blocks; threads beyond its end must "
        "not touch it"
    )
    yield _warps(math.prod(tour.block))


def grid_rows(tour: Tour) -> dict[str, Any]:
    """The tour as JSON shows it."""
    visits = [
        {"block": list(one.block), "thread": list(one.thread), "element": list(one.element[::-1])}
        for one in tour.visits
    ]
    shapes = {"grid": format_shape(tour.grid), "block": format_shape(tour.block)}
    return {**shapes, "device": tour.device, "name": tour.name, "threads": visits}


def _warps(threads: int) -> str:
    warps = -(-threads // WARP)
    idle = warps * WARP - threads
    lanes = f"; {_count(idle, 'lane')} of the last idle" if idle else ""
    return f"a block runs as {_count(warps, 'warp')} of {WARP} threads in step{lanes}"


def _left_out(tour: Tour) -> str | None:
    rows = math.prod(tour.grid) - MOST_ROWS
    columns = math.prod(tour.block) - _columns(tour)
    parts = [_count(rows, "block")] if rows > 0 else []
    parts += [f"{_count(columns, 'thread')} of each block"] if columns > 0 else []
    return f"not shown: {', '.join(parts)}" if parts else None


def _columns(tour: Tour) -> int:
    """Columns that fit beside the blocks' names, all as wide as the last element."""
    widest = len(_element(tour.visits[-1], _dimensions(tour))) + _GAP
    return min(MOST_COLUMNS, (WIDTH - _FIRST_COLUMN) // widest)


def _dimensions(tour: Tour) -> int:
    """Dimensions in which the grid or its blocks extend; at least one."""
    wide = [i for i in range(3) if tour.grid[i] > 1 or tour.block[i] > 1]
    return max(wide, default=0) + 1


def _places(shape: Place) -> Iterator[Place]:
    """All places in a shape, x fastest, as CUDA counts them."""
    for z, y, x in product(*map(range, shape[::-1])):
        yield x, y, z


def _index(place: Place, dimensions: int) -> str:
    return ",".join(map(str, place[:dimensions]))


def _element(visit: Visit, dimensions: int) -> str:
    return f"[{', '.join(map(str, visit.element[:dimensions][::-1]))}]"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
