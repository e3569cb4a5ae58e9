"""What ``gpubench grid`` shows: a tour of a grid, as a table and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from rich.table import Table

from gpubench.grid_tour import Dim3, Tour
from gpubench.names import format_shape
from gpubench.report.text import plural
from gpubench.tables.table import table

WIDTH = 80
"""Characters of a terminal that nobody has made wider."""
MAX_GRID_ROWS = 32
MAX_GRID_COLUMNS = 16
_CORNER, _GAP = "block \\ thread", 2
WARP = 32
"""Threads that run in step, on every NVIDIA GPU (CUDA C++ Programming Guide, "SIMT")."""


def grid_report(tour: Tour) -> Iterator[Table | str]:
    """Yield what was launched, a row of the table for each block and a column for each thread, what
    that leaves out, and how it maps."""
    blocks, threads = math.prod(tour.grid), math.prod(tour.block)
    yield (
        f"{plural(blocks, 'block')} of {plural(threads, 'thread')}: "
        f"{plural(blocks * threads, 'thread')}, on {tour.device} ({tour.name})"
    )
    # Only the dimensions in which the grid or its blocks extend; at least one.
    wide = [i for i in range(3) if tour.grid[i] > 1 or tour.block[i] > 1]
    dimensions = max(wide, default=0) + 1

    def index(place: Dim3) -> str:
        return ",".join(map(str, place[:dimensions]))

    elements = {
        (visit.block, visit.thread): f"[{', '.join(map(str, visit.element[:dimensions][::-1]))}]"
        for visit in tour.visits
    }
    # As many columns as fit beside the blocks' names, all as wide as the last element.
    widest = len(elements[tour.visits[-1][:2]]) + _GAP
    columns = min(MAX_GRID_COLUMNS, (WIDTH - len(_CORNER) - _GAP) // widest)
    shown = _places(tour.block)[:columns]
    rows = (
        (index(block), *(elements[block, thread] for thread in shown))
        for block in _places(tour.grid)[:MAX_GRID_ROWS]
    )
    yield table((_CORNER, *map(index, shown)), rows)
    left_out = [plural(blocks - MAX_GRID_ROWS, "block")] * (blocks > MAX_GRID_ROWS)
    left_out += [f"{plural(threads - columns, 'thread')} of each block"] * (threads > columns)
    if left_out:
        yield f"not shown: {', '.join(left_out)}"
    yield from _mapping(tour, dimensions)


def _mapping(tour: Tour, dimensions: int) -> Iterator[str]:
    """Yield how a thread finds its element, and what that means for arrays of other shapes."""
    names = "xyz"[:dimensions]
    extents = [g * b for g, b in zip(tour.grid, tour.block, strict=True)][:dimensions]
    if dimensions == 1:
        yield (
            "i = cuda.grid(1) is blockIdx.x * blockDim.x + threadIdx.x: "
            f"the threads cover an array of {plural(extents[0], 'element')}, a[i]"
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
    threads = math.prod(tour.block)
    warps = math.ceil(threads / WARP)
    idle = warps * WARP - threads
    lanes = f"; {plural(idle, 'lane')} of the last idle" if idle else ""
    yield f"a block runs as {plural(warps, 'warp')} of {WARP} threads in step{lanes}"


def grid_rows(tour: Tour) -> dict[str, Any]:
    """Return the tour as JSON shows it."""
    visits = [
        {"block": visit.block, "thread": visit.thread, "element": visit.element[::-1]}
        for visit in tour.visits
    ]
    shapes = {"grid": format_shape(tour.grid), "block": format_shape(tour.block)}
    return {**shapes, "device": tour.device, "name": tour.name, "threads": visits}


def _places(shape: Dim3) -> list[Dim3]:
    """Return all places in a shape, x fastest, as CUDA counts them."""
    return [(x, y, z) for z, y, x in product(*map(range, shape[::-1]))]
