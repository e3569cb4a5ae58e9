"""Launch shapes in whole numbers: what the suite writes as formulas, and ``cover``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from gpubench.backends.protocol import Launch
from gpubench.plan.point import Path, Point

if TYPE_CHECKING:
    from gpubench.suite.model import Extent, Include
    from gpubench.suite.model import Shape as WrittenShape

T = TypeVar("T")
Grid = tuple[int, ...] | Literal["cover"]


class Shape(NamedTuple):
    """One way to launch at a point; ``None`` for what the implementation does not declare."""

    block: tuple[int, ...] | None
    grid: Grid | None
    threads: int | None


UNKNOWN = Shape(None, None, None)
"""Of a case whose shape has no value."""


def shapes(point: Point) -> Iterator[Shape]:
    """Every block x grid x thread count of the point's implementation, in the file's order."""
    blocks, grids, threads = _blocks(point), _grids(point), _threads(point)
    combined = itertools.product(blocks or (None,), grids or (None,), threads or (None,))
    return itertools.starmap(Shape, combined)


def included(point: Point, index: int, entry: Include) -> Shape:
    """How an ``include`` launches: what it leaves open is what the implementation has first."""
    path = ("include", index)
    if entry.block is None:
        block = _first(_blocks(point))
    else:
        block = point.shape(extents(entry.block), (*path, "block"), least=1)
    if entry.grid is None:
        grid = _first(_grids(point))
    else:
        grid = _grid(point, entry.grid, (*path, "grid"))
    return Shape(block, grid, entry.threads or _first(_threads(point)))


def extents(shape: WrittenShape) -> tuple[Extent, ...]:
    """A shape as written: one extent alone is a shape of one dimension."""
    return shape if isinstance(shape, tuple) else (shape,)


def launch(point: Point, shape: Shape) -> Launch | None:
    """The launch of a case; ``None`` where its implementation declares none.

    Raises ``PlanError`` for a launch without a block, and where ``cover`` does not fit a grid.
    """
    declared = point.subject.implementation.launch
    block, grid, _ = shape
    if declared is None:
        return None
    if block is None:
        raise point.error(launch_path(point), "launch", "has no `block`: write its shapes")
    path = (*launch_path(point), "shared_bytes")
    return Launch(
        block=_three(block),
        grid=_three(grid if isinstance(grid, tuple) else covering_grid(covered(point), block)),
        shared_bytes=point.whole(declared.shared_bytes, path),
        cooperative=declared.cooperative,
    )


def covered(point: Point) -> tuple[int, ...]:
    """Extents that ``cover`` gives a thread each, x first: ``over``, else the first output's shape.

    A shape of NumPy has its fastest dimension last, a grid has it first. A suite without either has
    not been loaded.
    """
    declared = point.subject.implementation.launch
    path = (*launch_path(point), "over")
    if declared is not None and declared.over is not None:
        return point.shape(declared.over, path)
    written = (spec for spec in point.arrays.values() if spec.intent in ("out", "inout"))
    shape = next(written).shape
    if len(shape) > 3:
        problem = f"an array of {len(shape)} dimensions does not fit a grid of three: write `over`"
        raise point.error(path, "cover", problem)
    return shape[::-1]


def covering_grid(extents: tuple[int, ...], block: tuple[int, ...]) -> tuple[int, ...]:
    """Fewest blocks that give every element a thread: ``ceil(extent / block)`` for each extent."""
    pairs = itertools.zip_longest(extents, block, fillvalue=1)
    return tuple(-(-extent // width) for extent, width in pairs)


def launch_path(point: Point) -> Path:
    """Where the launch stands inside the kernel."""
    return ("implementations", point.subject.implementation_name, "launch")


def _first(items: list[T]) -> T | None:
    return items[0] if items else None


def _blocks(point: Point) -> list[tuple[int, ...]]:
    path = (*launch_path(point), "block")
    return [point.shape(block, path, least=1) for block in point.subject.blocks]


def _grids(point: Point) -> list[Grid]:
    path = (*launch_path(point), "grid")
    return [_grid(point, grid, path) for grid in point.subject.grids]


def _threads(point: Point) -> list[int]:
    path = ("implementations", point.subject.implementation_name, "threads")
    return [point.whole(count, path, least=1) for count in point.subject.implementation.threads]


def _grid(point: Point, grid: Literal["cover"] | WrittenShape, path: Path) -> Grid:
    """``cover`` stays a word until the launch is asked for."""
    return "cover" if grid == "cover" else point.shape(extents(grid), path, least=1)


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*shape, 1, 1)[:3]
    return x, y, z
